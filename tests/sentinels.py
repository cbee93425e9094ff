"""A Redis behind Sentinel in real processes: a master, its replica, three who watch."""

import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import redis

from demo.processes import redis_server as server_program
from tests.live import HOST, free_ports, listens

PATIENCE = 180.0
SENTINELS = 3


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def begin(stack: ExitStack, *command: str, **options: Any) -> "subprocess.Popen[bytes]":
    """Start a process that ends with the stack; `options` are those of Popen."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, **options)
    stack.callback(process.wait, PATIENCE)
    stack.callback(process.terminate)
    return process


class Watched:
    """A master, its replica, and three sentinels who watch them."""

    def __init__(
        self, stack: ExitStack, directory: Path, password: str = "", theirs: str = ""
    ) -> None:
        """`password` is that of Redis, `theirs` that of the sentinels."""
        first = free_ports(2 + SENTINELS)
        self.ports = range(first, first + 2 + SENTINELS)
        _, second, *watching = self.ports
        program = str(server_program())
        plain = ("--save", "", "--dir", str(directory))
        plain += ("--requirepass", password, "--masterauth", password)
        self._password, self._theirs = password or None, theirs or None
        self.master = begin(stack, program, "--port", str(first), *plain)
        replica = ("--replicaof", HOST, str(first), "--repl-diskless-sync-delay", "0")
        self.replica = begin(stack, program, "--port", str(second), *replica, *plain)
        for port in watching:
            file = directory / f"{port}.conf"
            file.write_text(
                f"port {port}\ndir {directory}\n"
                f"sentinel monitor pages {HOST} {first} 2\n"
                "sentinel down-after-milliseconds pages 1000\n"
                "sentinel failover-timeout pages 5000\n"
                + (f"sentinel auth-pass pages {password}\n" if password else "")
                + (f"requirepass {theirs}\n" if theirs else ""),
                "utf-8",
            )
            begin(stack, program, str(file), "--sentinel")
        account = f":{password}@" if password else ""
        self.hosts = ",".join(f"{HOST}:{port}" for port in watching)
        self.url = f"redis+sentinel://{account}{self.hosts}/pages"
        until(lambda: all(map(listens, self.ports)))
        until(lambda: all(self._knows_all(port) for port in watching))

    def _knows_all(self, port: int) -> bool:
        with redis.Redis(port=port, password=self._theirs) as sentinel:
            told = sentinel.sentinel_master("pages")
            return told["num-slaves"] == 1 and told["num-other-sentinels"] == 2

    def replicated(self) -> bool:
        """Whether the replica has what the master has."""
        with redis.Redis(port=self.ports[0], password=self._password) as master:
            return bool(master.wait(1, 1000))
