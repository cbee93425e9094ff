"""The directory of a service: held as long as it runs, taken away when it was left."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.operations.shared import Shared
from tests.live import ROOT

SERVICE = """
import os, sys
from pathlib import Path
from app.operations import shared as directories
from app.operations.shared import Shared
directories.MEMORY = Path(sys.argv[1])
shared = Shared.made(Path("hospital.yaml"))
shared.tell(os.environ)
print(shared.directory, flush=True)
# As `encounters serve` becomes gunicorn, which starts processes of its own.
child = "print('it runs', flush=True); input()"
again = f"import subprocess as s, sys; s.run([sys.executable, '-c', {child!r}], close_fds=False)"
os.execv(sys.executable, [sys.executable, "-c", again])
"""

Start = Callable[[], tuple["subprocess.Popen[str]", Path]]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Return a function that starts what holds a directory, as a service does.

    In a place of the test's own: the services of other tests clear up where all are.
    """
    monkeypatch.setattr("app.operations.shared.MEMORY", tmp_path)
    begun = []

    def started() -> tuple["subprocess.Popen[str]", Path]:
        process = subprocess.Popen(
            [sys.executable, "-c", SERVICE, str(tmp_path)],
            cwd=ROOT,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        begun.append(process)
        assert process.stdout is not None
        directory = Path(process.stdout.readline().strip())
        assert process.stdout.readline() == "it runs\n"
        return process, directory

    yield started
    for process in begun:
        end(process)


def end(process: "subprocess.Popen[str]") -> None:
    """Kill all of a service at once."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def test_what_a_killed_service_left_goes_with_the_next_start(start: Start) -> None:
    killed, left = start()
    master, kept = start()
    end(killed)
    assert left.is_dir()
    shared = Shared.made(Path("hospital.yaml"))
    assert not left.exists()
    assert (kept / "file").is_file()
    assert shared.counts.is_dir()
    shared.remove()
    assert not shared.directory.exists()
    # As long as one of its processes lives, a directory is kept.
    os.kill(master.pid, signal.SIGKILL)
    master.wait()
    Shared.made(Path("hospital.yaml")).remove()
    assert kept.is_dir()
    os.killpg(master.pid, signal.SIGKILL)
    # The one that lived on held the other end of what it says.
    assert master.stdout is not None
    assert master.stdout.read() == ""
    Shared.made(Path("hospital.yaml")).remove()
    assert not kept.exists()
