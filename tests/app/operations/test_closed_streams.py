"""A service whose standard streams were closed by whoever started it."""

import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from adapters.testing.stays import EDGES
from tests.app import provider
from tests.app.operations.family import is_complete, workers_of
from tests.hospital_sql import Tables, mapping_text
from tests.live import HOST, ROOT, answers, free_ports, wait_until
from tests.redis_server import RedisServer

PATIENCE = 60.0


class Started(NamedTuple):
    """A service, and where it listens."""

    process: "subprocess.Popen[bytes]"
    port: int

    def streams(self) -> list[str]:
        """Return what stands in the places of a worker's standard streams."""
        (worker,) = workers_of(self.process.pid)
        return [str(Path(f"/proc/{worker.pid}/fd/{n}").resolve()) for n in range(3)]


@contextmanager
def serving(
    folder: Path, redis: RedisServer, closed: str, **settings: str
) -> Iterator[Started]:
    url, port = f"sqlite:///{folder / 'pas.db'}", free_ports()
    Tables(url, EDGES).close()
    mapping = folder / "mapping.yaml"
    mapping.write_text(mapping_text(EDGES), "utf-8")
    chosen = {
        "BIND": f"{HOST}:{port}",
        "WORKERS": "1",
        "TRUSTED_PROXIES": HOST,
        "REDIS_URL": redis.url,
        **settings,
    }
    environ = provider.environ(mapping, **chosen) | {"PAS_URL": url}
    service = [sys.executable, "-m", "app.cli", "serve"]
    process = subprocess.Popen(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *service],
        cwd=ROOT,
        env={**psutil.Process().environ(), **environ},
    )

    def listens() -> bool:
        assert process.poll() is None
        return answers(port) and is_complete(process.pid)

    try:
        wait_until(listens, mapping, PATIENCE)
        yield Started(process, port)
    finally:
        process.terminate()
        assert process.wait(PATIENCE) == 0


@pytest.mark.parametrize("numbers", [(1, 2), (0, 1, 2), (2,)])
def test_it_serves_and_nothing_else_takes_their_places(
    tmp_path: Path, redis_server: RedisServer, numbers: tuple[int, ...]
) -> None:
    closed = " ".join(f"{number}>&-" for number in numbers)
    with serving(tmp_path, redis_server, closed) as service:
        assert {service.streams()[number] for number in numbers} == {"/dev/null"}


def test_an_audit_event_that_cannot_be_written_there_is_not_taken_for_written(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    audit = {"AUDIT": "stdout", "AUDIT_FAILURE": "refuse"}
    key = tmp_path / "key"
    key.write_text("k" * 64, "utf-8")
    with serving(
        tmp_path, redis_server, ">&-", **audit, AUDIT_KEY_FILE=str(key)
    ) as service:
        request = urllib.request.Request(
            f"http://{HOST}:{service.port}/fhir/v3/Encounter/1",
            headers={"X-Forwarded-Proto": "https"},
        )
        with pytest.raises(urllib.error.HTTPError, match="503"):
            urllib.request.urlopen(request, timeout=PATIENCE)
