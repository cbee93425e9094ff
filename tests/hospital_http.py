"""The tiny hospital behind the demo's API: its rows, its mapping file, and a server of it."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from ssl import SSLContext
from threading import Thread
from typing import Any
from urllib.parse import urlencode

from werkzeug import Request, Response
from werkzeug.serving import WSGIRequestHandler, make_server

from demo.http import FRACTION, IPP, MOMENT, Json, Pas, search
from toolkit.contract import hospital as tiny
from toolkit.contract.hospital import (
    FINESS_SYSTEM,
    IPP_SYSTEM,
    KINDS,
    SEXES,
    STATES,
    UNIT_URL,
    VISIT_SYSTEMS,
    Hospital,
    Ids,
    OrganizationRow,
    PatientRow,
    StayRow,
)

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
        self._pas = rows_of(self.hospital)

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


class Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, *_: Any) -> None:
        """Write nothing."""


@contextmanager
def serving(
    api: Any, tls: SSLContext | None = None, handler: type[Quiet] = Quiet
) -> Iterator[str]:
    """Serve an application on a free port of this machine, and yield its address."""
    options = {"threaded": True, "request_handler": handler, "ssl_context": tls}
    server = make_server("127.0.0.1", 0, api, **options)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http{'s' if tls else ''}://127.0.0.1:{server.port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


COLUMNS = {
    "id": "stay_id",
    "patient.ipp": "patient_id",
    "etat": "state",
    "dateEntree": "began",
    "dateSortie": "ended",
    "etablissement.id": "hospital",
    "nom": "title",
}
"""The suite's name of each column that a fault may name."""


def rows_of(hospital: Hospital) -> Pas:
    """Return the rows of a hospital as the API shows them."""
    rows = {
        "sejours": [stay(hospital, row) for row in hospital.stays],
        "patients": [_patient(hospital, row) for row in hospital.patients],
        "etablissements": [_house(row) for row in hospital.organizations],
    }
    return {kind: {str(row["id"]): row for row in made} for kind, made in rows.items()}


def stay(hospital: Hospital, row: StayRow) -> Json:
    """Return a stay, moved to the file that its patient's was merged into."""
    return {
        "id": hospital.ids.stored(row.id),
        "numVenue": row.visit,
        "patient": {"ipp": row.patient and _survivor(hospital, row.patient)},
        "etat": row.state,
        "typeSejour": row.kind,
        "dateEntree": _moment(row.began),
        "dateSortie": _moment(row.ended),
        "uf": None if row.unit is None else {"code": row.unit},
        "etablissement": {"id": row.hospital},
        "maj": _moment(row.changed),
    }


def _survivor(hospital: Hospital, patient: int) -> int | str:
    merged = {row.id: row.replaced_by for row in hospital.patients}
    return hospital.ids.stored(merged.get(patient) or patient)


def _patient(hospital: Hospital, row: PatientRow) -> Json:
    """Return a patient; several given names are told from one that has a blank."""
    stored, several = hospital.ids.stored, hospital.ids is Ids.TEXTS
    return {
        "id": stored(row.id),
        "dossier": "A" if row.replaced_by is None else "F",
        "fusionVers": row.replaced_by and stored(row.replaced_by),
        "noms": {
            "naissance": row.birth_name,
            "utilise": row.used_name,
            "prenoms" if several else "prenomUtilise": row.given,
        },
        "sexe": row.sex,
        "dateNaissance": row.born and f"{date.fromisoformat(row.born):%d/%m/%Y}",
        "numeros": [
            {"domaine": system, "valeur": value} for value, system in row.numbers
        ],
        "maj": _moment(row.changed),
    }


def _house(row: OrganizationRow) -> Json:
    """Return an organization."""
    return {
        "id": row.code,
        "nom": row.title,
        "finess": row.finess,
        "maj": _moment(row.changed),
    }


def _moment(text: str | None) -> str | None:
    """Return a time as the API writes it."""
    return datetime.fromisoformat(text).strftime(FRACTION) if text else text


NO_START, NO_END = _moment(tiny.NO_START), _moment(tiny.NO_END)


OFFSET = "{offset: debut}"


def http_mapping_text(
    hospital: Hospital,
    *,
    paging: str = OFFSET,
    total: str = "total: nombre",
    source: str = "",
) -> str:
    """Return the mapping file of a hospital; an empty `paging` for a source without."""
    paged = f", paging: {paging}" if paging else ""
    given = "noms.prenomUtilise"
    if hospital.ids is Ids.TEXTS:
        given = 'noms.prenoms, split: " "'
    text = _TEXT
    for word, value in (
        ("CODES", _codes(hospital)),
        ("PAGING", f"{total}{paged}"),
        ("TWICE", hospital.twice),
        ("NEVER", hospital.never),
        ("SOURCE", source),
        ("GIVEN", given),
        ("NO_START", NO_START),
        ("NO_END", NO_END),
        ("UNIT_URL", UNIT_URL),
        ("IPP_SYSTEM", IPP_SYSTEM),
        ("FINESS_SYSTEM", FINESS_SYSTEM),
        ("FRACTION", FRACTION),
        ("MOMENT", MOMENT),
    ):
        text = text.replace(word, value)
    return text


def _codes(hospital: Hospital) -> str:
    domains = {
        system: system
        for patient in hospital.patients
        for _, system in patient.numbers
        if system
    }
    return "\n".join(
        f"  {name}: {{table: {table!r}{otherwise}}}"
        for name, table, otherwise in (
            ("states", STATES, ""),
            ("kinds", KINDS, ", otherwise: UNK"),
            ("sexes", SEXES, ", otherwise: unknown"),
            ("systems", VISIT_SYSTEMS, ""),
            ("domains", {IPP: IPP_SYSTEM, **domains}, ""),
            ("files", {"A": "true", "F": "false"}, ""),
        )
    )


_TEXT = """\
mapping: 1
name: Tiny hospital
profile: full
time_zone: Europe/Paris
local_times: {twice: TWICE, never: NEVER}
constants: {functional_unit_extension: UNIT_URL}
source: {kind: http, url: {env: PAS_URL}SOURCE}
codes:
CODES
encounter:
  read: {path: "/sejours/{id}"}
  list: {path: /sejours, rows: resultats, count: nb, fixed: "sansEtats=A,X", PAGING}
  fields:
    id: {from: id}
    patient_id: {from: patient.ipp}
    status: {from: etat, codes: states}
    class: {from: typeSejour, codes: kinds}
    start: {from: dateEntree, format: "FRACTION", absent: [NO_START]}
    end: {from: dateSortie, format: "FRACTION", absent: [NO_END]}
    visit_number: {from: numVenue}
    visit_number_system: {from: etablissement.id, codes: systems}
    functional_unit: {from: uf.code}
    organization_id: {from: etablissement.id}
    last_updated: {from: maj, format: "FRACTION", time_zone: UTC}
  search:
    _id: {query: "ids={values}", separator: ","}
    patient: {query: "ipp={values}", separator: ",", merged: true}
    date: {ge: "entreeDu={value:MOMENT}", lt: "entreeAvant={value:MOMENT}"}
    identifier: {query: "venues={values}",
      system: "venues={value}&etabs={system}", codes: systems, separator: ","}
    status: {query: "etats={values}", separator: ","}
    class: {query: "types={values}", separator: ","}
    service-provider._extension: {query: "ufs={values}", separator: ","}
  sort: {by: {date: tri=entree, -date: tri=-entree, _lastUpdated: tri=maj, -_lastUpdated: tri=-maj}}
patient:
  read: {path: "/patients/{id}"}
  list: {path: /patients, rows: resultats, count: nb, PAGING}
  fields:
    id: {from: id}
    active: {from: dossier, codes: files}
    identifiers:
      - {type: PI, system: 'IPP_SYSTEM', value: {from: id}}
      - rows: numeros
        system: {from: domaine, codes: domains}
        value: {from: valeur}
    names:
      - {use: usual, family: {from: noms.utilise}, given: {from: GIVEN}}
      - {use: old, family: {from: noms.naissance}}
    gender: {from: sexe, codes: sexes}
    birth_date: {from: dateNaissance, format: "%d/%m/%Y"}
    replaced_by: {from: fusionVers}
    last_updated: {from: maj, format: "FRACTION", time_zone: UTC}
  search:
    _id: {query: "ids={values}", separator: ","}
    identifier: {query: "numeros={values}",
      system: "numeros={value}&domaine={system}", codes: domains, separator: ","}
    name: {query: "nom={values}", contains: "nomContient={values}",
      exact: "nomExact={values}", separator: ","}
    family: {query: "famille={values}", contains: "familleContient={values}",
      exact: "familleExact={values}", separator: ","}
    given: {query: "prenom={values}", contains: "prenomContient={values}",
      exact: "prenomExact={values}", separator: ","}
    birthdate: {ge: "neDu={value:%d/%m/%Y}", lt: "neAvant={value:%d/%m/%Y}", step: day}
    gender: {query: "sexes={values}", separator: ","}
  sort: {by: {_id: tri=id, -_id: tri=-id, _lastUpdated: tri=maj, -_lastUpdated: tri=-maj}}
organization:
  read: {path: "/etablissements/{id}"}
  list: {path: /etablissements, rows: resultats, count: nb, PAGING}
  fields:
    id: {from: id}
    name: {from: nom}
    identifiers: [{type: FINEJ, system: 'FINESS_SYSTEM', value: {from: finess}}]
    last_updated: {from: maj, format: "FRACTION", time_zone: UTC}
  search:
    _id: {query: "ids={values}", separator: ","}
    identifier: {query: "finess={values}", separator: ","}
    name: {query: "nom={values}", contains: "nomContient={values}",
      exact: "nomExact={values}", separator: ","}
  sort: {by: {_id: tri=id, -_id: tri=-id, _lastUpdated: tri=maj, -_lastUpdated: tri=-maj}}
"""
