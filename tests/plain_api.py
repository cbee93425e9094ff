"""A plain list API, as json-server is one, and the mapping file that reads it without a shim.

Its total and the link of the next page are in headers, references have their prefix, the
visit number is in a list, and rows without a start sort as if they began last.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from werkzeug import Request, Response

from tests.hospital_http import answer
from toolkit.contract.hospital import (
    EDGES,
    KINDS,
    NO_END,
    NO_START,
    STATES,
    UNIT_URL,
    VISIT_SYSTEMS,
    StayRow,
)

Json = dict[str, Any]

PLAIN = replace(
    EDGES,
    stays=tuple(
        row._replace(patient=8 if row.patient == 7 else row.patient)
        for row in EDGES.stays
        # Sentinels would be one more group, `status_ne` finds no row without a status,
        # `start_lte` compares texts, and JavaScript rounds large numbers.
        if row.began != NO_START
        and row.state
        and "." not in (row.began or "")
        and row.id < 2**53
    ),
)
COLUMNS = {
    "id": "stay_id",
    "subject.reference": "patient_id",
    "status": "state",
    "start": "began",
    "end": "ended",
    "hospital": "hospital",
}
"""The suite's name of each column that a fault may name."""

OFFSET = "{offset: _start}"
LINKED = "{next: {header: Link}}"


def plain_mapping_text(
    *,
    paging: str = OFFSET,
    nulls: str = "high",
    absent: str = "-",
) -> str:
    """Return the mapping file of stays; patients and organizations are only read."""
    text = _TEXT.replace("UNIT_URL", UNIT_URL).replace("NO_END", _moment(NO_END) or "")
    text = text.replace("PAGING", paging).replace("NULLS", nulls)
    text = text.replace("NO_START", absent)
    tables = (("states", STATES, ""), ("kinds", KINDS, ", otherwise: UNK"))
    codes = (f"  {name}: {{table: {table}{more}}}" for name, table, more in tables)
    systems = f"  systems: {{table: {VISIT_SYSTEMS}}}"
    return text.replace("CODES", "\n".join((*codes, systems)))


_TEXT = """\
mapping: 1
name: Plain lists
profile: full
time_zone: Europe/Paris
constants: {functional_unit_extension: UNIT_URL}
source: {kind: http, url: {env: PAS_URL}, timeout_seconds: 30, count_timeout_seconds: 30}
codes:
CODES
encounter:
  read: {path: "/stays?id={id}", row: "[0]"}
  list:
    path: /stays
    rows: .
    total: {header: X-Total-Count}
    count: _limit
    paging: PAGING
    fixed: "status_ne=A&status_ne=X"
  fields:
    id: {from: id}
    patient_id: {from: subject.reference, strip: Patient/}
    status: {from: status, codes: states}
    class: {from: kind, codes: kinds}
    start: {from: start, absent: ["NO_START"]}
    end: {from: end, absent: ["NO_END"]}
    visit_number: {from: "numbers[?type=='VN'].value | [0]"}
    visit_number_system: {from: hospital, codes: systems}
    functional_unit: {from: unit}
    organization_id: {from: hospital}
    last_updated: {from: changed, time_zone: UTC}
  search:
    _id: {query: "id={values}"}
    patient: {query: "subject.reference={values}"}
    date: {ge: "start_gte={value}", le: "start_lte={value}"}
    status: {query: "status={values}"}
    class: {query: "kind={values}"}
  sort:
    nulls: NULLS
    by:
      date: "_sort=start,id&_order=asc,asc"
      -date: "_sort=start,id&_order=desc,desc"
"""


def plain_rows(stays: Iterable[StayRow]) -> list[Json]:
    """Return the rows of stays as the API holds them."""
    return [_row(row) for row in stays]


def _row(row: StayRow) -> Json:
    numbers = [{"type": "AN", "value": "0"}, {"type": "VN", "value": row.visit}]
    return {
        "id": row.id,
        "subject": {"reference": row.patient and f"Patient/{row.patient}"},
        "status": row.state,
        "kind": row.kind,
        "start": _moment(row.began),
        "end": _moment(row.ended),
        "numbers": numbers if row.visit else [],
        "unit": row.unit,
        "hospital": row.hospital,
        "changed": _moment(row.changed),
    }


def _moment(text: str | None) -> str | None:
    return text.replace(" ", "T") if text else None


@dataclass
class Plain:
    """The API; `first` says whether rows without a start come first, by the direction.

    `strange` gives every answer in place of the API when it returns one.
    """

    rows: list[Json]
    first: Mapping[str, bool] = field(
        default_factory=lambda: {"asc": False, "desc": True}
    )
    requests: list[Request] = field(default_factory=list)
    delay: Callable[[], object] = lambda: None
    strange: Callable[[Request], Response | None] = lambda _: None

    def __call__(self, environ: Any, start: Any) -> Any:
        request = Request(environ)
        self.requests.append(request)
        self.delay()
        return (self.strange(request) or self._answer(request))(environ, start)

    def _answer(self, request: Request) -> Response:
        rows = self._sorted(request.args, self._filtered(request.args))
        size = int(request.args.get("_limit", 1000))
        begin = int(request.args.get("_start", 0))
        headers = {"X-Total-Count": str(len(rows))}
        if begin + size < len(rows):
            query = {**request.args.to_dict(flat=False), "_start": [str(begin + size)]}
            pairs = "&".join(f"{k}={v}" for k, values in query.items() for v in values)
            first = f'<{request.base_url}?_start=0>; rel="first"'
            headers["Link"] = f'{first}, <{request.base_url}?{pairs}>; rel="next last"'
        return answer(rows[begin : begin + size], 200, **headers)

    def _filtered(self, args: Any) -> list[Json]:
        rows = self.rows
        for name, values in args.lists():
            if not name.startswith("_"):
                rows = [row for row in rows if _matches(row, name, values)]
        return rows

    def _sorted(self, args: Any, rows: Sequence[Json]) -> list[Json]:
        order = args.get("_order", "asc").split(",")[0]
        rows = sorted(rows, key=lambda row: row["id"], reverse=order == "desc")
        keyed = sorted(
            (row for row in rows if row["start"]),
            key=lambda row: str(row["start"]),
            reverse=order == "desc",
        )
        others = [row for row in rows if not row["start"]]
        return others + keyed if self.first[order] else keyed + others


def _matches(row: Json, name: str, values: Sequence[str]) -> bool:
    path, _, how = name.partition("_")
    held: Any = row
    for key in path.split("."):
        held = held.get(key)
    if held is None:
        return False
    match how:
        case "ne":
            return str(held) not in values
        case "gte":
            return all(str(held) >= value for value in values)
        case "lte":
            return all(str(held) <= value for value in values)
    return str(held) in values
