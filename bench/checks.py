"""The same answers: a figure counts only for a contender that answers as all others do."""

from collections.abc import Callable, Sequence
from typing import Any

import orjson

from bench.contenders import Running
from bench.load import Load
from bench.scenarios import SHAPES, Scenario

Validate = Callable[[dict[str, Any]], object]

COMPARED, VALIDATED = 2 * len(SHAPES), 1
"""How many answers of a scenario are compared, and held against STU3."""


class DifferenceError(Exception):
    """A contender answered something else."""


def check(
    load: Load,
    running: Sequence[Running],
    scenario: Scenario,
    validate: Validate,
) -> None:
    """Compare answers; `validate` raises for what is not STU3. Raises DifferenceError.

    Pages with rows that cannot be mapped are passed over: peers know no such rows.
    """
    for number, item in enumerate(scenario.items[:COMPARED]):
        bodies = [answer(load, each, scenario, item) for each in running]
        if any("OperationOutcome" in kinds(body) for body in bodies):
            continue
        expected = meaning(bodies[0])
        for each, body in zip(running, bodies, strict=True):
            if number < VALIDATED:
                validate(body)
            if (found := meaning(body)) != expected:
                name = f"{each.contender.name}, {scenario.name} {item}"
                raise DifferenceError(
                    f"{name}: {found!r:.600} is not {expected!r:.600}"
                )


def answer(
    load: Load, running: Running, scenario: Scenario, item: Sequence[str]
) -> dict[str, Any]:
    """Return one body. Raises DifferenceError for an error."""
    call = scenario.call(running.contender.name, item)
    status, body = load.ask(running, call)
    if status != 200:
        raise DifferenceError(
            f"{running.contender.name}, {call}: {status} {body[:500]!r}"
        )
    parsed: dict[str, Any] = orjson.loads(body)
    return parsed


def kinds(body: dict[str, Any]) -> set[str]:
    """Return the types of the resources of a Bundle."""
    return {entry["resource"]["resourceType"] for entry in body.get("entry", ())}


def meaning(body: dict[str, Any]) -> object:
    """Return what must be the same: total and ids, each with its state and its times."""
    if body["resourceType"] != "Bundle":
        return _content(body)
    entries = body.get("entry", ())
    return body.get("total"), [_content(entry["resource"]) for entry in entries]


def _content(resource: dict[str, Any]) -> object:
    if resource["resourceType"] != "Encounter":
        return resource
    period = resource.get("period", {})
    # Java and JavaScript keep milliseconds, and write them or not.
    times = [period[bound][:19] for bound in ("start", "end") if bound in period]
    (extension,) = resource["serviceProvider"].get("extension", [{}])
    (identifier,) = resource.get("identifier", [{}])
    texts = extension.get("valueString"), identifier.get("value")
    code = resource["class"]["code"]
    return resource["id"], resource["status"], code, *[t or None for t in texts], *times
