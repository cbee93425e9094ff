"""What the service answers is what it answered when it was recorded."""

import difflib
import json
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from typing import Any

import pytest

from tests.replay.cases import cases
from tests.replay.deployments import DEPLOYMENTS, Running, running
from tests.replay.exchange import EDITS, Tables, replayed
from tests.replay.recorded import Exchanges, is_same, recorded
from tests.replay.servers import servers_of_session

_GROUPS = {
    (name, group): [*found]
    for name in DEPLOYMENTS
    for group, found in groupby(
        sorted(cases(name, EDITS), key=lambda case: case.group),
        lambda case: case.group,
    )
}


@pytest.fixture(scope="module")
def deployments(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """Return the deployments, each made when it is first asked for."""
    directory = tmp_path_factory.mktemp("replay")
    with running(servers_of_session(request), directory) as found:
        yield found


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_every_case_is_recorded(deployment: str) -> None:
    exchanges, _ = _recorded(deployment)
    assert {*exchanges} == {case.name for case in cases(deployment, EDITS)}


@pytest.mark.parametrize(("deployment", "group"), _GROUPS)
def test_answers_are_those_recorded(
    deployments: Running, deployment: str, group: str
) -> None:
    application = deployments.application(deployment)
    exchanges, tables = _recorded(deployment)
    differences = []
    for case in _GROUPS[deployment, group]:
        expected, now = exchanges.get(case.name, []), Tables()
        found = replayed(application, case, now)
        if not is_same(found, expected):
            lines = _difference(tables.whole(expected), now.whole(found))
            differences.append(f"{case.name}\n{lines}")
    if differences:
        pytest.fail("\n\n".join(differences), pytrace=False)


@cache
def _recorded(deployment: str) -> tuple[Exchanges, Tables]:
    return recorded(deployment)


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
