"""Answers of a real FHIR R4 server: HAPI's RestfulServer, started, recorded and replayed.

`python -m tests.fhir_r4.recorded` records what the scenario asks for, where Java and Maven
are. Read the diff.
"""

import json
import lzma
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests
from werkzeug import Request, Response

from tests.fhir_r4.hospital import bundle
from tests.hospital_http import serving

HERE = Path(__file__).parent
SERVER = HERE / "server"
FILE = HERE / "answers.json.xz"
PLACE = "http://r4.example.org"
"""What stands for the address of the server in the file."""


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


@dataclass
class Recorder:
    """Passes requests on to a server, and keeps its answers."""

    target: str
    answers: dict[str, Any] = field(default_factory=dict)

    def __call__(self, environ: Any, start: Any) -> Any:
        request = Request(environ)
        key = _key(request)
        own, theirs = request.host_url.rstrip("/"), self.target.removesuffix("/fhir")
        answer = requests.get(theirs + key, timeout=30)
        text = answer.text.replace(theirs, PLACE)
        self.answers[key] = [answer.status_code, text]
        return _response(answer.status_code, text, own)(environ, start)


@dataclass
class Replayer:
    """Gives the answers of a recording; `requests` are those that it was asked for.

    `otherwise` is the status of all others.
    """

    answers: dict[str, Any]
    otherwise: int = 500
    requests: list[str] = field(default_factory=list)

    def __call__(self, environ: Any, start: Any) -> Any:
        request = Request(environ)
        key = _key(request)
        self.requests.append(key)
        status, text = self.answers.get(key, (self.otherwise, '{"recorded": false}'))
        own = request.host_url.rstrip("/")
        return _response(status, text, own)(environ, start)


def _key(request: Request) -> str:
    return request.full_path.rstrip("?")


def _response(status: int, text: str, own: str) -> Response:
    body = text.replace(PLACE, own)
    return Response(body, status, content_type="application/fhir+json")


def load() -> dict[str, Any]:
    """Return the recorded answers."""
    with lzma.open(FILE, "rt", encoding="utf-8") as file:
        answers: dict[str, Any] = json.load(file)
    return answers


def record() -> None:
    """Write the answers of the real server to what the scenario asks for."""
    from tests.fhir_r4.scenario import compare_all, drafted, opened

    with real_server() as url:
        recorder = Recorder(url)
        with serving(recorder) as own, opened(f"{own}/fhir") as adapter:
            compare_all(adapter)
            drafted(f"{own}/fhir")
    text = json.dumps(recorder.answers, ensure_ascii=False, sort_keys=True)
    with lzma.open(FILE, "wt", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    record()
