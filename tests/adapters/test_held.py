"""A searched value in the kind of its column; what that cannot hold matches nothing.

Decision 6: such a value never reaches the database, where it would be an error.
"""

from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

import pytest

from adapters.sql.columns import Kind, can_hold, held

A_UUID = "2d1c2b1e-0000-4000-8000-00000000000a"
MIDNIGHT = datetime(2024, 3, 14)  # noqa: DTZ001 - as the column is
TEN = datetime(2024, 3, 14, 10)  # noqa: DTZ001

HELD: dict[Kind, dict[str, object]] = {
    Kind.INTEGER: {
        "0": 0,
        "42": 42,
        "-42": -42,
        str(2**63 - 1): 2**63 - 1,
        str(-(2**63)): -(2**63),
    },
    Kind.UNSIGNED: {"0": 0, "42": 42, str(2**64 - 1): 2**64 - 1},
    Kind.NUMBER: {
        "0": Decimal(0),
        "-0.5": Decimal("-0.5"),
        "10.05": Decimal("10.05"),
        "9" * 30: Decimal("9" * 30),
    },
    Kind.BOOLEAN: {"true": True, "false": False},
    Kind.UUID: {A_UUID: UUID(A_UUID)},
    Kind.DATE: {"2024-03-14": date(2024, 3, 14), "2024-03-14 00:00": date(2024, 3, 14)},
    Kind.LOCAL_TIME: {"2024-03-14": MIDNIGHT, "2024-03-14T10:00": TEN},
    Kind.TICK_TIME: {"2024-03-14 10:00:00": TEN},
    Kind.SECOND_TIME: {"2024-03-14 10:00:00": TEN},
    Kind.INSTANT: {"2024-03-14T10:00:00+00:00": TEN.replace(tzinfo=UTC)},
    Kind.TEXT: {"a b": "a b", "": "", "042": "042"},
    Kind.FOLDING: {"\u0416": "\u0416", "": ""},
    Kind.WESTERN: {"\u00e9": "\u00e9", "\u20ac": "\u20ac", "": ""},
    Kind.FILLED: {"a": "a", "a ": "a "},
    Kind.PADDED: {"a": "a"},
    Kind.OTHER: {"a ": "a ", "": ""},
}
"""What a column of a kind can equal."""

NOT_HELD: dict[Kind, tuple[str, ...]] = {
    Kind.INTEGER: (
        *("", "-0", "007", "+7", "4.0", "1e3", "abc", " 7", "7 ", "7\n", "\u0663"),
        *(str(2**63), str(-(2**63) - 1), "9" * 5000),
    ),
    Kind.UNSIGNED: ("", "-0", "-1", "007", str(2**64), "9" * 5000),
    Kind.NUMBER: ("", "-0", "007", "1.50", "1.", ".5", "1e3", "NaN", "Infinity", "7\n"),
    Kind.BOOLEAN: ("", "True", "1", "yes"),
    Kind.UUID: ("", "abc", A_UUID.upper(), A_UUID.replace("-", ""), f"{{{A_UUID}}}"),
    Kind.DATE: ("", "abc", "2024-02-30", "2024-03-14T10:00", "2024-03-14T00:00+00:00"),
    Kind.LOCAL_TIME: ("", "abc", "2024-03-14T10:00Z", "2024-03-14T25:00"),
    Kind.TICK_TIME: ("", "2024-03-14T10:00Z"),
    Kind.SECOND_TIME: ("", "2024-03-14T10:00Z"),
    Kind.INSTANT: ("", "2024-03-14T10:00", "2024-03-14"),
    # A cell never has them, and some databases find that they make no difference.
    Kind.TEXT: ("a ", " "),
    Kind.FOLDING: ("a ", " "),
    Kind.WESTERN: ("a ", "\u0416", "\u2192"),
    Kind.FILLED: ("",),
    Kind.PADDED: ("", "a "),
}
"""What none can."""


def _cases(table: dict[Kind, tuple[str, ...]]) -> list[tuple[Kind, str]]:
    return [(kind, text) for kind, texts in table.items() for text in texts]


@pytest.mark.parametrize(
    ("kind", "text"), _cases({kind: (*texts,) for kind, texts in HELD.items()})
)
def test_a_value_is_found_as_its_column_holds_it(kind: Kind, text: str) -> None:
    (value,) = held(kind, text)
    assert value == HELD[kind][text]
    assert type(value) is type(HELD[kind][text])


@pytest.mark.parametrize(("kind", "text"), _cases(NOT_HELD))
def test_a_value_that_no_such_column_holds_is_none(kind: Kind, text: str) -> None:
    assert held(kind, text) == ()


def test_a_column_without_a_type_holds_a_number_and_its_text() -> None:
    assert held(Kind.LOOSE, "42") == ("42", 42)
    assert held(Kind.LOOSE, "042") == ("042",)


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("text", ["4\0002", "\ud800", "a\udfff"])
def test_what_no_database_can_hold_is_in_no_column(kind: Kind, text: str) -> None:
    assert can_hold(text) is False
    assert held(kind, text) == ()


def test_every_kind_holds_something() -> None:
    assert {*HELD, Kind.LOOSE} == {*Kind}
    assert can_hold("a \u0416 \U0001f600\uffff\ue000\ud7ff") is True
