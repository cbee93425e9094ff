"""`make run`, for real: what it prints works, and it stops without leaving anything.

Everything here is a process of its own, on ports that nobody has.
"""

import os
import signal
import socket
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
from tests.live import HOST, free_ports
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
    # The service has the first port, the hospital's API the third.
    for group, first in (("", demo.port), ("a", demo.port - 2)):
        other = tmp_path / f"other-{group}"
        status, said = refused(other, first, group=group)
        assert status == 1
        assert said.startswith(f"Port {demo.port} cannot be used (")
        assert (f"'make run GROUP={group} PORT=9000'" in said) is bool(group)
        assert said.count("\n") == 1
        folder = other / f"group-{group}" if group else other
        assert [path.name for path in folder.iterdir()] == ["lock"]
    status, said = refused(directory, free_ports(PORTS))
    assert status == 1
    assert said.startswith(f"Another demo is running in {directory}: ")
    assert said.count("\n") == 1


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


# Groups A and B


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("groups") / "demo"


@pytest.fixture(scope="module")
def groups(root: Path) -> Iterator[dict[str, Demo]]:
    """Both groups, up at the same time in one directory."""
    with (
        started(root, root.with_suffix(".a.log"), group="a") as a,
        started(root, root.with_suffix(".b.log"), group="b") as b,
    ):
        yield {"a": a, "b": b}


@pytest.mark.parametrize("group", ["a", "b"])
def test_a_group_serves_what_it_is_offered(
    groups: dict[str, Demo], root: Path, group: str
) -> None:
    demo = groups[group]
    page, refusal, stay = pasted(demo)
    assert (len(ids(page)), relations(page)) == (5, ["self"])
    assert refusal["issue"][0]["code"] == "not-supported"
    assert (stay["resourceType"], stay["id"]) == ("Encounter", ids(page)[0])
    assert f"as group {group.upper()} is offered it" in demo.said()
    assert f"token --group {group} --directory" in demo.said()
    # From a name to the stays of a patient, and what they refer to.
    token = offline_token(root, "--group", group)
    patients = get(f"{demo.base_url}/Patient?name=martin&_count=100", token).json()
    assert patients["total"] == len(ids(patients)) > 0
    searches = (f"{demo.base_url}/Encounter?patient={id}" for id in ids(patients))
    stays = next(page for url in searches if ids(page := get(url, token).json()))
    stay = get(f"{demo.base_url}/Encounter/{ids(stays)[0]}", token).json()
    for reference in (stay["subject"], stay["serviceProvider"]):
        url = f"{demo.base_url}/{reference['reference']}"
        assert get(url, token).status_code == 200
