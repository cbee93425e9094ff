"""What the service answers is what it answered when it was recorded."""

import json

import pytest

from tests.replay.record import DEPLOYMENTS, file_of, replayed, running


@pytest.fixture(scope="module")
def deployment(redis_server, tmp_path_factory):
    with running(redis_server.url, tmp_path_factory.mktemp("replay")) as deployment:
        yield deployment


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_answers_are_those_recorded(deployment, name):
    for case, expected in json.loads(file_of(name).read_text("utf-8")).items():
        asks = [exchange["ask"] for exchange in expected]
        for answer, exchange in zip(
            replayed(deployment(name), asks), expected, strict=True
        ):
            # The order of keys is part of it.
            assert _lines(answer) == _lines(exchange), case


def _lines(exchange):
    return json.dumps(exchange, indent=1, ensure_ascii=False).splitlines()
