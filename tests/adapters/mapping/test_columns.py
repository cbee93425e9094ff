"""Many rows mapped at once: what each of them becomes alone, whatever their cells hold."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.contract import ResourceType
from adapters.mapping.apply import NO_EXTRAS, RowMapper
from tests.adapters.mapping.good import WHOLE, load
from tests.adapters.mapping.test_apply import PATIENT, STAY

DEMO = Path(__file__).parents[3] / "mappings" / "demo" / "demo.yaml"
DEMO_STAY = {
    **{"sejour_id": 7, "etab_id": 2, "num_venue": "000000007", "patient_id": 158},
    **{"etat": "S", "type_sejour": "HC", "uf_courante": "0123"},
    **{"date_entree": datetime(2024, 3, 30, 8), "date_sortie": None},  # noqa: DTZ001
    "maj_utc": datetime(2024, 4, 1, 1, 2, 3),  # noqa: DTZ001
}
UNIT = {"code": "0123", "label": "Cardiologie"}

ODD = (
    *(None, "", "  ", "S", "S ", "X", "A", "Ç", "nul\x00", "n\xa0", "a_b", "7", "07"),
    *(0, 1, 7, -7, True, False, 1.0, 7.5, Decimal("7.0"), b"\x01", {"a": 1}, [1]),
    *(date(2024, 3, 30), date(2999, 12, 31), time(8), "2024-03-30 08:00:00"),
)
TIMES = st.one_of(
    st.datetimes(datetime(2023, 1, 1), datetime(2026, 1, 1)),  # noqa: DTZ001
    st.datetimes(),
    st.datetimes(timezones=st.sampled_from([UTC])),
    st.sampled_from(
        [
            datetime(2999, 12, 31),  # noqa: DTZ001
            datetime(2999, 12, 31, 1),  # noqa: DTZ001
            datetime(2024, 3, 31, 2, 30),  # noqa: DTZ001
            datetime(2024, 10, 27, 2, 30, fold=1),  # noqa: DTZ001
        ]
    ),
)


Mapped = dict[str, tuple[RowMapper, Mapping[str, object]]]


@pytest.fixture(scope="module")
def mappers(tmp_path_factory: pytest.TempPathFactory) -> Mapped:
    directory = tmp_path_factory.mktemp("mapping")
    whole = load(WHOLE, directory).resources
    demo = load(DEMO.read_text(), directory).resources[ResourceType.ENCOUNTER]
    return {
        "a stay": (RowMapper(demo, tuple(DEMO_STAY)), DEMO_STAY),
        "another": (RowMapper(whole[ResourceType.ENCOUNTER], tuple(STAY)), STAY),
        "a patient": (RowMapper(whole[ResourceType.PATIENT], tuple(PATIENT)), PATIENT),
        "a unit": (RowMapper(whole[ResourceType.ORGANIZATION], tuple(UNIT)), UNIT),
    }


def same(mapper: RowMapper, rows: list[tuple[Any, ...]]) -> None:
    """Fail unless all rows become together what each becomes alone, offsets too."""
    extras = [NO_EXTRAS] * len(rows)
    assert repr(mapper.many(rows, extras)) == repr(tuple(map(mapper, rows)))


@pytest.mark.parametrize("name", ["a stay", "another", "a patient", "a unit"])
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)
@given(data=st.data())
def test_together_as_alone(mappers: Mapped, name: str, data: st.DataObject) -> None:
    mapper, usual = mappers[name]
    rows = [tuple(usual.values())] * data.draw(st.integers(0, 12))
    for _ in range(data.draw(st.integers(0, 3)) if rows else 0):
        at = data.draw(st.integers(0, len(rows) - 1))
        column = data.draw(st.sampled_from(list(usual)))
        value = data.draw(st.one_of(st.sampled_from(ODD), TIMES))
        rows[at] = tuple(
            {**dict(zip(usual, rows[at], strict=True)), column: value}.values()
        )
    same(mapper, rows)


@pytest.mark.parametrize("column", ["date_entree", "date_sortie", "maj_utc"])
def test_a_year_of_hours(mappers: Mapped, column: str) -> None:
    """Clocks change twice in it, and a few rows stand on hours that never were."""
    mapper, usual = mappers["a stay"]
    first = datetime(2024, 1, 1, 0, 30)  # noqa: DTZ001
    hours = [first + timedelta(hours=hour) for hour in range(366 * 24)]
    open_stay = {**usual, "date_entree": None, "date_sortie": None}
    rows = [tuple({**open_stay, column: hour}.values()) for hour in hours]
    for start in range(0, len(rows), 100):
        same(mapper, rows[start : start + 100])


def test_texts_of_one_column(mappers: Mapped) -> None:
    """Each is read by its own rule, whatever the others are."""
    mapper, usual = mappers["a stay"]
    for column in ("sejour_id", "num_venue", "patient_id", "etat", "uf_courante"):
        for odd in ODD:
            texts = [*map(str, range(7)), odd]
            same(mapper, [tuple({**usual, column: text}.values()) for text in texts])
            numbers = [*range(7), odd]
            same(mapper, [tuple({**usual, column: n}.values()) for n in numbers])
