"""YAML as texts with places: what is kept, and what is refused without a traceback."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.mapping.problems import MappingError
from adapters.mapping.yaml import read_text


def test_every_scalar_is_what_was_written():
    for written in ("0123", "NO", "yes", "true", "~", "null", "1.50", "2024-03-30"):
        assert read_text(f"key: {written}\n", "f") == {"key": written}
        assert read_text(f"{written}: value\n", "f") == {written: "value"}
    for text, expected in (
        ("key:\n", ""),
        ("key: ''\n", ""),
        ('key: "a\\tb"\n', "a\tb"),
        ("key: ! x\n", "x"),
        ("key: |\n  a\n  b\n", "a\nb\n"),
        ("key: >\n  a\n  b\n", "a b\n"),
        ("key: a # not this\n", "a"),
        ("\ufeffkey: é\n", "é"),
    ):
        assert read_text(text.encode(), "f") == {"key": expected}


def test_refused():
    for text, where, word in (
        ('a: "\\d"\n', "1:5", "escape"),
        ("a: }\n", "1:4", "expected"),
        ("a: - b\n", "1:4", "sequence"),
        ("{a: 1}\nb: 2\n", "2:1", "expected"),
        ("[a]: 1\n", "1:1", "quote"),
        ("a: 1\n---\nb: 2\n", "2:1", "document"),
        ("a: 1\nb: 2\na: 3\n", "3:1", "line 1"),
    ):
        with pytest.raises(MappingError) as refused:
            read_text(text, "f")
        (problem,) = refused.value.problems
        assert str(problem).startswith(f"f:{where}: ")
        assert word in problem.text


@given(
    st.one_of(
        st.binary(max_size=200), st.text("ab:-[]{}&*!#|>'\"\n\t ?,%@`", max_size=60)
    )
)
def test_no_text_gets_a_traceback(data):
    with suppress(MappingError):
        assert isinstance(read_text(data, "f"), dict)
