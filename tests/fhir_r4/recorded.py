"""A real FHIR R4 server, HAPI's RestfulServer, or the answers that were recorded of it.

`python -m tests.fhir_r4.recorded` records what `compare_all` asks for, where Java and Maven
are. Read the diff.
"""

import json
import lzma
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests
from werkzeug import Request, Response

from adapters.contract import (
    Adapter,
    NotAskableError,
    Sort,
    SortKey,
    StringCriterion,
    StringMatch,
    Token,
    TokenCriterion,
)
from adapters.http.adapter import HttpAdapter
from adapters.mapping.load import load_mapping
from adapters.mapping.slots import UNSERVED
from adapters.matching import resource_type_of
from adapters.memory import MemoryAdapter
from app.cli import main
from tests.fhir_r4.hospital import bundle, records
from tests.hospital_http import serving
from toolkit.contract.harness import (
    NEWEST_FIRST,
    ORGANIZATION,
    PATIENT,
    STAY,
    ask,
    dates,
    patient,
    plain,
    rows_of,
    text,
    token,
    walk,
)
from toolkit.contract.hospital import PARIS

HERE = Path(__file__).parent
SERVER = HERE / "server"
FILE = HERE / "answers.json.xz"
PLACE = "http://r4.example.org"
"""What stands for the address of the server in the file."""

MODEL = MemoryAdapter(records(), time_zone=PARIS)
H1 = "urn:oid:1.2.250.1.999.1.1"
HOSPITAL = """\
mapping: 1
extend: fhir-r4/fhir-r4.yaml
name: A hospital's own
source: {timeout_seconds: 30, count_timeout_seconds: 30}
"""
BY_ID = Sort(SortKey.ID)
CHANGED = Sort(SortKey.LAST_UPDATED, descending=True)
SEARCHES: tuple[Any, ...] = (
    (STAY, token("_id", "1", "42", "no-such")),
    (STAY, patient("1", "8")),
    (STAY, dates("2024-03-14")),
    (STAY, dates("gt2024-03")),
    (STAY, dates("le2024-03-14T10:00:00+01:00")),
    (STAY, dates("ge2024-10-27T02:30:00+01:00")),
    (STAY, token("identifier", f"{H1}|000123", "O'B")),
    (STAY, token("status", "in-progress", "planned")),
    (STAY, token("class", "UNK", "IMP")),
    (STAY, dates("ge2024-03-14T10:00:00Z", parameter="_lastUpdated")),
    (PATIENT, token("_id", "1", "8")),
    (PATIENT, token("identifier", "urn:oid:1.2.4|0042")),
    (PATIENT, text("given", "jean")),
    (PATIENT, StringCriterion("family", ("Martin",), StringMatch.EXACT)),
    (PATIENT, dates("lt1970-01-01", parameter="birthdate")),
    (PATIENT, token("gender", "male")),
    (ORGANIZATION, token("identifier", "750000001")),
    (ORGANIZATION, text("name", "clinique")),
)


class Upstream:
    """A server that gives recorded answers, or those of a real one, which it records."""

    def __init__(
        self, answers: dict[str, Any], real: str = "", otherwise: int = 500
    ) -> None:
        """`otherwise` is the status of answers that were not recorded."""
        self.answers, self.otherwise = answers, otherwise
        self._real = real.removesuffix("/fhir")
        self.requests: set[str] = set()

    def __call__(self, environ: Any, start: Any) -> Any:
        request = Request(environ)
        key = request.full_path.rstrip("?")
        self.requests.add(key)
        if self._real:
            answer = requests.get(self._real + key, timeout=30)
            body = answer.text.replace(self._real, PLACE)
            self.answers[key] = [answer.status_code, body]
        status, body = self.answers.get(key, (self.otherwise, '{"recorded": false}'))
        body = body.replace(PLACE, request.host_url.rstrip("/"))
        response = Response(body, status, content_type="application/fhir+json")
        return response(environ, start)


def load() -> dict[str, Any]:
    """Return the recorded answers."""
    with lzma.open(FILE, "rt", encoding="utf-8") as file:
        answers: dict[str, Any] = json.load(file)
    return answers


@contextmanager
def opened(url: str) -> Iterator[HttpAdapter]:
    """Open a hospital's own file that extends the base."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "hospital.yaml"
        file.write_text(HOSPITAL, encoding="utf-8")
        adapter = HttpAdapter(load_mapping(file, {"FHIR_URL": url}))
        try:
            yield adapter
        finally:
            adapter.close()


def drafted(url: str) -> tuple[int, str]:
    """Return the exit status of `mapping new` on a server, and the file that it writes."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "new.yaml"
        status = main(["mapping", "new", "--from", url, "--out", str(file)])
        return status, file.read_text("utf-8") if file.exists() else ""


def compare_all(adapter: Adapter) -> None:
    """Compare reads, walks and searches with the model."""
    for record in records():
        kind = resource_type_of(record)
        if getattr(record, "status", "") not in UNSERVED:
            read = adapter.read(kind, record.id)
            assert plain(read) == plain(MODEL.read(kind, record.id))
    for sort in (NEWEST_FIRST, Sort(SortKey.DATE), CHANGED):
        expected = rows_of(MODEL.search(ask(sort=sort)))
        pages = list(walk(adapter, ask(sort=sort, count=20)))
        assert [row for page in pages for row in rows_of(page)] == expected
        assert pages[0].total == len(expected)
    for kind, *criteria in ((PATIENT,), (ORGANIZATION,), *SEARCHES):
        sort = NEWEST_FIRST if kind is STAY else BY_ID
        query = ask(*criteria, of=kind, sort=sort)
        expected = rows_of(MODEL.search(query))
        assert rows_of(adapter.search(query)) == expected, criteria
        assert adapter.count(replace(query, count=1)) == len(expected)
    # FHIR would read a system before the bar.
    for value in ("a|b", "a$b", "a\\"):
        criterion = TokenCriterion("identifier", (Token(None, value),))
        assert adapter.search(ask(criterion)).rows == ()
    for criterion in (dates("ne2024-03-14"), dates("ge2024-03-14T10:00:00.5+01:00")):
        with pytest.raises(NotAskableError):
            adapter.search(ask(criterion))


@contextmanager
def real_server() -> Iterator[str]:
    """Build and start the server on the hospital, and yield its base address."""
    build = ["mvn", "--quiet", "--batch-mode", "--file", str(SERVER / "pom.xml")]
    if not (SERVER / "target" / "dependency").is_dir():
        subprocess.run([*build, "package"], check=True, timeout=500)
    places = f"{SERVER / 'target' / 'classes'}:{SERVER / 'target' / 'dependency'}/*"
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "bundle.json"
        file.write_text(json.dumps(bundle()), encoding="utf-8")
        command = ["java", "-cp", places, "r4.Server", str(file)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                port = int(process.stdout.readline())
                yield f"http://127.0.0.1:{port}/fhir"
            finally:
                process.terminate()


if __name__ == "__main__":
    with real_server() as real:
        upstream = Upstream({}, real)
        with serving(upstream) as url, opened(f"{url}/fhir") as adapter:
            compare_all(adapter)
            drafted(f"{url}/fhir")
    with lzma.open(FILE, "wt", encoding="utf-8") as file:
        json.dump(upstream.answers, file, ensure_ascii=False, sort_keys=True)
