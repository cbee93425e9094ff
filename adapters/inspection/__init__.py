"""A live source looked into, beyond what searches need: what is seen, and where to mend it.

Nothing that is seen quotes a value of a person: counts, codes, columns and rules only.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, runtime_checkable

from adapters.contract import Adapter, ResourceType, SearchQuery
from adapters.mapping.model import Mark
from adapters.mapping.places import Place
from adapters.mapping.problems import MappingProblem

SAMPLE = 1000
"""How many rows are looked at from each end of an order."""


class Weight(StrEnum):
    """How much it matters: what is wrong, what is probably wrong, what is good to know."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Observation:
    """Something seen in a source, at the line of the mapping that it concerns.

    `column` is the source's own table.column where that is known. `remedy` is an SQL
    statement or a line of the file that would help, "" when there is none.
    """

    mark: Mark
    element: str
    column: str
    text: str
    weight: Weight = Weight.ERROR
    remedy: str = ""

    @classmethod
    def of(cls, problem: MappingProblem) -> "Observation":
        """Return the observation of a problem of the mapping."""
        return cls(problem.mark, problem.element, problem.column, problem.text)

    @classmethod
    def at(
        cls, place: Place, column: str, text: str, weight: Weight, remedy: str = ""
    ) -> "Observation":
        """Return the observation of a field."""
        return cls(place.field.mark, place.element, column, text, weight, remedy)


@dataclass(frozen=True, slots=True)
class Look:
    """One thing to look at; `ask` asks the source, within its own time-outs.

    It raises SourceUnavailableError when the source is away.
    """

    subject: str
    ask: Callable[[], Iterable[Observation]]


@runtime_checkable
class Inspectable(Protocol):
    """An adapter whose source can be looked into."""

    def looks(self, kinds: Collection[ResourceType]) -> Iterator[Look]:
        """Yield what there is to look at of these types; each is asked before the next."""


@runtime_checkable
class Legible(Protocol):
    """An adapter that tells the values of what it would send, beside the placeholders."""

    def explain_values(self, query: SearchQuery) -> str:
        """Return what would be sent, and what each placeholder stands for."""


def with_values(adapter: Adapter) -> Callable[[SearchQuery], str]:
    """Return what explains a search with its values, as far as the adapter tells them."""
    return adapter.explain_values if isinstance(adapter, Legible) else adapter.explain
