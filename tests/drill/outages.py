"""Redis and the database are restarted, and go away: how long until each request is answered?

Times are reported with what is aimed at, and judged by who reads them: a busy machine is slower.
"""

import argparse
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event

import psycopg

from tests.drill.clients import Client, GivesUpError, GoneError, Work, running
from tests.drill.deployment import Deployment, deployed
from tests.drill.ledger import Ledger
from tests.redis_server import RedisServer
from tests.sentinels import until

PROBES = 8
"""Enough that each worker of each instance is asked."""

EVERY = 0.05
RESTART_AIM, OUTAGE_AIM = 1.0, 5.0
PROMISED = frozenset({503, 410})

_HEADINGS = ("Event", "Away for", "Recovered after", "Aim", "Probes", "Failed")


def drill(directory: Path, options: argparse.Namespace) -> Iterator[str]:
    """Measure; yield each fault of the walks that go on meanwhile."""
    ledger, probed = Ledger(), Probed()
    with deployed(directory) as (deployment, redis):
        work = deployment.work()
        walkers = deployment.clients(options.workers, ledger)
        probers = deployment.clients(PROBES, probed.ledger, tries=1)
        walk = {"searches": work.walks, "pause": options.pause / 10}
        runs = [partial(each.walk_until, **walk) for each in walkers]
        runs += [partial(probed.probe_until, each, work) for each in probers]
        ledger.begin("nothing")
        probed.ledger.begin("probes")
        outages = Outages(deployment, redis, probed, options.seconds)
        print(_line(_HEADINGS), _line(("---",) * len(_HEADINGS)), sep="\n")
        with running(runs):
            time.sleep(options.seconds)
            for name, happen in outages.kinds.items():
                ledger.begin(name, PROMISED, busy_share=1)
                print(_line((name, *happen())), flush=True)
            ledger.begin("nothing, until all have ended", PROMISED)
    print("", ledger.table(), sep="\n")
    yield from ledger.faults()


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


@dataclass
class Probed:
    """When requests ended that had not the right response."""

    ledger: Ledger = field(default_factory=Ledger)
    failed: list[float] = field(default_factory=list)
    sent: int = 0

    def probe_until(self, client: Client, work: Work, ending: Event) -> None:
        """Ask for a stay and for a search of two pages, again and again."""
        while not ending.wait(EVERY):
            self.sent += 1
            try:
                client.probe(work)
            except (GivesUpError, GoneError):
                self.failed.append(time.monotonic())


class Outages:
    """What happens, by its name; each returns the cells of its row."""

    def __init__(
        self, deployment: Deployment, redis: RedisServer, probed: Probed, seconds: float
    ) -> None:
        self._server, self._redis = deployment.database, redis
        self._probed, self._seconds = probed, seconds
        ways = {
            "Redis": (redis.stop, redis.start),
            "the database": (self._server.stop, self._start_database),
        }
        self.kinds: dict[str, Callable[[], tuple[str, ...]]] = {
            f"{name} {verb}": partial(self._happen, *way, seconds, aim)
            for verb, seconds, aim in (
                ("is restarted", 0, RESTART_AIM),
                ("is away", seconds, OUTAGE_AIM),
            )
            for name, way in ways.items()
        }

    def _happen(
        self,
        stop: Callable[[], None],
        start: Callable[[], None],
        seconds: float,
        aim: float,
    ) -> tuple[str, ...]:
        sent, failed = self._probed.sent, len(self._probed.failed)
        begun = time.monotonic()
        stop()
        time.sleep(seconds)
        start()
        back = time.monotonic()
        # Whatever fails after this long counts as well.
        time.sleep(3 * OUTAGE_AIM)
        ends = self._probed.failed[failed:]
        after = max((end - back for end in ends), default=0.0)
        return (
            f"{back - begun:.1f} s",
            f"{max(after, 0):.2f} s",
            f"< {aim:.0f} s",
            str(self._probed.sent - sent),
            str(len(ends)),
        )

    def _start_database(self) -> None:
        self._server.ensure_postgres_running()
        until(self._answers)

    def _answers(self) -> bool:
        with suppress(psycopg.OperationalError):
            psycopg.connect(self._server.get_uri()).close()
            return True
        return False
