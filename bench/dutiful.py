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
from collections.abc import Iterable, Iterator, Mapping
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
Page = tuple[list[Any], int | None, bool]
"""Rows, how many match, and whether there are more."""

PARIS = ZoneInfo("Europe/Paris")
OPEN = datetime(2999, 12, 31)  # noqa: DTZ001 - as the column is
ACT_CODE = "http://hl7.org/fhir/v3/ActCode"
LABELS = {
    **{"EMER": "emergency", "IMP": "inpatient encounter", "PRENC": "pre-admission"},
    **{"AMB": "ambulatory", "REC": "recurring", "UNK": "unknown"},
}
TYPE = "http://www.interopsante.org/fhir/valueset/fr-encounter-identifier-type"
CODING = {"system": TYPE, "version": "3.0.1", "code": "VN", "display": "Visit Number"}
VISIT_NUMBER = {"use": "official", "type": {"coding": [CODING]}}

_STORE = """
redis.call('HSET', KEYS[1], 'page', ARGV[1], 'next', ARGV[2])
redis.call('EXPIRE', KEYS[1], 900)
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
        period, meta = {}, {}
        if changed is not None:
            meta["lastUpdated"] = changed.replace(tzinfo=UTC).astimezone(PARIS)
        if start is not None:
            period["start"] = start.replace(tzinfo=PARIS)
        if end is not None and end != OPEN:
            period["end"] = end.replace(tzinfo=PARIS)
        identifier = {"system": SYSTEMS.get(house), "value": number, **VISIT_NUMBER}
        identifier["assigner"] = {"reference": hospital}
        unit = [{"url": UNIT, "valueString": unit}]
        made.append(
            {
                "resourceType": "Encounter",
                "id": str(id),
                "meta": meta,
                "identifier": [identifier],
                "status": STATUSES.get(state),
                "subject": {"reference": f"Patient/{patient}"},
                "period": period,
                "serviceProvider": {"extension": unit, "reference": hospital},
                "class": {"code": code, "display": LABELS[code], "system": ACT_CODE},
            }
        )
    return made


def first_page(form: MultiDict[str, str]) -> Page:
    """Return the first page of a search."""
    size = int(form.get("_count", 10))
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
    parts, values = [SERVED], list[Any]()
    for name, text in form.items(multi=True):
        for comparison, value in _compared(name, text):
            parts.append(comparison)
            values.append(value)
    sort = form.get("_sort", "-date")
    column = "date_entree" if sort.endswith("date") else "maj_utc"
    direction = "DESC" if sort[0] == "-" else "ASC"
    present, nulls = f" AND {column} IS NOT NULL", ""
    if form.keys() & {"patient", "_id", "identifier"}:
        present, nulls = "", " NULLS LAST"
    order = f"{present} ORDER BY {column} {direction}{nulls}, sejour_id {direction}"
    return " AND ".join(parts), order, values


def _compared(name: str, text: str) -> Iterator[tuple[str, Any]]:
    """Yield what a parameter compares, and with which value."""
    column = _COLUMNS.get(name)
    if name in ("date", "_lastUpdated"):
        at = datetime.fromisoformat(text[2:])
        utc = at.astimezone(UTC).replace(tzinfo=None) if at.tzinfo else at
        yield f"{column} {_BOUNDS[text[:2]]}", utc
    elif name in _CODES:
        yield f"{column} = ANY(%s)", own_codes(_CODES[name], text)
    elif name == "_id":
        yield f"{column} = ANY(%s)", [int(id) for id in text.split(",")]
    elif name == "identifier":
        system, _, number = text.rpartition("|")
        yield f"{column} = %s", number
        if system:
            yield "etab_id = ANY(%s)", own_codes(SYSTEMS, system)
    elif column:
        yield f"{column} = %s", text.removeprefix("Patient/").rpartition("|")[2]


def own_codes(table: Mapping[Any, str], code: str) -> list[Any]:
    """Return the hospital's codes for a code."""
    return [own for own, meant in table.items() if meant == code]


_COLUMNS = {
    **{"patient": "patient_id", "service-provider._extension": "uf_courante"},
    **{"status": "etat", "class": "type_sejour", "_id": "sejour_id"},
    **{"date": "date_entree", "_lastUpdated": "maj_utc", "identifier": "num_venue"},
}
_CODES = {"status": STATUSES, "class": CLASSES}
_BOUNDS = {"ge": ">= %s", "lt": "< %s"}


def fetch(statement: str, *values: object) -> list[Any]:
    """Return the rows of a statement."""
    connection = getattr(_own, "connection", None)
    if connection is None:
        address = os.environ["BENCH_DATABASE"]
        connection = _own.connection = psycopg.connect(address, autocommit=True)
    return connection.execute(statement, values).fetchall()


def answer(content: object) -> Response:
    """Return a resource as a response."""
    return Response(orjson.dumps(content), content_type=CONTENT_TYPE)


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
        header = request.environ.get("HTTP_AUTHORIZATION", "")
        g.client = known.get(sha256(header.encode()).digest()) or abort(401)

    app.after_request(_end)

    @app.get("/fhir/v3/Encounter/<int:id>")
    def read(id: int) -> Response:
        rows = fetch(f"SELECT {COLUMNS} FROM sejour WHERE sejour_id = %s", id)
        response = answer(resources(rows)[0])
        digest = sha256(response.data).hexdigest()
        response.headers["ETag"] = f'W/"{digest[:32]}"'
        return response

    @app.post("/fhir/v3/Encounter/_search")
    def search() -> Response:
        return pages.stored(request.form, first_page(request.form))

    @app.get("/fhir/v3/Encounter")
    def follow() -> Response:
        return pages.after(request.args["_id"], request.args["cursor"])

    return app


class Pages:
    """Pages in Redis."""

    def __init__(self) -> None:
        self._address = f"{os.environ['BENCH_BASE_URL']}/Encounter"
        self._redis = redis.Redis.from_url(os.environ["BENCH_REDIS"])
        # The workers share it.
        self._seal = AESGCM(sha256(os.environ["BENCH_TOKEN"].encode()).digest())

    def stored(self, form: MultiDict[str, str], page: Page) -> Response:
        """Store a page and return it."""
        rows, total, more = page
        place, cursor = secrets.token_hex(16), secrets.token_hex(16)
        search = self._sealed([g.client, list(form.items(multi=True)), total])
        last = self._sealed([cursor, *([rows[-1][6], rows[-1][0]] if rows else [])])
        self._redis.execute_command("EVAL", _STORE, 1, place, search, last)
        url = f"{self._address}?_id={place}"
        links = [{"relation": "self", "url": url}]
        if more:
            links.append({"relation": "next", "url": f"{url}&cursor={cursor}"})
        entries = [
            {
                "fullUrl": f"{self._address}/{resource['id']}",
                "resource": resource,
                "search": {"mode": "match"},
            }
            for resource in resources(rows)
        ]
        counted = {} if total is None else {"total": total}
        bundle = {"resourceType": "Bundle", "type": "searchset", **counted}
        return answer({**bundle, "link": links, "entry": entries})

    def after(self, place: str, sent: str) -> Response:
        """Return the page after one that was stored."""
        page, last = self._redis.hmget(place, "page", "next")
        client, pairs, total = self._opened(page)
        cursor, start, id = self._opened(last)
        if client != g.client or cursor != sent:
            abort(404)
        form = MultiDict[str, str](pairs)
        where, order, values = condition(form)
        start, size = datetime.fromisoformat(start), int(form.get("_count", 10))
        rows = fetch(
            f"SELECT {COLUMNS} FROM sejour WHERE {where} AND date_entree <= %s"
            f" AND (date_entree < %s OR sejour_id < %s){order} LIMIT %s",
            *(*values, start, start, id, size),
        )
        return self.stored(form, (rows, total, len(rows) == size))

    def _sealed(self, content: list[object]) -> bytes:
        nonce = os.urandom(12)
        return nonce + self._seal.encrypt(nonce, orjson.dumps(content), None)

    def _opened(self, sealed: bytes) -> Any:
        return orjson.loads(self._seal.decrypt(sealed[:12], sealed[12:], None))


def _end(response: Response) -> Response:
    route = request.url_rule.rule if request.url_rule else "none"
    took = time.monotonic() - g.began
    response.headers["X-Request-Id"] = g.id
    count, seconds = _metrics(route, response.status_code)
    count.inc()
    seconds.observe(took)
    line = {
        "time": time.time(),
        "event": "request",
        "request_id": g.id,
        "method": request.method,
        "route": route,
        "status": response.status_code,
        "duration_ms": round(took * 1000, 1),
        "client": g.client,
    }
    os.write(2, orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
    return response


@cache
def _metrics(route: str, status: int) -> tuple[Counter, Histogram]:
    return _requests.labels(route, status), _seconds.labels(route)
