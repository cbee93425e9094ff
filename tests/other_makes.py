"""APIs of other makes, imitated after their documentation: PostgREST, and OData 4.

They hold the stays of a plain list in one table, and parse what they are sent as the real ones
do, so that a value that leaves its place means something else to them.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfo

from werkzeug import Request, Response

from tests.hospital_http import answer
from tests.plain_api import Json, plain_rows
from toolkit.contract.hospital import KINDS, NO_END, STATES, VISIT_SYSTEMS, StayRow

Test = Callable[[Json], bool]
PARIS = ZoneInfo("Europe/Paris")


class BadRequestError(Exception):
    """What the API cannot parse, or compare with a column; its code is the text."""


def flat_rows(stays: Sequence[StayRow]) -> list[Json]:
    """Return the rows of stays as a table holds them."""
    return [
        {
            "id": row["id"],
            "ipp": (row["subject"]["reference"] or "/").partition("/")[2],
            "state": row["status"],
            "kind": row["kind"],
            "start": row["start"],
            "end": row["end"],
            "visit": next((n["value"] for n in row["numbers"][1:]), None),
            "unit": row["unit"],
            "hospital": row["hospital"],
            "changed": row["changed"],
        }
        for row in plain_rows(stays)
    ]


@dataclass
class OtherMake:
    """One table behind an API; requests are kept."""

    rows: list[Json]
    requests: list[Request] = field(default_factory=list)
    delay: Callable[[], object] = lambda: None

    def __call__(self, environ: Any, start: Any) -> Any:
        request = Request(environ)
        self.requests.append(request)
        self.delay()
        try:
            response = self.page(request)
        except BadRequestError as error:
            response = answer({"code": str(error), "message": "bad"}, 400)
        return response(environ, start)

    def page(self, request: Request) -> Response:
        """Return the answer to a request."""
        raise NotImplementedError


def _sorted(rows: Sequence[Json], keys: Sequence[tuple[str, bool, bool]]) -> list[Json]:
    """Return rows by (column, descending, nulls first), the first key the most important."""
    result = list(rows)
    for column, descending, nulls_first in reversed(keys):
        held = [row for row in result if row[column] is not None]
        held.sort(key=lambda row, name=column: row[name], reverse=descending)  # type: ignore[misc]
        nulls = [row for row in result if row[column] is None]
        result = nulls + held if nulls_first else held + nulls
    return result


def _typed(column: str, text: str) -> Any:
    """Return a text as the column's type; raises BadRequestError as PostgreSQL refuses it."""
    if column != "id":
        return text
    if not re.fullmatch(r"\s*[-+]?\d+\s*", text):
        raise BadRequestError("22P02")
    if abs(int(text)) >= 2**63:
        raise BadRequestError("22003")
    return int(text)


# --------------------------------------------------------------------------- PostgREST


class PostgREST(OtherMake):
    """PostgREST 12: horizontal filtering, ordering, limits and exact counts."""

    def page(self, request: Request) -> Response:
        """Return the rows of a table."""
        rows, args = self.rows, request.args
        for name, text in args.items(multi=True):
            if name in ("or", "and"):
                rows = list(filter(_Logic(f"{name}{text}").test(), rows))
            elif name not in ("select", "order", "limit", "offset"):
                rows = list(filter(_condition(name, text), rows))
        keys = []
        for key in filter(None, args.get("order", "").split(",")):
            column, *words = key.split(".")
            descending = "desc" in words
            first = "nullsfirst" in words or (descending and "nullslast" not in words)
            keys.append((_column(column), descending, first))
        rows = _sorted(rows, keys)
        start, size = int(args.get("offset", 0)), int(args.get("limit", 1000))
        shown = rows[start : start + size]
        exact = "count=exact" in request.headers.get("Prefer", "")
        total = str(len(rows)) if exact else "*"
        span = f"{start}-{start + len(shown) - 1}" if shown else "*"
        headers = {"Content-Range": f"{span}/{total}"}
        if exact and start > len(rows):
            return answer({"code": "PGRST103"}, 416, **headers)
        return answer(shown, 206 if len(shown) < len(rows) else 200, **headers)


_COLUMNS = ("id", "ipp", "state", "kind", "start", "end", "visit", "unit", "hospital")


def _column(name: str) -> str:
    if name not in _COLUMNS:
        raise BadRequestError("42703")
    return name


def _condition(column: str, text: str) -> Test:
    """Return the test of `operator.value`, as behind `column=`."""
    name, (word, _, value) = _column(column), text.partition(".")
    if word == "not":
        inner = _condition(column, value)
        return lambda row: row[name] is not None and not inner(row)
    if word == "is" and value == "null":
        return lambda row: row[name] is None
    if word == "in":
        if not (value.startswith("(") and value.endswith(")")):
            raise BadRequestError("PGRST100")
        values = {_typed(name, item) for item in _items(value[1:-1])}
        return lambda row: row[name] is not None and row[name] in values
    compare: Mapping[str, Callable[[Any, Any], bool]] = {
        "eq": lambda a, b: a == b,
        "neq": lambda a, b: a != b,
        "gte": lambda a, b: a >= b,
        "gt": lambda a, b: a > b,
        "lte": lambda a, b: a <= b,
        "lt": lambda a, b: a < b,
    }
    if word not in compare:
        raise BadRequestError("PGRST100")
    typed = _typed(name, value)
    return lambda row: row[name] is not None and compare[word](row[name], typed)


def _items(text: str) -> Iterator[str]:
    """Yield the items of a list, which may be in quotation marks."""
    rest = text
    while True:
        if quoted := re.match(r'"((?:[^"\\]|\\.)*)"', rest):
            yield re.sub(r"\\(.)", r"\1", quoted[1])
            rest = rest[quoted.end() :]
        else:
            item, comma, after = rest.partition(",")
            yield item
            rest = comma + after
        if not rest:
            return
        if not rest.startswith(","):
            raise BadRequestError("PGRST100")
        rest = rest[1:]


class _Logic:
    """A parser of `or(a.eq.1,not.and(…))`."""

    def __init__(self, text: str) -> None:
        self.text = text

    def test(self) -> Test:
        result = self._term()
        if self.text:
            raise BadRequestError("PGRST100")
        return result

    def _term(self) -> Test:
        if opened := re.match(r"(not\.)?(or|and)\(", self.text):
            self.text = self.text[opened.end() :]
            terms = [self._term()]
            while self.text.startswith(","):
                self.text = self.text[1:]
                terms.append(self._term())
            self._skip(")")
            join = any if opened[2] == "or" else all
            return lambda row: join(t(row) for t in terms) is not bool(opened[1])
        pattern = (
            r'(\w+)\.((?:not\.)?(?:in\.\((?:"(?:[^"\\]|\\.)*"|[^()"])*\)|[^,()]*))'
        )
        found = re.match(pattern, self.text)
        if not found:
            raise BadRequestError("PGRST100")
        self.text = self.text[found.end() :]
        return _condition(found[1], found[2])

    def _skip(self, sign: str) -> None:
        if not self.text.startswith(sign):
            raise BadRequestError("PGRST100")
        self.text = self.text[1:]


# ------------------------------------------------------------------------------- OData

_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<time>\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[-+]\d\d:\d\d))"
    r"|(?P<number>-?\d+)|(?P<word>\w+)|(?P<sign>[(),]))"
)


class OData(OtherMake):
    """OData 4: system query options; pages by `$skip`, or by the server's `nextLink`.

    `most` is the server's own limit of a page.
    """

    most = 1000

    def page(self, request: Request) -> Response:
        """Return the entities of a set, or one by its key."""
        if one := re.fullmatch(r"/Stays\((-?\d+)\)", request.path):
            rows = [row for row in self.rows if row["id"] == int(one[1])]
            return answer(rows[0]) if rows else answer({"error": {}}, 404)
        args = request.args
        if any(len(args.getlist(name)) > 1 for name in args):
            raise BadRequestError("option twice")
        rows = self.rows
        if text := args.get("$filter"):
            rows = [row for row in rows if _Filter(text).value(row) is True]
        keys = []
        for key in filter(None, args.get("$orderby", "").split(",")):
            column, *words = key.split()
            # A null is the smallest value.
            keys.append((_column(column), "desc" in words, "desc" not in words))
        rows = _sorted(rows, keys)
        start = int(args.get("$skip", args.get("$skiptoken", 0)))
        size = min(int(args.get("$top", 1000)), self.most)
        body: Json = {"value": rows[start : start + size]}
        if args.get("$count") == "true":
            body["@odata.count"] = len(rows)
        if start + size < len(rows):
            query = {**args.to_dict(), "$skiptoken": str(start + size)}
            pairs = "&".join(f"{name}={quote(text)}" for name, text in query.items())
            body["@odata.nextLink"] = f"Stays?{pairs}"
        return answer(body)


class _Filter:
    """A parser and evaluator of `$filter`: or, and, not, comparisons, in, brackets."""

    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        end = 0
        while text[end:].strip():
            token = _TOKEN.match(text, end)
            if token is None:
                raise BadRequestError("syntax")
            self.tokens.append((str(token.lastgroup), token[token.lastgroup or 0]))
            end = token.end()

    def value(self, row: Json) -> Any:
        self.row, self.at = row, 0
        result = self._any()
        if self.at < len(self.tokens):
            raise BadRequestError("syntax")
        return result

    def _next(self, *words: str) -> bool:
        if self.at < len(self.tokens) and self.tokens[self.at][1] in words:
            self.at += 1
            return True
        return False

    def _expect(self, word: str) -> None:
        if not self._next(word):
            raise BadRequestError("syntax")

    def _any(self) -> bool:
        result = self._all()
        while self._next("or"):
            other = self._all()
            result = result or other
        return result

    def _all(self) -> bool:
        result = self._not()
        while self._next("and"):
            other = self._not()
            result = result and other
        return result

    def _not(self) -> bool:
        if self._next("not"):
            return not self._not()
        if self._next("("):
            result = self._any()
            self._expect(")")
            return result
        left = self._operand()
        if self._next("in"):
            self._expect("(")
            values = [self._operand()]
            while self._next(","):
                values.append(self._operand())
            self._expect(")")
            return left is not None and left in values
        if self.at >= len(self.tokens):
            raise BadRequestError("syntax")
        word = self.tokens[self.at][1]
        self.at += 1
        right = self._operand()
        if word in ("eq", "ne"):
            return (left == right) is (word == "eq")
        compare: Mapping[str, Callable[[Any, Any], bool]] = {
            "ge": lambda a, b: a >= b,
            "gt": lambda a, b: a > b,
            "lt": lambda a, b: a < b,
            "le": lambda a, b: a <= b,
        }
        if word not in compare or type(left) is not type(right) is not type(None):
            if None in (left, right) and word in compare:
                return False
            raise BadRequestError("types")
        return compare[word](left, right)

    def _operand(self) -> Any:
        if self.at >= len(self.tokens):
            raise BadRequestError("syntax")
        kind, text = self.tokens[self.at]
        self.at += 1
        match kind:
            case "text":
                return text[1:-1].replace("''", "'")
            case "number":
                return int(text)
            case "time":
                return datetime.fromisoformat(text)
            case "word" if text == "null":
                return None
            case "word":
                held = self.row[_column(text)]
                if text in ("start", "end") and held:
                    return datetime.fromisoformat(held).replace(tzinfo=PARIS)
                return held
        raise BadRequestError("syntax")


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
    start: {from: start, time_zone: ZONE}
    end: {from: end, absent: ["NO_END"], time_zone: ZONE}
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
    class: {query: "kind=in.({values})", separator: ",",
      excluding: "or=(kind.is.null,kind.not.in.({values}))"}
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
  sort: {NULLSby: {date: "$orderby=start asc,id asc", -date: "$orderby=start desc,id desc"}}
"""


def mapping_of(make: type[OtherMake], paging: str = "{offset: $skip}") -> str:
    """Return the mapping file for an API."""
    text = _POSTGREST if make is PostgREST else _ODATA
    tables = (
        f"codes:\n  states: {{table: {STATES}}}\n  systems: {{table: {VISIT_SYSTEMS}}}"
    )
    kinds = f"  kinds: {{table: {KINDS}, otherwise: UNK}}"
    text = text.replace("CODES", f"{tables}\n{kinds}").replace("FIELDS\n", _FIELDS)
    text = text.replace("PAGING", paging)
    text = text.replace("NULLS", "nulls: low, " if "offset" in paging else "")
    text = text.replace("ZONE", "Europe/Paris")
    no_end = NO_END.replace(" ", "T")
    return _HEAD + text.replace("NO_END", no_end)
