"""The runnable clients, as processes: against the demo, and on a service's bad day."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping

import pytest

from tests.docs.pages import DOCS
from tests.docs.running import Demo
from tests.docs.scripted import Reply, page, scripted

PYTHON = (sys.executable, str(DOCS / "client.py"))
SHELL = ("sh", str(DOCS / "client.sh"))
NEXT = "{base}/Bundle?_id=a&_index=2&_searchAfter=b"


@pytest.fixture(params=[PYTHON, SHELL], ids=["python", "shell"])
def client(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Return each client."""
    command: tuple[str, ...] = request.param
    return command


def run(
    client: tuple[str, ...], environ: Mapping[str, str], *search: str
) -> "subprocess.CompletedProcess[str]":
    """Run a client to its end."""
    return subprocess.run(
        [*client, *search],
        env={**{k: v for k, v in os.environ.items() if k != "TOKEN_URL"}, **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def ids(done: "subprocess.CompletedProcess[str]") -> list[str]:
    """Return the ids of what a client printed."""
    return [json.loads(line)["id"] for line in done.stdout.splitlines()]


def test_it_walks_all_pages_of_the_demo(client: tuple[str, ...], demo: Demo) -> None:
    done = run(client, demo.client(), "Encounter", "date=ge2024-01-01", "_count=50")
    assert done.returncode == 0, done.stderr
    found = ids(done)
    assert len(found) == len(set(found))
    *warnings, told = done.stderr.splitlines()
    total, unshown = (int(word) for word in told.split() if word.isdigit())
    assert len(found) + unshown == total
    assert len(warnings) == unshown > 0
    assert total > 100


def test_it_sends_parameters_as_they_are_or_none(
    client: tuple[str, ...], demo: Demo
) -> None:
    at = "2024-03-30T08:15:00+01:00"
    done = run(client, demo.client(), "Encounter", f"date=ge{at}", f"date=le{at}")
    assert ids(done) == ["107"], done.stderr
    done = run(client, demo.client(), "Organization")
    assert len(ids(done)) == 4, done.stderr


def test_without_arguments_it_says_how_it_is_called(client: tuple[str, ...]) -> None:
    with scripted() as service:
        done = run(client, service.client())
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("usage: ")


def test_it_says_what_is_missing_in_the_environment(client: tuple[str, ...]) -> None:
    with scripted() as service:
        told = {k: v for k, v in service.client().items() if k != "TOKEN_URL"}
        done = run(client, told, "Encounter")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == "not in the environment: TOKEN_URL"


@pytest.mark.parametrize(
    ("changed", "search", "says"),
    [
        ({}, ("date=2024-13-01",), ("412", "no day or time")),
        ({"CLIENT_SECRET": "wrong"}, (), ("401",)),
    ],
    ids=["search", "secret"],
)
def test_a_refusal_is_shown(
    client: tuple[str, ...],
    demo: Demo,
    changed: dict[str, str],
    search: tuple[str, ...],
    says: tuple[str, ...],
) -> None:
    done = run(client, {**demo.client(), **changed}, "Encounter", *search)
    assert (done.returncode, done.stdout) == (1, "")
    assert all(word in done.stderr for word in says)


@pytest.mark.parametrize("status", [302, 404, 410])
def test_an_error_on_next_is_an_error(client: tuple[str, ...], status: int) -> None:
    with scripted(Reply(body=page([1, 2], 3, NEXT)), Reply(status)) as service:
        done = run(client, service.client(), "Encounter")
    assert done.returncode == 1
    assert ids(done) == ["1", "2"]


def test_it_waits_as_it_is_told(client: tuple[str, ...]) -> None:
    began = time.monotonic()
    with scripted(
        Reply(429, retry_after="1"),
        Reply(body=page([1, 2], 3, NEXT)),
        Reply(503, retry_after="1"),
        Reply(body=page([3], 3)),
    ) as service:
        done = run(client, service.client(), "Encounter", "class=IMP")
    assert done.returncode == 0, done.stderr
    assert ids(done) == ["1", "2", "3"]
    assert time.monotonic() - began >= 2
    search, follow = "POST /fhir/v3/Encounter/_search", f"GET {NEXT[6:]}"
    asked = [line.replace("/fhir/v3/B", "/B") for line in service.asked]
    assert asked == [search, search, follow, follow]


@pytest.mark.parametrize(("seconds", "asked"), [("1", 5), ("3600", None)])
def test_it_does_not_wait_for_ever(
    client: tuple[str, ...], seconds: str, asked: int | None
) -> None:
    began = time.monotonic()
    with scripted(Reply(503, retry_after=seconds)) as service:
        done = run(client, service.client(), "Encounter")
    assert done.returncode == 1
    assert time.monotonic() - began < 60
    assert asked in (None, len(service.asked))


@pytest.mark.parametrize(
    "second", [[2, 3], [3], [3, 4, 5]], ids=["twice", "missing", "too many"]
)
def test_what_differs_from_total_is_told(
    client: tuple[str, ...], second: list[int]
) -> None:
    pages = (Reply(body=page([1, 2], 4, NEXT)), Reply(body=page(second, 4)))
    with scripted(*pages) as service:
        done = run(client, service.client(), "Encounter")
    assert done.returncode == 3
    assert "total is 4" in done.stderr


def test_a_token_goes_nowhere_else(client: tuple[str, ...]) -> None:
    with scripted(Reply()) as other:
        away = f"{other.base_url}/Bundle?_id=a"
        with scripted(Reply(body=page([1], 2, away))) as service:
            done = run(client, service.client(), "Encounter")
    assert done.returncode == 1
    assert other.asked == []


def test_the_python_client_renews_its_token() -> None:
    with scripted(
        Reply(body=page([1], 2, NEXT)), Reply(401), Reply(body=page([2], 2))
    ) as service:
        done = run(PYTHON, service.client(), "Encounter")
    assert done.returncode == 0, done.stderr
    assert ids(done) == ["1", "2"]
