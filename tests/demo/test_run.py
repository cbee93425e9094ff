"""`make run`, for real: what it prints works, and it stops without leaving anything."""

import json
import os
import signal
import socket
import subprocess
import sys

import pytest

from tests.demo.running import (
    PORTS,
    STOP_SECONDS,
    command,
    get,
    offline_token,
    running,
    started,
)
from tests.live import HOST, ROOT, free_ports
from tests.serving import ids, relations

pytestmark = pytest.mark.system


@pytest.fixture
def checkout(tmp_path):
    """Return a folder where make finds a set-up environment; its path is a long one."""
    folder = tmp_path / ("long-" * 20)
    scripts = folder / ".venv" / "bin"
    scripts.mkdir(parents=True)
    script = scripts / "encounters"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m app.cli "$@"\n')
    script.chmod(0o755)
    (folder / "requirements.lock").write_text("")
    (folder / ".venv" / "run.stamp").write_text("")
    return folder


def pasted(demo, folder):
    """Return what the printed lines answer when they are pasted into bash."""
    lines = demo.said().partition("in this order.\n")[2].partition("Ctrl-C")[0]
    done = subprocess.run(
        ["bash", "-eu", "-c", lines],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=STOP_SECONDS,
        check=True,
    )
    assert done.stderr == ""
    decoder, text, answers = json.JSONDecoder(), done.stdout.lstrip(), []
    while text:
        answer, end = decoder.raw_decode(text)
        answers.append(answer)
        text = text[end:].lstrip()
    return answers


@pytest.mark.parametrize(
    ("group", "signalled"),
    [("", "the terminal"), ("a", "make"), ("b", "what make started")],
)
def test_make_run_serves_and_ends_cleanly_whoever_is_told(
    checkout, tmp_path, group, signalled
):
    port = free_ports(PORTS)
    make = ["make", "-f", str(ROOT / "Makefile"), "run", f"PORT={port}"]
    make += [f"GROUP={group.upper()}"] if group else []
    with running(make, checkout / ".demo", port, tmp_path / "log", checkout) as demo:
        page, second, stay = pasted(demo, checkout)
        assert len(ids(page)) == 5
        assert (stay["resourceType"], stay["id"]) == ("Encounter", ids(page)[0])
        if group:
            assert f"as group {group.upper()} is offered it" in demo.said()
            assert relations(page) == ["self"]
            assert second["issue"][0]["code"] == "not-supported"
        else:
            assert page["link"][0]["url"].startswith(f"{demo.base_url}/Bundle?_id=")
            assert page["total"] == second["total"] > 10
            assert len({*ids(page), *ids(second)}) == 10
        family = demo.family()
        if signalled == "make":
            demo.process.terminate()
        elif signalled == "what make started":
            demo.child("demo").terminate()
        else:
            os.killpg(demo.process.pid, signal.SIGINT)
        demo.ending(family)
    assert "Stopped." in demo.said()


def test_what_is_in_use_is_one_sentence_before_anything_is_made(demo, tmp_path):
    other, group = tmp_path / "other", tmp_path / "group"
    port_in_use = f"Port {demo.port} cannot be used ("
    for directory, port, options, sentence in (
        (other, demo.port, (), port_in_use),
        # Its third port is that of the hospital's API.
        (group, demo.port - 2, ("--group", "a"), port_in_use),
        (demo.directory, free_ports(PORTS), (), "Another demo is running in "),
    ):
        started = command(directory, port, *options)
        done = subprocess.run(started, cwd=ROOT, capture_output=True, text=True)
        said = done.stdout + done.stderr
        assert done.returncode == 1
        assert said.startswith(sentence)
        assert said.count("\n") == 1
        assert ("'make run GROUP=a PORT=9000'" in said) is (directory == group)
    for folder in (other, group / "group-a"):
        assert [path.name for path in folder.iterdir()] == ["lock"]


def test_a_second_start_at_once_keeps_data_tokens_and_pages(tmp_path):
    directory, port = tmp_path / "demo", free_ports(PORTS)
    with started(directory, tmp_path / "first.log", port) as first:
        token = offline_token(directory)
        page = get(f"{first.base_url}/Encounter?_count=3", token).json()
        narrow = offline_token(directory, "--scope", "ORGANIZATION_READ")
        assert get(f"{first.base_url}/Organization", narrow).status_code == 200
        assert get(f"{first.base_url}/Encounter", narrow).status_code == 403
        assert first.stop(signal.SIGINT) == 0
    assert "Making a hospital" in first.said()
    # The port was just left, by a server whose last connection lingers: it is free.
    with socket.create_server((HOST, port)) as server:
        client = socket.create_connection((HOST, port))
        served, _ = server.accept()
        served.close()
        client.close()
    with started(directory, tmp_path / "second.log", port) as second:
        links = {link["relation"]: link["url"] for link in page["link"]}
        assert get(links["self"], token).json()["entry"] == page["entry"]
        assert get(links["next"], token).status_code == 200
        assert second.stop() == 0
    assert "Making a hospital" not in second.said()


def test_when_one_part_ends_all_end_and_the_reason_is_said(tmp_path):
    with started(tmp_path / "demo", tmp_path / "log", group="a") as demo:
        family = demo.family()
        demo.child("demo.http").kill()
        assert demo.ending(family) == 1
    reason = f"The hospital's API stopped by itself; {tmp_path}/demo/"
    assert reason in demo.said()
