"""`make run`, for real: what it prints works, and it stops without leaving anything.

Everything here is a process of its own, on ports that nobody has.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

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


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run") / "demo"


@pytest.fixture(scope="module")
def demo(directory: Path) -> Iterator[Demo]:
    with started(directory, directory.with_suffix(".log")) as running_demo:
        yield running_demo


def test_the_printed_lines_work_as_they_are(demo: Demo) -> None:
    page, following, stay = pasted(demo)
    first = [entry["resource"]["id"] for entry in page["entry"]]
    second = [entry["resource"]["id"] for entry in following["entry"]]
    assert (len(first), len(second)) == (5, 5)
    assert not set(first) & set(second)
    assert page["total"] == following["total"] > 10
    assert page["link"][0]["url"].startswith(f"{demo.base_url}/Bundle?_id=")
    assert (stay["resourceType"], stay["id"]) == ("Encounter", first[0])


def test_an_offline_token_has_the_scope_that_was_asked_for(
    demo: Demo, directory: Path
) -> None:
    searched = f"{demo.base_url}/Organization"
    token = offline_token(directory, "--scope", "ORGANIZATION_READ", "--client", "x")
    assert get(searched, token).status_code == 200
    assert get(f"{demo.base_url}/Encounter", token).status_code == 403


def test_a_second_demo_in_one_directory_is_one_sentence(
    demo: Demo, directory: Path
) -> None:
    status, said = refused(directory, free_ports(PORTS))
    assert status == 1
    assert said.startswith(f"Another demo is running in {directory}: ")
    assert said.count("\n") == 1


@pytest.mark.parametrize("offset", [0, -1, 1])
def test_a_port_in_use_is_one_sentence_before_anything_is_made(
    demo: Demo, tmp_path: Path, offset: int
) -> None:
    status, said = refused(tmp_path / "other", demo.port + offset)
    assert status == 1
    assert said.startswith(f"Port {demo.port + max(offset, 0)} cannot be used (")
    assert said.count("\n") == 1
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["lock"]


def test_a_second_start_at_once_keeps_data_tokens_and_pages(tmp_path: Path) -> None:
    """The port was just left, by a server whose last connection lingers: it is free."""
    directory, port = tmp_path / "demo", free_ports(PORTS)
    with started(directory, tmp_path / "first.log", port) as first:
        token = offline_token(directory)
        page = get(f"{first.base_url}/Encounter?_count=3", token)
        assert first.stop(signal.SIGINT) == 0
    assert "Making a hospital" in first.said()
    _linger(port)
    began = time.monotonic()
    with started(directory, tmp_path / "second.log", port) as second:
        took = time.monotonic() - began
        links = {link["relation"]: link["url"] for link in page.json()["link"]}
        assert get(links["self"], token).json()["entry"] == page.json()["entry"]
        assert get(links["next"], token).status_code == 200
        assert second.stop() == 0
    assert "Making a hospital" not in second.said()
    assert took < 60


def _linger(port: int) -> None:
    """Leave a port as a server does that closes a connection before it ends."""
    with socket.create_server((HOST, port)) as server:
        client = socket.create_connection((HOST, port))
        served, _ = server.accept()
        served.close()
        client.close()


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("redis-server", "Redis server"),
        ("demo.issuer", "token server"),
        ("app.cli serve", "service"),
    ],
)
def test_when_one_part_ends_all_end_and_the_reason_is_said(
    directory: Path, tmp_path: Path, word: str, name: str
) -> None:
    with started(tmp_path / "demo", tmp_path / "log") as demo:
        family = demo.family()
        demo.child(word).kill()
        assert demo.process.wait(STOP_SECONDS) == 1
        demo.assert_gone(family)
    assert f"The {name} stopped by itself" in demo.said()
    assert f"{name} stopped by itself; {tmp_path}/demo/" in demo.said()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the children")
def test_killed_outright_it_still_leaves_nothing_running(tmp_path: Path) -> None:
    with started(tmp_path / "demo", tmp_path / "log") as demo:
        family = demo.family()
        demo.process.kill()
        demo.process.wait()
        demo.assert_gone(family)


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
        "Python 3.11 or 3.12, with its venv module, is needed"
    )
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / ".venv").exists()
