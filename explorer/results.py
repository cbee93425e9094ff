"""What the explorer shows of a Bundle: a table, CSV, a timeline, JSON with links.

All of it is computed from the resources that the service returned.
"""

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

import jmespath

from explorer.words import code_in_words

Resource = Mapping[str, Any]

REFERENCE = re.compile(r"(?:Encounter|Patient|Organization)/[A-Za-z0-9\-.]{1,64}")
"""A reference to a resource that has a page."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What makes a spreadsheet compute a cell."""


class Cell(NamedTuple):
    """A text, and the resource that it names."""

    text: str
    reference: str = ""


class Results:
    """The entries of a Bundle: resources, and messages of the service about them."""

    def __init__(self, bundle: Resource) -> None:
        self.total: int | None = bundle.get("total")
        self.resources: list[Resource] = []
        self.messages: list[str] = []
        for entry in bundle.get("entry", []):
            if entry["search"]["mode"] == "match":
                self.resources.append(entry["resource"])
            else:
                issues = entry["resource"]["issue"]
                self.messages += (issue.get("diagnostics", "") for issue in issues)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value or "")


def _code(element: str, code: str | None) -> str:
    return code_in_words("Encounter", element, code or "")


def _names(names: Sequence[Resource] | None) -> str:
    texts = (
        name.get("text")
        or " ".join(
            [*name.get("prefix", []), *name.get("given", []), name.get("family", "")]
        )
        for name in names or ()
    )
    return "; ".join(dict.fromkeys(filter(None, texts)))


def _time(text: str | None) -> str:
    """Return a time as people read it, in the offset that it was written with."""
    return "" if not text else text.replace("T", " ")[:16]


def _duration(resource: Resource) -> str:
    """Return how long a stay took, or has taken, in days or hours."""
    period = resource.get("period", {})
    if "start" not in period or resource["status"] == "planned":
        return ""
    start, end = _span(resource, datetime.now(UTC))
    took = end - start
    days, hours = took.days, took.seconds // 3600
    text = f"{days} d {hours} h" if days else f"{hours} h {took.seconds // 60 % 60} min"
    return text if "end" in period else f"{text} so far"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: what is at a path of a resource (JMESPath), and how it reads."""

    name: str
    title: str
    path: str
    text: Callable[[Any], str] = _text

    def cell(self, resource: Resource) -> Cell:
        """Return the cell of a resource; references lead to what they name."""
        value = jmespath.search(self.path, resource)
        if value and self.path.endswith(("reference", _ITSELF)):
            return Cell(value.rpartition("/")[2], value)
        return Cell(self.text(value))


_ITSELF = "join('/', [resourceType, id])"
_IDENTIFIERS = "identifier[].value"
_CHANGED = Column("changed", "Last changed", "meta.lastUpdated", _time)
_ACTIVE = Column("active", "Active", "active")

COLUMNS: Mapping[str, Sequence[Column]] = {
    "Encounter": (
        Column("id", "Stay", _ITSELF),
        Column("number", "Visit number", _IDENTIFIERS),
        Column("patient", "Patient", "subject.reference"),
        Column("class", "Class", "class.code", partial(_code, "class")),
        Column("status", "Status", "status", partial(_code, "status")),
        Column("start", "Start", "period.start", _time),
        Column("end", "End", "period.end", _time),
        Column("duration", "Duration", "@", _duration),
        Column("unit", "Ward", "serviceProvider.extension[].valueString"),
        Column("hospital", "Hospital", "serviceProvider.reference"),
        _CHANGED,
    ),
    "Patient": (
        Column("id", "Patient", _ITSELF),
        Column("name", "Name", "name", _names),
        Column("birthdate", "Birth date", "birthDate"),
        Column("gender", "Gender", "gender"),
        Column("identifier", "Identifiers", _IDENTIFIERS),
        _ACTIVE,
        Column("merged", "Merged into", "link[0].other.reference"),
        _CHANGED,
    ),
    "Organization": (
        Column("id", "Organization", _ITSELF),
        Column("name", "Name", "name"),
        Column("identifier", "Identifiers", _IDENTIFIERS),
        Column("part", "Part of", "partOf.reference"),
        _ACTIVE,
        _CHANGED,
    ),
}


def chosen_columns(kind: str, names: Sequence[str]) -> Sequence[Column]:
    """Return the columns of these names, all of them where there is none."""
    return [c for c in COLUMNS[kind] if c.name in names] or COLUMNS[kind]


def as_csv(resources: Sequence[Resource], columns: Sequence[Column]) -> str:
    """Return a table as CSV (RFC 4180); no cell is a formula for a spreadsheet."""
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow([column.title for column in columns])
    for resource in resources:
        texts = (column.cell(resource).text for column in columns)
        writer.writerow(f"'{t}" if t.startswith(_FORMULA) else t for t in texts)
    return file.getvalue()


# ---------------------------------------------------------------------------- timeline

WIDTH, LANE, LEFT, TOP = 960, 26, 16, 34
"""Sizes of the drawing in its own units: it scales with the page."""

_TICKS = 6


class Bar(NamedTuple):
    """A stay on the time axis."""

    resource: Resource
    x: float
    y: int
    width: float

    @property
    def title(self) -> str:
        """The stay in words."""
        stay = self.resource
        words = _code("class", stay.get("class", {}).get("code"))
        start, end = (stay["period"].get(part) for part in ("start", "end"))
        times = f"{_time(start)} – {_time(end) or 'open'}"
        return f"Stay {stay['id']}: {words}, {stay['status']}, {times}"


class Timeline(NamedTuple):
    """Stays as bars in lanes: those that overlap are below each other."""

    bars: Sequence[Bar]
    ticks: Sequence[tuple[float, str]]
    height: int
    undated: int


def timeline(resources: Sequence[Resource], now: datetime) -> Timeline:
    """Return the timeline of stays; those without a start are counted."""
    dated = [r for r in resources if "start" in r.get("period", {})]
    spans = sorted(((*_span(r, now), r) for r in dated), key=lambda each: each[:2])
    if not spans:
        return Timeline((), (), TOP, len(resources))
    first, last = spans[0][0], max(end for _, end, _ in spans)
    whole = (last - first) or timedelta(hours=1)

    def x(moment: datetime) -> float:
        return round(LEFT + (WIDTH - 2 * LEFT) * ((moment - first) / whole), 1)

    lanes: list[float] = []
    bars = []
    for start, end, resource in spans:
        left, width = x(start), max(4.0, round(x(end) - x(start), 1))
        lane = next((n for n, edge in enumerate(lanes) if edge < left), len(lanes))
        lanes[lane : lane + 1] = [left + width + 1]
        bars.append(Bar(resource, left, TOP + lane * LANE, width))
    form = "%Y-%m-%d" if whole > timedelta(days=_TICKS) else "%m-%d %H:%M"
    moments = [first + whole * n / _TICKS for n in range(_TICKS + 1)]
    ticks = [(x(moment), moment.strftime(form)) for moment in moments]
    height = TOP + LANE * len(lanes) + 8
    return Timeline(bars, ticks, height, len(resources) - len(dated))


def _span(resource: Resource, now: datetime) -> tuple[datetime, datetime]:
    period = resource["period"]
    start = datetime.fromisoformat(period["start"])
    # A planned stay goes on no more than it has begun.
    latest = start if resource["status"] == "planned" else now
    end = datetime.fromisoformat(period["end"]) if "end" in period else latest
    return start, max(start, end)


# -------------------------------------------------------------------------------- JSON


def hint(value: Any) -> str:
    """Return what identifies a folded part of JSON among its neighbours."""
    if not isinstance(value, dict):
        return str(len(value))
    resource = value.get("resource", value)
    if "resourceType" in resource:
        return f"{resource['resourceType']}/{resource.get('id', '')}"
    return str(value.get("relation") or value.get("system") or "")


def elements(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield each value inside a resource with its path, as JSON writes them."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from elements(below, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for number, below in enumerate(value):
            yield from elements(below, f"{path}[{number}]")
    else:
        yield path, str(value).lower() if isinstance(value, bool) else str(value)
