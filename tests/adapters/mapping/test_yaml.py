"""YAML as texts with places: what is kept, and what is refused without a traceback."""

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from adapters.mapping.problems import MappingError
from adapters.mapping.yaml import read_text


def test_every_scalar_is_what_was_written():
    for written in ("0123", "NO", "true", "~", "1.50", "2024-03-30"):
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


@given(
    st.one_of(
        st.binary(max_size=200), st.text("ab:-[]{}&*!#|>'\"\n\t ?,%@`", max_size=60)
    )
)
def test_no_text_gets_a_traceback(data):
    with suppress(MappingError):
        assert isinstance(read_text(data, "f"), dict)
