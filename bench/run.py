"""A run: everybody started, their answers compared, their figures taken in turn."""

import statistics
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import orjson

from bench.before import Build
from bench.checks import check
from bench.contenders import BASE_URL, Around, Running, contenders, service, started
from bench.load import MANY, Figure, Load
from bench.scenarios import LINKED, Call, Scenario, scenarios

FLOOR, OURS = "floor", "ours"
PEERS = ("node ×2", "hapi")

SCALED = ("read", "patient", "page")
"""What is requested of more workers and fewer."""


@dataclass(frozen=True)
class Plan:
    """How long to measure: rounds of each scenario, seconds of a load and of warming up.

    Many short rounds: a machine shared with others swings by a fifth from one to the next.
    `before` is an earlier build, one more contender.
    """

    rounds: int = 11
    seconds: int = 1
    warm: int = 3
    peers: bool = True
    before: Build | None = None
    workers: Sequence[int] = (1, 2, 4)


Rounds = dict[str, dict[str, list[Figure]]]
"""Figures by scenario and contender."""


@dataclass(slots=True)
class Results:
    """What a run found; memory of workers in MB; in `workers` their number is the contender."""

    rounds: Rounds = field(default_factory=dict)
    memory: dict[str, list[float]] = field(default_factory=dict)
    workers: Rounds = field(default_factory=dict)

    def ratio(self, scenario: str, to: str) -> float | None:
        """Return the median over the rounds of our CPU to another's."""
        figures = self.rounds.get(scenario, {})
        pairs = zip(figures.get(OURS, ()), figures.get(to, ()), strict=False)
        # A clock tick is 10 ms: what takes less counts as nothing.
        ratios = [one.cpu / other.cpu for one, other in pairs if other.cpu]
        return statistics.median(ratios) if ratios else None


@dataclass(frozen=True, slots=True)
class Bench:
    """What a run is made of."""

    around: Around
    plan: Plan

    def results(self) -> Results:
        """Measure everything and return it."""
        results = Results()
        load = Load(self.around)
        cold, *cases = scenarios(self.around.database)
        everybody = contenders(self.around, self.plan.before)
        if not self.plan.peers:
            everybody = [each for each in everybody if each.name not in PEERS]
        with ExitStack() as stack:
            running = {
                each.name: stack.enter_context(started(each, self.around.scratch))
                for each in everybody
            }
            # Before the answers are compared: that makes everybody warm.
            results.rounds = self._measure(load, running, [cold])
            for case in cases:
                names = [n for n in _able(case, running) if n != FLOOR]
                check(load, [running[name] for name in names], case)
            cases.append(self._next(load, running, cases))
            results.rounds |= self._measure(load, running, cases)
            results.memory = {name: each.memory() for name, each in running.items()}
        results.workers = self._workers(Load(self.around, MANY), cases)
        return results

    def _next(
        self, load: Load, running: Mapping[str, Running], cases: Sequence[Scenario]
    ) -> Scenario:
        """Return the scenario of next pages, whose links each contender has returned."""
        linked = [name for name in LINKED if name in running]
        pages = next(case for case in cases if case.name == "page")
        items = []
        for item in pages.items[:50]:
            links = dict.fromkeys(LINKED, "")
            for name in linked:
                text = load.body(running[name], pages.call(name, item))
                bundle = orjson.loads(text)
                urls = {link["relation"]: link["url"] for link in bundle["link"]}
                links[name] = urls["next"].replace(BASE_URL, "/fhir/v3", 1)
            items.append(list(links.values()))
        case = Scenario("next", items, only=(FLOOR, *linked))
        check(load, [running[name] for name in linked], case)
        return case

    def _measure(
        self, load: Load, running: Mapping[str, Running], cases: Sequence[Scenario]
    ) -> Rounds:
        """Return the figures of each scenario and contender, taken in turn."""
        lines = [(case, name) for case in cases for name in _able(case, running)]
        for case, name in lines:
            if not case.is_cold:
                load.run(running[name], self._calls(case, name), self.plan.warm)
        figures: Rounds = {case.name: {} for case in cases}
        for number in range(self.plan.rounds):
            for case, name in lines:
                seconds = 0 if case.is_cold else self.plan.seconds
                calls = self._calls(case, name, number)
                figure = load.run(running[name], calls, seconds)
                figures[case.name].setdefault(name, []).append(figure)
            print(f"{time.strftime('%H:%M:%S')} round {number + 1}", flush=True)
        return figures

    def _calls(self, case: Scenario, name: str, number: int = 0) -> list[Call]:
        """Return the requests of a round: of a cold scenario those that are its part."""
        items = case.items
        if case.is_cold:
            items = items[number :: self.plan.rounds]
        elif not self.plan.seconds:
            items = items[:10]
        return [case.call(name, item) for item in items]

    def _workers(self, load: Load, cases: Sequence[Scenario]) -> Rounds:
        """Return what the service answers with fewer workers and with more."""
        scratch = self.around.scratch
        with ExitStack() as stack:
            running = {}
            for count in map(str, self.plan.workers):
                ours = service(count, self.around, Build(), workers=int(count))
                running[count] = stack.enter_context(started(ours, scratch))
            scaled = [case for case in cases if case.name in SCALED]
            return self._measure(load, running, scaled)


def _able(case: Scenario, names: Collection[str]) -> list[str]:
    """Return who of some can answer a scenario."""
    return [name for name in names if name in (case.only or names)]
