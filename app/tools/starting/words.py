"""What the words in names of tables and columns mean, in French and English habits.

A name is cut into words, each word has a meaning: `DT_ENTREE`, `dateEntree`,
`SEJDTENT` and `admission_date` all mean ENTRY and DATE. The words are in words.yaml.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from adapters.words import LETTERS
from app.tools.starting.data import data

MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        word: name
        for name, words in reversed(data("words")["meanings"].items())
        for word in words.split()
    }
)
"""Each word and its meaning; of two, the one that stands first in words.yaml."""

_LIGATURES = str.maketrans(dict(LETTERS))
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SHORTEST_START = 3
_WHOLE = 5


class Meaning(NamedTuple):
    """What a name means: the meanings of its words, and how many words have none."""

    known: frozenset[str]
    unknown: int
    words: tuple[str, ...]


@lru_cache(4096)
def meaning(name: str) -> Meaning:
    """Return what the words of a name mean."""
    if "." in name:
        return _of_path(name)
    words = tuple(_words(name))
    found = [MEANINGS.get(word) for word in words]
    known = frozenset(m for m in found if m)
    unknown = sum(
        m is None and not w.isdigit() for m, w in zip(found, words, strict=True)
    )
    return Meaning(known, unknown, words)


def _of_path(path: str) -> Meaning:
    """Return what the last name of a path means, among those that stand around it."""
    around, _, last = path.rpartition(".")
    outer, inner = meaning(around), meaning(last)
    # `names.given`: what stands around is a group of names.
    known = outer.known - {"FAMILY"} if "GIVEN" in inner.known else outer.known
    unknown = outer.unknown + inner.unknown
    return Meaning(known | inner.known, unknown, outer.words + inner.words)


def _words(name: str) -> Iterator[str]:
    letters = unicodedata.normalize("NFKD", name.translate(_LIGATURES))
    plain = "".join(c for c in letters if not unicodedata.combining(c))
    parts = [part.lower() for part in _PART.findall(plain)]
    joined = "".join(part for part in parts if not part.isdigit())
    if joined in MEANINGS and len(parts) > 1:
        yield joined
        return
    for part in parts:
        yield from (part,) if part in MEANINGS or part.isdigit() else _cut(part)


@lru_cache(4096)
def _cut(word: str) -> tuple[str, ...]:
    """Cut a word of words run together (`sejdtent`); itself when it is none."""
    best: dict[int, tuple[int, tuple[str, ...]]] = {0: (0, ())}
    for end in range(2, len(word) + 1):
        for start in range(max(0, end - 16), end - 1):
            piece = word[start:end]
            whole = _whole(piece)
            if start in best and whole:
                cost, before = best[start]
                # Few and whole pieces before many or cut ones.
                price = cost + 10 + (0 if piece in MEANINGS else 1)
                if end not in best or price < best[end][0]:
                    best[end] = (price, (*before, whole))
    _, pieces = best.get(len(word), (0, (word,)))
    return pieces


def _whole(piece: str) -> str:
    """Return the word that a piece is, or is the start of; "" when there is none."""
    return piece if piece in MEANINGS else _STARTS.get(piece, "")


def _starts() -> Mapping[str, str]:
    """Return the starts of words that are those of one meaning alone."""
    found: dict[str, set[str]] = {}
    for word in MEANINGS:
        for length in range(_SHORTEST_START, len(word)):
            if len(word) >= _WHOLE:
                found.setdefault(word[:length], set()).add(word)
    single: dict[str, str] = {}
    for start, words in found.items():
        if len({MEANINGS[word] for word in words}) == 1 and start not in MEANINGS:
            single[start] = min(words, key=lambda word: (len(word), word))
    return single


_STARTS = _starts()


def common_words(names: Iterable[str]) -> frozenset[str]:
    """Return the first words that many names share: a vendor's or a system's mark."""
    firsts = Counter(meaning(name).words[0] for name in names if meaning(name).words)
    total = sum(firsts.values())
    return frozenset(
        w for w, n in firsts.items() if n > 2 and n * 3 > total and w not in MEANINGS
    )
