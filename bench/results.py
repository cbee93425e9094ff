"""What a run found, as the report shows it."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bench.depth import Cost
from bench.load import Figure
from bench.mapping import Mapped
from bench.slow import Slow

FLOOR, HAND, DUTY, OURS = "floor", "handwritten", "dutiful", "ours"

Rounds = Mapping[str, Sequence[Figure]]
"""By the name of a contender: its figures, round by round."""


@dataclass(frozen=True, slots=True)
class Start:
    """Seconds to the first answer, and MB of memory (PSS) of each worker.

    `again` are seconds to the next answer after all workers were ended.
    """

    seconds: Sequence[float]
    memory: Sequence[float]
    again: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class Counted:
    """A first page with its total: milliseconds by contender."""

    total: int
    milliseconds: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Walk:
    """What the pages of a walk took, one after the other, and medians asked in turn."""

    pages: Sequence[Cost]
    by_depth: Mapping[int, Cost]


@dataclass(slots=True)
class Results:
    """Everything; what was not measured is empty."""

    rounds: dict[str, Rounds] = field(default_factory=dict)
    starts: dict[str, Start] = field(default_factory=dict)
    counts: list[Counted] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    walk: Walk | None = None
    mapped: Mapped | None = None
    slow: Slow | None = None

    def cpu(self, scenario: str, name: str) -> float:
        """Return the median CPU of a request, in microseconds."""
        return statistics.median(each.cpu for each in self.rounds[scenario][name])

    def ratio(self, scenario: str, name: str, to: str) -> float | None:
        """Return the median over the rounds of one contender's CPU to another's."""
        of_scenario = self.rounds.get(scenario, {})
        if name not in of_scenario or to not in of_scenario:
            return None
        pairs = zip(of_scenario[name], of_scenario[to], strict=True)
        # A clock tick is 10 ms: what took less is told as nothing.
        found = [one.cpu / other.cpu for one, other in pairs if other.cpu]
        return statistics.median(found) if found else None
