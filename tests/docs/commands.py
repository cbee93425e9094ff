"""The commands of pages, run; a comment says what each should answer.

    ask "$BASE/Encounter/8"                    # 200
    ask "$BASE/Encounter?class=EMER"           # 200, total 233
    ask "$BASE/Encounter?date=2024-13-01"      # 412 value

All shell blocks of the pages are one script, so that a variable stays what it was.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tests.demo.running import Demo
from tests.docs.pages import blocks
from tests.live import HOST, ROOT

OUTPUTS = ("stays.csv", "stays.ndjson", "hospitals.ndjson", "copy.sqlite")
"""Files that the commands of a page write."""

_CLAIM = re.compile(r"# (?P<says>\d{3}( [a-z-]+)?(, total \d+)?)$")

_PRELUDE = """\
curl() {
  command curl --max-time 30 -w '%{stderr}%{http_code}' "$@" >"$ANSWERS/body" \\
    2>"$ANSWERS/status"
  result=$?
  cat "$ANSWERS/body"
  return $result
}
claim() {
  mv "$ANSWERS/body" "$ANSWERS/$1.body"
  mv "$ANSWERS/status" "$ANSWERS/$1.status"
}
"""


class Answered(NamedTuple):
    """A command with a claim: its place, what it says, what was answered."""

    place: str
    says: str
    was: str
    body: str


def run_pages(pages: Iterable[Path], demo: Demo, directory: Path) -> list[Answered]:
    """Run the shell blocks of the pages in order; return the commands that claim an answer."""
    claims: list[tuple[str, str]] = []
    script = [_PRELUDE]
    for page in pages:
        for block in blocks(page.read_text("utf-8"), "sh"):
            for number, line in enumerate(block.text.splitlines(), block.line):
                script.append(line)
                if found := _CLAIM.search(line):
                    script.append(f"claim {len(claims)}")
                    claims.append((f"{page.name}:{number} {line}", found["says"]))
    done = subprocess.run(
        ["bash", "-c", _here(demo, "\n".join(script))],
        cwd=ROOT,
        env={
            **os.environ,
            "ANSWERS": str(directory),
            "PYTHONPATH": str(ROOT / "clients" / "python"),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = []
    for number, (place, says) in enumerate(claims):
        was = (directory / f"{number}.status").read_text()[-3:]
        body = (directory / f"{number}.body").read_text("utf-8")
        resource = json.loads(body) if body else {}
        if resource.get("resourceType") == "OperationOutcome":
            was += f" {resource['issue'][0]['code']}"
        if "total" in says and "total" in resource:
            was += f", total {resource['total']}"
        answers.append(Answered(place, says, was, body))
    return answers


def _here(demo: Demo, text: str) -> str:
    """Return commands of a page as they are for this demo."""
    python = shlex.quote(sys.executable)
    directory = shlex.quote(str(demo.directory))
    for written, meant in (
        # The interpreter first: its own path may hold what is written here.
        (".venv/bin/python", python),
        ("\nencounters-client ", f"\n{python} -m encounters_client "),
        (
            ".venv/bin/encounters token",
            f"{python} -m app.cli token --directory {directory}",
        ),
        (".demo/", f"{directory}/"),
        ("127.0.0.1:8000", f"{HOST}:{demo.port}"),
        ("127.0.0.1:8001", f"{HOST}:{demo.port + 1}"),
        *((name, f"{directory}/{name}") for name in OUTPUTS),
    ):
        text = text.replace(written, meant)
    return text
