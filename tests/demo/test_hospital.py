"""The demo hospital has every case that real ones have, the same in every database."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from adapters.folding import fold
from demo.hospital import (
    LEAST_STAYS,
    NotEmptyError,
    fill,
    generate,
    houses,
    load,
)
from demo.people import DIFFICULT_FAMILIES, Row, search_form
from demo.tables import ETABLISSEMENT, TABLES
from tests.demo.filled import STAYS, Filled

SAME_MINUTE = """SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM sejour
  WHERE date_entree IS NOT NULL GROUP BY date_entree) AS x"""
SHARED_VISIT_NUMBERS = """SELECT COUNT(*) FROM (SELECT num_venue FROM sejour
  WHERE num_venue <> '' GROUP BY num_venue HAVING COUNT(DISTINCT etab_id) = 2) AS x"""
STAYS_OF_ONE = """SELECT COUNT(*) FROM (SELECT patient_id FROM sejour
  GROUP BY patient_id HAVING COUNT(*) {}) AS x"""
SEVERAL = """SELECT COUNT(*) FROM (SELECT patient_id FROM {}
  GROUP BY patient_id HAVING COUNT(*) > 2) AS x"""

AUTUMN = "date_entree IN ('2023-10-29 02:30:00', '2024-10-27 02:30:00')"
SPRING = "date_entree = '2024-03-30 08:15:00' AND date_sortie = '2024-03-31 17:00:00'"
CASES = (
    ("sejour", "etat IN ('A', 'AN')", 40),
    ("sejour", "etat IN ('X', 'SUP')", 10),
    ("sejour", "etat IN ('E', 'EC', 'R') AND date_sortie IS NULL", 10),
    ("sejour", "date_sortie > '2999-01-01'", 5),
    ("sejour", "etat IN ('S', 'T', 'F') AND date_sortie IS NULL", 2),
    ("sejour", "etat IN ('P', 'PA') AND date_entree IS NULL", 10),
    ("sejour", "etat IN ('P', 'PA') AND date_entree IS NOT NULL", 10),
    *(("sejour", f"etat = '{state}'", 1) for state in ("S", "T", "F", "Q7", "?", "")),
    ("sejour", "etat IS NULL", 1),
    ("sejour", "type_sejour = 'ZZZ'", 5),
    ("sejour", "type_sejour IS NULL", 5),
    ("sejour", "type_sejour = ''", 5),
    # 02:30 in autumn, a spring night, midnight.
    ("sejour", AUTUMN, 3),
    ("sejour", "date_sortie = '2024-10-27 02:30:00'", 1),
    ("sejour", SPRING, 1),
    ("sejour", "date_entree = '2024-01-01 00:00:00'", 1),
    ("sejour", "uf_courante = '0123'", 100),
    *(("sejour", f"{name} IS NULL", 2) for name in ("uf_courante", "num_venue")),
    *(("sejour", f"{name} = ''", 2) for name in ("uf_courante", "num_venue")),
    ("sejour", "maj_utc IS NULL", 4),
    ("sejour", "maj_utc = '2021-03-14 02:00:00.120000'", 20),
    ("mouvement", "rang = 3", 100),
    ("patient", "fusion_vers IS NOT NULL", 6),
    ("patient", "decede = 'O' AND date_deces IS NOT NULL", 5),
    ("patient", "decede = 'O' AND date_deces IS NULL", 5),
    ("identite", "nom_naissance LIKE 'INCONNU%'", 2),
    ("identite", "statut IS NULL", 1),
    ("identite", "date_naissance = '1900-01-01'", 3),
    ("identite", "sexe = 'Z'", 2),
    ("identite", "nom_utilise IS NULL", 10),
    ("identite", "nom_utilise = ''", 10),
    ("identite", "nom_naissance LIKE '%''%'", 2),
    ("identite", "nom_naissance LIKE '%’%'", 2),
)
"""What holds of how many rows of a table at least, of 2,000 stays."""

COUNTED = (
    (SAME_MINUTE, 100),
    (
        "SELECT COUNT(DISTINCT etab_id) FROM unite_fonctionnelle WHERE code = '0123'",
        2,
    ),
    (SHARED_VISIT_NUMBERS, 500),
    (STAYS_OF_ONE.format("= 10"), 5),
    (STAYS_OF_ONE.format(">= 300"), 1),
    (SEVERAL.format("adresse"), 10),
    (SEVERAL.format("moyen_contact"), 10),
    # National numbers of identities that are not qualified.
    (
        "SELECT COUNT(*) FROM identifiant_patient n JOIN identite i"
        " ON i.patient_id = n.patient_id WHERE n.domaine = 'INS-NIR'"
        " AND COALESCE(i.statut, '') <> 'QUAL'",
        20,
    ),
)
"""Other statements that count a case."""

NEVER = (
    # Merged files point to the last survivor, which has their stays.
    """SELECT COUNT(*) FROM patient a JOIN patient b
      ON b.patient_id = a.fusion_vers WHERE b.fusion_vers IS NOT NULL""",
    """SELECT COUNT(*) FROM sejour s LEFT JOIN patient p
      ON p.patient_id = s.patient_id
      WHERE p.patient_id IS NULL OR p.fusion_vers IS NOT NULL""",
    "SELECT COUNT(*) FROM patient WHERE (etat_dossier = 'F') <> (fusion_vers IS NOT NULL)",
    # The unit of a stay is that of its last movement.
    """SELECT COUNT(*) FROM sejour s
      JOIN mouvement m ON m.sejour_id = s.sejour_id AND m.rang = (
        SELECT MAX(rang) FROM mouvement WHERE sejour_id = s.sejour_id)
      LEFT JOIN unite_fonctionnelle u ON u.uf_id = m.uf_id
      WHERE COALESCE(s.uf_courante, '') <> COALESCE(u.code, '')
         OR u.etab_id <> s.etab_id""",
    # Visit numbers are unique within one hospital.
    """SELECT COUNT(*) FROM (SELECT 1 FROM sejour WHERE num_venue <> ''
      GROUP BY etab_id, num_venue HAVING COUNT(*) > 1) AS x""",
)
"""What no row of a hospital may be."""


def test_special_cases_are_there(hospital: Filled) -> None:
    for table, condition, least in CASES:
        statement = f"SELECT COUNT(*) FROM {table} WHERE {condition}"
        assert hospital.number(statement.replace("%", "%%")) >= least, condition
    for statement, least in COUNTED:
        assert hospital.number(statement) >= least, statement
    for statement in NEVER:
        assert hospital.number(statement) == 0, statement
    assert hospital.number("SELECT COUNT(DISTINCT sejour_id) FROM mouvement") == STAYS
    # A database in use is left alone.
    with pytest.raises(NotEmptyError, match="sejour"):
        fill(hospital.url, stays=LEAST_STAYS)
    assert hospital.number("SELECT COUNT(*) FROM sejour") == STAYS


def test_every_database_has_the_generated_rows(hospital: Filled) -> None:
    generated = list(generate(STAYS, 1))
    with hospital.engine.connect() as connection:
        for table in TABLES:
            (key,) = table.primary_key.columns
            rows = connection.execute(sa.select(table).order_by(key)).mappings()
            assert [dict(row) for row in rows] == [
                r for t, r in generated if t is table
            ]
    assert hospital.summary == Counter(table.name for table, _ in generated)
    assert hospital.summary["sejour"] == STAYS


def test_search_columns_are_folded_as_a_search_is(hospital: Filled) -> None:
    with hospital.engine.connect() as connection:
        for name in ("nom_naissance", "prenoms", "nom_utilise", "prenom_utilise"):
            statement = f"SELECT {name}, {name}_recherche FROM identite"
            for text, searched in connection.exec_driver_sql(statement):
                assert searched == (text and fold(text).upper())
    for text in DIFFICULT_FAMILIES:
        assert search_form(text) == fold(text).upper()


class _InterruptedError(Exception):
    pass


def _interrupted() -> Iterator[Row]:
    yield from houses()
    raise _InterruptedError


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_half_a_hospital_is_none(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = f"sqlite:///{tmp_path}/pas.sqlite"
    if kind == "postgresql":
        url = request.getfixturevalue("new_postgresql")("plain")
    with pytest.raises(_InterruptedError):
        load(url, _interrupted())
    assert load(url, houses()) == {ETABLISSEMENT.name: 4}


def test_too_few_stays_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least"):
        fill(f"sqlite:///{tmp_path}/pas.sqlite", stays=LEAST_STAYS - 1)
