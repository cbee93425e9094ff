"""A soak: the whole service for a while under clients of every kind, and what it holds.

Run as `make soak` (MINUTES=20, ARGS=--postgresql). The made-up hospital, Redis, a token
server and the service run in processes of their own; audit, limits and probes are on.
Clients of `bench.clients` ask over loopback, while an operator asks for the probes and
moves the audit file away. The end is a table and a verdict: exit status 1 where an answer
was wrong, a process was lost, or what one holds did not stay flat (`bench.sampling`).
"""

import argparse
import random
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psutil
import requests

from bench.clients import KINDS, SECONDS, Client, Tally, faulty_paths, run
from bench.cluster import database
from bench.sampling import MB, Course, Named, Sample, courses, shared_files, take
from demo.hospital import fill
from demo.issuer import issue_token
from demo.processes import (
    SEED,
    Addresses,
    Family,
    redis_server,
    start_issuer,
    start_redis,
    start_service,
)
from demo.state import HOST, DemoDirectory, deployment

STAYS = 2000
SERVICE = "app.server.config"
"""What the command line of each process of the service names."""

OPERATIONS = 2
"""How far the port of the probes is from the service's."""

SAMPLE_SECONDS = 5.0
ROTATE_SECONDS = 60.0
WARM_SHARE = 0.25
"""The part of the time after which nothing may grow any more."""

MOST_REFUSED = 0.001
"""Which share of all may be told to come again, on a machine that does other work too."""

SETTINGS = {
    # So that pages end as fast as they are made, well within the warm-up.
    "ENCOUNTERS_PAGE_IDLE_MINUTES": "1",
    "ENCOUNTERS_WATCH_SECONDS": "5",
    # More than the clients send; they are counted all the same.
    "ENCOUNTERS_ADDRESS_REQUESTS_PER_MINUTE": "60000",
}


@dataclass(frozen=True, slots=True)
class Soaked:
    """A service under way: where it is, what belongs to it, what is watched."""

    addresses: Addresses
    directory: DemoDirectory
    processes: Sequence[Named]
    shared: Path
    faulty: frozenset[str]


def start(stack: ExitStack, port: int, *, postgresql: bool = False) -> Soaked:
    """Start everything, for as long as the stack is open; else the hospital is SQLite's."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soak-")))
    directory, addresses = DemoDirectory(folder), Addresses(port)
    if postgresql:
        # Its server is not root, and has to come through.
        folder.chmod(0o711)
        url = stack.enter_context(database(folder, STAYS)).sqlalchemy
    else:
        url = f"sqlite:///{folder / 'pas.sqlite'}"
        fill(url, stays=STAYS, seed=SEED)
    family = stack.enter_context(Family())
    directory.remember_issuer(addresses.issuer)
    socket_path, shared = folder / "redis.sock", folder / "shared"
    shared.mkdir()
    start_redis(family, directory, redis_server(), socket_path)
    start_issuer(family, directory, addresses)
    variables = {
        "ENCOUNTERS_REDIS_URL": f"unix://{socket_path}",
        "ENCOUNTERS_OPERATIONS_BIND": f"{HOST}:{port + OPERATIONS}",
        "PAS_URL": url,
        # Where the service creates what its processes share: metrics, and the mapping.
        "TMPDIR": str(shared),
        **SETTINGS,
    }
    start_service(family, directory, addresses, deployment(""), variables)
    family.wait_until_ready()
    return Soaked(
        addresses,
        directory,
        _processes(),
        shared,
        faulty_paths(deployment("").mapping, url, STAYS),
    )


def _processes() -> tuple[Named, ...]:
    """Return all that we have started, by what they are; workers are numbered."""
    found, workers = [], 0
    for process in psutil.Process().children(recursive=True):
        command = " ".join(process.cmdline())
        if "demo.issuer" in command:
            name = "token server"
        elif "valkey-server" in command:
            name = "Redis"
        elif SERVICE not in command:
            continue
        elif (parent := process.parent()) and SERVICE in " ".join(parent.cmdline()):
            workers += 1
            name = f"service: worker {workers}"
        else:
            name = "service: master"
        found.append(Named(name, process))
    return tuple(found)


def clients(soaked: Soaked, tally: Tally, each: int) -> list[tuple[str, Client]]:
    """Return so many clients of each kind."""
    made = []
    for kind in KINDS:
        for number in range(each):
            token = issue_token(soaked.directory, client=f"{kind}-{number}")
            dice = random.Random(f"{kind}-{number}")
            base_url = soaked.addresses.base_url
            client = Client(kind, base_url, token, tally, dice, STAYS, soaked.faulty)
            made.append((kind, client))
    return made


def operate(soaked: Soaked, tally: Tally, until: float) -> None:
    """Ask for the probes, and move the audit file away, as operators do."""
    port = soaked.addresses.port + OPERATIONS
    moved = time.monotonic()
    with requests.Session() as session:
        session.trust_env = False
        while time.monotonic() < until:
            for path in ("live", "ready", "metrics"):
                url = f"http://{HOST}:{port}/{path}"
                try:
                    answer = session.get(url, timeout=SECONDS)
                except requests.RequestException as error:
                    tally.fault("probes", type(error).__name__)
                    continue
                status = answer.status_code
                tally.count("probes", status, fits=status == 200)
            if time.monotonic() - moved > ROTATE_SECONDS:
                moved = time.monotonic()
                soaked.directory.audit_file.replace(soaked.directory.log("moved"))
            time.sleep(1)


def soak(
    soaked: Soaked, seconds: float, each: int, pause: float
) -> tuple[Tally, list[Sample], tuple[tuple[int, int], tuple[int, int]]]:
    """Let all of them do what they do; return answers, samples, and the shared files."""
    tally, until = Tally(), time.monotonic() + seconds
    threads = [
        threading.Thread(target=run, args=(client, KINDS[kind], pause, until))
        for kind, client in clients(soaked, tally, each)
    ]
    threads.append(threading.Thread(target=operate, args=(soaked, tally, until)))
    for thread in threads:
        # Who ends the soak with Ctrl-C waits for none of them.
        thread.daemon = True
        thread.start()
    samples: list[Sample] = []
    files: list[tuple[int, int]] = []
    while time.monotonic() < until:
        samples.append(take(soaked.processes))
        files.append(shared_files(soaked.shared))
        time.sleep(SAMPLE_SECONDS)
    for thread in threads:
        thread.join()
    return tally, samples, (files[int(len(files) * WARM_SHARE)], files[-1])


def show(tally: Tally, found: Sequence[Course]) -> None:
    """Print what was answered, and what was held."""
    print(f"{'clients':<10} {'requests':>9}  answers by status")
    for kind in (*KINDS, "probes"):
        by_status = {s: n for (k, s), n in sorted(tally.answers.items()) if k == kind}
        told = "  ".join(f"{status}: {count:,}" for status, count in by_status.items())
        print(f"{kind:<10} {sum(by_status.values()):>9,}  {told}")
    print(f"{'all':<10} {sum(tally.answers.values()):>9,}")
    print(f"\n{'process':<20} {'memory, MB':>15} {'descriptors':>13} {'threads':>9}")
    for course in found:
        end = course.end or (0, 0, 0)
        pairs = zip(course.start, end, strict=True)
        (m1, m2), (d1, d2), (t1, t2) = pairs
        memory = f"{m1 / MB:.1f} → {m2 / MB:.1f}"
        print(
            f"{course.name:<20} {memory:>15} {f'{d1} → {d2}':>13} {f'{t1} → {t2}':>9}"
        )


def main() -> int:
    """Run the soak, print the table, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--each", type=int, default=2, help="clients of each kind")
    parser.add_argument(
        "--pause", type=float, default=0.2, help="of a client, in seconds"
    )
    parser.add_argument("--port", type=int, default=8400)
    parser.add_argument("--postgresql", action="store_true", help="instead of SQLite")
    options = parser.parse_args()
    with ExitStack() as stack:
        soaked = start(stack, options.port, postgresql=options.postgresql)
        tally, samples, (before, after) = soak(
            soaked, 60 * options.minutes, options.each, options.pause
        )
        found = courses(samples, int(len(samples) * WARM_SHARE))
    show(tally, found)
    print(f"shared files: {before[0]} → {after[0]}, {before[1]:,} → {after[1]:,} bytes")
    faults = [f"{what}: {count:,}" for what, count in sorted(tally.wrong.items())]
    if tally.refused > MOST_REFUSED * sum(tally.answers.values()):
        faults.append(f"too many were told to come again: {tally.refused:,}")
    # Redis keeps pages of its own choosing, and the token server is the demo's.
    ours = [course for course in found if course.name.startswith("service")]
    faults += [fault for course in ours for fault in course.faults]
    faults += ["shared files grew"] * (after > before)
    print("\n".join(["", *faults, "NOT FLAT" if faults else "FLAT"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
