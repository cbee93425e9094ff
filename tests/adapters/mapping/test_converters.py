"""A column of cells becomes what each of its cells becomes; a page what each of its rows does."""
# ruff: noqa: DTZ001 (times without a zone, as columns have them)

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.mapping.converters import Converter, converter_of
from adapters.mapping.model import (
    CodeTable,
    FieldMapping,
    Mark,
    Never,
    ResourceMapping,
    TimeRule,
    Twice,
)
from adapters.mapping.row_mapper import RowMapper, item_columns, own_columns
from adapters.mapping.slots import SlotKind
from tests.adapters.mapping.good import WHOLE, load

PARIS, APIA = ZoneInfo("Europe/Paris"), ZoneInfo("Pacific/Apia")


class Text(str):
    __slots__ = ()


TEXTS = (
    *("", "  ", "a", "a ", "S", "P", "A", "X", "O", "NO", "URG ", "VALI", "Patient/7"),
    *("042", "1", "true", "Anne  Marie", "a\tb", "a\x00b", "\x1f", "\ud800", "\xa0"),
    *("x" * 64, "x" * 65, "a_b", "é", "9999-12-31", "2024-07-15 08:00", "20240715"),
    *("2024-10-27 02:30", "2024-07-15T08:00-05:00", "202407150800", "infinity", "8h"),
    Text("a1 "),
)
NUMBERS = (
    *(None, 0, 1, 2, 42, -7, 10**70, True, False, 1.0, 42.0, 2.5, 1e300, 202407150800),
    *(Decimal(1), Decimal("42.50"), float("inf")),
)
TIMES = (
    *(datetime(2024, 7, 15, 8), datetime(2999, 12, 31), date(2999, 12, 31)),
    datetime(9999, 12, 31),
    *(datetime(2024, 3, 31, 2, 30), datetime(2024, 10, 27, 2, 10)),
    *(datetime(2024, 10, 27, 2, 50), datetime(2024, 10, 27, 2, 30, fold=1)),
    *(datetime(2011, 12, 30, 12), datetime(1905, 6, 1, 12), datetime(1, 1, 1)),
    datetime(9999, 12, 31, 23, 59, 59, 999_999),
    *(datetime(2024, 7, 15, 8, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC)),
    datetime(2024, 10, 27, 2, 30, tzinfo=PARIS, fold=1),
    *(date(2024, 7, 15), time(8, 15), timedelta(hours=9), timedelta(days=2)),
)
OTHERS: tuple[object, ...] = (
    *(b"\x00", b"\x01", b"ab", UUID(int=5), {"a": 1}, ["a", None, "b "], ["a", ["b"]]),
)
CELLS = st.sampled_from((*TEXTS, *NUMBERS, *TIMES, *OTHERS)) | st.text(max_size=5)

CODES = {"S": "finished", "1": "planned", "true": "in-progress", "042": "planned"}
RULES = (
    TimeRule(PARIS, PARIS),
    TimeRule(PARIS, PARIS, at=time(8), twice=Twice.SECOND, never=Never.SHIFT),
    TimeRule(APIA, PARIS, twice=Twice.REFUSE),
    TimeRule(PARIS, PARIS, format="%Y%m%d%H%M"),
    TimeRule(APIA, PARIS, format="epoch-ms"),
)


def field(*columns: str, **options: Any) -> FieldMapping:
    return FieldMapping("slot", Mark("m.yaml", 1, 1), columns or ("a",), **options)


def converters() -> list[Converter]:
    """Return a converter of every kind, with and without its options."""
    absent = frozenset({"a", "S", "042", "9999-12-31", "2999-12-31"})
    plain = [
        converter_of(field(absent=texts), kind)
        for kind in (
            SlotKind.EXACT,
            SlotKind.TEXT,
            SlotKind.ID,
            SlotKind.PARTS,
            SlotKind.FLAG,
        )
        for texts in (frozenset[str](), absent)
    ]
    ids = [
        converter_of(field(prefix="n-"), SlotKind.ID),
        converter_of(field(strip="Patient/"), SlotKind.ID),
        converter_of(field(split=" "), SlotKind.PARTS),
    ]
    coded = [
        converter_of(field(codes=CodeTable("t", CODES, other), absent=texts), kind)
        for kind in (SlotKind.CODE, SlotKind.PARTS)
        for other in (None, "finished")
        for texts in (frozenset[str](), absent)
    ]
    timed = [
        converter_of(field(time=rule, absent=texts), kind)
        for kind in (SlotKind.TIME, SlotKind.DATE)
        for rule in RULES
        for texts in (frozenset[str](), absent)
    ]
    return [*plain, *ids, *coded, *timed]


def outcome(convert: Any, cells: Any) -> Any:
    """Return the values and their types, None if a cell is invalid."""
    try:
        return [(type(value), repr(value)) for value in convert(cells)]
    except ValueError:
        return None


def test_a_column_of_one_type_is_its_cells() -> None:
    for converter in converters():
        for cells in (TEXTS, NUMBERS, TIMES, OTHERS):
            for pair in product((None, *cells), repeat=2):
                singly = outcome(partial(map, converter.one), pair)
                assert outcome(converter.column, pair) == singly, pair


GOOD: Mapping[str, Sequence[object]] = {
    **{"id": (1, "a1"), "patient": (2,), "visit": ("V1 ", None), "unit": ("0123",)},
    **{"state": ("S", "P", "A", "X"), "kind": ("URG", 1, None)},
    **{"day": (date(2024, 7, 15),), "hour": (time(8), None)},
    **{"ended": ("202407160800", None), "changed": (datetime(2024, 7, 15, 8), None)},
    **{"active": ("O", None), "sex": ("NO", 1), "born": (date(1990, 2, 1), None)},
    **{"died": (None,), "ipp": ("8000", None), "ins": ("1840",)},
    **{"ins_state": ("VALI", 0, "PROV"), "name": ("DUPONT",), "first": ("Zoé A",)},
    **{"title": (None, "Dr"), "phone": ("01",), "street": ("1 rue",)},
    **{"street2": (None, "B"), "town": ("Paris",), "code": ("75001", 0)},
    **{"label": ("Cardiologie", None), "number": ("N1", 7), "patient_id": (1,)},
}
"""Cells of the columns of WHOLE that its fields can take."""


@st.composite
def row_of(draw: st.DrawFn, columns: Sequence[str]) -> tuple[object, ...]:
    """A row; one in two has a cell that may be anything."""
    cells = [draw(st.sampled_from(GOOD.get(column, (None,)))) for column in columns]
    if draw(st.booleans()):
        cells[draw(st.integers(0, len(cells) - 1))] = draw(CELLS)
    return tuple(cells)


@pytest.fixture(scope="module")
def sections(tmp_path_factory: pytest.TempPathFactory) -> list[ResourceMapping]:
    directory: Path = tmp_path_factory.mktemp("columns")
    return list(load(WHOLE, directory).resources.values())


@given(st.data())
def test_a_page_is_its_rows(
    sections: list[ResourceMapping], data: st.DataObject
) -> None:
    section = data.draw(st.sampled_from(sections))
    columns = own_columns(section)
    items = [item for listed in section.items.values() for item in listed if item.rows]
    rows = data.draw(st.lists(row_of(columns), max_size=5))
    extras = [
        {
            item: data.draw(st.lists(row_of(item_columns(item)), max_size=2))
            for item in items
        }
        for _ in rows
    ]
    mapper = RowMapper(section, columns)
    page = mapper.many(rows, extras)
    singly = tuple(map(RowMapper(section, columns), rows, extras))
    assert page == singly
    assert [record.id for record in page] == [record.id for record in singly]
