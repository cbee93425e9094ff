"""The view written by hand, with what the service owes besides, each in the shortest way.

Still of this one hospital, without a mapping: a token that was verified before is known again,
an answer has an id, an access line and two metrics, a page is kept in Redis, sealed, and leads
to the next. No limit of requests, no parameter looked at twice, no breaker, no fault told, no
way back.
`BENCH_TOKEN` is the token that is known, `BENCH_REDIS` where pages are kept; the others are
those of `bench.handwritten`.
"""

import os
import secrets
import time
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from hashlib import sha256
from typing import Any

import orjson
import redis
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from flask import Flask, Response, abort, g, request
from prometheus_client import Counter, Histogram
from werkzeug.datastructures import MultiDict

from bench.handwritten import (
    COLUMNS,
    answer,
    bundle,
    condition,
    fetch,
    first_page,
    resources,
)

LIFE_SECONDS = 900
_KEEP = """
redis.call('HSET', KEYS[1], 'page', ARGV[1], 'next', ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
return 1
"""

_requests = Counter("hand_requests", "Requests", ["route", "status"])
_seconds = Histogram("hand_request_seconds", "Seconds", ["route"])


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
        return pages.kept(request.form, *first_page(request.form))

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

    def kept(
        self, form: MultiDict[str, str], rows: Sequence[Any], total: int
    ) -> Response:
        """Keep a page, and answer it."""
        place, cursor = secrets.token_hex(16), secrets.token_hex(16)
        asked = self._sealed([g.client, list(form.items(multi=True)), total])
        last = self._sealed([cursor, rows[-1][6], rows[-1][0]])
        told = _KEEP, 1, place, asked, last, LIFE_SECONDS
        self._redis.execute_command("EVAL", *told)
        links = {"self": f"?_id={place}"}
        if total > len(rows):
            links["next"] = f"?_id={place}&cursor={cursor}"
        return answer(bundle(rows, total, self._base_url, links))

    def after(self, place: str, told: str) -> Response:
        """Answer the page after one that was kept."""
        page, last = self._redis.hmget(place, "page", "next")
        client, pairs, total = self._opened(page)
        cursor, start, id = self._opened(last)
        if client != g.client or cursor != told:
            abort(404)
        form = MultiDict[str, str](pairs)
        where, shown, values = condition(form)
        start = datetime.fromisoformat(start)
        rows = fetch(
            f"SELECT {COLUMNS} FROM sejour WHERE {where} AND date_entree <= %s"
            f" AND (date_entree < %s OR sejour_id < %s){shown}, sejour_id DESC LIMIT %s",
            *(*values, start, start, id, int(form["_count"])),
        )
        return self.kept(form, rows, total)

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
