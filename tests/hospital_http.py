"""The tiny hospital as an HTTP API in a real server, and the mapping file that reads it."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from threading import Thread
from typing import Any
from urllib.parse import urlencode

from werkzeug import Request, Response
from werkzeug.serving import WSGIRequestHandler, make_server

from adapters.testing.hospital import (
    IPP_SYSTEM,
    NO_START,
    Hospital,
    Ids,
    OrganizationRow,
    PatientRow,
    StayRow,
)
from adapters.words import contains, fold, starts_a_word

Row = dict[str, Any]
_EARLIEST = datetime(1, 1, 1)  # noqa: DTZ001 - as the rows are
Args = Mapping[str, str]
SECRETS = {"PAS_KEY": "k-1", "PAS_USER": "lecture", "PAS_PASSWORD": "p-1"}


@dataclass
class Api:
    """An API that knows each way to page and to show who asks; requests are kept.

    `strange` gives every answer in place of the API when it is set. `most` are the rows
    that it gives at once.
    """

    hospital: Hospital
    stays: dict[int, StayRow] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    sessions: list[str] = field(default_factory=list)
    guard: Callable[[Request], bool] = lambda _: True
    strange: Callable[[Request], Response | None] = lambda _: None
    most: int = 1000

    def __post_init__(self) -> None:
        self.stays = {row.id: row for row in self.hospital.stays}

    def put_stay(self, row: StayRow) -> None:
        self.stays[row.id] = row

    def delete_stay(self, id: int) -> None:
        del self.stays[id]

    def __call__(self, environ: Any, start: Any) -> Any:
        request = Request(environ)
        request.get_data(parse_form_data=True)
        self.requests.append(request)
        return (self.strange(request) or self._answer(request))(environ, start)

    def _answer(self, request: Request) -> Response:
        if request.path == "/session":
            self.sessions.append(f"s-{len(self.sessions) + 1}")
            return answer({"jeton": {"valeur": self.sessions[-1]}})
        if request.path == "/token":
            self.sessions.append(f"t-{len(self.sessions) + 1}")
            token = {"access_token": self.sessions[-1], "token_type": "Bearer"}
            return answer({**token, "expires_in": 3600})
        if not self.guard(request):
            return answer({"erreur": "qui va là ?"}, 401)
        _, place, *rest = request.path.split("/")
        rows = {
            "sejours": lambda: list(map(self._stay, self.stays.values())),
            "patients": lambda: list(map(self._patient, self.hospital.patients)),
            "etablissements": lambda: list(map(_house, self.hospital.organizations)),
        }[place]()
        if rest and rest != ["nombre"]:
            found = [row for row in rows if str(row["id"]) == rest[0]]
            return answer(found[0]) if found else answer({"erreur": "absent"}, 404)
        args = {**request.args.to_dict(), **request.form.to_dict()}
        kept = [row for row in rows if self._matches(place, row, args)]
        if rest:
            return answer({"nombre": len(kept)})
        args["n"] = str(min(self.most, int(args["n"])))
        return answer(_page(self._ordered(kept, args.get("tri", "id")), args, request))

    # -------------------------------------------------------------------- rows

    def _stay(self, row: StayRow) -> Row:
        stored = self.hospital.ids.stored
        return {
            "id": stored(row.id),
            "stay_id": stored(row.id),
            "patient_id": row.patient and stored(self._survivor(row.patient)),
            "state": row.state,
            "type": row.kind,
            "began": row.began,
            "ended": row.ended,
            "hospital": row.hospital,
            "venue": {"numero": row.visit, "interne": {"ignored": True}},
            "uf": {"code": row.unit} if row.unit is not None else None,
            "maj": row.changed,
        }

    def _survivor(self, patient: int) -> int:
        by_id = {row.id: row.replaced_by for row in self.hospital.patients}
        return by_id.get(patient) or patient

    def _patient(self, row: PatientRow) -> Row:
        ids = self.hospital.ids
        return {
            "id": ids.stored(row.id),
            "actif": row.replaced_by is None,
            "nom": {"usage": row.used_name, "naissance": row.birth_name},
            "prenoms": row.given,
            "sexe": row.sex,
            "ne": row.born,
            "remplacePar": row.replaced_by and ids.stored(row.replaced_by),
            "numeros": [{"valeur": n, "autorite": a} for n, a in row.numbers],
            "maj": row.changed,
        }

    # ----------------------------------------------------------------- filters

    def _matches(self, place: str, row: Row, args: Args) -> bool:
        for name, text in args.items():
            meets = _FILTERS[place].get(name)
            if meets and not meets(self, row, text.split(",") if text else [], args):
                return False
        return True

    def of_patients(self, row: Row, texts: list[str], _: Args) -> bool:
        ids = self.hospital.ids
        survivors = {
            ids.text(p.replaced_by)
            for p in self.hospital.patients
            if p.replaced_by and ids.text(p.id) in texts
        }
        return str(row["patient_id"]) in survivors | set(texts)

    def _ordered(self, rows: list[Row], word: str) -> list[Row]:
        name, down = word.removeprefix("-"), word.startswith("-")
        numbers = self.hospital.ids is Ids.NUMBERS

        def place(row: Row) -> Any:
            id_ = row["id"] if numbers or isinstance(row["id"], str) else str(row["id"])
            return (0 if name == "id" else _moment(row[name]) or _EARLIEST, id_)

        ordered = sorted(rows, key=place, reverse=down)
        if name == "id":
            return ordered
        return sorted(ordered, key=lambda row: _moment(row[name]) is None)


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text and text != NO_START else None


def _house(row: OrganizationRow) -> Row:
    return {
        "id": row.code,
        "title": row.title,
        "finess": row.finess,
        "maj": row.changed,
    }


def _among(*path: str) -> Callable[..., bool]:
    def meets(_: Api, row: Row, texts: list[str], __: Args) -> bool:
        value: Any = row
        for key in path:
            value = (value or {}).get(key)
        return value is not None and str(value) in texts

    return meets


def _bound(name: str, *, low: bool) -> Callable[..., bool]:
    def meets(_: Api, row: Row, texts: list[str], __: Args) -> bool:
        moment = _moment(row[name])
        bound = datetime.fromisoformat(texts[0])
        return moment is not None and (moment >= bound if low else moment < bound)

    return meets


def _named(parts: str, how: Callable[[str, str], bool]) -> Callable[..., bool]:
    def meets(api: Api, row: Row, texts: list[str], __: Args) -> bool:
        nom = row.get("nom") or {}
        held = {
            "famille": [nom.get("usage"), nom.get("naissance")],
            "prenom": [row.get("prenoms")],
            "titre": [row.get("title")],
        }
        if how is _same and api.hospital.ids is Ids.TEXTS and row.get("prenoms"):
            held["prenom"] = row["prenoms"].split()
        return any(
            how(each, text)
            for part in parts.split()
            for each in held[part]
            for text in texts
            if each
        )

    return meets


def _same(held: str, text: str) -> bool:
    return held == text


def _starts(held: str, text: str) -> bool:
    return starts_a_word(fold(held), fold(text))


def _holds(held: str, text: str) -> bool:
    return contains(fold(held), fold(text))


def _number(_: Api, row: Row, texts: list[str], args: Args) -> bool:
    held = [(IPP_SYSTEM, str(row["id"]))]
    held += [(each["autorite"], each["valeur"]) for each in row["numeros"]]
    system = args.get("autorite")
    return any(n in texts and system in (None, s) for s, n in held)


_FILTERS: Mapping[str, Mapping[str, Callable[..., bool]]] = {
    "sejours": {
        "ids": _among("id"),
        "ipp": Api.of_patients,
        "etats": _among("state"),
        "sauf": lambda _, row, texts, __: row["state"] not in texts,
        "types": _among("type"),
        "ufs": _among("uf", "code"),
        "numero": _among("venue", "numero"),
        "site": _among("hospital"),
        "du": _bound("began", low=True),
        "avant": _bound("began", low=False),
    },
    "patients": {
        "ids": _among("id"),
        "sexes": _among("sexe"),
        "numero": _number,
        "neDu": _bound("ne", low=True),
        "neAvant": _bound("ne", low=False),
        **{
            f"{word}{how}": _named(parts, compare)
            for word, parts in (
                ("nom", "famille prenom"),
                ("famille", "famille"),
                ("prenom", "prenom"),
            )
            for how, compare in (("", _starts), ("Contient", _holds), ("Exact", _same))
        },
    },
    "etablissements": {
        "ids": _among("id"),
        "titre": _named("titre", _starts),
        "titreContient": _named("titre", _holds),
        "titreExact": _named("titre", _same),
        "finess": _among("finess"),
    },
}


def _page(rows: Sequence[Row], args: Args, request: Request) -> Row:
    size = int(args["n"])
    start = int(
        args.get("debut", args.get("curseur", (int(args.get("page", 1)) - 1) * size))
    )
    answer: Row = {"resultats": list(rows[start : start + size]), "total": len(rows)}
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
