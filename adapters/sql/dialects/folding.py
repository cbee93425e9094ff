"""What databases need to fold text as `adapters.words.fold` does, and none has of itself."""

import sqlalchemy as sa

from adapters.sql.idiom import Text
from adapters.words import BLANKS, LETTERS, UNSEEN, fold

# There are none further on.
_SPACES = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())
_LATIN = (range(0xA0, 0x250), range(0x1E00, 0x1F00), range(0xFB00, 0xFB07))

ACCENTS = "".join(chr(code) for code in range(0x300, 0x370))
"""Accents that stand alone, after their letter."""

MARKS = f"[\u0300-\u036f{UNSEEN}]+"
"""A pattern of accents that stand alone, and of signs that nobody sees."""

GAPS = f"[{BLANKS}{_SPACES}]+"
"""A pattern of what parts words. Its hyphen comes first, where it is a sign."""


def _spelled() -> dict[str, str]:
    """Return the small Latin letters that are not one letter with an accent."""
    signs = (chr(code) for codes in _LATIN for code in codes)
    found = {
        sign: fold(f"x{sign}x")[1:-1]
        for sign in signs
        if sign not in f"{BLANKS}{_SPACES}{UNSEEN}"
    }
    several = {
        sign: letters
        for sign, letters in found.items()
        if (len(letters) != 1 or letters == " ") and sign == sign.lower()
    }
    # Not every database knows the small letter of this capital.
    return {**LETTERS, **several, "ẞ": "ss"}


SPELLED = _spelled()


def spelled_out(text: Text) -> Text:
    """Return small letters with those replaced that stand for several, or for another."""
    for letter, letters in SPELLED.items():
        text = sa.func.replace(text, letter, letters)
    return text


# Where a database knows ASCII alone, capitals stay what they are.
_LETTERS = {**LETTERS, **{c.upper(): plain for c, plain in LETTERS.items()}, "ẞ": "ss"}
_SINGLE = {c: plain for c, plain in _LETTERS.items() if len(c) == len(plain) == 1}
_SEVERAL = {c: plain for c, plain in _LETTERS.items() if len(c) == 1 < len(plain)}


def translated(text: Text, *flags: str) -> Text:
    """Fold a text that is in small letters and decomposed (NFKD) already.

    `flags` make the database's REGEXP_REPLACE replace all that it finds.
    """
    text = sa.func.regexp_replace(text, "[\u0300-\u036f]+", "", *flags)
    for letter, letters in _SEVERAL.items():
        text = sa.func.replace(text, letter, letters)
    taken = "".join(_SINGLE) + BLANKS + UNSEEN
    given = "".join(_SINGLE.values()) + " " * len(BLANKS)
    text = sa.func.translate(text, taken, given)
    return sa.func.trim(sa.func.regexp_replace(text, r"\s+", " ", *flags))


def one_blank(text: Text) -> Text:
    """Return a text with single blanks where it had up to some thirty."""
    for blanks in ("     ", "   ", "  ", "  "):
        text = sa.func.replace(text, blanks, " ")
    return text
