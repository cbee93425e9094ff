"""A deployment of two instances is broken, part by part, while 200 clients walk through it.

    make drill
    python -m tests.drill [--clients 200] [--seconds 20] [--pause 3]

Prints a table: what clients met during each event. Exit status: 0 every walk found its
stays, each once, and met no error that docs/faults.md does not promise; 1 not so; 2 there
is no nginx here.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

from tests.app import provider
from tests.deploy.proxies import NGINX
from tests.drill.clients import Client
from tests.drill.deployment import KEY_SET_SECONDS, Deployment
from tests.drill.hospital import made_up, searches
from tests.drill.ledger import LOST, Ledger

LOST_OR_AWAY = frozenset({LOST, 503})
AWAY_OR_GONE = frozenset({503, 410})
GONE = frozenset({410})
REFUSED = frozenset({401})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the drill."""
    options = _options(arguments)
    if NGINX is None:
        print("The drill needs nginx (Debian's package nginx).", file=sys.stderr)
        return 2
    hospital, ledger, ending = made_up(), Ledger(), Event()
    begun = time.monotonic()
    with TemporaryDirectory() as name, ExitStack() as stack:
        directory = options.directory or Path(name)
        deployment = Deployment(stack, directory, hospital)
        print(f"The deployment stands after {time.monotonic() - begun:.0f} s.")
        ledger.begin("nothing")
        clients = [
            Client(
                i, deployment.port, deployment.trusted, deployment.keys.token, ledger
            )
            for i in range(options.clients)
        ]
        asked = searches(hospital)
        threads = [
            Thread(target=each.walk_until, args=(ending, asked, options.pause))
            for each in clients
        ]
        for thread in threads:
            thread.start()
        try:
            events(deployment, ledger, options.seconds)
            ledger.begin("nothing, until all have ended")
        finally:
            ending.set()
            for thread in threads:
                thread.join()
    print(ledger.table())
    print(f"{options.clients} clients, {time.monotonic() - begun:.0f} s in all.")
    faults = list(ledger.faults())
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


def events(deployment: Deployment, ledger: Ledger, seconds: float) -> None:
    """Let one thing after the other happen, each with time to pass."""
    first, second = deployment.instances
    time.sleep(2 * seconds)

    ledger.begin("an instance is killed (-9)", LOST_OR_AWAY)
    first.kill()
    time.sleep(seconds)
    ledger.begin("it is started again")
    first.start()
    time.sleep(seconds / 2)

    ledger.begin("an instance is drained (SIGTERM)")
    assert second.drain() == 0
    time.sleep(seconds / 2)
    second.start()
    time.sleep(seconds / 2)

    ledger.begin("the Redis master is killed", AWAY_OR_GONE)
    deployment.redis.master.kill()
    time.sleep(seconds)
    assert deployment.redis.is_mastered_by(deployment.redis.ports[1])
    ledger.begin("it comes back, as a replica")
    deployment.redis.return_of_the_master()
    time.sleep(seconds / 2)

    ledger.begin("a mapping of the same meaning (SIGHUP)")
    deployment.reload("Second")
    time.sleep(seconds / 2)

    ledger.begin("a mapping that reads other rows (SIGHUP)", GONE)
    deployment.reload(
        "Third", lambda text: text.replace("stays s LEFT", "stays s  LEFT")
    )
    time.sleep(seconds / 2)

    ledger.begin("a new key signs, beside the old one")
    new, old = provider.rsa("second"), provider.rsa("first")
    deployment.keys.publish(new, old)
    deployment.keys.sign_with(new)
    time.sleep(seconds)
    ledger.begin("the old key is withdrawn", REFUSED)
    deployment.keys.publish(new)
    time.sleep(seconds + KEY_SET_SECONDS)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make drill", description=__doc__)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument(
        "--seconds", type=float, default=20, help="how long an event is looked at"
    )
    parser.add_argument(
        "--pause", type=float, default=3, help="between two pages of a walk"
    )
    parser.add_argument(
        "--directory", type=Path, help="an empty one, where logs are to be left"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
