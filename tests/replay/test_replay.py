"""What the service answers is what it answered when it was recorded."""

import json
from collections.abc import Iterator

import pytest

from tests.redis_server import RedisServer
from tests.replay.deployments import DEPLOYMENTS, Running, running
from tests.replay.exchange import replayed
from tests.replay.record import recorded


@pytest.fixture(scope="module")
def deployments(
    redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """Return the deployments, each made when it is first asked for."""
    directory = tmp_path_factory.mktemp("replay")
    with running(redis_server.url, directory) as all_of_them:
        yield all_of_them


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_answers_are_those_recorded(deployments: Running, deployment: str) -> None:
    application = deployments(deployment)
    for name, expected in recorded(deployment).items():
        answers = replayed(application, [exchange["ask"] for exchange in expected])
        for answer, exchange in zip(answers, expected, strict=True):
            # The order of keys is part of it.
            assert _lines(answer) == _lines(exchange), name


def _lines(exchange: object) -> list[str]:
    return json.dumps(exchange, indent=1, ensure_ascii=False).splitlines()
