"""Lines of several processes in one file or pipe: whole, whatever happens."""

import errno
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from app.operations.audit_sinks import FileSink, StreamSink
from tests.live import ROOT, wait_until

WRITERS, LINES = 3, 400

FILE_WRITER = """
import sys
import time
from pathlib import Path
from app.operations import audit_sinks
from app.operations.audit_sinks import FileSink
audit_sinks.TURN_SECONDS = 60
sink, name, lines = FileSink(Path(sys.argv[1])), sys.argv[2], int(sys.argv[3])
for number in range(lines):
    sink.write(f"{name}:{number}:{name * 20_000}\\n".encode())
"""
PAUSE = """
    while number == 9 and not Path({renamed!r}).exists():
        time.sleep(0.001)
"""
STREAM_WRITER = FILE_WRITER.replace(
    "FileSink(Path(sys.argv[1]))", "StreamSink()"
).replace("FileSink", "StreamSink")


def start(script: str, *arguments: str, **options: object) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.Popen(command, cwd=ROOT, **options)  # type: ignore[call-overload, no-any-return]


def expected(writers: int = WRITERS) -> set[str]:
    names = "abcd"[:writers]
    return {f"{name}:{n}:{name * 20_000}" for name in names for n in range(LINES)}


def test_long_lines_of_several_processes_stay_whole(tmp_path: Path) -> None:
    file = tmp_path / "audit"
    processes = [
        start(FILE_WRITER, str(file), "abcd"[n], str(LINES)) for n in range(WRITERS)
    ]
    assert [process.wait(60) for process in processes] == [0] * WRITERS
    lines = file.read_text().splitlines()
    assert len(lines) == WRITERS * LINES
    assert set(lines) == expected()


def test_long_lines_of_several_processes_stay_whole_in_a_pipe() -> None:
    reading, writing = os.pipe()
    processes = [
        start(STREAM_WRITER, "-", "abcd"[n], str(LINES), stdout=writing)
        for n in range(WRITERS)
    ]
    os.close(writing)
    with os.fdopen(reading) as pipe:
        lines = pipe.read().splitlines()
    assert [process.wait(60) for process in processes] == [0] * WRITERS
    assert len(lines) == WRITERS * LINES
    assert set(lines) == expected()


def test_lines_of_several_threads_stay_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.operations.audit_sinks.TURN_SECONDS", 60)
    sink = FileSink(tmp_path / "audit")

    def write(name: str) -> None:
        for number in range(LINES):
            sink.write(f"{name}:{number}:{name * 20_000}\n".encode())

    threads = [
        threading.Thread(target=write, args=("abcd"[n],)) for n in range(WRITERS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    sink.close()
    assert set((tmp_path / "audit").read_text().splitlines()) == expected()


def test_logrotate_may_rename_the_file_at_any_time(tmp_path: Path) -> None:
    file = tmp_path / "audit"
    # Writers that have ended would make no other file: these wait for the first to go.
    script = FILE_WRITER + PAUSE.format(renamed=str(tmp_path / "audit.0"))
    processes = [
        start(script, str(file), "abcd"[n], str(LINES)) for n in range(WRITERS)
    ]
    wait_until(file.exists, file)
    for turn in range(3):
        file.rename(tmp_path / f"audit.{turn}")
        wait_until(lambda: file.exists() or all(p.poll() == 0 for p in processes), file)
        if not file.exists():
            break
    assert [process.wait(60) for process in processes] == [0] * WRITERS
    texts = [each.read_text() for each in tmp_path.glob("audit*")]
    assert len(texts) > 1
    lines = [line for text in texts for line in text.splitlines()]
    assert len(lines) == WRITERS * LINES
    assert set(lines) == expected()


def test_a_file_that_is_made_anew_is_found_at_the_next_line(tmp_path: Path) -> None:
    file = tmp_path / "audit"
    before = len(os.listdir("/proc/self/fd"))
    sink = FileSink(file)
    sink.write(b"one\n")
    file.rename(tmp_path / "audit.1")
    sink.write(b"two\n")
    file.rename(tmp_path / "audit.2")
    file.touch()
    sink.write(b"three\n")
    assert len(os.listdir("/proc/self/fd")) == before + 1
    sink.close()
    written = [each.read_text() for each in sorted(tmp_path.iterdir())]
    assert written == ["three\n", "one\n", "two\n"]


def test_the_file_is_for_its_owner_and_group(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "audit")
    sink.write(b"one\n")
    sink.close()
    assert (tmp_path / "audit").stat().st_mode & 0o007 == 0


LIMITED = """
import resource, sys
from pathlib import Path
from app.operations.audit_sinks import FileSink
sink = FileSink(Path(sys.argv[1]))
sink.write(b"a" * 900 + b"\\n")
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
for _ in range(2):
    try:
        sink.write(b"b" * 900 + b"\\n")
    except OSError as error:
        print(error.errno)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
sink.write(b"c" * 900 + b"\\n")
"""


def test_of_a_line_that_has_no_room_nothing_stays(tmp_path: Path) -> None:
    file = tmp_path / "audit"
    done = start(LIMITED, str(file), stdout=subprocess.PIPE)
    said, _ = done.communicate(timeout=60)
    assert done.returncode == 0
    assert said.decode().split() == [str(errno.ENOSPC)] * 2
    assert file.read_bytes() == b"a" * 900 + b"\n" + b"c" * 900 + b"\n"


def test_a_line_after_one_that_was_cut_off_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "audit"
    file.write_bytes(b"one\ntw")
    sink = FileSink(file)
    sink.write(b"three\n")
    sink.close()
    assert file.read_bytes() == b"one\ntw\nthree\n"


@pytest.mark.parametrize("target", ["/dev/full", "/nowhere/audit", "/"])
def test_a_file_that_takes_nothing_is_an_error(target: str) -> None:
    sink = FileSink(Path(target))
    for _ in range(2):
        with pytest.raises(OSError, match=r"[Nn]o |[Ii]s a directory"):
            sink.write(b"one\n")
    sink.close()


@pytest.fixture
def short_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.operations.audit_sinks.TURN_SECONDS", 0.05)


@pytest.mark.usefixtures("short_wait")
def test_a_process_that_stands_still_holds_nobody_up(tmp_path: Path) -> None:
    holder = """
import fcntl, sys, time
file = open(sys.argv[1], "a")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(600)
"""
    process = start(holder, str(tmp_path / "audit"), stdout=subprocess.PIPE)
    assert process.stdout
    assert process.stdout.readline() == b"held\n"
    sink = FileSink(tmp_path / "audit")
    process.send_signal(signal.SIGSTOP)
    with pytest.raises(TimeoutError):
        sink.write(b"one\n")
    process.kill()
    process.wait(60)
    process.stdout.close()
    sink.write(b"two\n")
    sink.close()
    assert (tmp_path / "audit").read_bytes() == b"two\n"


def test_a_reader_that_has_gone_is_an_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with pytest.raises(BrokenPipeError):
        StreamSink(writing).write(b"one\n")
    os.close(writing)


@pytest.mark.usefixtures("short_wait")
def test_a_reader_that_stalls_is_an_error_and_later_lines_are_whole() -> None:
    reading, writing = os.pipe()
    sink = StreamSink(writing)
    with pytest.raises(TimeoutError):
        sink.write(b"a" * 200_000 + b"\n")
    cut = len(os.read(reading, 200_000))
    assert 0 < cut < 200_000
    sink.write(b"b\n")
    sink.write(b"c\n")
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert pipe.read() == b"\nb\nc\n"


def test_a_closed_stdout_is_an_error() -> None:
    script = """
import os
from app.operations.audit_sinks import StreamSink
os.close(1)
try:
    StreamSink().write(b"one\\n")
except OSError:
    raise SystemExit(7)
"""
    assert start(script).wait(60) == 7


def test_a_socket_is_written_to_as_a_pipe_is() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        StreamSink(ours.fileno()).write(b"one\n")
        assert theirs.recv(100) == b"one\n"
