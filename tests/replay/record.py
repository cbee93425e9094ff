"""Record what the service answers: `python -m tests.replay.record [DEPLOYMENT …]`.

For a new case, add its name and its requests to the file of a deployment first:
`"a name": [{"ask": {"target": "Encounter/1"}}]`.
"""

import logging
import sys
import tempfile
import time
from pathlib import Path

from tests.redis_server import started_redis
from tests.replay.deployments import DEPLOYMENTS, Running, running
from tests.replay.exchange import replayed
from tests.replay.recorded import keep, recorded


def main(names: list[str]) -> None:
    """Record the deployments of these names, all of them without one."""
    logging.disable()
    with (
        tempfile.TemporaryDirectory() as directory,
        started_redis() as redis,
        running(lambda: redis.url, Path(directory)) as deployments,
    ):
        for name in names or DEPLOYMENTS:
            _record(deployments, name)


def _record(deployments: Running, name: str) -> None:
    began, application = time.monotonic(), deployments.application(name)
    exchanges = {
        case: replayed(application, [exchange["ask"] for exchange in exchanges])
        for case, exchanges in recorded(name).items()
    }
    keep(name, exchanges)
    took, count = time.monotonic() - began, sum(map(len, exchanges.values()))
    print(f"{name}: {len(exchanges)} cases, {count} exchanges, {took:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
