"""Record what the service answers: `python -m tests.replay.record [DEPLOYMENT …]`.

For a new case, add its name and its requests to the file of a deployment first:
`"a name": [{"ask": {"target": "Encounter/1"}}]`.
"""

import logging
import sys
import tempfile
import time
from pathlib import Path

from tests.replay.deployments import DEPLOYMENTS, Running, running
from tests.replay.exchange import Tables, replayed
from tests.replay.recorded import asks, keep
from tests.replay.servers import own_servers


def main(names: list[str]) -> None:
    """Record the deployments of these names, all of them without one."""
    logging.disable()
    with (
        tempfile.TemporaryDirectory() as directory,
        own_servers() as servers,
        running(servers, Path(directory)) as deployments,
    ):
        for name in names or DEPLOYMENTS:
            _record(deployments, name)


def _record(deployments: Running, name: str) -> None:
    began, tables = time.monotonic(), Tables()
    application = deployments.application(name)
    exchanges = {
        case: replayed(application, asked, tables) for case, asked in asks(name).items()
    }
    keep(name, tables, exchanges)
    took, count = time.monotonic() - began, sum(map(len, exchanges.values()))
    print(f"{name}: {len(exchanges)} cases, {count} exchanges, {took:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
