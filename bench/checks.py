"""The same answers: a figure counts only for a contender that answers as all others do."""

from collections.abc import Callable, Sequence
from typing import Any

import orjson

from bench.contenders import Running
from bench.load import Load
from bench.scenarios import Scenario

Validate = Callable[[dict[str, Any]], object]

COMPARED, VALIDATED = 20, 1
"""How many answers of a scenario are compared, and held against STU3."""


class DifferenceError(Exception):
    """A contender answered something else."""


def check(
    load: Load,
    running: Sequence[Running],
    scenario: Scenario,
    validate: Validate,
) -> None:
    """Compare answers; `validate` raises for what is not STU3.

    A Bundle without a total is compared by its ids alone. Raises DifferenceError.
    """
    for number, item in enumerate(scenario.items[:COMPARED]):
        expected = None
        for each in running:
            name = each.contender.name
            told = answer(load, each, scenario, item)
            if number < VALIDATED:
                validate(told)
            found = meaning(told)
            expected = expected or found
            if found != expected:
                raise DifferenceError(
                    f"{name}, {scenario.name} {item}: {found!r:.300} is not {expected!r:.300}"
                )


def answer(
    load: Load, running: Running, scenario: Scenario, item: Sequence[str]
) -> dict[str, Any]:
    """Return one answer, read. Raises DifferenceError for an error."""
    call = scenario.call(running.contender.name, item)
    status, body = load.ask(running, call)
    if status != 200:
        raise DifferenceError(f"{running.contender.name}: {status} {body[:500]!r}")
    told: dict[str, Any] = orjson.loads(body)
    return told


def meaning(told: dict[str, Any]) -> object:
    """Return what must be the same: total and ids, each with its state and its times."""
    if told["resourceType"] != "Bundle":
        return _stay(told)
    return told["total"], [_stay(entry["resource"]) for entry in told.get("entry", ())]


def _stay(stay: dict[str, Any]) -> object:
    period = stay["period"]
    # Java and JavaScript keep milliseconds, and write them or not.
    times = [period[bound][:19] for bound in ("start", "end") if bound in period]
    unit = stay["serviceProvider"]["extension"][0]["valueString"]
    number = stay["identifier"][0]["value"]
    return stay["id"], stay["status"], stay["class"]["code"], number, unit, *times
