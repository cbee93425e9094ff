"""docs/run/runbook.md: whatever it tells an operator to look for or to type is there."""

import re
import shlex

import click
import yaml

from app.cli import cli
from app.config import PREFIX, SETTINGS
from tests.docs.pages import RUN, blocks, operators, section, table
from tests.live import ROOT

RUNBOOK = (RUN / "runbook.md").read_text("utf-8")
PAGE = operators()
ENTRIES = re.findall(r"^## (\d+\. .+)$", RUNBOOK, re.MULTILINE)
ALERTS = ROOT / "deploy" / "monitoring" / "alerts.yaml"

EVENTS = {
    row[0].split(maxsplit=1)[1]
    for row in table(section(PAGE, "Log lines"), "Logger and event")
}


def test_each_entry_says_what_to_type() -> None:
    assert len(ENTRIES) == 12
    for entry in ENTRIES:
        told = section(RUNBOOK, entry)
        assert re.search(r"^1\. ", told, re.MULTILINE), entry
        assert "```sh" in told, entry


def test_events_metrics_and_settings_are_there() -> None:
    metrics = {row[0] for row in table(section(PAGE, "Probes"), "Metric")}
    settings = {setting.name for setting in SETTINGS}
    settings |= {f"{setting.name}_FILE" for setting in SETTINGS if setting.secret}
    for entry in ENTRIES:
        told = " ".join(section(RUNBOOK, entry).split())
        assert set(re.findall(r"encounters_[a-z_]+", told)) <= metrics, entry
        assert set(re.findall(rf"{PREFIX}[A-Z_]+", told)) <= settings, entry
        events = set(re.findall(r"`([a-z]+(?: [a-z:]+)+)`", told.partition("1. ")[0]))
        assert events <= EVENTS, entry


def test_commands_can_be_typed() -> None:
    fences = re.sub(r"^ {3}", "", RUNBOOK, flags=re.MULTILINE)
    typed = [line for block in blocks(fences, "sh") for line in block.text.splitlines()]
    commands = [shlex.split(line, comments=True) for line in typed]
    assert len([words for words in commands if words[0] == "encounters"]) > 5
    for words in commands:
        command: click.Command = cli
        context = None
        while words[0] == "encounters" or context:
            # As click does: a command takes the names of its help from above.
            context = click.Context(command, context, **command.context_settings)
            if not isinstance(command, click.Group):
                command.make_context(words[0], words[1:], context)
                break
            _, *words = words
            command = command.get_command(context, words[0])


def test_checks_that_it_names_are_those_of_the_doctor() -> None:
    rows = table(section(PAGE, "Check a deployment"), "Check")
    told = {name for row in rows for name in row[0].split(", ")}
    assert set(re.findall(r"check `([a-z ]+)`", " ".join(RUNBOOK.split()))) <= told


def test_every_alert_leads_here() -> None:
    (group,) = yaml.safe_load(ALERTS.read_text("utf-8"))["groups"]
    alerts = {rule["alert"] for rule in group["rules"]}
    assert set(re.findall(r"`(Encounters[A-Z]\w+)`", RUNBOOK)) == alerts
