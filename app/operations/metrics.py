"""What is counted, for `/metrics`: one name each, and nobody's data in any label.

Every process of the service counts for itself. Where `/metrics` is served
(`app.operations.scrape`) the counts lie in files that all of them share, which the
environment says before this module is first imported: `PROMETHEUS_MULTIPROC_DIR`.
"""

import re
from collections.abc import Mapping
from functools import cache

from flask import Flask, Response
from prometheus_client import Counter, Gauge, Histogram, values

from adapters.contract import ResourceType, RowFault
from app.current import current_request
from app.operations.counts import RoomyDict
from app.operations.phases import Phase, current_watch

# Before anything is counted; the library has no other way to say so.
values.MmapedDict = RoomyDict  # type: ignore[attr-defined]

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
# From the first quote to the last: a code may hold one.
_QUOTED = re.compile(r"'.*'", re.DOTALL)

REQUESTS = Counter(
    "encounters_requests",
    "Requests answered, by route template, method and class of status.",
    ("route", "method", "status"),
)
REQUEST_SECONDS = Histogram(
    "encounters_request_seconds",
    "How long answers took, by route template and method.",
    ("route", "method"),
    buckets=_SECONDS,
)
PHASE_SECONDS = Histogram(
    "encounters_phase_seconds",
    "How long each phase of a request took, where there was one, by route template.",
    ("route", "phase"),
    buckets=_SECONDS,
)
SOURCE_SECONDS = Histogram(
    "encounters_source_seconds",
    "How long calls to a source took, by source, call, and whether it answered.",
    ("source", "call", "answered"),
    buckets=_SECONDS,
)
SOURCE_CALLS = Gauge(
    "encounters_source_calls",
    "Calls to a source under way.",
    ("source",),
    multiprocess_mode="livesum",
)
SOURCE_CONNECTIONS = Gauge(
    "encounters_source_connections",
    "How many calls to a source, counts aside, there may be under way.",
    ("source",),
    multiprocess_mode="livesum",
)
SOURCE_HELD_BACK = Gauge(
    "encounters_source_held_back",
    "In how many processes a source is not asked, because it did not answer.",
    ("source",),
    multiprocess_mode="livesum",
)
STORE_SECONDS = Histogram(
    "encounters_store_seconds",
    "How long steps of the store of pages (Redis) took, by step.",
    ("step",),
    buckets=_SECONDS,
)
STORE_ERRORS = Counter(
    "encounters_store_errors",
    "Steps of the store of pages (Redis) that failed, by step.",
    ("step",),
)
ROW_FAULTS = Counter(
    "encounters_row_faults",
    "Rows that could not be mapped, by resource type, field and rule.",
    ("resource_type", "field", "rule"),
)
THROTTLED = Counter(
    "encounters_throttled",
    "Requests refused because too many came, by what was counted.",
    ("by",),
)
AUDIT_EVENTS = Counter(
    "encounters_audit_events",
    "Audit events written.",
)
AUDIT_FAILURES = Counter(
    "encounters_audit_failures",
    "Audit events that could not be written.",
)
PART_READY = Gauge(
    "encounters_part_ready",
    "Whether a part that /ready tells of was fine when last looked at: 1, else 0.",
    ("part",),
    multiprocess_mode="livemin",
)


class SourceCounts:
    """Counts calls to sources: what `adapters.guarded` tells of them.

    `connections` is how many calls to each source there may be at once.
    """

    def __init__(self, connections: Mapping[str, int]) -> None:
        for source, count in connections.items():
            SOURCE_CONNECTIONS.labels(source).set(count)

    def under_way(self, source: str, change: int) -> None:
        """Take in that so many more calls are under way, or fewer."""
        _calls(source).inc(change)

    def asked(self, source: str, call: str, seconds: float, *, answered: bool) -> None:
        """Take in how long a call took, and whether the source answered."""
        told = "yes" if answered else "no"
        _source_seconds(source, call, told).observe(seconds)

    def held_back(self, source: str, *, held: bool) -> None:
        """Take in that a source is left alone from now on, or asked again."""
        SOURCE_HELD_BACK.labels(source).set(held)


def register_metrics(app: Flask) -> None:
    """Count every request of `app`; to be registered after its log, which times phases."""
    app.after_request(_count_request)


def count_row_fault(resource_type: ResourceType, fault: RowFault) -> None:
    """Count a row that could not be mapped; codes that its rule quotes are left out."""
    rule = _QUOTED.sub("…", fault.rule)
    ROW_FAULTS.labels(resource_type.value, fault.field, rule).inc()


def _count_request(response: Response) -> Response:
    asked, watch = current_request(), current_watch()
    route = asked.url_rule.rule if asked.url_rule else "none"
    # What no route takes may have any method; a route takes few.
    method = asked.method if asked.url_rule else "any"
    spent = {} if watch is None else watch.spent()
    _requests(route, method, response.status_code // 100).inc()
    _request_seconds(route, method).observe(sum(spent.values()))
    for phase, took in spent.items():
        if took:
            _phase_seconds(route, phase).observe(took)
    return response


# Children are found by text each time, unless they are kept; there are few.


@cache
def store_seconds(step: str) -> Histogram:
    """Return what counts how long a step of the store of pages takes."""
    return STORE_SECONDS.labels(step)


@cache
def _requests(route: str, method: str, hundreds: int) -> Counter:
    return REQUESTS.labels(route, method, f"{hundreds}xx")


@cache
def _request_seconds(route: str, method: str) -> Histogram:
    return REQUEST_SECONDS.labels(route, method)


@cache
def _phase_seconds(route: str, phase: Phase) -> Histogram:
    return PHASE_SECONDS.labels(route, phase)


@cache
def _source_seconds(source: str, call: str, answered: str) -> Histogram:
    return SOURCE_SECONDS.labels(source, call, answered)


@cache
def _calls(source: str) -> Gauge:
    return SOURCE_CALLS.labels(source)
