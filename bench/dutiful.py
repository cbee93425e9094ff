"""What somebody would write who needed only this one hospital, with the duties of a service.

psycopg, a dict literal, orjson. A token that was verified before is known again, a response has
an id, an access line and two metrics, a page is stored in Redis, sealed, and leads to the next.
No mapping, no limit of requests, no second look at a parameter, no breaker, no way back.
`BENCH_DATABASE` is the database's address as libpq takes it, `BENCH_BASE_URL` what addresses
start with, `BENCH_TOKEN` the token that is known, `BENCH_REDIS` where pages are stored.
"""

import os
import secrets
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from typing import Any
from zoneinfo import ZoneInfo

import orjson
import psycopg
import redis
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from flask import Flask, Response, abort, g, request
from prometheus_client import Counter, Histogram
from werkzeug.datastructures import MultiDict

from bench.floor import CONTENT_TYPE
from bench.scenarios import CLASSES, SERVED, STATUSES, SYSTEMS, UNIT

COLUMNS = (
    "sejour_id, num_venue, etab_id, patient_id, etat, type_sejour, date_entree,"
    " date_sortie, uf_courante, maj_utc"
)
COMPARED = {
    **{"patient": "patient_id", "service-provider._extension": "uf_courante"},
    **{"status": "etat", "class": "type_sejour", "_id": "sejour_id"},
    **{"date": "date_entree", "_lastUpdated": "maj_utc"},
}
"""The column of each parameter; an identifier has two."""

PARIS = ZoneInfo("Europe/Paris")
OPEN = datetime(2999, 12, 31)  # noqa: DTZ001 - as the column is
ACT_CODE = "http://hl7.org/fhir/v3/ActCode"
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

LIFE_SECONDS = 900
_KEEP = """
redis.call('HSET', KEYS[1], 'page', ARGV[1], 'next', ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
return 1
"""

_requests = Counter("hand_requests", "Requests", ["route", "status"])
_seconds = Histogram("hand_request_seconds", "Seconds", ["route"])

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
    rows: Iterable[Any], total: int | None, base_url: str, links: Mapping[str, str]
) -> bytes:
    """Return a page of stays as it is sent; `links` lack the base URL."""
    entries = [
        {
            "fullUrl": f"{base_url}/Encounter/{resource['id']}",
            "resource": resource,
            "search": {"mode": "match"},
        }
        for resource in resources(rows)
    ]
    counted = {} if total is None else {"total": total}
    return orjson.dumps(
        {
            "resourceType": "Bundle",
            "type": "searchset",
            **counted,
            "link": [
                {"relation": relation, "url": f"{base_url}/Encounter{url}"}
                for relation, url in links.items()
            ],
            "entry": entries,
        }
    )


def first_page(form: MultiDict[str, str]) -> tuple[list[Any], int | None, bool]:
    """Return the rows of a first page, how many match, and whether there are more."""
    size = int(form.get("_count", 100))
    where, order, values = condition(form)
    rows = fetch(
        f"SELECT {COLUMNS} FROM sejour WHERE {where}{order} LIMIT %s", *values, size + 1
    )
    more = len(rows) > size
    total = None if more else len(rows)
    if more and form.get("_total") != "none":
        total = fetch(f"SELECT count(*) FROM sejour WHERE {where}", *values)[0][0]
    return rows[:size], total, more


def condition(form: MultiDict[str, str]) -> tuple[str, str, list[Any]]:
    """Return which rows a search selects, in which order, and the values."""
    where, values = SERVED, list[Any]()
    for name, text in form.items(multi=True):
        if name == "identifier":
            system, _, number = text.rpartition("|")
            where, values = f"{where} AND num_venue = %s", [*values, number]
            if system:
                house = next(h for h, known in SYSTEMS.items() if known == system)
                where, values = f"{where} AND etab_id = %s", [*values, house]
        elif name in COMPARED:
            operator, value = _compared(name, text)
            where, values = f"{where} AND {COMPARED[name]} {operator}", [*values, value]
    sort = form.get("_sort", "-date")
    column, direction = COMPARED[sort.lstrip("-")], "DESC" if sort[0] == "-" else "ASC"
    if form.keys() & {"patient", "_id", "identifier"}:
        order = f" ORDER BY {column} {direction} NULLS LAST, sejour_id {direction}"
    else:
        order = f" AND {column} IS NOT NULL"
        order += f" ORDER BY {column} {direction}, sejour_id {direction}"
    return where, order, values


def _compared(name: str, text: str) -> tuple[str, Any]:
    """Return how a parameter compares its column, and with what."""
    match name:
        case "date":
            return _BOUNDS[text[:2]], datetime.fromisoformat(text[2:])
        case "_lastUpdated":
            changed = datetime.fromisoformat(text[2:])
            return _BOUNDS[text[:2]], changed.astimezone(UTC).replace(tzinfo=None)
        case "patient":
            return "= %s", int(text.removeprefix("Patient/"))
        case "status" | "class":
            table = STATUSES if name == "status" else CLASSES
            return "= ANY(%s)", [own for own, code in table.items() if code == text]
        case "_id":
            return "= ANY(%s)", [int(id) for id in text.split(",")]
    return "= %s", text.partition("|")[2]


_BOUNDS = {"ge": ">= %s", "lt": "< %s"}


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


def create_app() -> Flask:
    """Return the application."""
    app = Flask(__name__)
    token = f"Bearer {os.environ['BENCH_TOKEN']}".encode()
    known = {sha256(token).digest(): "bench"}
    pages = Pages()

    @app.before_request
    def begin() -> None:
        g.began = time.monotonic()
        g.id = request.environ.get("HTTP_X_REQUEST_ID") or secrets.token_hex(16)
        told = request.environ.get("HTTP_AUTHORIZATION", "")
        g.client = known.get(sha256(told.encode()).digest()) or abort(401)

    app.after_request(_end)

    @app.get("/fhir/v3/Encounter/<int:id>")
    def read(id: int) -> Response:
        rows = fetch(f"SELECT {COLUMNS} FROM sejour WHERE sejour_id = %s", id)
        body = orjson.dumps(resources(rows)[0])
        response = answer(body)
        response.headers["ETag"] = f'W/"{sha256(body).hexdigest()[:32]}"'
        return response

    @app.post("/fhir/v3/Encounter/_search")
    def search() -> Response:
        return pages.stored(request.form, *first_page(request.form))

    @app.get("/fhir/v3/Encounter")
    def follow() -> Response:
        return pages.after(request.args["_id"], request.args["cursor"])

    return app


class Pages:
    """Pages in Redis."""

    def __init__(self) -> None:
        self._base_url = os.environ["BENCH_BASE_URL"]
        self._redis = redis.Redis.from_url(os.environ["BENCH_REDIS"])
        # The workers share it.
        self._seal = AESGCM(sha256(os.environ["BENCH_TOKEN"].encode()).digest())

    def stored(
        self,
        form: MultiDict[str, str],
        rows: Sequence[Any],
        total: int | None,
        more: bool,
    ) -> Response:
        """Store a page and return it."""
        place, cursor = secrets.token_hex(16), secrets.token_hex(16)
        asked = self._sealed([g.client, list(form.items(multi=True)), total])
        last = self._sealed([cursor, *([rows[-1][6], rows[-1][0]] if rows else [])])
        told = _KEEP, 1, place, asked, last, LIFE_SECONDS
        self._redis.execute_command("EVAL", *told)
        links = {"self": f"?_id={place}"}
        if more:
            links["next"] = f"?_id={place}&cursor={cursor}"
        return answer(bundle(rows, total, self._base_url, links))

    def after(self, place: str, told: str) -> Response:
        """Return the page after one that was stored."""
        page, last = self._redis.hmget(place, "page", "next")
        client, pairs, total = self._opened(page)
        cursor, start, id = self._opened(last)
        if client != g.client or cursor != told:
            abort(404)
        form = MultiDict[str, str](pairs)
        where, order, values = condition(form)
        start = datetime.fromisoformat(start)
        rows = fetch(
            f"SELECT {COLUMNS} FROM sejour WHERE {where} AND date_entree <= %s"
            f" AND (date_entree < %s OR sejour_id < %s){order} LIMIT %s",
            *(*values, start, start, id, int(form["_count"])),
        )
        return self.stored(form, rows, total, len(rows) == int(form["_count"]))

    def _sealed(self, kept: list[object]) -> bytes:
        nonce = os.urandom(12)
        return nonce + self._seal.encrypt(nonce, orjson.dumps(kept), None)

    def _opened(self, sealed: bytes) -> Any:
        return orjson.loads(self._seal.decrypt(sealed[:12], sealed[12:], None))


def _end(response: Response) -> Response:
    route = request.url_rule.rule if request.url_rule else "none"
    took = time.monotonic() - g.began
    response.headers["X-Request-Id"] = g.id
    count, seconds = _metrics(route, response.status_code)
    count.inc()
    seconds.observe(took)
    os.write(2, _line(route, response.status_code, took))
    return response


@cache
def _metrics(route: str, status: int) -> tuple[Counter, Histogram]:
    return _requests.labels(route, status), _seconds.labels(route)


def _line(route: str, status: int, took: float) -> bytes:
    line = {
        "time": time.time(),
        "event": "request",
        "request_id": g.id,
        "method": request.method,
        "route": route,
        "status": status,
        "duration_ms": round(took * 1000, 1),
        "client": g.client,
    }
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
