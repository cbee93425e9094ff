"""docs/run/runbook.md: whatever it tells an operator to look for or to type is there."""

import re
import shlex

import click
import yaml

from app.cli import cli
from tests.docs.pages import RUN, blocks
from tests.live import ROOT

RUNBOOK = (RUN / "runbook.md").read_text("utf-8")
ALERTS = ROOT / "deploy" / "monitoring" / "alerts.yaml"


def test_commands_can_be_typed() -> None:
    fences = re.sub(r"^ {3}", "", RUNBOOK, flags=re.MULTILINE)
    typed = [line for block in blocks(fences, "sh") for line in block.text.splitlines()]
    commands = [shlex.split(line, comments=True) for line in typed]
    assert len([words for words in commands if words[0] == "encounters"]) > 2
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


def test_every_alert_leads_here() -> None:
    (group,) = yaml.safe_load(ALERTS.read_text("utf-8"))["groups"]
    alerts = {rule["alert"] for rule in group["rules"]}
    assert set(re.findall(r"`(Encounters[A-Z]\w+)`", RUNBOOK)) == alerts
