"""Stand-ins: of the same shape, one to one, no use without the key."""

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.tools.redacting import Scrambler

SCRAMBLER = Scrambler(b"a secret of the deployment")


@given(st.text(max_size=40))
def test_a_stand_in_has_the_shape_of_its_value(text: str) -> None:
    made = SCRAMBLER.text(text)
    assert len(made) == len(text)
    for sign, other in zip(text, made, strict=True):
        if not sign.isalnum():
            assert other == sign
        if sign in "0123456789":
            assert other in "0123456789"


@pytest.mark.parametrize("digits", [1, 2, 3, 4])
def test_numbers_of_one_length_have_as_many_stand_ins(digits: int) -> None:
    numbers = range(10 ** (digits - 1), 10**digits)
    made = {SCRAMBLER.cell(number) for number in numbers}
    assert made == set(numbers)


def test_each_text_of_a_list_has_its_stand_in() -> None:
    names = ["Anne", "Marie"]
    assert SCRAMBLER.cell(names) == [SCRAMBLER.text(name) for name in names]


def test_texts_with_zeros_in_front_keep_them() -> None:
    texts = {f"{number:04}" for number in range(10_000)}
    made = {text: SCRAMBLER.text(text) for text in texts}
    assert set(made.values()) == texts
    assert all(
        len(text.lstrip("0")) == len(other.lstrip("0")) for text, other in made.items()
    )


def test_letters_of_other_scripts_are_never_shown() -> None:
    made = SCRAMBLER.text("Αλέξης 李 Ολ")
    assert all(sign.isascii() for sign in made)


@given(st.dates(date(1900, 1, 1), date(2100, 1, 1)))
def test_a_day_is_shifted_by_less_than_half_a_year_and_never_kept(day: date) -> None:
    made = SCRAMBLER.shifted(day, None)
    assert isinstance(made, date)
    assert 0 < abs((made - day).days) <= 180
    as_text = SCRAMBLER.shifted(day.isoformat(), None)
    assert as_text == made.isoformat()
    french = SCRAMBLER.shifted(f"{day:%d/%m/%Y}", "%d/%m/%Y")
    assert french == f"{made:%d/%m/%Y}"


def test_a_time_keeps_its_clock() -> None:
    time = datetime(2024, 2, 3, 4, 5, tzinfo=UTC)
    made = SCRAMBLER.shifted(time, None)
    assert isinstance(made, datetime)
    assert made.timetz() == time.timetz()
    assert SCRAMBLER.shifted("2024-02-03 04:05:00", None) == f"{made:%Y-%m-%d %H:%M:%S}"


def test_what_is_no_day_is_refused() -> None:
    with pytest.raises(ValueError, match="nobody"):
        SCRAMBLER.shifted("nobody", None)
