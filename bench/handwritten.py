"""What somebody would write who needed only this one hospital: no token, cursor, mapping.

The same statements as ours, a dict literal, orjson. `BENCH_DATABASE` is the database's
address as libpq takes it, `BENCH_BASE_URL` what addresses start with.
"""

import os
import threading
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo

import orjson
import psycopg
from flask import Flask, Response, request
from werkzeug.datastructures import MultiDict

from bench.floor import CONTENT_TYPE

COLUMNS = (
    "sejour_id, num_venue, etab_id, patient_id, etat, type_sejour, date_entree,"
    " date_sortie, uf_courante, maj_utc"
)
SERVED = "(etat NOT IN ('A', 'AN', 'X', 'SUP') OR etat IS NULL)"

PARIS = ZoneInfo("Europe/Paris")
OPEN = datetime(2999, 12, 31)  # noqa: DTZ001 - as the column is
UNIT = "https://example.org/fhir/StructureDefinition/functional-unit"
ACT_CODE = "http://hl7.org/fhir/v3/ActCode"
SYSTEMS = {2: "urn:oid:1.2.250.1.999.1.2", 3: "urn:oid:1.2.250.1.999.1.3"}
STATUSES = {
    **{"P": "planned", "PA": "planned"},
    **{"E": "in-progress", "EC": "in-progress", "R": "in-progress"},
    **{"S": "finished", "T": "finished", "F": "finished"},
}
CLASSES = {
    **{"URG": "EMER", "HC": "IMP", "HP": "IMP", "HS": "IMP", "PRE": "PRENC"},
    **{"PAD": "PRENC", "EXT": "AMB", "CS": "AMB", "HDJ": "AMB"},
    **{"SEA": "REC", "DIA": "REC"},
}
LABELS = {
    **{"EMER": "emergency", "IMP": "inpatient encounter", "PRENC": "pre-admission"},
    **{"AMB": "ambulatory", "REC": "recurring", "UNK": "unknown"},
}
TYPE = {
    "coding": [
        {
            "system": "http://www.interopsante.org/fhir/valueset/fr-encounter-identifier-type",
            "version": "3.0.1",
            "code": "VN",
            "display": "Visit Number",
        }
    ]
}

NO_LINKS: Mapping[str, str] = MappingProxyType({"self": ""})

_own = threading.local()


def resources(rows: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the rows of COLUMNS as Encounters."""
    made = []
    for id, number, house, patient, state, kind, start, end, unit, changed in rows:
        code = CLASSES.get(kind, "UNK")
        hospital = f"Organization/{house}"
        period = {}
        meta = {}
        if changed is not None:
            meta["lastUpdated"] = changed.replace(tzinfo=UTC).astimezone(PARIS)
        if start is not None:
            period["start"] = start.replace(tzinfo=PARIS)
        if end is not None and end != OPEN:
            period["end"] = end.replace(tzinfo=PARIS)
        made.append(
            {
                "resourceType": "Encounter",
                "id": str(id),
                "meta": meta,
                "identifier": [
                    {
                        "use": "official",
                        "type": TYPE,
                        "system": SYSTEMS.get(house),
                        "value": number,
                        "assigner": {"reference": hospital},
                    }
                ],
                "status": STATUSES.get(state),
                "subject": {"reference": f"Patient/{patient}"},
                "period": period,
                "serviceProvider": {
                    "extension": [{"url": UNIT, "valueString": unit}],
                    "reference": hospital,
                },
                "class": {"code": code, "display": LABELS[code], "system": ACT_CODE},
            }
        )
    return made


def bundle(
    rows: Iterable[Any], total: int, base_url: str, links: Mapping[str, str] = NO_LINKS
) -> bytes:
    """Return a page of stays as it is sent; `links` lead from it, but for the base URL."""
    entries = [
        {
            "fullUrl": f"{base_url}/Encounter/{resource['id']}",
            "resource": resource,
            "search": {"mode": "match"},
        }
        for resource in resources(rows)
    ]
    return orjson.dumps(
        {
            "resourceType": "Bundle",
            "type": "searchset",
            "total": total,
            "link": [
                {"relation": relation, "url": f"{base_url}/Encounter{url}"}
                for relation, url in links.items()
            ],
            "entry": entries,
        }
    )


def create_app() -> Flask:
    """Return the application."""
    app = Flask(__name__)
    base_url = os.environ["BENCH_BASE_URL"]

    @app.get("/fhir/v3/Encounter/<int:id>")
    def read(id: int) -> Response:
        rows = fetch(f"SELECT {COLUMNS} FROM sejour WHERE sejour_id = %s", id)
        return answer(orjson.dumps(resources(rows)[0]))

    @app.post("/fhir/v3/Encounter/_search")
    def search() -> Response:
        rows, total = first_page(request.form)
        return answer(bundle(rows, total, base_url))

    return app


def first_page(form: MultiDict[str, str]) -> tuple[list[Any], int]:
    """Return the rows of a first page, and how many match."""
    size = int(form.get("_count", 100))
    where, shown, values = condition(form)
    rows = fetch(
        f"SELECT {COLUMNS} FROM sejour WHERE {where}{shown}, sejour_id DESC LIMIT %s",
        *values,
        size + 1,
    )
    total = len(rows)
    if total > size:
        total = fetch(f"SELECT count(*) FROM sejour WHERE {where}", *values)[0][0]
    return rows[:size], total


def condition(form: MultiDict[str, str]) -> tuple[str, str, list[object]]:
    """Return what a search asks for: which rows, in which order, and the values."""
    if "patient" in form:
        patient = int(form["patient"].removeprefix("Patient/"))
        by_start = " ORDER BY date_entree DESC NULLS LAST"
        return f"patient_id = %s AND {SERVED}", by_start, [patient]
    where, values = SERVED, list[object]()
    if "service-provider._extension" in form:
        where += " AND uf_courante = %s"
        values.append(form["service-provider._extension"].partition("|")[2])
    for bound in form.getlist("date"):
        where += f" AND date_entree {'>=' if bound[:2] == 'ge' else '<'} %s"
        values.append(datetime.fromisoformat(bound[2:]))
    return where, " AND date_entree IS NOT NULL ORDER BY date_entree DESC", values


def fetch(statement: str, *values: object) -> list[Any]:
    """Return the rows of a statement."""
    connection = getattr(_own, "connection", None)
    if connection is None:
        address = os.environ["BENCH_DATABASE"]
        connection = _own.connection = psycopg.connect(address, autocommit=True)
    return connection.execute(statement, values).fetchall()


def answer(body: bytes) -> Response:
    """Return a body as an answer."""
    return Response(body, content_type=CONTENT_TYPE)
