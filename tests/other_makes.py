"""APIs of other makes, imitated after their documentation: PostgREST, and OData 4.

They hold stays in one table, and parse what they are sent as the real ones do, so that a value
that leaves its place means something else to them.
"""

import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from werkzeug import Request, Response

from tests.hospital_http import answer
from toolkit.contract.hospital import (
    EDGES,
    KINDS,
    NO_END,
    NO_START,
    PARIS,
    STATES,
    VISIT_SYSTEMS,
    StayRow,
)

Json = dict[str, Any]

PLAIN = replace(
    EDGES,
    stays=tuple(
        row._replace(patient=8 if row.patient == 7 else row.patient)
        for row in EDGES.stays
        # Sentinels would be one more group, `not in` finds no row without a status,
        # bounds compare texts, and JavaScript rounds large numbers.
        if row.began != NO_START
        and row.state
        and "." not in (row.began or "")
        and row.id < 2**53
    ),
)
COLUMNS = ("id", "ipp", "state", "kind", "start", "end", "visit", "unit", "hospital")


class BadRequestError(Exception):
    """What the API cannot parse, or compare with a column; its code is the text."""


def flat_rows(stays: Iterable[StayRow]) -> list[Json]:
    """Return the rows of stays as a table holds them."""
    return [
        {
            "id": row.id,
            "ipp": str(row.patient or ""),
            "state": row.state,
            "kind": row.kind,
            "start": _moment(row.began),
            "end": _moment(row.ended),
            "visit": row.visit,
            "unit": row.unit,
            "hospital": row.hospital,
            "changed": _moment(row.changed),
        }
        for row in stays
    ]


def _moment(text: str | None) -> str | None:
    return text.replace(" ", "T") if text else None


Where = tuple[str, tuple[Any, ...]]
"""A condition of SQL, with its values."""


@dataclass
class OtherMake:
    """One table behind an API; requests are kept.

    `strange` are rows that it answers with in place of those that match.
    """

    rows: list[Json]
    requests: list[Request] = field(default_factory=list)
    strange: Sequence[Json] | None = None

    def __call__(self, environ: Any, start: Any) -> Any:
        request = Request(environ)
        self.requests.append(request)
        try:
            response = self.page(request)
        except (BadRequestError, sqlite3.Error) as error:
            response = answer({"code": str(error), "message": "bad"}, 400)
        return response(environ, start)

    def page(self, request: Request) -> Response:
        """Return the answer to a request."""
        raise NotImplementedError

    def found(self, conditions: Sequence[Where], order: Sequence[str]) -> list[Json]:
        """Return the rows that meet all conditions."""
        if self.strange is not None:
            return list(self.strange)
        columns = ", ".join(f'"{name}"' for name in (*COLUMNS, "instant"))
        cells = [
            (*(row[name] for name in COLUMNS), _in_utc(row["start"]))
            for row in self.rows
        ]
        wanted = " AND ".join(["TRUE", *(f"({sql})" for sql, _ in conditions)])
        values = [value for _, bound in conditions for value in bound]
        with closing(sqlite3.connect(":memory:")) as table:
            table.execute(f"CREATE TABLE stays ({columns})")
            marks = ", ".join("?" for _ in cells[0])
            table.executemany(f"INSERT INTO stays VALUES ({marks})", cells)
            select = f"SELECT id FROM stays WHERE {wanted} ORDER BY "
            ids = table.execute(select + ", ".join([*order, "rowid"]), values)
            by_id = {row["id"]: row for row in self.rows}
            return [by_id[id] for (id,) in ids]


def _column(name: str) -> str:
    if name not in COLUMNS:
        raise BadRequestError("42703")
    return f'"{name}"'


# --------------------------------------------------------------------------- PostgREST


class PostgREST(OtherMake):
    """PostgREST 12: horizontal filtering, ordering, limits and exact counts."""

    def page(self, request: Request) -> Response:
        """Return the rows of a table."""
        args = request.args
        conditions = [
            _condition(name, text)
            for name, text in args.items(multi=True)
            if name not in ("order", "limit", "offset")
        ]
        keys = [key.split(".") for key in args.get("order", "id.asc").split(",")]
        order = [f"{_column(name)} {way} NULLS LAST" for name, way, *_ in keys]
        rows = self.found(conditions, order)
        start, size = int(args.get("offset", 0)), int(args.get("limit", 1000))
        shown = rows[start : start + size]
        exact = "count=exact" in request.headers.get("Prefer", "")
        span = f"{start}-{start + len(shown) - 1}" if shown else "*"
        total = len(rows) if exact else "*"
        return answer(shown, 206, **{"Content-Range": f"{span}/{total}"})


_COMPARE = {"eq": "=", "gte": ">=", "lt": "<"}
_ITEM = r'"(?:[^"\\]|\\.)*"|[^,"]+'


def _condition(column: str, text: str) -> Where:
    """Return the condition of `operator.value`, as behind `column=`."""
    name, (word, _, value) = _column(column), text.partition(".")
    if word == "not":
        sql, values = _condition(column, value)
        return f"NOT ({sql})", values
    if word in _COMPARE:
        return f"{name} {_COMPARE[word]} ?", (_typed(column, value),)
    if word != "in" or not re.fullmatch(rf"\(({_ITEM})(,({_ITEM}))*\)", value):
        raise BadRequestError("PGRST100")
    items = [
        re.sub(r"\\(.)", r"\1", item[1:-1]) if item.startswith('"') else item
        for item in re.findall(_ITEM, value[1:-1])
    ]
    marks = ", ".join("?" for _ in items)
    return f"{name} IN ({marks})", tuple(_typed(column, item) for item in items)


def _typed(column: str, text: str) -> Any:
    """Return a text as the column's type; raises BadRequestError as PostgreSQL refuses it."""
    if column != "id":
        return text
    if not re.fullmatch(r"\s*[-+]?\d+\s*", text) or abs(int(text)) >= 2**63:
        raise BadRequestError("22P02")
    return int(text)


# ------------------------------------------------------------------------------- OData


class OData(OtherMake):
    """OData 4: system query options; pages by `$skip`, or by the server's `nextLink`.

    `first` says whether rows without the key come first, upwards and downwards.
    """

    first = (True, False)

    def page(self, request: Request) -> Response:
        """Return the entities of a set, or one by its key."""
        if one := re.fullmatch(r"/Stays\((-?\d+)\)", request.path):
            rows = [row for row in self.rows if row["id"] == int(one[1])]
            return answer(rows[0]) if rows else answer({"error": {}}, 404)
        args = request.args
        if any(len(args.getlist(name)) > 1 for name in args):
            raise BadRequestError("option twice")
        order = []
        for key in filter(None, args.get("$orderby", "").split(",")):
            column, *words = key.split()
            down = "desc" in words
            way = "DESC" if down else "ASC"
            first = column == "start" and self.first[down]
            nulls = "FIRST" if first else "LAST"
            order.append(f"{_column(column)} {way} NULLS {nulls}")
        text = args.get("$filter")
        rows = self.found([_filter(text)] if text else [], order)
        start = int(args.get("$skip", args.get("$skiptoken", 0)))
        size = int(args.get("$top", 1000))
        body: Json = {"value": rows[start : start + size]}
        if args.get("$count") == "true":
            body["@odata.count"] = len(rows)
        if start + size < len(rows):
            query = {**args.to_dict(), "$skiptoken": str(start + size)}
            pairs = "&".join(f"{name}={quote(text)}" for name, text in query.items())
            body["@odata.nextLink"] = f"Stays?{pairs}"
        return answer(body)


def _in_utc(text: str | None) -> str | None:
    """Return a time, local where it has no offset, as a text that sorts as the instant."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=PARIS)
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<time>\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[-+]\d\d:\d\d))"
    r"|(?P<number>-?\d+)|(?P<word>\w+)|(?P<sign>[(),]))"
)
_WORDS: Mapping[str, str] = {
    **{"eq": "IS", "ne": "IS NOT", "ge": ">=", "gt": ">", "lt": "<", "le": "<="},
    **{"and": "AND", "or": "OR", "not": "NOT", "in": "IN", "null": "NULL"},
}


def _filter(text: str) -> Where:
    """Return the condition of `$filter`, whose grammar is that of SQL in other words."""
    parts, values, end = [], list[Any](), 0
    while text[end:].strip():
        token = _TOKEN.match(text, end)
        if token is None:
            raise BadRequestError("syntax")
        kind, written, end = token.lastgroup, token[token.lastgroup or 0], token.end()
        match kind:
            case "text":
                values.append(written[1:-1].replace("''", "'"))
            case "number":
                values.append(int(written))
            case "time":
                values.append(_in_utc(written))
            case "word":
                column = '"instant"' if written == "start" else ""
                parts.append(_WORDS.get(written) or column or _column(written))
                continue
            case "sign":
                parts.append(written)
                continue
        parts.append("?")
    return " ".join(parts), tuple(values)


# ---------------------------------------------------------------------- mapping files

_HEAD = """\
mapping: 1
name: Another make
profile: full
time_zone: Europe/Paris
constants: {functional_unit_extension: https://example.org/unit}
"""

_FIELDS = """\
  fields:
    id: {from: id}
    patient_id: {from: ipp}
    status: {from: state, codes: states}
    class: {from: kind, codes: kinds}
    start: {from: start, absent: ["NO_START"]}
    end: {from: end, absent: ["NO_END"]}
    visit_number: {from: visit}
    visit_number_system: {from: hospital, codes: systems}
    functional_unit: {from: unit}
    organization_id: {from: hospital}
    last_updated: {from: changed, time_zone: UTC}
"""

_POSTGREST = """\
source: {kind: http, url: {env: PAS_URL}, headers: {Prefer: count=exact}, quote: backslash,
  timeout_seconds: 30, count_timeout_seconds: 30}
CODES
encounter:
  read: {path: "/stays?id=eq.{id:int64}", row: "[0]"}
  list:
    path: /stays
    rows: .
    total: {header: Content-Range}
    count: limit
    paging: {offset: offset}
    fixed: "state=not.in.(A,X)"
FIELDS
  search:
    _id: {query: "id=in.({values:int64})", separator: ",", most: 50}
    patient: {query: 'ipp=in.("{values}")', separator: '","'}
    date: {ge: "start=gte.{value}", lt: "start=lt.{value}"}
    identifier: {query: 'visit=in.("{values}")', separator: '","',
      system: "visit=eq.{value:any}&hospital=eq.{system}", codes: systems}
    status: {query: "state=in.({values})", separator: ","}
    class: {query: "kind=in.({values})", separator: ","}
    service-provider._extension: {query: "unit=eq.{value:any}"}
  sort:
    by:
      date: "order=start.asc.nullslast,id.asc"
      -date: "order=start.desc.nullslast,id.desc"
"""

_ODATA = """\
source: {kind: http, url: {env: PAS_URL}, timeout_seconds: 30, count_timeout_seconds: 30}
CODES
encounter:
  read: {path: "/Stays({id:int64})"}
  list:
    path: /Stays
    rows: value
    total: '"@odata.count"'
    count: $top
    paging: PAGING
    fixed: "$count=true&$filter=state ne null and not (state in ('A','X'))"
    combine: {$filter: " and "}
FIELDS
  search:
    _id: {query: "$filter=id in ({values:int64})", separator: ",", most: 50}
    patient: {query: "$filter=ipp eq '{value}'", separator: " or "}
    date: {ge: "$filter=start ge {value:%Y-%m-%dT%H:%M:%S%:z}",
      lt: "$filter=start lt {value:%Y-%m-%dT%H:%M:%S%:z}"}
    identifier: {query: "$filter=visit eq '{value}'", separator: " or ",
      system: "$filter=visit eq '{value}' and hospital eq '{system}'", codes: systems}
    status: {query: "$filter=state in ('{values}')", separator: "','"}
    class: {query: "$filter=kind in ('{values}')", separator: "','",
      excluding: "$filter=kind eq null or not (kind in ('{values}'))"}
    service-provider._extension: {query: "$filter=unit eq '{value}'"}
  sort: {nulls: NULLS,
    by: {date: "$orderby=start asc,id asc", -date: "$orderby=start desc,id desc"}}
"""


SKIP, NEXT = "{offset: $skip}", "{next: '\"@odata.nextLink\"'}"


def mapping_of(
    make: type[OtherMake], paging: str = SKIP, nulls: str = "low", absent: str = "-"
) -> str:
    """Return the mapping file for an API; `nulls` says where OData puts them."""
    text = _POSTGREST if make is PostgREST else _ODATA
    tables = (
        f"codes:\n  states: {{table: {STATES}}}\n  systems: {{table: {VISIT_SYSTEMS}}}"
    )
    kinds = f"  kinds: {{table: {KINDS}, otherwise: UNK}}"
    text = text.replace("CODES", f"{tables}\n{kinds}").replace("FIELDS\n", _FIELDS)
    text = text.replace("PAGING", paging).replace("NULLS", nulls)
    text = text.replace("NO_START", absent)
    return _HEAD + text.replace("NO_END", NO_END.replace(" ", "T"))
