"""deploy/monitoring: alerts and dashboard speak of metrics that there are, and alerts come."""

import json
import re
import runpy
import shutil
import subprocess
from typing import Any

import pytest
import yaml
from prometheus_client import Counter, Histogram
from prometheus_client.metrics import MetricWrapperBase

from app import observability as metrics
from tests.live import ROOT

FOLDER = ROOT / "deploy" / "monitoring"
PROMTOOL = shutil.which("promtool")
SCRAPED = {"job", "instance"}

GENERATE = runpy.run_path(str(FOLDER / "generate.py"))

ALERTS: list[dict[str, Any]] = yaml.safe_load(
    (FOLDER / "alerts.yaml").read_text("utf-8")
)["groups"][0]["rules"]
DASHBOARD = json.loads((FOLDER / "dashboard.json").read_text("utf-8"))


def shown() -> list[str]:
    """Return every question that an alert or a panel puts."""
    panels = (target["expr"] for p in DASHBOARD["panels"] for target in p["targets"])
    return [alert["expr"] for alert in ALERTS] + list(panels)


def samples() -> dict[str, set[str]]:
    """Return every sample that `/metrics` may hold, with its labels."""
    found: dict[str, set[str]] = {"up": set()}
    for metric in vars(metrics).values():
        if isinstance(metric, MetricWrapperBase):
            labels = set(metric._labelnames)
            endings: tuple[str, ...] = ("",)
            if isinstance(metric, Counter):
                endings = ("_total",)
            if isinstance(metric, Histogram):
                endings = ("_bucket", "_count", "_sum")
            for ending in endings:
                within = labels | {"le"} if ending == "_bucket" else labels
                found[metric._name + ending] = within
    return found


@pytest.mark.parametrize("question", shown())
def test_its_metrics_and_labels_are_there(question: str) -> None:
    there = samples()
    named = re.findall(r"\b(encounters_\w+|up)\b(?!\")", question)
    assert named
    assert set(named) <= set(there)
    labels = {label for name in named for label in there[name]} | SCRAPED
    asked = re.findall(r"(\w+)=~?\"", question)
    for group in re.findall(r"\bby \(([^)]*)\)", question):
        asked += [label.strip() for label in group.split(",")]
    assert set(asked) <= labels


@pytest.mark.parametrize(
    "file", ["compose/prometheus.yaml", "monitoring/scrape-kubernetes.yaml"]
)
def test_what_is_scraped_has_the_name_that_alerts_look_for(file: str) -> None:
    text = (FOLDER.parent / file).read_text("utf-8")
    (job,) = yaml.safe_load(text)["scrape_configs"]
    asked = {name for q in shown() for name in re.findall(r'job="([^"]+)"', q)}
    assert asked == {job["job_name"]}


def test_alerts_and_dashboard_are_generated_from_the_metrics() -> None:
    for file, text in GENERATE["files"]().items():
        assert file.read_text("utf-8") == text, "run: make monitoring"


def test_every_metric_of_the_code_is_known_to_the_generator() -> None:
    registered = [m for m in vars(metrics).values() if isinstance(m, MetricWrapperBase)]
    names = {family.name for each in registered for family in each.describe()}
    assert {family.name for family in GENERATE["METRICS"].values()} == names


@pytest.mark.parametrize("kind", ["counter", "gauge", "histogram"])
def test_a_metric_without_a_panel_gets_one_by_its_kind(kind: str) -> None:
    metric = next(n for n, m in GENERATE["METRICS"].items() if m.type == kind)
    (expr,) = GENERATE["by_kind"](metric).exprs
    found = set(re.findall(r"\bencounters_\w+", expr))
    assert found <= set(samples())
    assert found


def test_every_metric_of_ours_is_on_the_dashboard() -> None:
    panels = " ".join(shown()[len(ALERTS) :])
    for metric in vars(metrics).values():
        if isinstance(metric, MetricWrapperBase):
            assert re.search(rf"\b{metric._name}(?:_|\b)", panels), metric._name


def test_every_alert_says_what_to_do_and_is_tried() -> None:
    tried = yaml.safe_load((FOLDER / "alerts.test.yaml").read_text("utf-8"))["tests"]
    silent, come = set(), set()
    for test in tried:
        for each in test["alert_rule_test"]:
            (come if each.get("exp_alerts") else silent).add(each["alertname"])
    names = [alert["alert"] for alert in ALERTS]
    assert silent == come == set(names)
    for alert in ALERTS:
        assert alert["labels"]["severity"] in {"page", "ticket"}
        assert alert["annotations"].keys() == {"summary", "action"}


@pytest.mark.skipif(
    PROMTOOL is None, reason="promtool (package prometheus) is not installed here"
)
@pytest.mark.parametrize(
    "what",
    [("check", "rules", "alerts.yaml"), ("test", "rules", "alerts.test.yaml")],
    ids=["check", "test"],
)
def test_prometheus_takes_the_alerts(what: tuple[str, ...]) -> None:
    done = subprocess.run(
        [str(PROMTOOL), *what], cwd=FOLDER, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(
    PROMTOOL is None, reason="promtool (package prometheus) is not installed here"
)
def test_prometheus_takes_its_configuration() -> None:
    file = ROOT / "deploy" / "compose" / "prometheus.yaml"
    # The rules lie beside it in the container, and not here: only its syntax is looked at.
    done = subprocess.run(
        [str(PROMTOOL), "check", "config", "--syntax-only", str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
