"""README.md and docs/call say what the service does."""

import json
import re
import sys

import pytest

from app.config import DEFAULT_SCOPES
from app.errors import FAULTY_ROW, OUTCOMES, STATUSES, UNEXPECTED
from tests.clients.running import javascript_program, output
from tests.docs.commands import OUTPUTS, run_pages
from tests.docs.pages import CALL, README, blocks, door, section, table
from tests.live import ROOT

PAGES = {page.stem: page.read_text("utf-8") for page in door(CALL)}


@pytest.fixture(scope="module")
def answered(demo, tmp_path_factory):
    """Return what the commands of the pages are answered."""
    pages = [README, *door(CALL)]
    return run_pages(pages, demo, tmp_path_factory.mktemp("answers"))


def test_each_command_is_answered_as_the_page_says(answered, demo):
    wrong = [each[:3] for each in answered if each.says != each.was]
    assert not wrong
    assert len(answered) > 50
    # The whole body that is shown is a real one.
    (shown,) = blocks(PAGES["errors"], "json")
    bodies = [json.loads(each.body) for each in answered if each.body]
    assert json.loads(shown.text) in bodies
    # Each copy is written, whole.
    written = {file.name for file in demo.directory.iterdir() if file.stat().st_size}
    assert set(OUTPUTS) <= written
    stays = (demo.directory / "stays.ndjson").read_text("utf-8").splitlines()
    assert len({json.loads(line)["id"] for line in stays}) == len(stays) > 100


def test_the_error_table_has_the_errors_that_occur(answered):
    documented = {
        (row[0], row[1])
        for row in table(section(PAGES["errors"], "All errors"), "Status")
    }
    errors = {*OUTCOMES.values(), *STATUSES.values(), FAULTY_ROW, UNEXPECTED}
    occurring = {(str(error.status), error.code.value) for error in errors}
    proxy = (ROOT / "deploy" / "compose" / "nginx.conf").read_text("utf-8")
    occurring |= {*re.findall(r"/errors/(\d+)[a-z-]* +'\"code\":\"([a-z-]+)\"", proxy)}
    occurring |= {tuple(e.was.split()) for e in answered if e.was > "4"}
    # What tests/app/test_auth.py shows of a token.
    occurring.add(("401", "expired"))
    assert occurring == documented


def test_scopes_are_those_of_the_service():
    scopes = {row[0] for row in table(PAGES["token"], "Scope")}
    assert scopes == set(re.findall(r"[A-Z_]+", DEFAULT_SCOPES))


@pytest.mark.parametrize("language", ["python", "javascript"])
def test_the_programs_of_the_page_run(demo, tmp_path, language):
    (block,) = blocks(PAGES["packages"], language)
    if language == "python":
        folder, command = tmp_path, [sys.executable, "program"]
        environ = {"PYTHONPATH": str(ROOT / "clients" / "python")}
    else:
        folder = javascript_program(tmp_path)
        command, environ = ["node", "program.mjs"], {}
    (folder / command[1]).write_text(block.text, "utf-8")
    printed = output(command, folder, **environ, **demo.client())
    *stays, total, error = printed.splitlines()
    assert (len(stays), total, error) == (10, "10 stays", "410 not-found")
    assert {line.split()[1] for line in stays} <= {"finished", "planned"}
