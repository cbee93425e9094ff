"""A run: everybody started, their answers compared, their figures taken in turn."""

import statistics
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import depth
from bench.checks import Validate, answer, check
from bench.cluster import Database
from bench.contenders import BASE_URL, Running, contenders, memory_of, started
from bench.load import Figure, Load
from bench.scenarios import LINKED, Scenario, scenarios
from bench.tokens import Identity

FLOOR, PLAIN, OURS = "floor", "handwritten", "ours"
PEERS = ("node", "hapi")

FEW = 10
"""How many requests of a scenario stand for a load in no time."""

DEPTHS = (1, 10, 100, 1_000, 3_000, 5_000, 7_000, 9_000, 10_000)
"""The pages whose cost is compared."""

WALKED_SIZE = 95
"""Rows a page of the deep walk: 10,000 pages of a million stays, less the cancelled."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How long to measure: rounds of each scenario, seconds of a load, pages of the walk.

    Many short rounds: a machine shared with others swings by a fifth from one to the next.
    `before` is a checkout of an earlier build, one more contender.
    """

    rounds: int = 11
    seconds: int = 1
    warm: int = 3
    pages: int = 10_000
    peers: bool = True
    before: Path | None = None


@dataclass(slots=True)
class Results:
    """What a run found: figures by scenario and contender, memory of workers in MB."""

    rounds: dict[str, dict[str, list[Figure]]] = field(default_factory=dict)
    memory: dict[str, list[float]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    walk: Mapping[int, depth.Cost] = field(default_factory=dict)

    def ratio(self, scenario: str, to: str) -> float | None:
        """Return the median over the rounds of our CPU to another's."""
        figures = self.rounds.get(scenario, {})
        if OURS not in figures or to not in figures:
            return None
        pairs = zip(figures[OURS], figures[to], strict=True)
        # A clock tick is 10 ms: what takes less counts as nothing.
        ratios = [one.cpu / other.cpu for one, other in pairs if other.cpu]
        return statistics.median(ratios) if ratios else None


@dataclass(frozen=True, slots=True)
class Bench:
    """What a run is made of."""

    database: Database
    redis: str
    identity: Identity
    scratch: Path
    plan: Plan
    validate: Validate

    def results(self) -> Results:
        """Measure everything and return it."""
        results = Results()
        cases = scenarios(self.database)
        bodies = self.scratch / "bodies"
        bodies.mkdir()
        load = Load(self.identity.token, self.scratch, self.database.pid)
        everybody = contenders(
            self.database, self.redis, self.identity, bodies, self.plan.before
        )
        if not self.plan.peers:
            everybody = [each for each in everybody if not each.name.startswith(PEERS)]
        results.missing = {e.name: e.missing for e in everybody if e.missing}
        with ExitStack() as stack:
            running = {
                each.name: stack.enter_context(
                    started(each, self.scratch / f"{each.name.replace(' ', '-')}.log")
                )
                for each in everybody
                if not each.missing
            }
            real = [each for name, each in running.items() if name != FLOOR]
            for case in cases:
                check(load, real, case, self.validate)
            cases.append(self._next(load, running, cases))
            for case in cases:
                _, body = load.ask(running[OURS], case.call(OURS, case.items[0]))
                (bodies / case.name).write_bytes(body)
            results.rounds = self._measure(load, running, cases)
            for name, each in running.items():
                results.memory[name] = [memory_of(w) for w in each.workers()]
        results.walk = self._walk()
        return results

    def _next(
        self, load: Load, running: Mapping[str, Running], cases: Sequence[Scenario]
    ) -> Scenario:
        """Return the scenario of next pages, whose links each contender has given."""
        linked = [name for name in LINKED if name in running]
        pages = next(case for case in cases if case.name == "page")
        items = []
        for item in pages.items[:50]:
            links = dict.fromkeys(LINKED, "")
            for name in linked:
                links[name] = _following(answer(load, running[name], pages, item))
            items.append(list(links.values()))
        case = Scenario("next", "next page of 100", items, only=(FLOOR, *linked))
        check(load, [running[name] for name in linked], case, self.validate)
        return case

    def _measure(
        self, load: Load, running: Mapping[str, Running], cases: Sequence[Scenario]
    ) -> dict[str, dict[str, list[Figure]]]:
        lines = [
            (case, name, each)
            for case in cases
            for name, each in running.items()
            if not case.only or name in case.only
        ]
        for case, name, each in lines:
            load.run(each, _calls(case, name, self.plan.warm), self.plan.warm)
        say("warm")
        figures: dict[str, dict[str, list[Figure]]] = {case.name: {} for case in cases}
        for number in range(self.plan.rounds):
            for case, name, each in lines:
                calls = _calls(case, name, self.plan.seconds)
                figure = load.run(each, calls, self.plan.seconds)
                figures[case.name].setdefault(name, []).append(figure)
            say(f"round {number + 1} of {self.plan.rounds}")
        return figures

    def _walk(self) -> Mapping[int, depth.Cost]:
        """Go from page to page in this process: what is measured is the WSGI call."""
        if not self.plan.pages:
            return {}
        service = depth.Service(self.database.sqlalchemy, self.redis, self.identity)
        first = f"Encounter?_count={WALKED_SIZE}"
        addresses = [address for address, _ in service.walk(first, self.plan.pages)]
        say(f"walked {len(addresses):,} pages")
        return service.in_turn(addresses, DEPTHS)


def _calls(case: Scenario, name: str, seconds: int) -> list[Any]:
    items = case.items if seconds else case.items[:FEW]
    return [case.call(name, item) for item in items]


def _following(bundle: Mapping[str, Any]) -> str:
    links = {link["relation"]: link["url"] for link in bundle["link"]}
    url: str = links["next"]
    return url.replace(BASE_URL, "/fhir/v3", 1)


def say(text: str) -> None:
    """Print how far the run is."""
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)
