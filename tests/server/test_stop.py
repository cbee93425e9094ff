"""SIGTERM ends requests under way; new connections are refused at once."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.live import listens
from tests.redis_server import RedisServer
from tests.server.running import PATIENCE
from tests.server.slow_source import READ, slowed


def test_a_stop_ends_requests_under_way_and_refuses_new_ones(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    with (
        slowed(tmp_path, redis_server.url, WORKERS="2") as (source, service),
        ThreadPoolExecutor(1) as threads,
    ):
        source.goes_on.clear()
        under_way = threads.submit(service.get, READ)
        service.until(lambda: source.held == 1)
        service.process.terminate()
        # Where nobody listens, the proxy tries the other instance.
        service.until(lambda: not listens(service.port))
        assert source.held == 1
        source.goes_on.set()
        assert under_way.result(PATIENCE).status == 200
        assert service.process.wait(PATIENCE) == 0
