"""`encounters doctor --conformance`: what is claimed is proved, and a false claim is noticed."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest
from werkzeug.serving import make_server

from app.cli import main
from app.cli.conformance import Proof, Verdict, count, settled, verdict_of
from tests.app import provider
from tests.hospital_sql import mapping_text
from tests.live import HOST, free_ports
from tests.redis_server import RedisServer
from tests.serving import serve
from toolkit.console import html_page
from toolkit.contract.hospital import EDGES, Hospital

OFFERS = {"full": "full", "period": "full", "group-a": "group-a", "group-b": "group-b"}
"""The profile of each deployment; `period` compares dates with whole stays."""

Pairs = list[tuple[str, str]]
Lie = Callable[[str, Pairs], Pairs]


def _truth(_: str, pairs: Pairs) -> Pairs:
    return pairs


@dataclass
class Deployment:
    """A service that listens, whose requests a lie may change on the way; its settings."""

    port: int
    directory: Path
    app: Any = None
    lie: Lie = field(default=_truth)
    busy_at: str = ""
    """The parameter at which the service says that it is busy."""
    file: str = "mapping.yaml"

    @property
    def base_url(self) -> str:
        return f"http://{HOST}:{self.port}/fhir/v3"

    @property
    def mapping(self) -> Path:
        return self.directory / self.file

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        """Answer as the provider and as the service, the lie between."""
        path = str(environ["PATH_INFO"])
        if path == "/keys":
            start_response("200 OK", [("Content-Type", "application/json")])
            return [json.dumps(provider.key_set(provider.rsa())).encode()]
        size = int(environ.get("CONTENT_LENGTH") or 0)
        form = environ["wsgi.input"].read(size).decode()
        for name, text in (("QUERY_STRING", environ["QUERY_STRING"]), ("", form)):
            pairs = parse_qsl(text, keep_blank_values=True)
            if self.busy_at in dict(pairs):
                start_response("429 Too Many Requests", [])
                return []
            changed = urlencode(self.lie(path.removeprefix("/fhir/v3/"), pairs))
            if name:
                environ[name] = changed
            elif size:
                environ["wsgi.input"] = BytesIO(changed.encode())
                environ["CONTENT_LENGTH"] = str(len(changed))
        return self.app(environ, start_response)

    def run(self, token: Path, out: Path) -> int:
        """Run the command with the settings of the deployment."""
        command = ["doctor", "--conformance", "--token-file", str(token)]
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("ENCOUNTERS_BASE_URL", self.base_url)
            environment.setenv("ENCOUNTERS_MAPPING", str(self.mapping))
            return main([*command, "--out", str(out)])

    def report(self, out: Path) -> tuple[int, Any]:
        """Run the command; return its exit status and the report."""
        (token := out / "token").write_text(provider.sign())
        status = self.run(token, out)
        return status, json.loads((out / "conformance.json").read_text("utf-8"))

    def listed(self) -> set[str]:
        """Return the parameters of the live CapabilityStatement."""
        client = self.app.test_client()
        answer = client.get("/fhir/v3/metadata", base_url=f"http://{HOST}")
        (rest,) = answer.get_json(force=True)["rest"]
        return {
            f"{each['type']}?{parameter['name']}"
            for each in rest["resource"]
            for parameter in each.get("searchParam", ())
        }


@pytest.fixture(scope="module")
def whole(
    redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Deployment]:
    """Return a service that listens and offers everything."""
    directory = tmp_path_factory.mktemp("whole")
    with listening("full", redis_server, directory) as deployment:
        yield deployment


@contextmanager
def listening(
    name: str, redis_server: RedisServer, directory: Path, hospital: Hospital = EDGES
) -> Iterator[Deployment]:
    """Serve a hospital on a port, as `OFFERS` says."""
    deployment = Deployment(free_ports(1), directory)
    server = make_server(HOST, deployment.port, deployment, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    text = mapping_text(hospital, f"sqlite:///{deployment.directory / 'pas.db'}")
    if name == "period":
        text = text.replace("date: start", "date: period")
        text = text.replace("time_zone: UTC}", "time_zone: UTC, covers: all}")
    served = serve(
        hospital,
        deployment.directory,
        redis_server.url,
        mapping=text,
        profile=OFFERS[name],
        BASE_URL=deployment.base_url,
        KEY_SET_URL=f"http://{HOST}:{deployment.port}/keys",
        # It answers for the provider itself, however busy this machine is.
        IDENTITY_TIMEOUT_SECONDS="30",
        PLAIN_HTTP="loopback",
    )
    deployment.app = served.app
    yield deployment
    server.shutdown()
    thread.join()
    server.server_close()


def _claims(report: Any, verdict: str) -> set[str]:
    return {each["claim"] for each in report["claims"] if each["verdict"] == verdict}


@pytest.mark.parametrize("name", OFFERS)
def test_everything_that_is_listed_is_proved(
    name: str, redis_server: RedisServer, tmp_path: Path
) -> None:
    with listening(name, redis_server, tmp_path) as deployment:
        status, report = deployment.report(tmp_path)
        listed = deployment.listed()
    assert (status, _claims(report, "false")) == (0, set())
    assert len(listed) >= 4
    proved = _claims(report, "proved")
    assert listed | {"CapabilityStatement", "Encounter: link self"} <= proved
    for each in report["claims"]:
        assert each["reason"] or each["checks"]
        assert bool(each["reason"]) == (each["verdict"] == "not proved"), each


def test_prefixes_modifiers_sorts_and_links_are_claims_and_no_patient_is_shown(
    whole: Deployment, tmp_path: Path
) -> None:
    _, report = whole.report(tmp_path)
    proved = _claims(report, "proved")
    for prefix in ("eq", "ne", "gt", "lt", "ge", "le"):
        assert f"Encounter?date={prefix}" in proved
    for name in ("name", "family", "given"):
        assert {f"Patient?{name}:exact", f"Patient?{name}:contains"} <= proved
    for sort in ("date", "-date", "_lastUpdated", "-_lastUpdated"):
        assert f"Encounter?_sort={sort}" in proved
    assert {"Patient?_sort=_id", "Patient?_sort=-_id"} <= proved
    for kind in ("Encounter", "Patient"):
        for link in ("self", "next", "previous"):
            assert f"{kind}: link {link}" in proved
    assert report["mapping"] == whole.app.extensions["encounters"].adapter.fingerprint
    assert {"release", "date", "deployment", "base_url"} < report.keys()
    rows = EDGES.patients
    names = {text for row in rows for text in (row.used_name, row.birth_name, row.born)}
    assert len(names) > 3
    for file in ("conformance.json", "conformance.html"):
        text = (tmp_path / file).read_text("utf-8").rpartition("</style>")[2]
        assert not [name for name in names if name and name in text]


def _without(*names: str) -> Lie:
    return lambda _, pairs: [pair for pair in pairs if pair[0] not in names]


def _as(old: tuple[str, str], new: tuple[str, str]) -> Lie:
    """Return a lie that reads one name and beginning of a value as another."""

    def lie(_: str, pairs: Pairs) -> Pairs:
        return [
            (new[0], new[1] + text.removeprefix(old[1]))
            if name == old[0] and text.startswith(old[1])
            else (name, text)
            for name, text in pairs
        ]

    return lie


LIES: Sequence[tuple[str, Lie]] = (
    ("Encounter?status", _without("status")),
    ("Encounter?date=ge", _as(("date", "ge"), ("date", "gt"))),
    ("Encounter?date=ne", _as(("date", "ne"), ("date", "gt"))),
    ("Encounter?_sort=-date", _as(("_sort", "-date"), ("_sort", "date"))),
    ("Encounter?_total=none", _without("_total")),
    ("Encounter?_count", _without("_count")),
    ("Encounter: link next", _without("_index", "_searchAfter")),
    ("Encounter: link previous", _without("_index", "_searchBefore")),
    ("Patient?name:exact", _as(("name:exact", ""), ("name", ""))),
    ("Patient?family:contains", _as(("family:contains", ""), ("family", ""))),
    ("Patient?identifier", _as(("identifier", ""), ("identifier", "0"))),
)


@pytest.mark.parametrize(("claim", "lie"), LIES, ids=[claim for claim, _ in LIES])
def test_a_false_claim_is_noticed(
    whole: Deployment,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    claim: str,
    lie: Lie,
) -> None:
    monkeypatch.setattr(whole, "lie", lie)
    status, report = whole.report(tmp_path)
    assert (status, claim in _claims(report, "false")) == (1, True)
    assert claim in capsys.readouterr().out


def test_a_service_that_is_busy_refutes_nothing_another_mapping_does(
    whole: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole, "busy_at", "_total")
    status, report = whole.report(tmp_path)
    assert (status, _claims(report, "false")) == (0, set())
    assert "Encounter?_total=none" in _claims(report, "not proved")
    text = whole.mapping.read_text("utf-8")
    other = whole.mapping.with_name("other.yaml")
    other.write_text(text.replace("name: ", "name: Other ", 1), "utf-8")
    monkeypatch.setattr(whole, "file", other.name)
    _, report = whole.report(tmp_path)
    assert _claims(report, "false") == {"CapabilityStatement"}


def test_an_answer_without_ids_is_a_false_claim_and_one_is_tried_again() -> None:
    answer: dict[str, str] = {}
    counted = iter([1, 2, 2])
    proofs: tuple[tuple[Proof, str], ...] = (
        (lambda: [count("ids", 1, len(answer["id"]))], "false"),
        (lambda: [count("ids", 1, 2)], "false"),
        (lambda: [count("ids", 2, next(counted))], "proved"),
        (lambda: [], "not proved"),
    )
    for prove, verdict in proofs:
        assert verdict_of(settled(prove)) == verdict


def test_no_claim_is_false_of_an_empty_hospital(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    with listening("full", redis_server, tmp_path, Hospital(())) as empty:
        status, report = empty.report(tmp_path)
    assert (status, _claims(report, "false")) == (0, set())
    assert {"Encounter?date=ge", "Patient?name:exact"} <= _claims(report, "not proved")


def test_the_page_has_no_script_and_escapes_what_it_shows() -> None:
    claim = {"claim": "<b>", "verdict": "not proved", "reason": "<i>", "checks": []}
    report = dict.fromkeys(("base_url", "release", "mapping", "date"), "<script>")
    values = {**report, "deployment": "<script>", "claims": [claim]}
    page = html_page("conformance.html", report=values, verdicts=Verdict)
    for mark in ("<script", "<b>", "<i>", 'http-equiv="refresh"', "src="):
        assert mark not in page
    assert "&lt;script&gt;" in page


def test_it_cannot_run_without_a_token(whole: Deployment, tmp_path: Path) -> None:
    token = tmp_path / "token"
    assert whole.run(token, tmp_path) == 2
    token.write_text("none")
    assert whole.run(token, tmp_path) == 2
    assert not (tmp_path / "conformance.json").exists()
