"""The made-up hospital behind an HTTP API, as some hospital systems are reached.

What its own people would say of it:

- `/sejours`, `/patients`, `/etablissements` answer `{"nombre": …, "resultats": […]}`, `nb` rows
  at most from `debut` on; `/sejours/<id>` answers one row. Each request carries a key, or
  the token of a session that was opened with it (`demo.doors`).
- Times are written 30/03/2024 08:15:00, as the clock on the wall showed them.
- Stays come newest entry first, those that have not begun at the end; `tri=entree` is
  the other way round. `sansEtats=A,X` leaves stays with these states out.

`paging=False` makes the older release, which gives the first rows only and does not sort;
`errors_as_200` the one that answers every error with status 200.
"""

import argparse
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from operator import ge, lt
from typing import TypeAlias

from flask import Flask, jsonify, request
from flask.typing import ResponseReturnValue

from adapters.words import fold, starts_a_word
from demo.doors import KEY_HEADER, LOGIN, Door, Key, Sessions
from demo.hospital import generate
from demo.loopback import serve
from demo.pas import MOMENT, Json, Pas, hospital

KEY_VARIABLE = "PAS_KEY"

Keep: TypeAlias = Callable[[Json, list[str]], bool]

_NEVER = datetime(1, 1, 1)  # noqa: DTZ001 - local, as all times of the hospital


def application(
    pas: Pas, door: Door, *, paging: bool = True, errors_as_200: bool = False
) -> Flask:
    """Return the API; `door` says who is let in."""
    app = Flask("demo.http", static_folder=None)

    def refuse(code: str, status: int) -> ResponseReturnValue:
        body = jsonify({"erreur": {"code": code}})
        return body, 200 if errors_as_200 else status

    _guard(app, door, refuse)

    @app.get("/<kind>/<id>")
    def read(kind: str, id: str) -> ResponseReturnValue:
        row = (pas.rows(kind) or {}).get(id)
        return refuse("ABSENT", 404) if row is None else jsonify(row)

    @app.get("/<kind>")
    def search(kind: str) -> ResponseReturnValue:
        rows = pas.rows(kind)
        if rows is None:
            return refuse("ABSENT", 404)
        try:
            kept = list(_kept(pas, kind, rows.values(), request.args))
            size, start = int(request.args["nb"]), int(request.args.get("debut", 0))
        except (KeyError, ValueError):
            return refuse("DEMANDE", 400)
        if kind == "sejours":
            is_oldest_first = paging and request.args.get("tri") == "entree"
            kept = _ordered(kept, newest_first=not is_oldest_first)
        first = start if paging else 0
        shown = kept[first : first + size]
        return jsonify({"nombre": len(kept), "resultats": shown})

    return app


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


# -------------------------------------------------------------------- filters


def _kept(
    pas: Pas, kind: str, rows: Iterable[Json], args: Mapping[str, str]
) -> Iterable[Json]:
    asked = [
        (keep, args[name].split(","))
        for name, keep in _FILTERS[kind].items()
        if name in args
    ]
    if "ipp" in args:
        of = {_survivor(pas, ipp) for ipp in args["ipp"].split(",")}
        rows = [row for row in rows if str(row["patient"]["ipp"]) in of]
    return [row for row in rows if all(keep(row, texts) for keep, texts in asked)]


def _survivor(pas: Pas, ipp: str) -> str:
    merged_into = pas.patients.get(ipp, {}).get("fusionVers")
    return ipp if merged_into is None else str(merged_into)


def _has_id(row: Json, texts: list[str]) -> bool:
    return str(row["id"]) in texts


def _is_without(row: Json, texts: list[str]) -> bool:
    return row["etat"] not in texts


def _begins(comes: Callable[[datetime, datetime], bool]) -> Keep:
    def keeps(row: Json, texts: list[str]) -> bool:
        began, day = _read(row["dateEntree"]), _read(f"{texts[0]} 00:00:00")
        return began is not None and day is not None and comes(began, day)

    return keeps


def _is_called(row: Json, texts: list[str]) -> bool:
    names = [name for name in row["noms"].values() if name]
    return any(
        starts_a_word(fold(name), fold(text)) for name in names for text in texts
    )


_FILTERS: Mapping[str, Mapping[str, Keep]] = {
    "sejours": {
        "ids": _has_id,
        "sansEtats": _is_without,
        "entreeDu": _begins(ge),
        "entreeAvant": _begins(lt),
    },
    "patients": {"ids": _has_id, "nom": _is_called},
    "etablissements": {"ids": _has_id},
}


def _ordered(rows: list[Json], *, newest_first: bool) -> list[Json]:
    def place(row: Json) -> tuple[datetime, int]:
        return _read(row["dateEntree"]) or _NEVER, row["id"]

    ordered = sorted(rows, key=place, reverse=newest_first)
    return sorted(ordered, key=lambda row: row["dateEntree"] is None)


def _read(text: str | None) -> datetime | None:
    return None if text is None else datetime.strptime(text, MOMENT)  # noqa: DTZ007


def main(arguments: list[str] | None = None) -> None:
    """Serve the hospital until it is stopped; the key stands in PAS_KEY."""
    parser = argparse.ArgumentParser(
        prog="python -m demo.http",
        description="Serve a demo hospital over HTTP. The environment variable"
        f" {KEY_VARIABLE} holds the key, which each request carries in the header"
        f" {KEY_HEADER}; with --session it is the password of the login.",
    )
    parser.add_argument("--port", type=int, default=8010, help="default 8010")
    parser.add_argument("--stays", type=int, default=2000, help="default 2000")
    parser.add_argument("--seed", type=int, default=1, help="default 1")
    parser.add_argument("--no-paging", action="store_true", help="the older release")
    parser.add_argument("--errors-as-200", action="store_true", help="as some do")
    parser.add_argument(
        "--session", type=int, metavar="SECONDS", help="a login whose session ends"
    )
    told = parser.parse_args(arguments)
    if not (key := os.environ.get(KEY_VARIABLE)):
        text = f"{KEY_VARIABLE} must hold the key, which requests carry in {KEY_HEADER}"
        parser.exit(1, f"{parser.prog}: {text}\n")
    pas, paging = hospital(generate(told.stays, told.seed)), not told.no_paging
    door = Key(key) if told.session is None else Sessions(key, told.session)
    api = application(pas, door, paging=paging, errors_as_200=told.errors_as_200)
    serve(api, told.port)


if __name__ == "__main__":
    main()
