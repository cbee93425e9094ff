"""YAML as texts with places: what is kept, and what is refused without a traceback."""

from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from hypothesis import event, given
from hypothesis import strategies as st

from adapters.mapping.model import Mark
from adapters.mapping.problems import MappingError
from adapters.mapping.yaml import explained, find, parse_file, place, plain, read_text


@pytest.mark.parametrize(
    "written",
    ["0123", "NO", "yes", "true", "~", "null", "NULL", "1.50", "2024-03-30", "0x1F"],
)
def test_every_scalar_is_what_was_written(written: str) -> None:
    assert plain(read_text(f"key: {written}\n", "f")) == {"key": written}
    assert plain(read_text(f"{written}: value\n", "f")) == {written: "value"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("key:\n", ""),
        ("key: ''\n", ""),
        ('key: "a\\tb"\n', "a\tb"),
        ("key: ! x\n", "x"),
        ("key: |\n  a\n  b\n", "a\nb\n"),
        ("key: >\n  a\n  b\n", "a b\n"),
        ("key: a # not this\n", "a"),
        ("\ufeffkey: é\n", "é"),
    ],
)
def test_texts(text: str, expected: str) -> None:
    assert plain(read_text(text.encode(), "f")) == {"key": expected}


def test_places_of_keys_values_and_what_is_not_there() -> None:
    root = read_text("a:\n  - x\n  - {b: y}\n", "f")
    assert place(root, ("a", 1, "b")) == Mark("f", 3, 9)
    assert place(root, ("a", 1, "b"), at_key=True) == Mark("f", 3, 6)
    assert place(root, ("a", 0)) == Mark("f", 2, 5)
    assert place(root, ("a", 1, "c")) == Mark("f", 3, 5)
    assert place(root, ("a", 7)) == Mark("f", 1, 1)
    assert find(root, ("a", 0, "b")) is None


REFUSED = (
    ("", ["1:1 empty"]),
    ("# nothing but this\n", ["1:1 empty"]),
    ("- a\n", ["1:1"]),
    ("a: 1\nb: 2\na: 3\n", ["3:1 a"]),
    ("a: {x: 1,\n  x: 2}\nb: {y: 1, y: 2}\n", ["2:3 x", "3:11 y"]),
    ("a: &x [1]\nb: *x\n", ["1:4 &x", "2:4 *x"]),
    ("a: !!int 3\n", ["1:4 !!int"]),
    (
        "a: !!python/object/apply:os.system [x]\n",
        ["1:4 !!python/object/apply:os.system"],
    ),
    ("a: 1\n---\nb: 2\n", ["2:1 ---"]),
    ("a:\n\tb: 1\n", ["2:1 tab"]),
    ("a: b: c\n", ["1:5 :"]),
    ("a: 1\nb: 'x\nc: 2\n", ["2:4 quote"]),
    ("a: 1\nb\n", ["2:1 :"]),
    ("a: |\n    x\n  y\nb: 1\n", ["3:3 indented"]),
    ("a:\n    b: 1\n  c: 2\n", ["3:3 indented"]),
    ("a:\n  b: {c: 1}\n    d: {e: 2}\n", ["3:5 indented"]),
    ("a: {b: 1\nc: 2\n", ["1:4 bracket"]),
    ("a: [1,\n  2\nb: 1\n", ["1:4 bracket"]),
    ("a: @x\n", ["1:4 sign"]),
    ("a: &'x'\n", ["1:4 sign"]),
    ("a: !b!c d\n", ["1:4 sign"]),
    ("%'\nb: 1\n", ["1:1 sign"]),
    ("a: | b\n  c\n", ["1:6 |"]),
    ('a: "\\d"\n', ["1:6 \\"]),
    ("a: }\n", ["1:4 missing"]),
    ("a: - b\n", ["1:4 -"]),
    ("{a: 1}\nb: 2\n", ["2:1 bracket"]),
    ("[a]: 1\n", ["1:1 quote"]),
    ("a: \x07\n", ["1:4 character"]),
    ("a: " + "[" * 30 + "]" * 30, ["1:23 deep"]),
    ("a: " + "[" * 100_000, ["1:23 deep"]),
    ("a: " + "x" * 600_000, ["1:1 KiB"]),
)
"""Texts, and the place and a word of each problem."""


@pytest.mark.parametrize(("text", "expected"), REFUSED, ids=range(len(REFUSED)))
def test_refused(text: str, expected: list[str]) -> None:
    with pytest.raises(MappingError) as refused:
        read_text(text, "f")
    for problem, said in zip(refused.value.problems, expected, strict=True):
        place_of_fault, _, word = said.partition(" ")
        assert str(problem).startswith(f"f:{place_of_fault}: ")
        assert word in problem.text


def test_another_encoding_is_placed() -> None:
    with pytest.raises(MappingError) as refused:
        read_text("a: b\nnom: Hélène\n".encode("latin-1"), "f")
    assert str(refused.value).startswith("f:2:7: ")


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(MappingError, match=r":1:1: is a directory: name a file in it"):
        parse_file(tmp_path)


@given(
    st.one_of(
        st.binary(max_size=200), st.text("ab:-[]{}&*!#|>'\"\n\t ?,%@`", max_size=60)
    )
)
def test_no_text_gets_a_traceback(data: bytes | str) -> None:
    with suppress(MappingError):
        assert isinstance(plain(read_text(data, "f")), dict)


@given(st.text("ab:-[]{}&*!#|>'\"\n\t ?,%@`\\", max_size=60))
def test_what_is_refused_is_told_in_our_words(text: str) -> None:
    with suppress(yaml.reader.ReaderError):
        try:
            list(yaml.parse(text, Loader=yaml.BaseLoader))
        except yaml.MarkedYAMLError as error:
            _, words = explained(error)
            event(words)
            said = {error.problem, error.context} - {None}
            assert all(str(part) not in words for part in said)
