"""docs/runbook.md: whatever it tells an operator to look for or to type is there."""

import re
import shlex

import click
import pytest
import yaml

from app.cli import cli
from app.config import PREFIX, SETTINGS
from tests.docs.pages import DOCS, OPERATORS, blocks, section, table
from tests.live import ROOT

RUNBOOK = (DOCS / "runbook.md").read_text("utf-8")
PAGE = OPERATORS.read_text("utf-8")
ENTRIES = re.findall(r"^## (\d+\. .+)$", RUNBOOK, re.MULTILINE)
ALERTS = ROOT / "deploy" / "monitoring" / "alerts.yaml"

EVENTS = {
    row[0].split(maxsplit=1)[1]
    for row in table(section(PAGE, "Log lines"), "Logger and event")
}
WITHOUT_EVENT = {"1", "7", "11"}
"""Entries that the access lines, the alerts or the clients tell of, and no other line."""


def test_there_are_twelve_each_in_the_table_at_the_top() -> None:
    rows = table(RUNBOOK, "No")
    assert [row[0] for row in rows] == [entry.split(".")[0] for entry in ENTRIES]
    assert len(ENTRIES) == 12


@pytest.mark.parametrize("entry", ENTRIES)
def test_each_says_what_is_seen_and_what_to_type(entry: str) -> None:
    told = section(RUNBOOK, entry)
    assert told.lstrip().startswith("**Seen**: ")
    assert re.search(r"^1\. ", told, re.MULTILINE)
    assert "```sh" in told


@pytest.mark.parametrize("entry", ENTRIES)
def test_events_metrics_and_settings_are_there(entry: str) -> None:
    told = " ".join(section(RUNBOOK, entry).split())
    metrics = {row[0] for row in table(section(PAGE, "Probes"), "Metric")}
    assert set(re.findall(r"encounters_[a-z_]+", told)) <= metrics
    known = {setting.name for setting in SETTINGS}
    known |= {f"{setting.name}_FILE" for setting in SETTINGS if setting.secret}
    assert set(re.findall(rf"{PREFIX}[A-Z_]+", told)) <= known
    seen = told.partition("1. ")[0]
    several = set(re.findall(r"`([a-z]+(?: [a-z:]+)+)`", seen))
    assert several <= EVENTS
    assert bool(several & EVENTS) is (entry.split(".")[0] not in WITHOUT_EVENT)


@pytest.mark.parametrize("entry", ["the first steps", *ENTRIES])
def test_commands_can_be_typed(entry: str) -> None:
    head = RUNBOOK.partition("## ")[0]
    text = head if entry not in ENTRIES else section(RUNBOOK, entry)
    fences = re.sub(r"^ {3}", "", text, flags=re.MULTILINE)
    typed = [line for block in blocks(fences, "sh") for line in block.text.splitlines()]
    assert typed
    for line in typed:
        words = shlex.split(line, comments=True)
        if words[0] == "encounters":
            command: click.Command = cli
            context = None
            while isinstance(command, click.Group):
                # As click does: a command takes the names of its help from above.
                context = click.Context(command, context, **command.context_settings)
                _, *words = words
                command = command.commands[words[0]]
            command.make_context(words[0], words[1:], context)


def test_checks_that_it_names_are_those_of_the_doctor() -> None:
    rows = table(section(PAGE, "Check a deployment"), "Check")
    told = {name for row in rows for name in row[0].split(", ")}
    assert set(re.findall(r"check `([a-z ]+)`", " ".join(RUNBOOK.split()))) <= told


@pytest.mark.skipif(not ALERTS.exists(), reason="there are no alert rules")
def test_every_alert_leads_here() -> None:
    (group,) = yaml.safe_load(ALERTS.read_text("utf-8"))["groups"]
    alerts = {rule["alert"] for rule in group["rules"]}
    assert set(re.findall(r"`(Encounters[A-Z]\w+)`", RUNBOOK)) == alerts
