"""The soak finds what does not stay flat."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from bench.sampling import MB, Held, Named, courses, shared_files, take

FLAT = Held(50 * MB, 20, 5)


def found(*course: Held | None) -> tuple[str, ...]:
    samples = [{"worker": held} if held else {} for held in course]
    return tuple(fault for each in courses(samples, 5) for fault in each.faults)


def test_what_stays_flat_is_no_fault() -> None:
    warming = [Held(mb * MB, mb, 1) for mb in (1, 2, 3, 4, 5)]
    wavering = [FLAT, Held(54 * MB, 23, 6)] * 10
    assert found(*warming, *wavering) == ()


@pytest.mark.parametrize(
    ("end", "what"),
    [
        (Held(56 * MB, 20, 5), "memory of worker grew"),
        (Held(50 * MB, 25, 5), "descriptors of worker grew"),
        (Held(50 * MB, 20, 8), "threads of worker grew"),
        (None, "worker has ended"),
    ],
    ids=["memory", "descriptors", "threads", "ended"],
)
def test_what_grows_or_ends_is_one(end: Held | None, what: str) -> None:
    assert found(*[FLAT] * 15, *[end] * 5) == (what,)


@pytest.fixture
def child() -> Iterator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-c", "print(1, flush=True); input()"]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    process.communicate()


def test_a_process_is_measured_until_it_ends(
    child: "subprocess.Popen[bytes]", tmp_path: Path
) -> None:
    named = Named("child", psutil.Process(child.pid))
    held = take([named])["child"]
    assert (held.descriptors, held.threads) == (3, 1)
    assert MB < held.memory < 100 * MB
    child.kill()
    child.wait()
    assert take([named]) == {}
    (tmp_path / "counts").mkdir()
    (tmp_path / "counts" / "one.db").write_bytes(b"12345")
    assert shared_files(tmp_path) == (1, 5)
