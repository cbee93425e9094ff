"""A hospital behind an HTTP API that answers nobody until a test lets it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, Lock

from werkzeug import Request, Response

from tests.app.server.running import PATIENCE, Running, running
from tests.hospital_http import Api, serving
from tests.hospital_http_mapping import http_mapping_text
from toolkit.contract.hospital import EDGES

STAY = str(EDGES.stays[0].id)
READ = f"Encounter/{STAY}"


class SlowSource:
    """Holds every read of one stay while `goes_on` is not set; counts those it holds."""

    def __init__(self) -> None:
        self.api = Api(EDGES, strange=self._hold)
        self.goes_on = Event()
        self.goes_on.set()
        self.held = 0
        self._lock = Lock()

    def _hold(self, request: Request) -> Response | None:
        if request.path.endswith(f"/{STAY}"):
            self._count(1)
            self.goes_on.wait(2 * PATIENCE)
            self._count(-1)
        return None

    def _count(self, change: int) -> None:
        with self._lock:
            self.held += change


@contextmanager
def slowed(
    directory: Path, redis_url: str, **settings: str
) -> Iterator[tuple[SlowSource, Running]]:
    """Serve the hospital by processes of their own."""
    source, mapping = SlowSource(), directory / "hospital.yaml"
    # Its own limits are not what is tested: none of them is reached.
    limits = "url: {env: PAS_URL}, timeout_seconds: 60, connections: 16"
    text = http_mapping_text(EDGES).replace("url: {env: PAS_URL}", limits)
    mapping.write_text(text.replace("timeout_seconds: 2,", ""), "utf-8")
    with ExitStack() as stack:
        environ = {"PAS_URL": stack.enter_context(serving(source.api))}
        started = running(directory, mapping, environ, REDIS_URL=redis_url, **settings)
        service = stack.enter_context(started)
        stack.callback(source.goes_on.set)
        yield source, service
