"""Counts are read while processes begin and end."""

import itertools
import os
import subprocess
import sys
from pathlib import Path
from threading import Event, Thread

import pytest
from prometheus_client.mmap_dict import MmapedDict, mmap_key

from app.operations.scrape import Scraper

NAME = "encounters_tried_total"
NOBODY = 2**23
"""From here on no process has a number."""


def count(file: Path, value: float) -> None:
    """Let the process that a file is named after count."""
    counts = MmapedDict(file)
    counts.write_value(mmap_key(NAME, NAME, [], [], "Tries."), value, 0)
    counts.close()


@pytest.mark.parametrize("ends", [False, True], ids=["begins", "has ended"])
def test_a_process_that_has_only_made_its_file_has_counted_nothing(
    tmp_path: Path, ends: bool
) -> None:
    count(tmp_path / f"counter_{os.getpid()}.db", 3)
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE
    ) as other:
        (tmp_path / f"counter_{other.pid}.db").touch()
        (tmp_path / f"gauge_livesum_{other.pid}.db").touch()
        if ends:
            other.communicate(b"\n")
        for _ in range(2):
            assert f"{NAME} 3.0" in Scraper(tmp_path).text().decode()


def test_files_that_go_meanwhile_are_not_missed(tmp_path: Path) -> None:
    count(tmp_path / f"counter_{os.getpid()}.db", 3)
    over = Event()

    def come_and_go() -> None:
        for number in itertools.count(NOBODY):
            file = tmp_path / f"gauge_all_{number}.db"
            file.write_bytes(bytes([8, *bytes(99)]))
            file.unlink()
            if over.is_set():
                break

    other = Thread(target=come_and_go)
    other.start()
    scraper = Scraper(tmp_path)
    try:
        told = {scraper.text().decode().count(f"{NAME} 3.0") for _ in range(300)}
    finally:
        over.set()
        other.join()
    assert told == {1}
