"""How names are compared: the one set of rules that every adapter follows (decision 9).

Case and accents do not count, and words part at blank, hyphen and apostrophe. A source
that folds text by its own means is held to these functions by the contract suite.
"""

import re
import unicodedata
from collections.abc import Mapping

LETTERS: Mapping[str, str] = {
    "æ": "ae", "œ": "oe", "ß": "ss", "þ": "th", "ð": "d", "đ": "d", "ħ": "h",
    "ı": "i", "ł": "l", "ŋ": "ng", "ø": "o", "ŧ": "t",
}  # fmt: skip
"""Letters that Unicode does not decompose, and what people type for them."""

BLANKS = (
    "-\u058a\u05be\u1400\u1806\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u2212\ufe58\ufe63\uff0d"
    "'`\u00b4\u02b9\u02bb\u02bc\u02bd\u2018\u2019\u201b\u2032\uff07"
)
"""Hyphens and apostrophes."""

UNSEEN = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
"""Soft hyphens and the like: marks inside a word that nobody sees."""

ACCENTS = (
    "\u0300-\u036f"
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"
    "\u3099\u309a"
)
"""Ranges of the accents of Latin, Greek and Cyrillic letters, of Hebrew and Arabic points
and of the marks of kana, which MariaDB takes for accents.

Marks of other scripts (of Devanagari, Thai) make another letter, and count.
"""

_ACCENTS = re.compile(f"[{ACCENTS}]+")
_TABLE = str.maketrans(
    {**LETTERS, **dict.fromkeys(BLANKS, " "), **dict.fromkeys(UNSEEN, "")}
)


def fold(text: str) -> str:
    """Return what of a text counts in a comparison: words of plain letters, one blank apart.

    What else is written of parts (Hangul) is whole: not every database takes it apart.
    """
    plain = text.translate(_TABLE).casefold()
    bare = _ACCENTS.sub("", unicodedata.normalize("NFKD", plain))
    words = " ".join(bare.casefold().translate(_TABLE).split())
    return unicodedata.normalize("NFC", words)


def starts_a_word(haystack: str, needle: str) -> bool:
    """Whether `needle` stands at the start of a word; both are folded.

    A needle of several words has to stand there as a phrase, its last word may be cut.
    One that holds no letter at all matches nothing.
    """
    return bool(needle) and f" {needle}" in f" {haystack}"


def contains(haystack: str, needle: str) -> bool:
    """Whether `needle` stands anywhere; both are folded. An empty one matches nothing."""
    return bool(needle) and needle in haystack
