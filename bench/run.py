"""A run: everybody started, their answers compared, their figures taken in turn."""

import statistics
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.before import ROOT, Build
from bench.checks import Validate, answer, check
from bench.cluster import Database
from bench.contenders import (
    BASE_URL,
    Contender,
    Running,
    contenders,
    memory_of,
    service,
    started,
)
from bench.load import Figure, Load
from bench.scenarios import LINKED, Call, Scenario, scenarios
from bench.tokens import Identity
from bench.walk import in_turn, walk

FLOOR, OURS = "floor", "ours"
PEERS = ("node ×2", "hapi")

FEW = 10
"""How many requests of a scenario stand for a load in no time."""

DEPTHS = (1, 10, 100, 1_000, 10_000)
"""The pages whose cost is compared."""

WALKED_SIZE = 95
"""Rows a page of the deep walk: 10,000 pages of a million stays, less the cancelled."""

SCALED = ("read", "patient", "page")
"""What is requested of more workers and fewer."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How long to measure: rounds of each scenario, seconds of a load, pages of the walk.

    Many short rounds: a machine shared with others swings by a fifth from one to the next.
    `before` is an earlier build, one more contender.
    """

    rounds: int = 11
    seconds: int = 1
    warm: int = 3
    pages: int = 10_000
    peers: bool = True
    before: Build | None = None
    workers: Sequence[int] = (1, 2, 4)


Rounds = dict[str, dict[str, list[Figure]]]
"""Figures by scenario and contender."""


@dataclass(slots=True)
class Results:
    """What a run found; memory of workers in MB, pages of the walk in milliseconds."""

    rounds: Rounds = field(default_factory=dict)
    memory: dict[str, list[float]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    depths: Mapping[int, float] = field(default_factory=dict)
    workers: Rounds = field(default_factory=dict)

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
            everybody = [each for each in everybody if each.name not in PEERS]
        results.missing = {e.name: e.missing for e in everybody if e.missing}
        present = [each for each in everybody if not each.missing]
        with ExitStack() as stack:
            running = {each.name: self._start(each, stack) for each in present}
            cold = [case for case in cases if case.is_cold]
            # Before the answers are compared: that makes everybody warm.
            results.rounds = self._measure(load, running, cold, bodies)
            cases = [case for case in cases if not case.is_cold]
            for case in cases:
                able = [
                    each
                    for name, each in running.items()
                    if name != FLOOR and name in (case.only or running)
                ]
                check(load, able, case, self.validate)
            cases.append(self._next(load, running, cases))
            results.rounds |= self._measure(load, running, cases, bodies)
            for name, each in running.items():
                results.memory[name] = [memory_of(w) for w in each.workers()]
            results.depths = self._depths(load, running[OURS])
        results.workers = self._workers(load, cases)
        return results

    def _start(self, contender: Contender, stack: ExitStack) -> Running:
        log = self.scratch / f"{contender.name.replace(' ', '-')}.log"
        return stack.enter_context(started(contender, log))

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
                links[name] = _following(answer(load, running[name], pages, item))
            items.append(list(links.values()))
        case = Scenario("next", items, only=(FLOOR, *linked))
        check(load, [running[name] for name in linked], case, self.validate)
        return case

    def _measure(
        self,
        load: Load,
        running: Mapping[str, Running],
        cases: Sequence[Scenario],
        bodies: Path,
    ) -> Rounds:
        """Return the figures of each scenario; the floor's bodies are as large as ours."""
        for case in cases:
            # Not one of those that are measured, where these have to be new.
            call = case.call(OURS, case.items[-1])
            body = load.ask(running[OURS], call)[1]
            (bodies / case.name.replace(" ", "-")).write_bytes(body)
        lines = [
            (case, name, each)
            for case in cases
            for name, each in running.items()
            if name in (case.only or running)
        ]
        for case, name, each in lines:
            if not case.is_cold:
                load.run(each, self._calls(case, name), self.plan.warm)
        figures: Rounds = {case.name: {} for case in cases}
        for number in range(self.plan.rounds):
            for case, name, each in lines:
                seconds = 0 if case.is_cold else self.plan.seconds
                figure = load.run(each, self._calls(case, name, number), seconds)
                figures[case.name].setdefault(name, []).append(figure)
            titles = ", ".join(case.name for case in cases)
            say(f"round {number + 1} of {self.plan.rounds}: {titles}")
        return figures

    def _calls(self, case: Scenario, name: str, number: int = 0) -> list[Call]:
        """Return the requests of a round: of a cold scenario those that are its part."""
        items = case.items
        if case.is_cold:
            items = items[number :: self.plan.rounds]
        elif not self.plan.seconds:
            items = items[:FEW]
        return [case.call(name, item) for item in items]

    def _depths(self, load: Load, running: Running) -> Mapping[int, float]:
        if not self.plan.pages:
            return {}
        first = f"Encounter?_count={WALKED_SIZE}"
        addresses = walk(load, running, first, self.plan.pages)
        say(f"walked {len(addresses):,} pages")
        return in_turn(load, running, addresses, DEPTHS)

    def _workers(self, load: Load, cases: Sequence[Scenario]) -> Rounds:
        """Return what the service answers with fewer workers and with more."""
        figures: Rounds = {case.name: {} for case in cases if case.name in SCALED}
        with ExitStack() as stack:
            running = {}
            for count in self.plan.workers:
                ours = service(
                    *(OURS, Build(ROOT), self.database, self.redis, self.identity),
                    workers=count,
                )
                running[count] = self._start(replace(ours, name=str(count)), stack)
            lines = [
                (case, count, each)
                for case in cases
                if case.name in SCALED
                for count, each in running.items()
            ]
            for number in range(-1, self.plan.rounds):
                for case, count, each in lines:
                    calls = self._calls(case, OURS)
                    figure = load.run(each, calls, self.plan.seconds)
                    if number >= 0:
                        figures[case.name].setdefault(str(count), []).append(figure)
        say("measured workers")
        return figures


def _following(bundle: Mapping[str, Any]) -> str:
    links = {link["relation"]: link["url"] for link in bundle["link"]}
    url: str = links["next"]
    return url.replace(BASE_URL, "/fhir/v3", 1)


def say(text: str) -> None:
    """Print how far the run is."""
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)
