"""How names are compared: the one set of rules that every adapter follows (decision 9).

Case and accents do not count, and words are split at blank, hyphen, apostrophe and full stop.
The contract suite compares sources that fold text in another way with these functions.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping

LETTERS: Mapping[str, str] = {
    "æ": "ae", "œ": "oe", "ß": "ss", "þ": "th", "ð": "d", "đ": "d", "ħ": "h",
    "ı": "i", "ł": "l", "ŋ": "ng", "ø": "o", "ŧ": "t",
}  # fmt: skip
"""Letters that Unicode does not decompose, and what people type for them."""

BLANKS = (
    "-\u058a\u05be\u1400\u1806\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u2212\ufe58\ufe63\uff0d"
    ".'`\u00b4\u02b9\u02bb\u02bc\u02bd\u2018\u2019\u201b\u2032\uff07"
)
"""Hyphens, apostrophes and the full stop."""

UNSEEN = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
"""Invisible marks inside a word, such as soft hyphens."""

ACCENTS = (
    "\u0300-\u036f"
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"
    "\u3099\u309a"
)
"""Ranges of the accents of Latin, Greek and Cyrillic letters, of Hebrew and Arabic points
and of the marks of kana, which MariaDB treats as accents.

Marks of other scripts (of Devanagari, Thai) make another letter, and count.
"""

_ACCENTS = re.compile(f"[{ACCENTS}]+")
_TABLE = str.maketrans(
    {**LETTERS, **dict.fromkeys(BLANKS, " "), **dict.fromkeys(UNSEEN, "")}
)


def fold(text: str) -> str:
    """Return the part of a text that is compared: words of plain letters, one blank apart.

    Other composed characters (Hangul) stay composed: not every database decomposes them.
    """
    plain = text.translate(_TABLE).casefold()
    bare = _ACCENTS.sub("", unicodedata.normalize("NFKD", plain))
    words = " ".join(bare.casefold().translate(_TABLE).split())
    return unicodedata.normalize("NFC", words)


MOST_WORDS = 10
"""A text of more words matches nothing."""


def words_of(needle: str) -> Mapping[str, int]:
    """Return how often each word is in a folded text, {} if it has too many to compare."""
    words = Counter(needle.split())
    return words if words.total() <= MOST_WORDS else {}


def starts_words(haystack: str, needle: str) -> bool:
    """Whether each word of `needle` starts a word, in any order; both are folded.

    Two equal words need two. A needle without letters, or of too many words, matches nothing.
    """
    words = haystack.split()
    wanted = words_of(needle)
    return bool(wanted) and all(
        sum(word.startswith(start) for word in words) >= number
        for start, number in wanted.items()
    )


def contains(haystack: str, needle: str) -> bool:
    """Whether the text contains `needle`; both are folded. An empty one matches nothing."""
    return bool(needle) and needle in haystack
