"""What codes of hospitals usually mean: a code table from counts.

The habits are in codes.yaml."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Self

from adapters.sql.samples import CodeCount
from adapters.words import fold
from app.tools.starting.data import data

_A_WORD = 3


@dataclass(frozen=True, slots=True)
class Entry:
    """A code of the source; `made` is what it becomes, "" where nobody can guess.

    `is_open` tells that it becomes what all others become, as nobody could guess,
    `is_most` that it is guessed by how many rows have it.
    """

    code: str
    made: str
    rows: int
    is_sure: bool = True
    is_open: bool = False
    is_most: bool = False

    def as_most(self) -> Self:
        """Return the entry for a state that most stays have: they are over.

        A code of one letter says little; one that is sure stays what it is.
        """
        if self.made and self.is_sure:
            return self
        return replace(self, made="finished", is_sure=False, is_most=True)

    def unknown(self) -> Self:
        """Return the entry with nothing made of its code."""
        return replace(self, made="")

    def or_else(self, made: str) -> Self:
        """Return the entry, or a guess for a code that nobody could guess."""
        return (
            self if self.made else replace(self, made=made, is_sure=False, is_open=True)
        )


def _habits(made: Mapping[str, str]) -> Mapping[str, str]:
    return MappingProxyType(
        {code: target for target, codes in made.items() for code in codes.split()}
    )


_HABITS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {slot: _habits(made) for slot, made in data("codes").items() if slot != "letters"}
)
_LETTERS: Mapping[str, Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        language: {slot: _habits(made) for slot, made in of.items()}
        for language, of in data("codes")["letters"].items()
    }
)


def entries(
    slot: str, counts: Iterable[CodeCount], *, french: bool
) -> tuple[Entry, ...]:
    """Return what each code probably becomes."""
    letters = _LETTERS["french" if french else "english"].get(slot, {})
    found = tuple(_entry(slot, count, letters) for count in counts)
    if slot != "status":
        return found
    half = sum(entry.rows for entry in found) / 2
    return tuple(e.as_most() if e.rows > half else e for e in found)


def _entry(slot: str, count: CodeCount, letters: Mapping[str, str]) -> Entry:
    words = fold(count.code).split()
    bare = "".join(c for c in "".join(words) if c.isalnum())
    if bare in letters:
        return Entry(count.code, letters[bare], count.rows, is_sure=False)
    if made := _made(slot, bare):
        return Entry(count.code, made, count.rows, is_sure=not bare.isdigit())
    # `Sorti (muté)`: the first word may say enough.
    start = "".join(c for c in words[0] if c.isalnum()) if words else ""
    made = _made(slot, start) if len(start) >= _A_WORD else ""
    return Entry(count.code, made, count.rows, is_sure=False)


def _made(slot: str, bare: str) -> str:
    known = _HABITS[slot]
    if bare in known or slot != "identifier_type":
        return known.get(bare, "")
    # IPP-CHU, MRN_2: the type is what it begins with.
    starts = [word for word in known if len(word) > 2 and bare.startswith(word)]
    return known[max(starts, key=len)] if starts else ""


def all_known(found: Sequence[Entry]) -> bool:
    """Tell whether every code could be guessed."""
    return all(entry.made for entry in found)
