"""Record what the service answers: `python -m tests.replay.record [DEPLOYMENT …]`.

For a new case, add its name and its requests to the file of a deployment first:
`"a name": [{"ask": {"target": "Encounter/1"}}]`.
"""

import json
import logging
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.redis_server import started_redis
from tests.replay.deployments import DEPLOYMENTS, running
from tests.replay.exchange import replayed

DIRECTORY = Path(__file__).parent / "recorded"


def recorded(deployment: str) -> dict[str, list[Any]]:
    """Return the exchanges of each case of a deployment."""
    cases: dict[str, list[Any]] = json.loads(_file(deployment).read_text("utf-8"))
    return cases


def main(names: list[str]) -> None:
    """Record the deployments of these names, all of them without one."""
    logging.disable()
    with (
        tempfile.TemporaryDirectory() as directory,
        started_redis() as redis,
        running(redis.url, Path(directory)) as deployments,
    ):
        for name in names or DEPLOYMENTS:
            cases = []
            for case, exchanges in recorded(name).items():
                asks = [exchange["ask"] for exchange in exchanges]
                answers = replayed(deployments(name), asks)
                lines = ",\n".join(json.dumps(a, ensure_ascii=False) for a in answers)
                cases.append(f"{json.dumps(case, ensure_ascii=False)}: [\n{lines}\n]")
            text = ",\n".join(cases)
            _file(name).write_text(f"{{\n{text}\n}}\n", "utf-8")
            print(f"{name}: {len(cases)} cases")


def _file(deployment: str) -> Path:
    return DIRECTORY / f"{deployment}.json"


if __name__ == "__main__":
    main(sys.argv[1:])
