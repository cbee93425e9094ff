"""A run: everybody started, their answers compared, their figures taken in turn."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from bench import counts, depth, mapping, slow
from bench.checks import Validate, answer, check
from bench.cluster import Database
from bench.contenders import (
    BASE_URL,
    Contender,
    Running,
    contenders,
    memory_of,
    started,
)
from bench.load import Figure, Load
from bench.restarts import restarts
from bench.results import DUTY, FLOOR, HAND, OURS, Results, Start, Walk
from bench.scenarios import LINKED, Scenario, scenarios
from bench.tokens import Identity

VARIANTS: Mapping[str, str] = MappingProxyType(
    {"node ×2, no total": "uncounted", "node ×2, own classes": "classes"}
)
"""Other ways of the node peer to answer a page, by what its header X-Variant says."""

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
    """

    rounds: int = 15
    seconds: int = 1
    warm: int = 3
    pages: int = 10_000
    starts: int = 3
    restarts: int = 7
    peers: bool = True
    slow: bool = True


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a table: a contender, perhaps in another variant."""

    name: str
    running: Running
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Bench:
    """What a run is made of."""

    database: Database
    redis: str
    identity: Identity
    scratch: Path
    plan: Plan
    validate: Validate | None = None

    def results(self) -> Results:
        """Measure everything and return it."""
        found = Results()
        asked = scenarios(self.database)
        bodies = self.scratch / "bodies"
        bodies.mkdir()
        load = Load(self.identity.token, self.scratch, self.database.pid)
        everybody = contenders(self.database, self.redis, self.identity, bodies)
        if not self.plan.peers:
            everybody = everybody[:4]
        found.missing = {each.name: each.missing for each in everybody if each.missing}
        there = [each for each in everybody if not each.missing]
        with self._started(there) as running:
            self._compared(load, running, asked)
            asked.append(self._next(load, running, asked))
            self._write_bodies(load, running[OURS], asked, bodies)
            self._measure(load, running, asked, found)
            counted = [each for name, each in running.items() if name != FLOOR]
            found.counts = list(counts.measure(self.database, load, counted, asked))
            for name, each in running.items():
                memory = tuple(memory_of(worker) for worker in each.workers())
                found.starts[name] = Start((), memory)
            for name in (FLOOR, HAND, DUTY, OURS):
                again = tuple(self._restarts(load, running[name], asked[0]))
                found.starts[name] = replace(found.starts[name], again=again)
        for each in there:
            found.starts[each.name] = replace(
                found.starts[each.name], seconds=tuple(self._starts(each))
            )
        units = next(each for each in asked if each.name == "page")
        found.mapped = mapping.measure(self.database, units.items[0][0])
        found.walk = self._walk()
        if self.plan.slow:
            found.slow = slow.measure(
                self.database,
                self.redis,
                self.identity,
                load,
                asked[0],
                self.scratch,
                self.plan.seconds,
            )
        return found

    @contextmanager
    def _started(self, everybody: Sequence[Contender]) -> Iterator[dict[str, Running]]:
        with ExitStack() as stack:
            yield {
                each.name: stack.enter_context(started(each, self._log(each)))
                for each in everybody
            }

    def _log(self, contender: Contender) -> Path:
        return self.scratch / f"{contender.name.replace(' ', '-')}.log"

    def _compared(
        self, load: Load, running: Mapping[str, Running], asked: Sequence[Scenario]
    ) -> None:
        real = [each for name, each in running.items() if name != FLOOR]
        for scenario in asked:
            check(load, real, scenario, self.validate)
            say(f"the same answers: {scenario.title}")

    def _next(
        self, load: Load, running: Mapping[str, Running], asked: Sequence[Scenario]
    ) -> Scenario:
        pages = next(each for each in asked if each.name == "page")
        found = []
        for item in pages.items[:50]:
            told = [answer(load, running[name], pages, item) for name in LINKED]
            found.append([_following(each) for each in told])
        following = Scenario("next", "next page of 100", found, only=(FLOOR, *LINKED))
        check(load, [running[name] for name in LINKED], following, self.validate)
        return following

    def _write_bodies(
        self, load: Load, ours: Running, asked: Sequence[Scenario], bodies: Path
    ) -> None:
        for scenario in asked:
            _, body = load.ask(ours, scenario.call(OURS, scenario.items[0]))
            (bodies / scenario.name).write_bytes(body)

    def _measure(
        self,
        load: Load,
        running: Mapping[str, Running],
        asked: Sequence[Scenario],
        found: Results,
    ) -> None:
        lines = {each.name: list(_lines(each, running)) for each in asked}
        for scenario in asked:
            for line in lines[scenario.name]:
                self._figure(load, scenario, line, self.plan.warm)
        say("warm")
        figures: dict[str, dict[str, list[Figure]]] = {
            name: {line.name: [] for line in of_scenario}
            for name, of_scenario in lines.items()
        }
        for number in range(self.plan.rounds):
            for scenario in asked:
                for line in lines[scenario.name]:
                    figure = self._figure(load, scenario, line, self.plan.seconds)
                    figures[scenario.name][line.name].append(figure)
            say(f"round {number + 1} of {self.plan.rounds}")
        found.rounds.update(figures)

    def _figure(
        self, load: Load, scenario: Scenario, line: Line, seconds: int
    ) -> Figure:
        name = line.running.contender.name
        items = scenario.items if seconds else scenario.items[:FEW]
        calls = [scenario.call(name, item) for item in items]
        return load.run(line.running, calls, seconds, headers=line.headers)

    def _starts(self, contender: Contender) -> Iterator[float]:
        for _ in range(self.plan.starts):
            with started(contender, self._log(contender)) as running:
                yield running.seconds

    def _restarts(
        self, load: Load, running: Running, reads: Scenario
    ) -> Iterator[float]:
        calls = [reads.call(running.contender.name, item) for item in reads.items]
        return restarts(load, running, calls, self.plan.restarts)

    def _walk(self) -> Walk:
        """Go from page to page in this process: what is measured is the WSGI call."""
        app = depth.service(self.database.sqlalchemy, self.redis)
        app.extensions["encounters"] = depth._without_tokens(app)
        first = f"Encounter?_count={WALKED_SIZE}"
        try:
            walked = list(depth.walk(app, first, "next", self.plan.pages))
            addresses = [address for address, _ in walked]
            by_depth = depth.in_turn(app, addresses, DEPTHS)
        finally:
            app.extensions["encounters"].adapter.close()
        say(f"walked {len(walked):,} pages")
        return Walk([cost for _, cost in walked[1:]], by_depth)


def _following(told: Mapping[str, Any]) -> str:
    links = {link["relation"]: link["url"] for link in told["link"]}
    url: str = links["next"]
    return url.replace(BASE_URL, "/fhir/v3", 1)


def _lines(scenario: Scenario, running: Mapping[str, Running]) -> Iterator[Line]:
    for name, each in running.items():
        if not scenario.only or name in scenario.only:
            yield Line(name, each, {})
    if scenario.name == "page" and "node ×2" in running:
        for name, variant in VARIANTS.items():
            yield Line(name, running["node ×2"], {"X-Variant": variant})


def say(text: str) -> None:
    """Tell how far the run is."""
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)
