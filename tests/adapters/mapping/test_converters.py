"""A page of rows becomes what each of its rows does."""
# ruff: noqa: DTZ001 (times without a zone, as columns have them)

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import pairwise
from uuid import UUID

import pytest

from adapters.contract import ResourceType, RowFault
from adapters.mapping.converters import Birth, Codes, Converter, Id, Instant, Text
from adapters.mapping.row_mapper import NO_EXTRAS, RowMapper, own_columns
from tests.adapters.mapping.good import WHOLE, changed, load
from toolkit.contract.hospital import PARIS


class SomeText(str):
    __slots__ = ()


CELLS = (
    *("", "  ", "a", "a ", "S", "A", "X", "O", "NO", "URG ", "VALI", "042", "true"),
    *("a\tb", "a\x00b", "\ud800", "\xa0", "x" * 65, "a_b", "9999-12-31", "infinity"),
    *("2024-07-15 08:00", "2024-10-27 02:30", "2024-07-15T08:00-05:00", "202407150800"),
    SomeText("a1 "),
    *(None, 0, 1, 42, -7, 10**70, True, 1.0, 42.0, 2.5, 1e300, 202407150800),
    *(Decimal("42.50"), float("inf"), datetime(2024, 7, 15, 8), date(2999, 12, 31)),
    *(datetime(2024, 3, 31, 2, 30), datetime(2024, 10, 27, 2, 10)),
    *(datetime(2024, 10, 27, 2, 50), datetime(2024, 10, 27, 2, 30, fold=1)),
    *(datetime(2011, 12, 30, 12), datetime(1905, 6, 1, 12), datetime(1, 1, 1)),
    datetime(9999, 12, 31, 23, 59, 59, 999_999),
    *(datetime(2024, 7, 15, 8, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC)),
    datetime(2024, 10, 27, 2, 30, tzinfo=PARIS, fold=1),
    *(date(2024, 7, 15), time(8, 15), timedelta(hours=9), timedelta(days=2)),
    *(b"\x00", b"ab", UUID(int=5), {"a": 1}, ["a", None, "b "], ["a", ["b"]]),
)

VARIANTS = (
    (),
    (
        *("{from: visit, search", '{from: visit, absent: ["a", "042"], search'),
        *("codes: status}", 'codes: status, absent: ["S", "9999-12-31"]}'),
        *("search: began}", 'search: began, absent: ["2011-12-30", "9999-12-31"]}'),
        *("{from: patient}", "{from: patient, absent: ['42']}"),
        *("{from: label}", '{from: label, absent: ["a", "042"]}'),
        *("{from: active, codes: yes}", "{from: active}"),
        *("  yes: {table: {O: true, N: false}}\n", ""),
        *('format: "%Y%m%d%H%M"', "format: epoch-ms"),
        *('absent: ["999912312359"]', 'absent: ["42"]'),
        *(
            "covers: all, twice: first, never: refuse",
            "absent: ['2024-07-15 08:00:00']",
        ),
        *("{from: born}", '{from: born, absent: ["2999-12-31"]}'),
        *("family: {from: name}", 'family: {from: name, absent: ["a", "042"]}'),
        *(
            "class: {table: {URG: EMER, 01: IMP}, otherwise: UNK}",
            "class: {table: {URG: EMER}}",
        ),
    ),
)
"""Changes of WHOLE, so that each kind of field has each of its options."""

GOOD = {
    **{"id": (1, "a1"), "patient": (2,), "visit": ("V1 ", None), "unit": ("0123",)},
    **{"state": ("S", "P", "A", "X"), "kind": ("URG", 1, None)},
    **{"day": (date(2024, 7, 15),), "hour": (time(8), None)},
    **{"ended": ("202407160800", None), "changed": (datetime(2024, 7, 15, 8), None)},
    **{"active": ("O", None), "sex": ("NO", 1), "born": (date(1990, 2, 1), None)},
    **{"died": (None,), "ipp": ("8000", None), "ins": ("1840",)},
    **{"ins_state": ("VALI", 0, "PROV"), "name": ("DUPONT",), "first": ("Zoé A",)},
    **{"title": (None, "Dr"), "phone": ("01",), "street": ("1 rue",)},
    **{"street2": (None, "B"), "town": ("Paris",), "code": ("75001", 0)},
    **{"label": ("Cardiologie", "Urgences"), "number": ("N1", 7), "patient_id": (1,)},
}
"""Cells of the columns of WHOLE that its fields can take."""


BY_COLUMNS = (Text, Id, Codes, Birth, Instant)
"""The converters that read a column otherwise than cell by cell."""


@pytest.mark.parametrize("changes", VARIANTS)
@pytest.mark.parametrize("kind", ResourceType)
def test_a_page_is_its_rows(tmp_path, kind, changes, monkeypatch):
    """Also where cells of one column have several types, or cannot be read."""
    section = load(changed(WHOLE, *changes), tmp_path).resources[kind]
    columns = own_columns(section)
    cells = {column: GOOD.get(column, (None,)) for column in columns}
    if changes:
        other = {"state": ("P", "X"), "active": (1, None), "kind": ("URG",)}
        other |= {"ended": (1721116800000,)}
        cells |= {column: other[column] for column in columns if column in other}
    usual = [
        {name: values[n % len(values)] for name, values in cells.items()}
        for n in (0, 1)
    ]
    items = [item for listed in section.items.values() for item in listed if item.rows]
    pages = [
        (
            [
                (*{**usual[0], column: one}.values(),),
                (*{**usual[1], column: other}.values(),),
            ],
            [{item: [(1, one)] for item in items}, NO_EXTRAS],
        )
        for column in columns
        for one, other in pairwise((*CELLS, None, *CELLS[::3]))
    ]
    with monkeypatch.context() as patch:
        for converter in BY_COLUMNS:
            patch.setattr(converter, "column", Converter.column)
        single = RowMapper(section, columns)
        expected = [tuple(map(single, *page)) for page in pages]
        rows = [single((*row.values(),)) for row in usual]
    assert not any(isinstance(row, RowFault) for row in rows)
    mapper = RowMapper(section, columns)
    for page, records in zip(pages, expected, strict=True):
        made = mapper.many(*page)
        assert repr(made) == repr(records), page
        assert [record.id for record in made] == [record.id for record in records]
    assert mapper.many([], []) == ()
