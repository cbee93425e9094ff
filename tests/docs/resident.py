"""`encounters` without the wait: one interpreter has imported it, each command is its child.

A command has its caller's directory, variables and streams, and its status is that of the
caller. Only what ends by itself is run this way.
"""

import json
import os
import shlex
import signal
import socket
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

_IMPORTED = (
    "app.cli",
    "app.cli.check",
    "app.cli.explain",
    "app.cli.preview",
    "app.cli.mapping_tests",
    "adapters.sql.adapter",
    "adapters.http.adapter",
    "sqlalchemy.dialects.sqlite",
)

_CLIENT = """
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as asked:
    asked.connect(sys.argv[1])
    socket.send_fds(asked, [b"."], [0, 1, 2])
    told = sys.argv[2:], os.getcwd(), dict(os.environ)
    asked.sendall(json.dumps(told).encode())
    asked.shutdown(socket.SHUT_WR)
    sys.exit(ord(asked.recv(1) or b"\\x7f"))
"""


def client(place: Path) -> str:
    """Return the start of a shell command that has the interpreter at `place` run it."""
    # Without the site's packages it is there at once.
    python = f"{shlex.quote(sys.executable)} -I -S"
    return f"{python} -c {shlex.quote(_CLIENT)} {shlex.quote(str(place))}"


def main(place: str) -> None:
    """Run commands until it is ended."""
    for module in _IMPORTED:
        import_module(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as door:
        # It is there when somebody listens, and not before.
        door.bind(f"{place}~")
        door.listen()
        os.rename(f"{place}~", place)
        while True:
            asked, _ = door.accept()
            with asked:
                _, streams, _, _ = socket.recv_fds(asked, 1, 3)
                if os.fork() == 0:
                    os._exit(_answer(asked, streams))
            for stream in streams:
                os.close(stream)


def _answer(asked: socket.socket, streams: Sequence[int]) -> int:
    """Run one command, in a process of its own, and tell its status."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for place, stream in enumerate(streams):
        os.dup2(stream, place)
    told = asked.makefile("rb").read()
    arguments, directory, environ = json.loads(told)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environ)
    status = _run(arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    asked.sendall(bytes([status]))
    return status


def _run(arguments: list[str]) -> int:
    try:
        return int(import_module("app.cli").main(arguments))
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else int(bool(error.code))


if __name__ == "__main__":
    main(sys.argv[1])
