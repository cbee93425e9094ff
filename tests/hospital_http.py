"""The tiny hospital behind the demo's API, varied and disturbed as a test wants it."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Thread
from typing import Any
from urllib.parse import urlencode

from werkzeug import Request, Response
from werkzeug.serving import WSGIRequestHandler, make_server

from demo.http import Json, search
from tests.hospital_http_rows import rows_of
from toolkit.contract.hospital import Hospital, StayRow

Args = Mapping[str, str]
SECRETS = {"PAS_KEY": "k-1", "PAS_USER": "lecture", "PAS_PASSWORD": "p-1"}


@dataclass
class Api:
    """The demo's API with more ways to page and to show who asks; requests are kept.

    `strange` gives every answer in place of the API when it is set. `most` are the rows
    that it gives at once.
    """

    hospital: Hospital
    requests: list[Request] = field(default_factory=list)
    sessions: list[str] = field(default_factory=list)
    guard: Callable[[Request], bool] = lambda _: True
    strange: Callable[[Request], Response | None] = lambda _: None
    most: int = 1000

    def __post_init__(self) -> None:
        self._stays = {row.id: row for row in self.hospital.stays}
        self._show()

    def _show(self) -> None:
        self._pas = rows_of(self.hospital, self._stays.values())

    def put_stay(self, row: StayRow) -> None:
        """Add a stay, or put it in place of the one with its id."""
        self._stays[row.id] = row
        self._show()

    def delete_stay(self, id: int) -> None:
        """Take a stay away."""
        del self._stays[id]
        self._show()

    def __call__(self, environ: Any, start: Any) -> Any:
        request = Request(environ)
        request.get_data(parse_form_data=True)
        self.requests.append(request)
        return (self.strange(request) or self.page(request))(environ, start)

    def page(self, request: Request) -> Response:
        """Return the answer of the API as it is."""
        if request.path == "/session":
            self.sessions.append(f"s-{len(self.sessions) + 1}")
            return answer({"jeton": {"valeur": self.sessions[-1]}})
        if request.path == "/token":
            self.sessions.append(f"t-{len(self.sessions) + 1}")
            token = {"access_token": self.sessions[-1], "token_type": "Bearer"}
            return answer({**token, "expires_in": 3600})
        if not self.guard(request):
            return answer({"erreur": "qui va là ?"}, 401)
        _, kind, *rest = request.path.split("/")
        if rest and rest != ["nombre"]:
            row = self._pas.get(kind, {}).get(rest[0])
            return answer(row) if row else answer({"erreur": "absent"}, 404)
        args = {**request.args.to_dict(), **request.form.to_dict()}
        rows = search(self._pas, kind, args)
        if rest:
            return answer({"nombre": len(rows)})
        args["nb"] = str(min(self.most, int(args["nb"])))
        return answer(_page(rows, args, request))


def _page(rows: Sequence[Json], args: Args, request: Request) -> Json:
    size = int(args["nb"])
    start = int(
        args.get("debut", args.get("curseur", (int(args.get("page", 1)) - 1) * size))
    )
    answer: Json = {"resultats": list(rows[start : start + size]), "nombre": len(rows)}
    if start + size < len(rows):
        onward = urlencode({**args, "curseur": start + size})
        answer["suite"] = {
            "lien": f"{request.base_url}?{onward}",
            "curseur": start + size,
        }
    return answer


def answer(body: Any, status: int = 200, **headers: str) -> Response:
    """Return a JSON answer."""
    return Response(json.dumps(body), status, headers, content_type="application/json")


class _Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, *_: Any) -> None:
        """Write nothing."""


@contextmanager
def serving(api: Any) -> Iterator[str]:
    """Serve an application on a free port of this machine, and yield its address."""
    server = make_server("127.0.0.1", 0, api, threaded=True, request_handler=_Quiet)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
