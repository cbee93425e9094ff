"""Decision 20: every error is an OperationOutcome."""

import json
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import responses

from adapters.contract import ResourceType, SearchQuery
from adapters.memory import MemoryAdapter
from adapters.testing.hospital import PARIS
from adapters.testing.stays import EDGES
from app import create_app
from tests.app import provider
from tests.app.answers import body, raw, refused
from tests.hospital_sql import mapping_text
from tests.redis_server import RedisServer
from tests.serving import BASE_URL, FORM, Served

STU3 = Path(__file__).parents[1] / "stu3"
CODES = {
    row["status"]: row["code"]
    for row in json.loads((STU3 / "http-status-to-issue-type.json").read_text())["map"]
}
READS = "GET, HEAD, OPTIONS"


ANSWERS: tuple[tuple[int, str, str, Mapping[str, Any]], ...] = (
    (401, "GET", "Encounter/1", {"headers": {"Authorization": ""}}),
    (403, "GET", "Encounter/1", {"base_url": "http://encounters.example.org"}),
    (404, "GET", "Encounter/987654", {}),
    (404, "GET", "Nonsense/1", {}),
    (404, "GET", "Nonsense?a=b", {}),
    (404, "OPTIONS", "Nonsense/1", {}),
    (404, "POST", "Nonsense/_search", {"data": "a=b", "content_type": FORM}),
    (404, "GET", "encounter/1", {}),
    (404, "GET", "Practitioner/1", {}),
    (404, "GET", "", {}),
    (404, "GET", "Encounter/1/extra", {}),
    (404, "GET", "Encounter//1", {}),
    (404, "GET", "Encounter/a%2Fb", {}),
    (404, "GET", "Encounter/1/_history", {}),
    (404, "GET", "Encounter/1/_history/1", {}),
    (404, "GET", "../../etc/passwd", {}),
    (405, "DELETE", "Encounter/1", {}),
    (406, "GET", "Encounter/1", {"headers": {"Accept": "application/fhir+xml"}}),
    (410, "GET", "Encounter/51", {}),
    (412, "GET", "Encounter?date=x", {}),
    (413, "POST", "Encounter/_search", {"data": b"a" * 65537, "content_type": FORM}),
    (415, "POST", "Encounter/_search", {"data": "{}", "content_type": "text/json"}),
    (422, "GET", "Patient", {}),
    (500, "GET", "Encounter/37", {}),
)


@pytest.mark.parametrize(("status", "method", "path", "sent"), ANSWERS)
def test_20_every_error_is_an_outcome_with_the_code_of_its_status(
    served: Served, status: int, method: str, path: str, sent: Mapping[str, Any]
) -> None:
    answer = raw(served, method, path, **sent)
    assert answer.headers["Content-Type"] == "application/fhir+json;charset=UTF-8"
    (issue,) = body(answer, status)["issue"]
    # 403 over plain HTTP is a matter of security (decision 24).
    assert issue["code"] == ("security" if status == 403 else CODES[status])
    assert issue["diagnostics"]


def test_20_insufficient_scope_is_processing(served: Served) -> None:
    reader = served.as_client("reader", "PATIENT_READ")
    text = refused(reader.get("Encounter/1"), 403, "processing", "Authorization")
    assert "insufficient scope" in text


def test_20_what_is_malformed_is_400(served: Served) -> None:
    refused(served.get("Encounter?identifier=%FF"), 400, "structure")
    broken = raw(
        served, "POST", "Encounter/_search", data=b"patient=\xff", content_type=FORM
    )
    refused(broken, 400, "structure")


def test_20_no_issue_is_called_deleted(served: Served) -> None:
    assert "deleted" not in served.get("Encounter/51").text


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        *((m, "Encounter/1", READS) for m in ("PUT", "PATCH", "DELETE", "POST")),
        *((m, "Encounter", READS) for m in ("POST", "PUT", "DELETE", "PATCH")),
        *((m, "Patient/1", READS) for m in ("PUT", "PATCH", "DELETE")),
        *((m, "Patient", READS) for m in ("POST", "DELETE")),
        *((m, "Organization/H1", READS) for m in ("PUT", "DELETE")),
        ("POST", "Organization", READS),
        ("POST", "Bundle", READS),
        ("DELETE", "Bundle", READS),
        ("POST", "metadata", READS),
        *((m, "Encounter/_search", "OPTIONS, POST") for m in ("GET", "PUT", "DELETE")),
        ("TRACE", "Encounter/1", READS),
    ],
)
def test_20_nothing_is_created_updated_or_deleted(
    served: Served, method: str, path: str, allowed: str
) -> None:
    answer = raw(served, method, path, data="{}", content_type="application/fhir+json")
    refused(answer, 405, "not-supported")
    assert answer.headers["Allow"] == allowed


@pytest.mark.parametrize(("size", "status"), [(65536, 200), (65537, 413)])
def test_20_a_body_may_be_64_kib_long(served: Served, size: int, status: int) -> None:
    data = b"identifier=".ljust(size, b"V")
    answer = raw(served, "POST", "Encounter/_search", data=data, content_type=FORM)
    assert answer.status_code == status


@pytest.mark.parametrize(("size", "status"), [(65536, 200), (65537, 413), (65541, 413)])
def test_20_so_may_one_without_a_length(served: Served, size: int, status: int) -> None:
    """It comes in chunks, and none of it is left out: the rest may be a filter."""
    data = b"_format=json;".ljust(size - 6, b"a") + b"&_id=1"
    chunks = {"HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input_terminated": True}
    answer = raw(
        served,
        "POST",
        "Encounter/_search",
        input_stream=BytesIO(data),
        content_type=FORM,
        environ_overrides=chunks,
    )
    assert answer.status_code == status


class Broken(MemoryAdapter):
    """A hospital whose adapter has a fault of its own."""

    def search(self, query: SearchQuery) -> Any:
        """Fail as nobody foresaw."""
        raise ZeroDivisionError("SELECT secret FROM patients WHERE name = 'Canari'")

    def read(self, resource_type: ResourceType, id: str) -> Any:
        """Fail as nobody foresaw."""
        raise ZeroDivisionError("SELECT secret FROM patients WHERE name = 'Canari'")


@pytest.mark.parametrize("path", ["Encounter", "Encounter/1", "Patient/1"])
def test_20_a_fault_that_nobody_foresaw_is_500_and_tells_nothing(
    redis_server: RedisServer,
    tmp_path: Path,
    keys: responses.RequestsMock,
    caplog: pytest.LogCaptureFixture,
    path: str,
) -> None:
    file = tmp_path / "mapping.yaml"
    file.write_text(mapping_text(EDGES, "sqlite:///none.db"), "utf-8")
    settings = provider.settings(file, REDIS_URL=redis_server.url, BASE_URL=BASE_URL)
    app = create_app(settings, Broken((), time_zone=PARIS))
    answer = Served(app).as_client("client-1").get(path)
    refused(answer, 500, "exception")
    assert "Canari" not in answer.text
    assert "Zero" not in answer.text
    assert [r.getMessage() for r in caplog.records if r.levelname == "ERROR"] == [
        "request failed"
    ]
