"""Filters joined: no more is asked of a database than what tells rows apart."""

import pytest

from adapters.sql.columns import Column, Kind
from adapters.sql.conditions import (
    ALWAYS,
    NEVER,
    All,
    Any,
    Filter,
    In,
    IsNull,
    all_of,
    any_of,
)

NUMBER = Column("number", Kind.INTEGER)
ONE = Filter(In(NUMBER, 2), (1, 2))
TWO = Filter(In(NUMBER, 1), (3,))
NULL = Filter(IsNull(NUMBER))


@pytest.mark.parametrize(
    ("parts", "all_", "any_"),
    [
        ([], ALWAYS, NEVER),
        ([ONE], ONE, ONE),
        ([ALWAYS], ALWAYS, ALWAYS),
        ([NEVER], NEVER, NEVER),
        ([ONE, ALWAYS], ONE, ALWAYS),
        ([NEVER, ONE], NEVER, ONE),
        ([ALWAYS, NEVER], NEVER, ALWAYS),
    ],
)
def test_what_always_or_never_holds_is_not_asked(
    parts: list[Filter], all_: Filter, any_: Filter
) -> None:
    # Compared by identity everywhere: an equal one would be asked.
    assert all_of(parts) is all_
    assert any_of(parts) is any_


def test_values_stand_in_the_order_of_their_conditions() -> None:
    conditions = (ONE.condition, NULL.condition, TWO.condition)
    parts = [ONE, ALWAYS, NULL, TWO]
    assert all_of(iter(parts)) == Filter(All(conditions), (1, 2, 3))
    parts = [ONE, NEVER, NULL, TWO]
    assert any_of(iter(parts)) == Filter(Any(conditions), (1, 2, 3))
