"""Counts where there is no room for them: nobody is ended for that, and it is told."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client.mmap_dict import MmapedDict, mmap_key

from app.operations.counts import RoomyDict
from app.operations.readiness import Readiness, counts_probe
from app.operations.scrape import Scraper
from app.operations.shared import MEMORY
from tests.app import provider
from tests.live import ROOT

NAME = "encounters_tried_total"
NOBODY = 2**23
"""From here on no process has a number."""

IN_A_SMALL_PLACE = ("unshare", "--mount", "--map-root-user", "sh", "-c")
SMALL = "mount -t tmpfs -o size=400k none {0} && "
NO_ROOM = "mount -t tmpfs -o nr_inodes=2 none {0} && "

COUNTING = """
import logging, sys
logging.basicConfig(stream=sys.stdout, format="%(message)s")
from app.operations.metrics import REQUESTS, STORE_ERRORS
STORE_ERRORS.labels("keep").inc()
try:
    with open(sys.argv[1] + "/brim", "wb", buffering=0) as brim:
        while brim.write(bytes(4096)):
            pass
except OSError as full:
    print(full.strerror)
for number in range(2000):
    REQUESTS.labels(f"/{number}", "GET", "2xx").inc()
STORE_ERRORS.labels("keep").inc()
print("counted", REQUESTS.labels("/1999", "GET", "2xx")._value.get())
"""


@pytest.fixture
def place(tmp_path: Path) -> str:
    """Return a directory in which this machine lets us mount a small place."""
    tried = subprocess.run(
        [*IN_A_SMALL_PLACE, SMALL.format(tmp_path) + "true"],
        capture_output=True,
        check=False,
    )
    if tried.returncode:
        pytest.skip("this machine lets nobody mount a place of his own")
    return str(tmp_path)


def test_a_process_counts_on_where_there_is_no_more_room(place: str) -> None:
    command = SMALL.format(place) + f'exec "{sys.executable}" -c "$COUNTING" {place}'
    run = subprocess.run(
        [*IN_A_SMALL_PLACE, command],
        cwd=ROOT,
        env={**os.environ, "COUNTING": COUNTING, "PROMETHEUS_MULTIPROC_DIR": place},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    full, told, counted = run.stdout.splitlines()
    assert full == "No space left on device"
    assert told == "no room for counts: they are not told"
    assert counted == "counted 1.0"


LOOKING = """
import sys
from pathlib import Path
from app.operations.readiness import counts_probe
place = Path(sys.argv[1])
print(*counts_probe(place)())
(place / "more").write_bytes(bytes(65536))
print(*counts_probe(place)())
"""
TOLD = "less than 1024 KiB left for counts: some may be missing\n"
"""The same while room goes on to change: the log tells what has changed."""


def test_readiness_tells_of_it(place: str) -> None:
    command = SMALL.format(place) + f'exec "{sys.executable}" -c "$LOOKING" {place}'
    run = subprocess.run(
        [*IN_A_SMALL_PLACE, command],
        cwd=ROOT,
        env={**os.environ, "LOOKING": LOOKING},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == TOLD * 2


def test_readiness_has_nothing_to_tell_where_there_is_room(tmp_path: Path) -> None:
    assert counts_probe(tmp_path)() == ()
    (problem,) = counts_probe(tmp_path / "gone")()
    assert problem == "counts cannot be kept (No such file or directory)"
    assert Readiness({"source": (), "counts": (problem,)}).ready


@pytest.mark.usefixtures("place")
def test_without_room_for_what_is_shared_nothing_starts(tmp_path: Path) -> None:
    mapping = tmp_path / "hospital.yaml"
    mapping.write_text("mapping: 1\n")
    command = NO_ROOM.format(MEMORY) + f'exec "{sys.executable}" -m app.cli serve'
    run = subprocess.run(
        [*IN_A_SMALL_PLACE, command],
        cwd=ROOT,
        env=os.environ | provider.environ(mapping),
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stderr == (
        "There is no place for what the processes of the service share: "
        "No space left on device (/dev/shm).\n"
    )
    assert run.returncode == 2


def counts(file: Path, *values: tuple[str, float]) -> None:
    kept = RoomyDict(file)
    for name, value in values:
        kept.write_value(mmap_key(NAME, name, [], [], "Tries."), value, 0)
    kept.close()


def read(file: Path) -> dict[str, float]:
    told = MmapedDict.read_all_values_from_file(file)
    return {json.loads(key)[1]: value for key, value, _, _ in told}


def test_a_file_has_all_its_room_from_its_beginning(tmp_path: Path) -> None:
    file = tmp_path / "counter_1.db"
    for number in range(3):
        counts(file, *((f"{number}-{n}", n) for n in range(600)))
        about = file.stat()
        assert about.st_blocks * 512 >= about.st_size
    assert about.st_size > 65536
    assert len(read(file)) == 1800
    assert read(file)["2-599"] == 599


def test_where_nobody_may_write_it_is_counted_and_not_told(tmp_path: Path) -> None:
    away = RoomyDict(tmp_path / "gone" / "counter_1.db")
    away.write_value("one", 1.0, 0)
    assert not away.is_kept
    assert not away.has_room_for(1)
    assert away.read_value("one")[0] == 1.0
    away.close()


def test_counts_of_a_process_that_ended_go_on(tmp_path: Path) -> None:
    counts(tmp_path / f"counter_{NOBODY}.db", (NAME, 2))
    counts(tmp_path / f"counter_{NOBODY + 1}.db", (NAME, 3))
    for _ in range(2):
        assert f"{NAME} 5.0" in Scraper(tmp_path).text().decode()
    assert read(tmp_path / "counter_0.db") == {NAME: 5}
