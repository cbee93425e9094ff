"""Alert rules and the dashboard, generated from the metrics that the service registers.

    .venv/bin/python deploy/monitoring/generate.py

`make monitoring` runs this. Names and kinds of metrics come from the registry of prometheus_client:
a metric that was renamed or removed is a KeyError here, not an alert that never fires. A metric
that no panel names gets one by its kind. An alert needs a judgement, so each has a row in `ALERTS`
and a test in alerts.test.yaml.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from prometheus_client import REGISTRY, Metric

from app import observability  # noqa: F401 - registers the metrics

FOLDER = Path(__file__).parent
PREFIX = "encounters_"
JOB = 'job="encounters"'
"""The name of the job that scrapes the service: compose/prometheus.yaml, scrape-kubernetes.yaml."""

WINDOW = "5m"
PANEL_WINDOW = "$__rate_interval"

METRICS: dict[str, Metric] = {
    family.name.removeprefix(PREFIX): family
    for family in sorted(REGISTRY.collect(), key=lambda family: family.name)
    if family.name.startswith(PREFIX)
}
"""What the service registers, by names without the prefix."""


# ---- expressions


def sample(metric: str, part: str = "", where: str = "") -> str:
    """Return the name of a sample: of a counter its total, of a histogram `part`."""
    family = METRICS[metric]
    ending = {"counter": "_total", "histogram": f"_{part}"}.get(family.type, "")
    return f"{family.name}{ending}{{{where}}}" if where else family.name + ending


def over(
    function: str, metric: str, window: str, *by: str, part: str = "", where: str = ""
) -> str:
    """Return the sum of `rate` or `increase` of a counter or of a part of a histogram."""
    return f"{_sum(by)}({function}({sample(metric, part, where)}[{window}]))"


def quantile(share: float, metric: str, window: str, *by: str) -> str:
    """Return a quantile of a histogram."""
    summed = over("rate", metric, window, *by, "le", part="bucket")
    return f"histogram_quantile({share}, {summed})"


def summed(metric: str, *by: str) -> str:
    """Return the sum of a gauge."""
    return f"{_sum(by)}({sample(metric)})"


def part_not_ready(part: str) -> str:
    """Return whether an instance reports that a part is not ready."""
    where = f'part="{part}"'
    return f"min by (job) ({sample('part_ready', where=where)}) == 0"


def _sum(by: tuple[str, ...]) -> str:
    return f"sum by ({', '.join(by)}) " if by else "sum"


# ---- alerts


@dataclass(frozen=True, slots=True)
class Alert:
    """A rule: `page` wakes somebody, `ticket` waits for the morning."""

    name: str
    expr: str
    lasts: str | None
    severity: str
    summary: str
    action: str

    def rule(self) -> dict[str, Any]:
        """Return it as Prometheus reads it."""
        return {
            "alert": self.name,
            "expr": self.expr,
            **({"for": self.lasts} if self.lasts else {}),
            "labels": {"severity": self.severity},
            "annotations": {"summary": self.summary, "action": self.action},
        }


ALERTS = (
    Alert(
        "EncountersGone",
        f"sum(up{{{JOB}}}) == 0 or absent(up{{{JOB}}})",
        "1m",
        "page",
        "No instance answers.",
        "See whether they run, and their last log lines. Exit status 2: a bad setting or mapping.",
    ),
    Alert(
        "EncountersInstanceDown",
        f"up{{{JOB}}} == 0",
        "2m",
        "ticket",
        "{{ $labels.instance }} does not answer; the others serve.",
        "See what it said last, and whether it is started again and again.",
    ),
    Alert(
        "EncountersSourceAway",
        part_not_ready("source"),
        "2m",
        "page",
        "An instance finds the hospital's system away, or without what the mapping names.",
        "Read `problems` of `source` in /ready: a line of the mapping, or that nobody answers.",
    ),
    Alert(
        "EncountersSourceHeldBack",
        f"{summed('source_held_back', 'source')} > 0",
        "1m",
        "page",
        "Source {{ $labels.source }} failed five times in a row; its circuit breaker is open.",
        "See how the hospital's system is, and how long its calls take.",
    ),
    Alert(
        "EncountersSourceSlow",
        f"{quantile(0.95, 'source_seconds', WINDOW, 'source')} > 2",
        "10m",
        "ticket",
        "One call in twenty to source {{ $labels.source }} takes longer than 2 s.",
        "Look for missing indexes: `encounters mapping check --live`. See what else it does.",
    ),
    Alert(
        "EncountersRedisAway",
        part_not_ready("redis"),
        "2m",
        "page",
        "Redis does not answer; reads go on, searches with a second page are 503.",
        "See whether Redis runs, and whether a master has been chosen.",
    ),
    Alert(
        "EncountersStoreErrors",
        f"{over('rate', 'store_errors', WINDOW, 'step')} > 0.1",
        "5m",
        "ticket",
        "Redis fails at {{ $labels.step }} again and again.",
        "See its memory and its latency; each step has 0.25 s.",
    ),
    Alert(
        "EncountersNoKeys",
        part_not_ready("identity"),
        "2m",
        "page",
        "An instance has no key set; every signed token is 503 there.",
        "See whether the identity provider can be reached from it, and its certificate.",
    ),
    Alert(
        "EncountersAuditFails",
        f"{over('increase', 'audit_failures', WINDOW, 'job')} > 0 or {part_not_ready('audit')}",
        None,
        "page",
        "Audit events cannot be written; with `refuse` nothing is answered.",
        "See whether the disk of the audit file is full, and who may write there.",
    ),
    Alert(
        "EncountersAuditFills",
        f"predict_linear({sample('audit_free_bytes')}[6h], 2 * 86400) < 0",
        "1h",
        "ticket",
        "At the pace of the last six hours, the disk of audit events is full within two days.",
        "Ship and delete older files by your rules, or enlarge the disk.",
    ),
    Alert(
        "EncountersMappingRefused",
        part_not_ready("mapping"),
        "1m",
        "ticket",
        "A new mapping was refused; the one before is served.",
        "Read `mapping refused` in the log: each problem with its line.",
    ),
    Alert(
        "EncountersCountsLost",
        part_not_ready("counts"),
        "2m",
        "ticket",
        "Metrics of an instance may miss counts; so may other alerts.",
        "Make room in its /tmp (`df /tmp`), or give the container more; then restart it.",
    ),
    Alert(
        "EncountersErrors",
        over(
            "rate", "request_seconds", WINDOW, "job", where='status="5xx"', part="count"
        )
        + f" > 0.05 * {over('rate', 'request_seconds', WINDOW, 'job', part='count')}",
        "5m",
        "page",
        '{{ $value | printf "%.2f" }} answers a second are 5xx, more than one in twenty.',
        "Read `request failed` in the log; its `error` says which part failed.",
    ),
    Alert(
        "EncountersSlow",
        f"{quantile(0.95, 'request_seconds', WINDOW, 'job')} > 2",
        "10m",
        "ticket",
        "One answer in twenty takes longer than 2 s.",
        "If `source_ms` in the log lines is small, there are too few workers; else see the source.",
    ),
    Alert(
        "EncountersRowsBroken",
        f"{over('increase', 'row_faults', '1h', 'resource_type', 'field')} > 10",
        None,
        "ticket",
        "Rows of {{ $labels.resource_type }} cannot be shown: field {{ $labels.field }}.",
        "Give `row cannot be mapped` of the log to whoever keeps the mapping.",
    ),
    Alert(
        "EncountersThrottled",
        f"{over('rate', 'throttled', WINDOW, 'by')} > 1",
        "5m",
        "ticket",
        "Requests are refused because too many came, counted by {{ $labels.by }}.",
        "See `client` in the log lines with status 429: a mistake of theirs, or a limit too low.",
    ),
)


# ---- the dashboard

DATASOURCE = {"type": "prometheus", "uid": "prometheus"}
WIDTH = 24


@dataclass(frozen=True, slots=True)
class Stat:
    """The value of now; `steps` are colours, each from its value on."""

    title: str
    unit: str
    expr: str
    steps: tuple[tuple[str, float | None], ...] = (("green", None),)
    description: str = ""

    @property
    def exprs(self) -> tuple[str, ...]:
        """Return what it asks Prometheus for."""
        return (self.expr,)

    def panel(self) -> dict[str, Any]:
        """Return it as Grafana reads it, without its place."""
        steps = [{"color": colour, "value": value} for colour, value in self.steps]
        target = {"refId": "A", "datasource": DATASOURCE, "expr": self.expr}
        return {
            **_head("stat", self.title, self.description),
            "targets": [{**target, "instant": True}],
            "fieldConfig": {
                "defaults": {
                    "unit": self.unit,
                    "thresholds": {"mode": "absolute", "steps": steps},
                },
                "overrides": [],
            },
            "options": {
                "reduceOptions": {"calcs": ["lastNotNull"]},
                "colorMode": "background",
            },
        }


@dataclass(frozen=True, slots=True)
class Graph:
    """Lines over time; each is an expression and its legend."""

    title: str
    unit: str
    lines: tuple[tuple[str, str], ...]
    description: str = ""

    @property
    def exprs(self) -> tuple[str, ...]:
        """Return what it asks Prometheus for."""
        return tuple(expr for expr, _ in self.lines)

    def panel(self) -> dict[str, Any]:
        """Return it as Grafana reads it, without its place."""
        return {
            **_head("timeseries", self.title, self.description),
            "targets": [
                {
                    "refId": chr(ord("A") + number),
                    "datasource": DATASOURCE,
                    "expr": expr,
                    "legendFormat": legend,
                }
                for number, (expr, legend) in enumerate(self.lines)
            ],
            "fieldConfig": {
                "defaults": {"unit": self.unit, "min": 0},
                "overrides": [],
            },
            "options": {"legend": {"displayMode": "list", "placement": "bottom"}},
        }


def _head(kind: str, title: str, description: str) -> dict[str, Any]:
    return {
        "type": kind,
        "title": title,
        "description": description,
        "datasource": DATASOURCE,
    }


STATS = (
    Stat(
        "Instances up",
        "short",
        f"sum(up{{{JOB}}})",
        (("red", None), ("orange", 1), ("green", 2)),
    ),
    Stat(
        "Requests a second",
        "reqps",
        over("rate", "request_seconds", WINDOW, part="count"),
    ),
    Stat(
        "5xx",
        "percentunit",
        over("rate", "request_seconds", WINDOW, where='status="5xx"', part="count")
        + f" / {over('rate', 'request_seconds', WINDOW, part='count')}",
        (("green", None), ("red", 0.05)),
    ),
    Stat(
        "95th percentile",
        "s",
        quantile(0.95, "request_seconds", WINDOW),
        (("green", None), ("red", 2)),
    ),
    Stat(
        "Audit events lost",
        "short",
        over("increase", "audit_failures", "1h"),
        (("green", None), ("red", 1)),
        "In the last hour.",
    ),
    Stat(
        "Invalid rows",
        "short",
        over("increase", "row_faults", "1h"),
        (("green", None), ("red", 1)),
        "In the last hour; clients get a warning for each.",
    ),
)

GRAPHS = (
    Graph(
        "Requests by status",
        "reqps",
        (
            (
                over("rate", "request_seconds", PANEL_WINDOW, "status", part="count"),
                "{{status}}",
            ),
        ),
    ),
    Graph(
        "Requests by route",
        "reqps",
        (
            (
                over(
                    "rate",
                    "request_seconds",
                    PANEL_WINDOW,
                    "route",
                    "method",
                    part="count",
                ),
                "{{method}} {{route}}",
            ),
        ),
    ),
    Graph(
        "Duration of answers",
        "s",
        tuple(
            (quantile(share, "request_seconds", PANEL_WINDOW), f"{share:.0%}")
            for share in (0.5, 0.95, 0.99)
        ),
    ),
    Graph(
        "Duration of calls to the hospital (95%)",
        "s",
        (
            (
                quantile(0.95, "source_seconds", PANEL_WINDOW, "source", "call"),
                "{{source}} {{call}}",
            ),
        ),
    ),
    Graph(
        "Calls to the hospital in progress, and connections",
        "short",
        (
            (summed("source_calls", "instance", "source"), "{{instance}} {{source}}"),
            (
                summed("source_connections", "instance", "source"),
                "{{instance}} {{source}} connections",
            ),
        ),
        "At most workers × (connections + 2) an instance.",
    ),
    Graph(
        "Calls without an answer, and open breakers",
        "short",
        (
            (
                over(
                    *("rate", "source_seconds", PANEL_WINDOW, "source"),
                    part="count",
                    where='answered="no"',
                ),
                "{{source}} no answer",
            ),
            (summed("source_held_back", "source"), "{{source}} breaker open"),
        ),
    ),
    Graph(
        "Duration of steps of Redis (95%)",
        "s",
        ((quantile(0.95, "store_seconds", PANEL_WINDOW, "step"), "{{step}}"),),
    ),
    Graph(
        "Redis failures, and requests refused",
        "short",
        (
            (over("rate", "store_errors", PANEL_WINDOW, "step"), "Redis {{step}}"),
            (over("rate", "throttled", PANEL_WINDOW, "by"), "429 by {{by}}"),
        ),
    ),
    Graph(
        "Parts that /ready reports",
        "short",
        (
            (
                f"min by (instance, part) ({sample('part_ready')})",
                "{{instance}} {{part}}",
            ),
        ),
        "1 fine, 0 not: the log line `not ready` and /ready say what.",
    ),
    Graph(
        "Invalid rows, in an hour",
        "short",
        (
            (
                over("increase", "row_faults", "1h", "resource_type", "field"),
                "{{resource_type}}.{{field}}",
            ),
        ),
    ),
    Graph(
        "Time by phase",
        "s",
        (
            (
                over("rate", "phase_seconds", PANEL_WINDOW, "phase"),
                "{{phase}}",
            ),
        ),
        "Seconds of all requests in each second; the phases of the log lines.",
    ),
    Graph(
        "Audit events",
        "short",
        (
            (over("rate", "audit_events", PANEL_WINDOW), "written"),
            (over("rate", "audit_failures", PANEL_WINDOW), "lost"),
        ),
    ),
)


def by_kind(metric: str) -> Graph:
    """Return the panel of a metric that no row above names."""
    family = METRICS[metric]
    match family.type:
        case "counter":
            line, unit = over("rate", metric, PANEL_WINDOW), "short"
        case "histogram":
            line, unit = quantile(0.95, metric, PANEL_WINDOW), "s"
        case _:
            line, unit = summed(metric, "instance"), "short"
    return Graph(family.name, unit, ((line, "__auto"),), family.documentation)


def graphs() -> Iterator[Graph]:
    """Yield the graphs above, then those of metrics that none of them names."""
    yield from GRAPHS
    exprs = " ".join(expr for panel in (*STATS, *GRAPHS) for expr in panel.exprs)
    for metric, family in METRICS.items():
        endings = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum")}
        names = [family.name + end for end in endings.get(family.type, ("",))]
        if not any(name in exprs for name in names):
            yield by_kind(metric)


def dashboard() -> dict[str, Any]:
    """Return the dashboard: stats in one row, then graphs, two in each."""
    panels, height = [], 4
    for number, stat in enumerate(STATS):
        width = WIDTH // len(STATS)
        place = {"x": number * width, "y": 0, "w": width, "h": height}
        panels.append({**stat.panel(), "gridPos": place})
    for number, graph in enumerate(graphs()):
        row, column = divmod(number, 2)
        place = {"x": column * 12, "y": height + row * 8, "w": 12, "h": 8}
        panels.append({**graph.panel(), "gridPos": place})
    return {
        "uid": "encounters",
        "title": "Encounter Information Service",
        "tags": ["encounters"],
        "timezone": "browser",
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "editable": True,
        "templating": {"list": []},
        "annotations": {"list": []},
        "panels": [{**panel, "id": at} for at, panel in enumerate(panels, 1)],
    }


# ---- files

HEAD = """\
# Generated by `make monitoring`: change generate.py beside this file.
# `page` wakes somebody, `ticket` waits for the morning. What to do then: docs/run/runbook.md.
"""


def files() -> dict[Path, str]:
    """Return the generated files with their texts."""
    rules = {"groups": [{"name": "encounters", "rules": [a.rule() for a in ALERTS]}]}
    return {
        FOLDER / "alerts.yaml": HEAD
        + yaml.safe_dump(rules, sort_keys=False, allow_unicode=True, width=120),
        FOLDER / "dashboard.json": json.dumps(dashboard(), indent=1, ensure_ascii=False)
        + "\n",
    }


def main() -> int:
    """Write the files."""
    for file, text in files().items():
        file.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
