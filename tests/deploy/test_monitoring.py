"""deploy/monitoring: alerts and dashboard speak of metrics that there are, and alerts come."""

import json
import re
import shutil
import subprocess

import pytest
import yaml
from prometheus_client import Counter, Histogram
from prometheus_client.metrics import MetricWrapperBase

from adapters import instrumentation
from app import observability
from tests.live import ROOT

FOLDER = ROOT / "deploy" / "monitoring"
PROMTOOL = shutil.which("promtool")

(RULES,) = yaml.safe_load((FOLDER / "alerts.yaml").read_text("utf-8"))["groups"]
ALERTS = RULES["rules"]
DASHBOARD = json.loads((FOLDER / "dashboard.json").read_text("utf-8"))
PANELS = [target["expr"] for p in DASHBOARD["panels"] for target in p["targets"]]
QUESTIONS = [*(alert["expr"] for alert in ALERTS), *PANELS]


def test_what_alerts_and_panels_ask_is_there_and_every_metric_is_shown():
    samples = {"up": set()}
    for metric in {**vars(instrumentation), **vars(observability)}.values():
        if isinstance(metric, MetricWrapperBase):
            assert re.search(rf"\b{metric._name}(?:_|\b)", " ".join(PANELS)), metric
            labels, endings = set(metric._labelnames), ("",)
            if isinstance(metric, Counter):
                endings = ("_total",)
            if isinstance(metric, Histogram):
                endings = ("_count", "_sum", "_bucket")
                labels.add("le")
            samples |= {metric._name + ending: labels for ending in endings}
    for question in QUESTIONS:
        named = set(re.findall(r"\b(encounters_\w+|up)\b(?!\")", question))
        assert named, question
        assert named <= set(samples), question
        labels = {"job", "instance"}.union(*(samples[name] for name in named))
        asked = re.findall(r"(\w+)=~?\"", question)
        for group in re.findall(r"\bby \(([^)]*)\)", question):
            asked += [label.strip() for label in group.split(",")]
        assert set(asked) <= labels, question


def test_what_is_scraped_has_the_name_that_alerts_look_for():
    asked = {name for q in QUESTIONS for name in re.findall(r'job="([^"]+)"', q)}
    for file in ("compose/prometheus.yaml", "monitoring/scrape-kubernetes.yaml"):
        config = yaml.safe_load((FOLDER.parent / file).read_text("utf-8"))
        assert asked == {job["job_name"] for job in config["scrape_configs"]}


def test_every_alert_says_what_to_do_and_is_tried():
    tests = yaml.safe_load((FOLDER / "alerts.test.yaml").read_text("utf-8"))["tests"]
    tried = {
        (each["alertname"], bool(each.get("exp_alerts")))
        for test in tests
        for each in test["alert_rule_test"]
    }
    names = [alert["alert"] for alert in ALERTS]
    assert tried == {(name, comes) for name in names for comes in (True, False)}
    for alert in ALERTS:
        assert alert["labels"]["severity"] in {"page", "ticket"}
        assert alert["annotations"].keys() == {"summary", "action"}


@pytest.mark.system
@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed here")
@pytest.mark.parametrize(
    "what",
    [
        "test rules alerts.test.yaml",
        # The rules lie beside it in the container, and not here.
        "check config --syntax-only ../compose/prometheus.yaml",
    ],
)
def test_prometheus_takes_alerts_and_configuration(what):
    subprocess.run([PROMTOOL, *what.split()], cwd=FOLDER, check=True)
