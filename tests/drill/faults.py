"""Part by part a deployment is broken, while clients follow its pages by docs/call/packages.md."""

import argparse
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tests.app import provider
from tests.drill.clients import running
from tests.drill.deployment import KEY_SET_SECONDS, Deployment
from tests.drill.ledger import LOST, Ledger
from tests.sentinels import Watched

LOST_OR_AWAY = frozenset({LOST, 503})
AWAY_OR_GONE = frozenset({503, 410})
GONE = frozenset({410})
REFUSED = frozenset({401})


def drill(directory: Path, options: argparse.Namespace) -> Iterator[str]:
    """Break it; yield what went against a promise of docs/run/faults.md."""
    ledger = Ledger()
    with ExitStack() as stack:
        redis = Watched(stack, directory)
        deployment = Deployment(stack, directory, redis.url)
        searches = deployment.work().walks
        ledger.begin("nothing")
        walks = [
            partial(each.walk_until, searches=searches, pause=options.pause)
            for each in deployment.clients(options.clients, ledger)
        ]
        with running(walks):
            _events(deployment, redis, ledger, options.seconds)
            ledger.begin("nothing, until all have ended")
    print(ledger.table())
    yield from ledger.faults()


def _events(
    deployment: Deployment, redis: Watched, ledger: Ledger, seconds: float
) -> None:
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
    redis.master.kill()
    time.sleep(seconds)
    assert redis.is_mastered_by(redis.ports[1])
    ledger.begin("it comes back, as a replica")
    redis.return_of_the_master()
    time.sleep(seconds / 2)

    # Redis copies pages after it has answered: those that the replica lacks are 410.
    redis.require_replica(redis.ports[1])
    ledger.begin("min-replicas-to-write 1, and the master is killed", AWAY_OR_GONE)
    redis.replica.kill()
    time.sleep(seconds)
    assert redis.is_mastered_by(redis.ports[0])

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
