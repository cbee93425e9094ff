"""The demo hospital holds every case that real ones have, the same in every database."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from adapters.words import fold
from demo.hospital import LEAST_STAYS, NotEmptyError, fill, generate, main
from demo.loading import load
from demo.names import FAMILIES, GIVEN_F, GIVEN_M, search_form
from demo.people import CANARY_PATIENT
from demo.plans import SAME_MINUTE_STAYS
from demo.rows import Row, Sejour
from demo.sites import hospitals
from demo.tables import TABLES
from tests.demo.cases import CASES
from tests.demo.filled import STAYS, Filled


@pytest.mark.parametrize("case", CASES)
def test_special_case_is_there(hospital: Filled, case: str) -> None:
    statement, least = CASES[case]
    assert hospital.number(statement.replace("%", "%%")) >= least


def test_row_classes_are_the_tables() -> None:
    for kind, table in TABLES.items():
        assert kind._fields == tuple(table.columns.keys())


def test_same_seed_gives_same_rows() -> None:
    assert list(generate(1200, 7)) == list(generate(1200, 7))
    assert list(generate(1200, 7)) != list(generate(1200, 8))


def test_every_database_holds_what_was_generated(hospital: Filled) -> None:
    made = list(generate(STAYS, 1))
    with hospital.engine.connect() as connection:
        for kind, table in TABLES.items():
            (key,) = table.primary_key.columns
            there = connection.execute(sa.select(table).order_by(key))
            wanted = [tuple(row) for row in made if type(row) is kind]
            assert [tuple(row) for row in there] == wanted


def test_summary_counts_the_rows(hospital: Filled) -> None:
    made = Counter(TABLES[type(row)].name for row in generate(STAYS, 1))
    assert asdict(hospital.summary) == made
    assert hospital.summary.sejour == STAYS


def test_indexes_and_statistics_are_made(hospital: Filled) -> None:
    inspector = sa.inspect(hospital.engine)
    there = {
        tuple(index["column_names"])
        for table in TABLES.values()
        for index in inspector.get_indexes(table.name)
    }
    assert ("patient_id", "date_entree", "sejour_id") in there
    assert ("maj_utc", "sejour_id") in there
    statistics = {
        "sqlite": "sqlite_stat1",
        "postgresql": "pg_stats WHERE schemaname = 'public'",
        "mysql": "information_schema.statistics"
        " WHERE table_schema = DATABASE() AND cardinality > 0",
    }
    table = statistics[hospital.engine.dialect.name]
    assert hospital.number(f"SELECT COUNT(*) FROM {table}") > 0


# ------------------------------------------------------------------ what holds together


def test_merged_files_point_to_the_last_survivor_that_has_their_stays(
    hospital: Filled,
) -> None:
    chained = """SELECT COUNT(*) FROM patient a JOIN patient b
      ON b.patient_id = a.fusion_vers WHERE b.fusion_vers IS NOT NULL"""
    lost = """SELECT COUNT(*) FROM sejour s LEFT JOIN patient p
      ON p.patient_id = s.patient_id
      WHERE p.patient_id IS NULL OR p.fusion_vers IS NOT NULL"""
    assert hospital.number(chained) == 0
    assert hospital.number(lost) == 0
    assert hospital.number("SELECT COUNT(*) FROM patient WHERE etat_dossier = 'F'") == (
        hospital.number("SELECT COUNT(*) FROM patient WHERE fusion_vers IS NOT NULL")
    )


def test_unit_of_a_stay_is_that_of_its_last_movement(hospital: Filled) -> None:
    wrong = """SELECT COUNT(*) FROM sejour s
      JOIN mouvement m ON m.sejour_id = s.sejour_id AND m.rang = (
        SELECT MAX(rang) FROM mouvement WHERE sejour_id = s.sejour_id)
      LEFT JOIN unite_fonctionnelle u ON u.uf_id = m.uf_id
      WHERE COALESCE(s.uf_courante, '') <> COALESCE(u.code, '')
         OR u.etab_id <> s.etab_id"""
    assert hospital.number(wrong) == 0
    moved = "SELECT COUNT(DISTINCT sejour_id) FROM mouvement"
    assert hospital.number(moved) == STAYS


def test_visit_numbers_are_unique_within_one_hospital(hospital: Filled) -> None:
    twice = """SELECT COUNT(*) FROM (SELECT 1 FROM sejour WHERE num_venue <> ''
      GROUP BY etab_id, num_venue HAVING COUNT(*) > 1) AS x"""
    assert hospital.number(twice) == 0


def test_houses_have_their_own_finess() -> None:
    served = [house for house in hospitals() if house.parent_id and house.ouvert == "O"]
    assert len({house.finess_et for house in served}) == 2
    assert all(re.fullmatch(r"\d{9}", house.finess_et or "") for house in served)


def test_search_columns_hold_what_a_search_folds(hospital: Filled) -> None:
    pairs = ("nom_naissance", "prenoms", "nom_utilise", "prenom_utilise")
    with hospital.engine.connect() as connection:
        for name in pairs:
            statement = f"SELECT {name}, {name}_recherche FROM identite"
            for text, searched in connection.exec_driver_sql(statement):
                assert searched == (text and fold(text).upper())
    for text in (*FAMILIES, *GIVEN_F, *GIVEN_M):
        assert search_form(text) == fold(text).upper()


def test_names_have_the_letters_that_go_wrong() -> None:
    letters = set("".join((*FAMILIES, *GIVEN_F, *GIVEN_M)).lower())
    assert letters >= set("éèçÿœłøễ’'-")


def test_one_morning_starts_in_one_minute() -> None:
    stays = [row for row in generate(STAYS, 3) if isinstance(row, Sejour)]
    starts = Counter(stay.date_entree for stay in stays if stay.date_entree)
    assert starts.most_common(1)[0][1] >= SAME_MINUTE_STAYS


def test_about_five_stays_a_patient() -> None:
    made = Counter(type(row).__name__ for row in generate(20_000, 1))
    assert 4 < made["Sejour"] / made["Patient"] < 6


# ---------------------------------------------------------------------- asked wrongly


def _in_the_gap(rows: Iterator[Row]) -> list[datetime]:
    starts = [row.date_entree for row in rows if isinstance(row, Sejour)]
    return [
        start
        for start in starts
        if start and start.month == 3 and start.hour == 2
        if start.isoweekday() == 7 and start.day > 24
    ]


def test_a_start_that_never_happened_is_made_only_when_asked_for() -> None:
    assert _in_the_gap(generate(20_000, 1)) == []
    assert len(_in_the_gap(generate(20_000, 1, spring_gap=True))) == 1


def test_a_database_in_use_is_left_alone(hospital: Filled) -> None:
    with pytest.raises(NotEmptyError, match="sejour"):
        fill(hospital.url, stays=LEAST_STAYS)
    assert hospital.number("SELECT COUNT(*) FROM sejour") == STAYS


def test_too_few_stays_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least"):
        fill(f"sqlite:///{tmp_path}/pas.sqlite", stays=LEAST_STAYS - 1)


class _BrokenOffError(Exception):
    pass


def _broken_off() -> Iterator[Row]:
    yield from hospitals()
    raise _BrokenOffError


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_half_a_hospital_is_none(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = f"sqlite:///{tmp_path}/pas.sqlite"
    if kind == "postgresql":
        url = request.getfixturevalue("new_postgresql")("plain")
    with pytest.raises(_BrokenOffError):
        load(url, _broken_off())
    assert load(url, hospitals()) == {"etablissement": 4}


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path}/pas.sqlite"
    main([url, "--stays", "1000", "--seed", "4"])
    assert re.search(r"sejour +1,000\n", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sqlite:///{}/full.sqlite"], "already has adresse"),
        (["sqlite:///{}/pas.sqlite", "--stays", "9"], "at least 1000 stays"),
        (["nonsense"], "parse SQLAlchemy URL"),
    ],
)
def test_command_line_refuses_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    fill(f"sqlite:///{tmp_path}/full.sqlite", stays=LEAST_STAYS)
    with pytest.raises(SystemExit) as stopped:
        main([argument.format(tmp_path) for argument in arguments])
    assert stopped.value.code == 1
    assert said in capsys.readouterr().err


def test_canary_has_ten_stays(hospital: Filled) -> None:
    statement = f"SELECT COUNT(*) FROM sejour WHERE patient_id = {CANARY_PATIENT}"
    assert hospital.number(statement) == 10
