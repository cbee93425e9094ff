"""Folding text in SQL as `adapters.folding.fold` does, which no database does by itself."""

import re
from collections.abc import Iterable, Mapping
from functools import cache

from adapters.folding import ACCENTS, BLANKS, LETTERS, UNSEEN, fold
from adapters.sql.columns import can_hold
from adapters.sql.dialects.base import Sql

# No character from U+3001 on is a blank.
_SPACES = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())
_LATIN = (range(0xA0, 0x250), range(0x1E00, 0x1F00), range(0xFB00, 0xFB07))
_OTHERS = (
    *(range(0x400, 0x460), range(0x587, 0x588), range(0x620, 0x6D6)),
    *(range(0x958, 0x960), range(0xE33, 0xE34)),
)
"""Cyrillic, Armenian, Arabic, Devanagari, Thai: to a collation these are other letters."""

SIGNS = "".join(re.findall(f"[{ACCENTS}]", "".join(map(chr, range(0x3100)))))
"""Accents as characters of their own, after their letter."""

MARKS = f"[{ACCENTS}{UNSEEN}]+"
"""A pattern of such accents, and of invisible characters."""

GAPS = f"[{BLANKS}{_SPACES}]+"
"""A pattern of what parts words. Its hyphen comes first, where it is a sign."""


def _folded(scripts: Iterable[range]) -> dict[str, str]:
    """Return what the small letters of scripts are folded to."""
    signs = (chr(code) for codes in scripts for code in codes)
    return {
        sign: fold(f"x{sign}x")[1:-1]
        for sign in signs
        if sign not in f"{BLANKS}{_SPACES}{UNSEEN}" and sign == sign.lower()
    }


SPELLED = {
    **LETTERS,
    **{
        sign: letters
        for sign, letters in _folded(_LATIN).items()
        if len(letters) != 1 or letters == " "
    },
    **{
        sign: letters
        for sign, letters in _folded(_OTHERS).items()
        if letters not in ("", sign)
    },
    # Not every database knows the small letter of this capital.
    "ẞ": "ss",
}
"""The small letters that are not one letter with an accent to a collation."""


def spelled_out(text: Sql) -> Sql:
    """Return small letters with ligatures and variants replaced."""
    return _replaced(text, SPELLED)


def _replaced(text: Sql, pairs: Mapping[str, str]) -> Sql:
    for old, new in pairs.items():
        text = text.call("replace", old, new)
    return text


# Where a database knows ASCII alone, capitals stay what they are.
_LETTERS = {**LETTERS, **{c.upper(): plain for c, plain in LETTERS.items()}, "ẞ": "ss"}
_CAPITALS = {
    chr(code): chr(code).lower()
    for codes in (range(0x391, 0x3AA), range(0x400, 0x430), range(0x531, 0x557))
    for code in codes
}
"""Greek, Cyrillic and Armenian ones."""

_SINGLE = {
    **{c: plain for c, plain in _LETTERS.items() if len(c) == len(plain) == 1},
    **{c: plain for c, plain in _CAPITALS.items() if fold(c) == plain != c},
    "ς": "σ",
}
_SEVERAL = {c: plain for c, plain in _LETTERS.items() if len(c) == 1 < len(plain)}


def translated(text: Sql, *flags: str) -> Sql:
    """Fold a text that is in small letters and decomposed (NFKD) already.

    `flags` make the database's REGEXP_REPLACE replace all that it finds.
    """
    text = text.call("regexp_replace", f"[{ACCENTS}]+", "", *flags)
    text = _replaced(text, _SEVERAL)
    signs = "".join(_SINGLE) + BLANKS + UNSEEN
    letters = "".join(_SINGLE.values()) + " " * len(BLANKS)
    text = text.call("translate", signs, letters)
    return text.call("regexp_replace", r"\s+", " ", *flags).call("trim")


def one_blank(text: Sql) -> Sql:
    """Return a text with single blanks where it has up to about thirty in a row."""
    for blanks in ("     ", "   ", "  ", "  "):
        text = text.call("replace", blanks, " ")
    return text


_SIGNS_OF_LATIN = "".join(map(chr, (*range(0x300, 0x305), *range(0x306, 0x309), 0x327)))
_UNICODE = "".join(map(chr, range(0xA0, 0x180))) + BLANKS + UNSEEN + _SIGNS_OF_LATIN


def translated_in(text: Sql, encoding: str, *flags: str) -> Sql:
    """Fold a text of a database that knows no Unicode, of which the encoding is known.

    In UTF-8 such a database has bytes: characters are replaced one after the other.
    """
    letters = _letters_of(encoding)
    text = text.call("lower")
    if encoding == "utf-8":
        text = _replaced(text, letters)
    else:
        several = {char: plain for char, plain in letters.items() if len(plain) > 1}
        single = {char: plain for char, plain in letters.items() if len(plain) == 1}
        removed = "".join(char for char, plain in letters.items() if not plain)
        text = _replaced(text, several)
        # Characters without a counterpart in the second text are removed.
        text = text.call(
            "translate", "".join(single) + removed, "".join(single.values())
        )
    return text.call("regexp_replace", r"\s+", " ", *flags).call("trim")


@cache
def _letters_of(encoding: str) -> Mapping[str, str]:
    """Return what characters of an encoding are folded to, where that is another text."""
    upper_half = bytes(range(0x80, 0x100)).decode(encoding, "ignore")
    characters = _UNICODE if encoding == "utf-8" else upper_half + _UNICODE
    folded = {char: fold(f"x{char}x")[1:-1] for char in characters}
    return {
        char: plain
        for char, plain in folded.items()
        if plain != char and can_hold(char, encoding) and can_hold(plain, encoding)
    }
