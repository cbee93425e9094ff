"""The demo hospital is the same in every database."""

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
    # A database in use is left alone.
    with pytest.raises(NotEmptyError, match="sejour"):
        fill(hospital.url, stays=LEAST_STAYS)


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
