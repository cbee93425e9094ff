"""What is wrong with a mapping file, in words that its author can act on."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from adapters.mapping.model import Mark


@dataclass(frozen=True, slots=True)
class MappingProblem:
    """One thing to correct: its place, the element that it is for, and what is wrong.

    `element` is the FHIR element (Encounter.period.start) or else the path of keys
    (source.timeout_seconds), "" for the file as a whole. `column` is "" when no column
    is concerned.
    """

    mark: Mark
    element: str
    text: str
    column: str = ""

    def __str__(self) -> str:
        where = f"{self.element} ← {self.column}" if self.column else self.element
        return ": ".join(filter(None, (str(self.mark), where, self.text)))


class MappingError(Exception):
    """A mapping or profile file cannot be used; `problems` is all that has to be corrected."""

    def __init__(self, problems: Iterable[MappingProblem]) -> None:
        unique = dict.fromkeys(problems)
        self.problems = tuple(
            sorted(unique, key=lambda p: (p.mark.file, p.mark.line, p.mark.column))
        )
        super().__init__("\n".join(map(str, self.problems)))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the nearest known word, "" when none is near."""
    words = tuple(known)
    same = [candidate for candidate in words if candidate.casefold() == word.casefold()]
    near = same or get_close_matches(word, words, n=1, cutoff=0.6)
    return f"; did you mean '{near[0]}'?" if near else ""


def one_of(word: str, known: Iterable[str], what: str) -> str:
    """Return the text that `word` is not `what`: it names the nearest of `known`, or all."""
    words = tuple(known)
    near = did_you_mean(word, words)
    return f"'{word}' is not {what}{near or ': use ' + ', '.join(words)}"
