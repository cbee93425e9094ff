"""The made-up hospital behind an HTTP API, as some hospital systems are reached.

What its own people would say of it:

- `/sejours`, `/patients`, `/etablissements` answer `{"nombre": …, "resultats": […]}`, `nb` rows
  at most from `debut` on; `/sejours/<id>` answers one row. Each request carries a key, or
  the token of a session that was opened with it (`demo.doors`).
- Times are written 30/03/2024 08:15:00, with a fraction behind a point where a row has one,
  as the clock on the wall showed them; the last change (`maj`) in UTC. 01/01/1900 is a day
  that nobody knows.
- What can be asked for, and in which order, stands in `demo.found`.

`paging=False` makes the older release, which gives the first rows only and does not sort;
`errors_as_200` the one that answers every error with status 200.
"""

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from flask import Flask, jsonify, request
from flask.typing import ResponseReturnValue

from demo.doors import KEY_HEADER, LOGIN, Door, Key, Sessions
from demo.folder import Folder, HospitalFileError, below_a_name
from demo.found import found
from demo.hospital import generate
from demo.loopback import serve
from demo.pas import Pas, hospital

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

KEY_VARIABLE = "PAS_KEY"

_NEWER = ("debut", "tri")
"""Parameters that the older release does not know."""


def application(
    current: Callable[[], Pas | None],
    door: Door,
    *,
    paging: bool = True,
    errors_as_200: bool = False,
) -> Flask:
    """Return the API of the hospital that `current` gives; `door` says who is let in."""
    app = Flask("demo.http", static_folder=None)

    def refuse(code: str, status: int) -> ResponseReturnValue:
        body = jsonify({"erreur": {"code": code}})
        return body, 200 if errors_as_200 else status

    _guard(app, door, refuse)

    @app.errorhandler(HospitalFileError)
    def tell(error: HospitalFileError) -> ResponseReturnValue:
        app.logger.error("%s: %s", request.root_path.strip("/"), error)
        return refuse("PANNE", 503)

    @app.get("/<kind>/<id>")
    def read(kind: str, id: str) -> ResponseReturnValue:
        row = ((current() or Pas()).rows(kind) or {}).get(id)
        return refuse("ABSENT", 404) if row is None else jsonify(row)

    @app.get("/<kind>")
    def search(kind: str) -> ResponseReturnValue:
        pas = current()
        if pas is None or pas.rows(kind) is None:
            return refuse("ABSENT", 404)
        args = {k: v for k, v in request.args.items() if paging or k not in _NEWER}
        try:
            rows = found(pas, kind, args)
            size, start = int(args.get("nb", "")), int(args.get("debut", 0))
        except ValueError:
            return refuse("DEMANDE", 400)
        shown = rows[start : start + size]
        return jsonify({"nombre": len(rows), "resultats": shown})

    return app


def folder_application(folder: Folder, door: Door, **ways: bool) -> "WSGIApplication":
    """Return the API of each hospital of a folder, below its name."""

    def current() -> Pas | None:
        return folder.hospital(request.root_path.strip("/"))

    return below_a_name(application(current, door, **ways))


def _guard(
    app: Flask, door: Door, refuse: Callable[[str, int], ResponseReturnValue]
) -> None:
    @app.before_request
    def check() -> ResponseReturnValue | None:
        known = request.path == LOGIN or door.lets_in(request.headers)
        return None if known else refuse("CLE_REFUSEE", 401)

    @app.post(LOGIN)
    def log_in() -> ResponseReturnValue:
        token = door.open(request.get_json(silent=True))
        return refuse("CONNEXION", 403) if token is None else {"jeton": token}


def main(arguments: list[str] | None = None) -> None:
    """Serve the hospital until it is stopped; the key stands in PAS_KEY."""
    parser = _parser()
    told = parser.parse_args(arguments)
    if not (key := os.environ.get(KEY_VARIABLE)):
        text = f"{KEY_VARIABLE} must hold the key, which requests carry in {KEY_HEADER}"
        parser.exit(1, f"{parser.prog}: {text}\n")
    if told.folder and not told.folder.is_dir():
        parser.exit(1, f"{parser.prog}: {told.folder} is no folder\n")
    door = Key(key) if told.session is None else Sessions(key, told.session)
    serve(_api(told, door), told.port, "The hospital")


def _api(told: argparse.Namespace, door: Door) -> "WSGIApplication":
    ways = {"paging": not told.no_paging, "errors_as_200": told.errors_as_200}
    if told.folder:
        return folder_application(Folder(told.folder), door, **ways)
    pas = hospital(generate(told.stays, told.seed))
    return application(lambda: pas, door, **ways)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m demo.http",
        description="Serve a demo hospital over HTTP, or all hospitals of a folder. The"
        f" environment variable {KEY_VARIABLE} holds the key, which each request carries"
        f" in the header {KEY_HEADER}; with --session it is the password of the login.",
    )
    parser.add_argument(
        "--port", type=int, default=8010, help="default 8010; 0 is one that is free"
    )
    parser.add_argument("--stays", type=int, default=2000, help="default 2000")
    parser.add_argument("--seed", type=int, default=1, help="default 1")
    parser.add_argument(
        "--folder",
        type=Path,
        metavar="DIR",
        help="serve what is written there in place of a made-up hospital: DIR/NAME.json"
        " is the hospital below /NAME/. It holds the rows that the API shows,"
        ' {"sejours": [...], "patients": [...], "etablissements": [...]}. When a file is'
        " replaced (write it beside, then rename it) the next answer is from the new one",
    )
    parser.add_argument("--no-paging", action="store_true", help="the older release")
    parser.add_argument("--errors-as-200", action="store_true", help="as some do")
    parser.add_argument(
        "--session", type=int, metavar="SECONDS", help="a login whose session ends"
    )
    return parser


if __name__ == "__main__":
    main()
