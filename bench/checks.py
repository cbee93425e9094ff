"""The same answers: a figure counts only for a contender that answers as all others do."""

from collections.abc import Sequence
from typing import Any

import orjson

from bench.contenders import Running
from bench.load import Load
from bench.scenarios import SHAPES, Scenario

COMPARED = 2 * len(SHAPES)
"""How many answers of a scenario are compared."""


class DifferenceError(Exception):
    """A contender answered something else."""


def check(load: Load, running: Sequence[Running], scenario: Scenario) -> None:
    """Compare answers. Raises DifferenceError.

    Pages with rows that cannot be mapped are passed over: peers know no such rows.
    """
    for item in scenario.items[:COMPARED]:
        texts = [
            load.body(each, scenario.call(each.contender.name, item))
            for each in running
        ]
        if any(b"OperationOutcome" in text for text in texts):
            continue
        bodies = [orjson.loads(text) for text in texts]
        totals = {body["total"] for body in bodies if "total" in body}
        for each, body in zip(running, bodies, strict=True):
            if meaning(body) != meaning(bodies[0]) or len(totals) > 1:
                text = f"{meaning(body)!r:.600} is not {meaning(bodies[0])!r:.600}"
                name = f"{each.contender.name}, {scenario.name} {item}"
                raise DifferenceError(f"{name}: {text}, totals {totals}")


def meaning(body: dict[str, Any]) -> list[object]:
    """Return what must be the same of each resource: its id, its state, its times."""
    if body["resourceType"] != "Bundle":
        return [_content(body)]
    return [_content(entry["resource"]) for entry in body.get("entry", ())]


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
