"""README.md and docs/call say what the service does: their commands are typed.

A comment says what a command should be answered: its status, issue code and total.

    ask "$BASE/Encounter/8"                    # 200
    ask "$BASE/Encounter?class=EMER"           # 200, total 233
    ask "$BASE/Encounter?date=2024-13-01"      # 412 value
"""

import json
import os
import re
import shlex
import subprocess
import sys

import pytest

from app.config import DEFAULT_SCOPES
from app.errors import FAULTY_ROW, OUTCOMES, STATUSES, UNEXPECTED
from tests.clients.running import javascript_program, output
from tests.docs.pages import CALL, README, blocks, door, section, table
from tests.live import HOST, ROOT

PAGES = {page.stem: page.read_text("utf-8") for page in (README, *door(CALL))}
OUTPUTS = ("stays.csv", "stays.ndjson", "hospitals.ndjson", "copy.sqlite")
"""Files that the commands of a page write."""
CLAIM = re.compile(r"# (\d{3}(?: [a-z-]+)?(?:, total \d+)?)$")
PYTHONPATH = {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'clients' / 'python'}"}
PRELUDE = """\
curl() {
  command curl --max-time 30 -w '%{stderr}%{http_code}' "$@" >body 2>status
  result=$?
  cat body
  return $result
}
claim() { mv body "$1.body"; mv status "$1.status"; }
cd "$ANSWERS"
"""


@pytest.fixture(scope="module")
def answered(demo, tmp_path_factory):
    """Return each claim and its place, what was answered, and its body."""
    claims, script = [], [PRELUDE]
    # One script, so that a variable stays what it was.
    for name, page in PAGES.items():
        for block in blocks(page, "sh"):
            for number, line in enumerate(block.text.splitlines(), block.line):
                script.append(line)
                if claim := CLAIM.search(line):
                    script.append(f"claim {len(claims)}")
                    claims.append((f"{name}:{number} {line}", claim.group(1)))
    text, python = "\n".join(script), shlex.quote(sys.executable)
    for written, meant in (
        # The interpreter first: its own path may hold what is written here.
        (".venv/bin/python", python),
        ("\nencounters-client ", f"\n{python} -m encounters_client "),
        (
            ".venv/bin/encounters token",
            f"{python} -m app.cli token --directory {demo.directory}",
        ),
        (".demo/", f"{demo.directory}/"),
        ("127.0.0.1:8000", f"{HOST}:{demo.port}"),
        ("127.0.0.1:8001", f"{HOST}:{demo.port + 1}"),
    ):
        text = text.replace(written, meant)
    directory = tmp_path_factory.mktemp("answers")
    done = subprocess.run(
        ["bash", "-c", text],
        env=os.environ | PYTHONPATH | {"ANSWERS": str(directory)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    # Each copy of the pages is written, whole.
    assert all((directory / name).stat().st_size for name in OUTPUTS)
    stays = (directory / "stays.ndjson").read_text("utf-8").splitlines()
    assert len({json.loads(line)["id"] for line in stays}) == len(stays) > 100
    answers = []
    for number, (place, says) in enumerate(claims):
        was = (directory / f"{number}.status").read_text()[-3:]
        body = json.loads((directory / f"{number}.body").read_text("utf-8") or "{}")
        if body.get("resourceType") == "OperationOutcome":
            was += f" {body['issue'][0]['code']}"
        if "total" in says and "total" in body:
            was += f", total {body['total']}"
        answers.append((place, says, was, body))
    return answers


def test_each_command_is_answered_as_the_page_says(answered):
    assert not [place for place, says, was, _ in answered if says != was]
    assert len(answered) > 50
    # The whole body that is shown is a real one.
    (shown,) = blocks(PAGES["errors"], "json")
    assert json.loads(shown.text) in [body for *_, body in answered]


def test_the_error_table_has_the_errors_that_occur(answered):
    documented = {
        (row[0], row[1])
        for row in table(section(PAGES["errors"], "All errors"), "Status")
    }
    errors = {*OUTCOMES.values(), *STATUSES.values(), FAULTY_ROW, UNEXPECTED}
    occurring = {(str(error.status), error.code.value) for error in errors}
    proxy = (ROOT / "deploy" / "compose" / "nginx.conf").read_text("utf-8")
    occurring |= {*re.findall(r"/errors/(\d+)[a-z-]* +'\"code\":\"([a-z-]+)\"", proxy)}
    occurring |= {tuple(was.split()) for _, _, was, _ in answered if was > "4"}
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
        environ = PYTHONPATH
    else:
        folder = javascript_program(tmp_path)
        command, environ = ["node", "program.mjs"], {}
    (folder / command[1]).write_text(block.text, "utf-8")
    printed = output(command, folder, **environ, **demo.client())
    *stays, total, error = printed.splitlines()
    assert (len(stays), total, error) == (10, "10 stays", "410 not-found")
    assert {line.split()[1] for line in stays} <= {"finished", "planned"}
