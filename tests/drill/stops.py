"""Instances are stopped as operators stop them, under load: no response may be lost.

Clients repeat nothing: each request without its right response counts.
"""

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import psycopg

from tests.app import provider
from tests.drill.clients import running
from tests.drill.deployment import Deployment, deployed
from tests.drill.ledger import Ledger
from tests.live import ROOT
from tests.sentinels import until

MEANWHILE = 100
"""So many requests are answered while an instance is away."""

SLOW_READS, SLOW_SECONDS, SLOW_MEANWHILE = 6, 3.0, 1000
"""So many reads of the locked table are under way, until so many others are answered.

Or for so long: well below the 5 seconds that a statement may take.
"""


def drill(directory: Path, options: argparse.Namespace) -> Iterator[str]:
    """Stop them again and again, until enough requests were sent; yield each fault."""
    ledger = Ledger()
    with ExitStack() as stack:
        # Also where it is interrupted.
        stack.callback(lambda: print(ledger.table(), flush=True))
        other = _installed(directory / "other", options.release)
        deployment, _ = stack.enter_context(deployed(directory))
        work = deployment.work()
        stops = Stops(deployment, ledger, other)
        ledger.begin("nothing", busy_share=0)
        clients = deployment.clients(options.workers, ledger, tries=1)
        with running([partial(each.work_until, work=work) for each in clients]):
            stops.meanwhile()
            while ledger.requests < options.requests:
                for name, stop in stops.kinds.items():
                    ledger.begin(name, busy_share=0)
                    stop()
    yield from ledger.faults()


class Stops:
    """The kinds of planned stops, by their names."""

    def __init__(self, deployment: Deployment, ledger: Ledger, other: Path) -> None:
        self._deployment, self._ledger, self._other = deployment, ledger, other
        self._reloads = 0
        self.kinds: dict[str, Callable[[], None]] = {
            "an instance is stopped (SIGTERM), and started": self._stop,
            "the same while the source is slow": self._stop_while_slow,
            "a rolling restart": self._restart,
            "both reload at once (SIGHUP)": self._reload,
            "an upgrade, one after the other": partial(self._release, other),
            "a rollback, one after the other": partial(self._release, ROOT),
        }

    def meanwhile(self) -> None:
        """Wait until so many more requests are answered."""
        enough = self._ledger.requests + MEANWHILE
        until(lambda: self._ledger.requests >= enough)

    def _stop(self) -> None:
        _, second = self._deployment.instances
        assert second.drain() == 0
        self.meanwhile()
        second.start()
        self.meanwhile()

    def _stop_while_slow(self) -> None:
        """Others must not wait for requests that are slow at the instance that stops."""
        database, (_, second) = self._deployment.database, self._deployment.instances
        with (
            ThreadPoolExecutor(SLOW_READS + 1) as threads,
            psycopg.connect(database.get_uri()) as connection,
        ):
            connection.execute("LOCK TABLE organizations IN ACCESS EXCLUSIVE MODE")
            ends = time.monotonic() + SLOW_SECONDS
            reads = [threads.submit(self._slow_read) for _ in range(SLOW_READS)]
            # On a busy machine some of them arrive later than others may wait.
            until(
                lambda: (
                    self._deployment.waiting() == SLOW_READS or time.monotonic() > ends
                )
            )
            enough = self._ledger.requests + SLOW_MEANWHILE
            stopped = threads.submit(second.drain)
            until(lambda: self._ledger.requests >= enough or time.monotonic() > ends)
            connection.rollback()
            assert stopped.result() == 0
            for read in reads:
                self._ledger.answered(read.result())
        second.start()
        self.meanwhile()

    def _slow_read(self) -> int:
        token = {"Authorization": provider.bearer(self._deployment.keys.token("slow"))}
        path = "/fhir/v3/Organization/H1"
        return self._deployment.proxy.ask(path, token).status

    def _restart(self) -> None:
        for instance in self._deployment.instances:
            instance.restart()
            self.meanwhile()

    def _reload(self) -> None:
        self._reloads += 1
        self._deployment.reload(f"Reload {self._reloads}")
        self.meanwhile()

    def _release(self, release: Path) -> None:
        before = self._deployment.instances[1].metadata()["software"]
        for instance in self._deployment.instances:
            instance.restart(release)
            assert instance.metadata()["software"] != before
            self.meanwhile()


def _installed(directory: Path, revision: str) -> Path:
    """Install the release of a revision beside this one, under another version."""
    tree = directory / "tree"
    tree.mkdir(parents=True)
    archive = subprocess.run(
        ["git", "archive", revision], cwd=ROOT, check=True, stdout=subprocess.PIPE
    )
    subprocess.run(["tar", "--extract"], cwd=tree, check=True, input=archive.stdout)
    setup = tree / "setup.cfg"
    text = re.sub("(?m)^version = .*", r"\g<0>+drill", setup.read_text())
    setup.write_text(text)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    pip += ["install", "--no-index", "--no-deps", "--no-build-isolation"]
    site = directory / "site"
    subprocess.run([*pip, "--target", str(site), str(tree)], check=True)
    return site
