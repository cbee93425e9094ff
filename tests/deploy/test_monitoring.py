"""deploy/monitoring: alerts and dashboard speak of metrics that there are, and alerts come."""

import json
import re
import shutil
import subprocess
from typing import Any

import pytest
import yaml
from prometheus_client import Counter, Histogram
from prometheus_client.metrics import MetricWrapperBase

from adapters import instrumentation
from app import observability
from tests.live import ROOT

FOLDER = ROOT / "deploy" / "monitoring"
PROMTOOL = shutil.which("promtool")
SCRAPED = {"job", "instance"}

ALERTS: list[dict[str, Any]] = yaml.safe_load(
    (FOLDER / "alerts.yaml").read_text("utf-8")
)["groups"][0]["rules"]
REGISTERED = [
    m
    for m in {**vars(instrumentation), **vars(observability)}.values()
    if isinstance(m, MetricWrapperBase)
]
DASHBOARD = json.loads((FOLDER / "dashboard.json").read_text("utf-8"))


def shown() -> list[str]:
    """Return every question that an alert or a panel puts."""
    panels = (target["expr"] for p in DASHBOARD["panels"] for target in p["targets"])
    return [alert["expr"] for alert in ALERTS] + list(panels)


def samples() -> dict[str, set[str]]:
    """Return every sample that `/metrics` may hold, with its labels."""
    found: dict[str, set[str]] = {"up": set()}
    for metric in REGISTERED:
        labels, endings = set(metric._labelnames), ("",)
        if isinstance(metric, Counter):
            endings = ("_total",)
        if isinstance(metric, Histogram):
            endings = ("_count", "_sum")
            found[f"{metric._name}_bucket"] = labels | {"le"}
        found |= {metric._name + ending: labels for ending in endings}
    return found


def test_metrics_and_labels_of_every_question_are_there() -> None:
    there = samples()
    for question in shown():
        named = set(re.findall(r"\b(encounters_\w+|up)\b(?!\")", question))
        assert named, question
        assert named <= set(there), question
        labels = {label for name in named for label in there[name]} | SCRAPED
        asked = re.findall(r"(\w+)=~?\"", question)
        for group in re.findall(r"\bby \(([^)]*)\)", question):
            asked += [label.strip() for label in group.split(",")]
        assert set(asked) <= labels, question


def test_what_is_scraped_has_the_name_that_alerts_look_for() -> None:
    asked = {name for q in shown() for name in re.findall(r'job="([^"]+)"', q)}
    for file in ("compose/prometheus.yaml", "monitoring/scrape-kubernetes.yaml"):
        told = yaml.safe_load((FOLDER.parent / file).read_text("utf-8"))
        assert asked == {job["job_name"] for job in told["scrape_configs"]}


def test_every_metric_of_ours_is_on_the_dashboard() -> None:
    panels = " ".join(shown()[len(ALERTS) :])
    for metric in REGISTERED:
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


@pytest.mark.system
@pytest.mark.skipif(
    PROMTOOL is None, reason="promtool (package prometheus) is not installed here"
)
@pytest.mark.parametrize(
    "what",
    [
        "check rules alerts.yaml",
        "test rules alerts.test.yaml",
        # The rules lie beside it in the container, and not here.
        "check config --syntax-only ../compose/prometheus.yaml",
    ],
)
def test_prometheus_takes_alerts_and_configuration(what: str) -> None:
    command = [str(PROMTOOL), *what.split()]
    done = subprocess.run(
        command, cwd=FOLDER, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
