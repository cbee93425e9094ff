"""The time of a request, divided into phases."""

from collections.abc import Callable, Iterator
from contextvars import copy_context
from typing import Any

import pytest
from prometheus_client import REGISTRY

from app.operations import phases
from app.operations.phases import Phase, phase, start_watch, stop_watch
from tests.serving import Served


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def spend(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    made = Clock()
    monkeypatch.setattr(phases, "perf_counter", made)
    yield made
    stop_watch()


def spent(**seconds: float) -> dict[Phase, float]:
    return {each: seconds.get(each.value, 0.0) for each in Phase}


def test_what_is_in_no_block_is_parse(clock: Clock) -> None:
    watch = start_watch()
    clock.spend(1)
    with phase(Phase.SOURCE):
        clock.spend(2)
    clock.spend(4)
    with phase(Phase.WRITE):
        clock.spend(8)
    assert watch.spent() == spent(parse=5, source=2, write=8)


def test_a_block_within_a_block_is_charged_once(clock: Clock) -> None:
    watch = start_watch()
    with phase(Phase.MAP):
        clock.spend(1)
        with phase(Phase.SOURCE):
            clock.spend(2)
        clock.spend(4)
    assert watch.spent() == spent(map=5, source=2)


def fail(clock: Clock) -> None:
    with phase(Phase.SOURCE):
        clock.spend(2)
        raise RuntimeError


def test_a_block_that_fails_is_charged_and_left(clock: Clock) -> None:
    watch = start_watch()
    with pytest.raises(RuntimeError):
        fail(clock)
    clock.spend(1)
    assert watch.spent() == spent(parse=1, source=2)


def test_outside_of_a_request_nothing_is_charged(clock: Clock) -> None:
    watch = start_watch()
    stop_watch()
    with phase(Phase.SOURCE):
        clock.spend(2)
    assert watch.spent() == spent(parse=2)


def test_another_request_has_a_watch_of_its_own(clock: Clock) -> None:
    def other() -> Any:
        watch = start_watch()
        with phase(Phase.SOURCE):
            clock.spend(2)
        return watch.spent()

    mine = start_watch()
    clock.spend(1)
    assert copy_context().run(other) == spent(source=2)
    with phase(Phase.MAP):
        clock.spend(4)
    # The clock is one for both: what the other spent passed here too.
    assert mine.spent() == spent(parse=3, map=4)


@pytest.fixture
def access(caplog: pytest.LogCaptureFixture) -> Callable[[], dict[str, Any]]:
    def last() -> dict[str, Any]:
        lines = [each for each in caplog.records if each.name == "app.access"]
        return lines[-1].data  # type: ignore[attr-defined, no-any-return]

    return last


PATHS = ["Encounter?_count=2", "Encounter/1", "metadata", "Encounter?date=never"]


@pytest.mark.parametrize("path", PATHS)
def test_the_parts_of_a_request_are_its_whole(
    served: Served, access: Callable[[], dict[str, Any]], path: str
) -> None:
    served.get(path)
    line = access()
    parts = {name: took for name, took in line.items() if name.endswith("_ms")}
    whole = parts.pop("duration_ms")
    assert list(parts) == [f"{each}_ms" for each in Phase]
    # Each is rounded to a tenth.
    assert abs(sum(parts.values()) - whole) < 0.5
    assert min(parts.values()) >= 0


def counted(route: str, phase: Phase) -> tuple[float, float]:
    """Return how many requests had a phase, and the seconds that it took them."""
    labels = {"route": f"/fhir/v3/{route}", "phase": phase.value}
    count, total = (
        REGISTRY.get_sample_value(f"encounters_phase_seconds_{part}", labels) or 0.0
        for part in ("count", "sum")
    )
    return count, total


def test_the_phases_of_a_route_are_counted(
    served: Served, access: Callable[[], dict[str, Any]]
) -> None:
    before = {each: counted("Encounter/<id>", each) for each in Phase}
    served.get("Encounter/1")
    line = access()
    for each in Phase:
        (requests, seconds), (more, later) = (
            before[each],
            counted("Encounter/<id>", each),
        )
        # A read keeps no page: it has no phase of Redis.
        assert more - requests == (each is not Phase.REDIS)
        # The log is written a moment later, and rounded.
        took, logged = (later - seconds) * 1000, line[f"{each}_ms"]
        assert took <= logged + 0.06
        assert each is Phase.PARSE or took >= logged - 0.06
