"""Record what the service answers: `python -m tests.replay.record [DEPLOYMENT …]`."""

import logging
import sys
import tempfile
import time
from pathlib import Path

from tests.replay.cases import cases
from tests.replay.deployments import DEPLOYMENTS, Running, running
from tests.replay.exchange import EDITS, Tables, replayed
from tests.replay.recorded import keep
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
        case.name: replayed(application, case, tables) for case in cases(name, EDITS)
    }
    keep(name, tables, exchanges)
    took, count = time.monotonic() - began, sum(map(len, exchanges.values()))
    print(f"{name}: {len(exchanges)} cases, {count} exchanges, {took:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
