"""`make run`, for real: what it prints works, and it stops without leaving anything.

Everything here is a process of its own, on ports that nobody has.
"""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import requests

from tests.demo.running import (
    PORTS,
    STOP_SECONDS,
    Demo,
    get,
    make,
    offline_token,
    pasted,
    refused,
    started,
)
from tests.live import HOST, ROOT, free_ports, wait_until
from tests.serving import ids, relations

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run") / "demo"


@pytest.fixture(scope="module")
def demo(directory: Path) -> Iterator[Demo]:
    with started(directory, directory.with_suffix(".log")) as running_demo:
        yield running_demo


def test_the_printed_lines_work_as_they_are(demo: Demo, directory: Path) -> None:
    page, following, stay = pasted(demo)
    first, second = ids(page), ids(following)
    assert (len(first), len(second)) == (5, 5)
    assert not set(first) & set(second)
    assert page["total"] == following["total"] > 10
    assert page["link"][0]["url"].startswith(f"{demo.base_url}/Bundle?_id=")
    assert (stay["resourceType"], stay["id"]) == ("Encounter", first[0])
    # An offline token has the scope that was asked for.
    token = offline_token(directory, "--scope", "ORGANIZATION_READ", "--client", "x")
    assert get(f"{demo.base_url}/Organization", token).status_code == 200
    assert get(f"{demo.base_url}/Encounter", token).status_code == 403


def test_what_is_in_use_is_one_sentence_before_anything_is_made(
    demo: Demo, directory: Path, tmp_path: Path
) -> None:
    taken = {"": [(port, demo.port + max(port, 0)) for port in (0, -1, 1)]}
    # The hospital's API has the third port.
    taken["a"] = [(-2, demo.port)]
    for group, ports in taken.items():
        for offset, port in ports:
            other = tmp_path / f"other{offset}"
            status, said = refused(other, demo.port + offset, group=group)
            assert status == 1
            assert said.startswith(f"Port {port} cannot be used (")
            assert (f"'make run GROUP={group} PORT=9000'" in said) is bool(group)
            assert said.count("\n") == 1
            folder = other / f"group-{group}" if group else other
            assert [path.name for path in folder.iterdir()] == ["lock"]
    status, said = refused(directory, free_ports(PORTS))
    assert status == 1
    assert said.startswith(f"Another demo is running in {directory}: ")
    assert said.count("\n") == 1
    status, said = refused(tmp_path / "none", free_ports(PORTS), "100001", "a")
    assert status == 1
    assert said == "A hospital behind an API has 100,000 stays at most here.\n"
    assert not (tmp_path / "none").exists()


def test_a_second_start_at_once_keeps_data_tokens_and_pages(tmp_path: Path) -> None:
    """The port was just left, by a server whose last connection lingers: it is free."""
    directory, port = tmp_path / "demo", free_ports(PORTS)
    with started(directory, tmp_path / "first.log", port) as first:
        token = offline_token(directory)
        page = get(f"{first.base_url}/Encounter?_count=3", token)
        assert first.stop(signal.SIGINT) == 0
    assert "Making a hospital" in first.said()
    _linger(port)
    with started(directory, tmp_path / "second.log", port) as second:
        links = {link["relation"]: link["url"] for link in page.json()["link"]}
        assert get(links["self"], token).json()["entry"] == page.json()["entry"]
        assert get(links["next"], token).status_code == 200
        assert second.stop() == 0
    assert "Making a hospital" not in second.said()


def _linger(port: int) -> None:
    """Leave a port as a server does that closes a connection before it ends."""
    with socket.create_server((HOST, port)) as server:
        client = socket.create_connection((HOST, port))
        served, _ = server.accept()
        served.close()
        client.close()


@pytest.mark.parametrize(
    ("word", "name", "group"),
    [
        ("demo.issuer", "token server", ""),
        ("demo.http", "hospital's API", "a"),
    ],
)
def test_when_one_part_ends_all_end_and_the_reason_is_said(
    tmp_path: Path, word: str, name: str, group: str
) -> None:
    with started(tmp_path / "demo", tmp_path / "log", group=group) as demo:
        family = demo.family()
        demo.child(word).kill()
        assert demo.process.wait(STOP_SECONDS) == 1
        demo.assert_gone(family)
    assert f"The {name} stopped by itself" in demo.said()
    assert f"{name} stopped by itself; {tmp_path}/demo/" in demo.said()


def test_a_start_that_was_interrupted_leaves_nothing_half(tmp_path: Path) -> None:
    directory, log = tmp_path / "demo", tmp_path / "log"
    with started(directory, log, stays="500000", up=False) as demo:
        wait_until(lambda: any(directory.glob("half-*/*")), log)
        assert demo.stop(signal.SIGINT) == 0
    assert "Stopped." in demo.said()
    assert [path.name for path in directory.iterdir()] == ["lock"]


@pytest.mark.parametrize(
    ("signalled", "group"),
    [("make", "a"), ("what make started", "b"), ("the terminal", "")],
)
def test_make_run_serves_the_group_and_ends_cleanly_whoever_is_told(
    checkout: Path, tmp_path: Path, signalled: str, group: str
) -> None:
    chosen = [f"GROUP={group.upper()}"] if group else []
    with make(checkout, free_ports(PORTS), tmp_path / "log", *chosen) as demo:
        demo.wait_until_up()
        family = demo.family()
        if signalled == "make":
            demo.process.terminate()
        elif signalled == "what make started":
            demo.child("demo").terminate()
        else:
            os.killpg(demo.process.pid, signal.SIGINT)
        demo.process.wait(STOP_SECONDS)
        demo.assert_gone(family)
    assert (f"as group {group.upper()} is offered it" in demo.said()) is bool(group)
    assert "Stopped." in demo.said()


def fake_python(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_another_python_is_one_sentence(tmp_path: Path) -> None:
    """One only fails, as a version manager's does, one is old, one is not there."""
    tools = tmp_path / "bin"
    fake_python(tools, "python3.12", "echo 'not this version' >&2; exit 127")
    fake_python(tools, "python3", "exit 1")
    done = subprocess.run(
        [str(ROOT / ".ci" / "environment"), "requirements.lock"],
        cwd=tmp_path,
        env={"PATH": f"{tools}:/usr/bin:/bin", "PYTHON": "python3.12 python3 nowhere"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(
        "Python 3.11 or later, with its venv module, is needed"
    )
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / ".venv").exists()


# Groups A and B

GROUPS = ("a", "b")


@dataclass(frozen=True)
class Served:
    """A group that is up, and a token for it."""

    group: str
    demo: Demo
    token: str

    def search(self, kind: str, params: Mapping[str, str]) -> Any:
        """Return the page of a search."""
        answer = self.get(f"{kind}?{urlencode(params)}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def get(self, path: str) -> requests.Response:
        """GET a path below the base, or a link."""
        url = path if path.startswith("http") else f"{self.demo.base_url}/{path}"
        return get(url, self.token)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("groups") / "demo"


@pytest.fixture(scope="module")
def groups(root: Path) -> Iterator[Mapping[str, Served]]:
    """Both groups, up at the same time in one directory."""
    root.parent.mkdir(exist_ok=True)
    with (
        started(root, root.with_suffix(".a.log"), group="a") as a,
        started(root, root.with_suffix(".b.log"), group="b") as b,
    ):
        yield {
            group: Served(group, demo, offline_token(root, "--group", group))
            for group, demo in (("a", a), ("b", b))
        }


@pytest.fixture(params=GROUPS)
def served(request: pytest.FixtureRequest, groups: Mapping[str, Served]) -> Served:
    return groups[request.param]


def test_a_group_serves_what_it_is_offered(served: Served) -> None:
    page, refusal, stay = pasted(served.demo)
    assert (len(ids(page)), relations(page)) == (5, ["self"])
    assert refusal["issue"][0]["code"] == "not-supported"
    assert (stay["resourceType"], stay["id"]) == ("Encounter", ids(page)[0])
    said = served.demo.said()
    assert f"as group {served.group.upper()} is offered it" in said
    assert f"token --group {served.group} --directory" in said


def test_from_a_name_to_the_stays_of_a_patient(served: Served) -> None:
    patients = served.search("Patient", {"name": "martin", "_count": "100"})
    assert patients["total"] == len(ids(patients)) > 0
    for id in ids(patients):
        stays = served.search("Encounter", {"patient": f"Patient/{id}"})
        if ids(stays):
            break
    stay = served.get(f"Encounter/{ids(stays)[0]}").json()
    for reference, kind in (
        (stay["subject"]["reference"], "Patient"),
        (stay["serviceProvider"]["reference"], "Organization"),
    ):
        assert served.get(reference).json()["resourceType"] == kind
