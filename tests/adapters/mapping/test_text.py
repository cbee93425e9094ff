"""YAML as texts with places: what is kept, and what is refused without a traceback."""

from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from hypothesis import event, given
from hypothesis import strategies as st

from adapters.mapping.model import Mark
from adapters.mapping.nodes import find, place, plain
from adapters.mapping.problems import MappingError
from adapters.mapping.text import parse_file, read_text
from adapters.mapping.yaml_faults import explained


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
    ("", ["1:1: the file is empty"]),
    ("# nothing but this\n", ["1:1: the file is empty"]),
    ("- a\n", ["1:1: the file must hold keys and values (key: value)"]),
    (
        "a: 1\nb: 2\na: 3\n",
        ["3:1: the key 'a' is here twice; the first is on line 1"],
    ),
    (
        "a: {x: 1,\n  x: 2}\nb: {y: 1, y: 2}\n",
        [
            "2:3: the key 'x' is here twice; the first is on line 1",
            "3:11: the key 'y' is here twice; the first is on line 3",
        ],
    ),
    (
        "a: &x [1]\nb: *x\n",
        [
            "1:4: '&x': anchors are not part of the format",
            "2:4: '*x': write the value out; aliases are refused",
        ],
    ),
    ("a: !!int 3\n", ["1:4: '!!int': tags are not part of the format; quote texts"]),
    (
        "a: !!python/object/apply:os.system [x]\n",
        [
            "1:4: '!!python/object/apply:os.system': tags are not part of the format; "
            "quote texts"
        ],
    ),
    ("a: 1\n---\nb: 2\n", ["2:1: a second document ('---'): one file is one document"]),
    ("a:\n\tb: 1\n", ["2:1: a tab: indent with blanks"]),
    (
        "a: b: c\n",
        [
            "1:5: a ':' is not expected here: quote the text, or check the indentation "
            "above"
        ],
    ),
    ("a: 1\nb: 'x\nc: 2\n", ["2:4: a quote is never closed"]),
    ("a: 1\nb\n", ["2:1: a key without ':', or a text that needs quotes"]),
    (
        "a: |\n    x\n  y\nb: 1\n",
        ["3:3: indented like nothing above it: line it up with what it belongs to"],
    ),
    (
        "a:\n    b: 1\n  c: 2\n",
        ["3:3: indented like nothing above it: line it up with what it belongs to"],
    ),
    (
        "a:\n  b: {c: 1}\n    d: {e: 2}\n",
        ["3:5: indented like nothing above it: line it up with what it belongs to"],
    ),
    (
        "a: {b: 1\nc: 2\n",
        [
            "1:4: this bracket is never closed, or a ',' is missing between what it holds"
        ],
    ),
    (
        "a: [1,\n  2\nb: 1\n",
        [
            "1:4: this bracket is never closed, or a ',' is missing between what it holds"
        ],
    ),
    ("a: @x\n", ["1:4: a text cannot begin with this sign: quote it"]),
    ("a: &'x'\n", ["1:4: a text cannot begin with this sign: quote it"]),
    ("a: !b!c d\n", ["1:4: a text cannot begin with this sign: quote it"]),
    ("%'\nb: 1\n", ["1:1: a text cannot begin with this sign: quote it"]),
    ("a: | b\n  c\n", ["1:6: after '|' or '>' the text begins on the next line"]),
    (
        'a: "\\d"\n',
        ["1:6: a '\\' means something else in double quotes: use single quotes"],
    ),
    ("a: }\n", ["1:4: a value is missing here, or needs quotes"]),
    (
        "a: - b\n",
        ["1:4: a '-' is not expected here: quote the text, or check the indentation"],
    ),
    (
        "{a: 1}\nb: 2\n",
        [
            "2:1: does not belong to what stands above: check the indentation and the "
            "brackets"
        ],
    ),
    ("[a]: 1\n", ["1:1: a key must be a text; quote '{' and '[' in texts"]),
    ("a: \x07\n", ["1:4: the character U+0007 is not allowed in YAML"]),
    ("a: " + "[" * 30 + "]" * 30, ["1:24: nested more than 20 levels deep"]),
    ("a: " + "[" * 100_000, ["1:24: nested more than 20 levels deep"]),
    ("a: " + "x" * 600_000, ["1:1: larger than 512 KiB"]),
)


@pytest.mark.parametrize(("text", "expected"), REFUSED, ids=range(len(REFUSED)))
def test_refused(text: str, expected: list[str]) -> None:
    with pytest.raises(MappingError) as refused:
        read_text(text, "f")
    assert [str(p) for p in refused.value.problems] == [f"f:{e}" for e in expected]


def test_another_encoding_is_placed() -> None:
    with pytest.raises(MappingError) as refused:
        read_text("a: b\nnom: Hélène\n".encode("latin-1"), "f")
    assert str(refused.value) == (
        "f:2:7: the byte 0xE9 is not UTF-8; save the file as UTF-8"
    )


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


@given(st.text("ab:-[]{}&*#|>'\"\n ?,%@`\\éü\u2028\x85", max_size=60))
def test_libyaml_tells_the_same_as_pyyaml(text: str) -> None:
    # Without tags ('!'): both are refused, but not always for the same reason.
    with pytest.MonkeyPatch.context() as patch:
        quick = read(text)
        patch.setattr("adapters.mapping.text._Quick", yaml.BaseLoader)
        assert read(text) == quick


def read(text: str) -> object:
    """Return the nodes of a text with their places, or what is refused of it."""
    try:
        return read_text(text, "f")
    except MappingError as error:
        return error.problems
