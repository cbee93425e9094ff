"""What the service answers is what it answered when it was recorded."""

import difflib
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from tests.replay.deployments import DEPLOYMENTS, Running, running
from tests.replay.exchange import Tables, replayed
from tests.replay.recorded import Exchanges, is_same
from tests.replay.recorded import recorded as recorded_now
from tests.replay.servers import servers_of_session

GROUPS = ("Encounter", "Patient", "Organization", "GET", "walk", "other")
"""First words of the names of cases: what one test replays together."""

recorded = cache(recorded_now)


def cases(deployment: str, group: str) -> Exchanges:
    """Return what was recorded of the cases of a group."""
    exchanges, _ = recorded(deployment)
    return {
        name: told
        for name, told in exchanges.items()
        if group == (word if (word := name.split()[0]) in GROUPS else "other")
    }


RECORDED = [
    (deployment, group)
    for deployment in DEPLOYMENTS
    for group in GROUPS
    if cases(deployment, group)
]


@pytest.fixture(scope="module")
def deployments(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """Return the deployments, each made when it is first asked for."""
    directory = tmp_path_factory.mktemp("replay")
    with running(servers_of_session(request), directory) as found:
        yield found


@pytest.mark.parametrize(("deployment", "group"), RECORDED)
def test_answers_are_those_recorded(
    deployments: Running, deployment: str, group: str
) -> None:
    application = deployments.application(deployment)
    _, tables = recorded(deployment)
    differences = []
    for name, expected in cases(deployment, group).items():
        now = Tables()
        found = replayed(application, [each["ask"] for each in expected], now)
        if not is_same(found, expected):
            lines = _difference(tables.whole(expected), now.whole(found))
            differences.append(f"{name}\n{lines}")
    if differences:
        pytest.fail("\n\n".join(differences), pytrace=False)


def _difference(expected: Any, found: Any) -> str:
    """Return the lines that differ, of each request with the request itself."""
    lines = []
    for number in range(max(len(expected), len(found))):
        old, new = (
            json.dumps(each[number], indent=1, ensure_ascii=False).splitlines()
            if number < len(each)
            else []
            for each in (expected, found)
        )
        if old != new:
            lines.append((new or old)[1].strip())
            lines += list(difflib.unified_diff(old, new, "recorded", "now", "", "", 2))
    return "\n".join(lines)
