"""The package for Python: behaviour.yaml, and what it adds."""

import logging
import traceback
from datetime import UTC, datetime
from pathlib import Path

import pytest
from encounters_client import (
    Encounter,
    Encounters,
    EncountersError,
    NotFound,
    Patient,
    Progress,
    Refused,
    ResultExpired,
    Retry,
    SqliteStore,
    Unavailable,
)

from tests.clients.cases import CASES, COMPLETE, INCOMPLETE, PARAMETERS, Case
from tests.clients.running import copied
from tests.clients.service import Answer, Service, State
from tests.docs.pages import CALL, table
from toolkit.contract.hospital import IPP_SYSTEM

QUICK = Retry(first_wait_seconds=0.01)
EACH_CASE = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def client(served: Service, **changes: str) -> Encounters:
    """Return a client of the service that hardly waits."""
    return Encounters.from_environment(served.environ(**changes), retry=QUICK)


def client_of(case: Case, service: Service, before: int = 0) -> Encounters:
    """Return a client of the service with the stays and faults of a case."""
    case.begin(service, before)
    return client(service, TIMEOUT_SECONDS=str(case.timeout))


def error_of(error: EncountersError) -> str:
    return type(error).__name__


# ---- behaviour.yaml


def test_the_table_of_the_page_has_the_rules_of_the_cases() -> None:
    page = (CALL / "packages.md").read_text("utf-8")
    rules = [row[0] for row in table(page, "Rule")]
    assert sorted(rules) == sorted({case.rule for case in CASES})


@EACH_CASE
def test_an_iterator_behaves_as_the_table_says(case: Case, service: Service) -> None:
    ids, error = [], None
    with client_of(case, service) as hospital:
        search = hospital.search(**PARAMETERS)
        try:
            ids += [stay.id for stay in search]
        except EncountersError as raised:
            error = error_of(raised)
    assert error == case.error
    assert case.iterator_requests in (None, len(service.requests))
    assert service.tokens == case.tokens
    if error is None:
        assert sorted(set(ids)) == case.ids
        assert search.invalid_rows == len(case.invalid)
        assert search.total == case.total
        assert search.is_complete(len(set(ids))) == (case.exit == COMPLETE)


@EACH_CASE
def test_a_copy_behaves_as_the_table_says(
    case: Case, service: Service, tmp_path: Path
) -> None:
    file, error, report = tmp_path / "stays.csv", None, None
    with client_of(case, service) as hospital:
        try:
            report = hospital.search(**PARAMETERS).copy_to(file)
        except (Refused, Unavailable) as raised:
            error = error_of(raised)
    assert (error is None) == (case.exit in (COMPLETE, INCOMPLETE))
    assert case.requests in (None, len(service.requests))
    assert service.tokens == case.tokens
    names = {path.name for path in tmp_path.iterdir()}
    if report is None:
        # What may succeed later continues later.
        assert names == ({"stays.csv.part"} if error == "Unavailable" else set())
    else:
        assert names == {"stays.csv"}
        ids = [line.split(",")[0] for line in file.read_text().splitlines()[1:]]
        assert sorted(ids) == case.ids
        assert report.is_complete == (case.exit == COMPLETE)
        assert report.invalid_rows == len(case.invalid)


@EACH_CASE
def test_sync_behaves_as_the_table_says(
    case: Case, service: Service, tmp_path: Path
) -> None:
    file, error, report = tmp_path / "copy.sqlite", None, None
    # Its first request is for the CapabilityStatement.
    with client_of(case, service, before=1) as hospital, SqliteStore(file) as store:
        try:
            report = hospital.sync(store, types=["Encounter"], page_size=10)
        except EncountersError as raised:
            error = error_of(raised)
    assert (error is None) == (case.exit in (COMPLETE, INCOMPLETE))
    assert (case.requests and case.requests + 1) in (None, len(service.requests))
    assert service.tokens == case.tokens + (case.expires_in == 0)
    if report is not None:
        assert sorted(id for _, id in copied(file)) == case.ids
        assert report.is_complete == (case.exit == COMPLETE)


# ---- objects


def test_stays_are_typed_and_keep_their_json() -> None:
    stay = Encounter(
        {
            "resourceType": "Encounter",
            "id": "8",
            "meta": {"lastUpdated": "2024-03-30T07:15:00Z"},
            "identifier": [{"system": "urn:oid:1.2", "value": "000000007"}],
            "status": "finished",
            "subject": {"reference": "Patient/158"},
            "period": {"start": "2024-03-30T08:15:00+01:00"},
            "serviceProvider": {
                "extension": [{"url": "https://x", "valueString": "0123"}],
                "reference": "Organization/2",
            },
            "location": [{"location": {"display": "Cardiologie"}}],
            "class": {"code": "EMER"},
        }
    )
    start = datetime(2024, 3, 30, 7, 15, tzinfo=UTC)
    assert (stay.id, stay.status, stay.class_code) == ("8", "finished", "EMER")
    assert (stay.start, stay.end, stay.last_updated) == (start, None, start)
    assert (stay.patient_id, stay.organization_id) == ("158", "2")
    assert (stay.functional_unit, stay.ward) == ("0123", "Cardiologie")
    assert stay.identifiers[0].value == "000000007"
    assert stay.raw["subject"] == {"reference": "Patient/158"}
    assert stay in {stay}
    # A log line with the object holds no patient.
    assert "158" not in repr(stay)
    with pytest.raises(AttributeError):
        stay.raw = {}  # type: ignore[misc]


def test_what_is_absent_is_none_or_empty() -> None:
    stay = Encounter({"resourceType": "Encounter", "id": "8"})
    assert (stay.start, stay.last_updated) == (None, None)
    assert (stay.status, stay.patient_id, stay.functional_unit, stay.ward) == ("",) * 4
    patient = Patient({"id": "1", "birthDate": "1980", "name": [{"family": "A"}]})
    assert (patient.birth_date, patient.family, patient.given) == (None, "A", ())


def test_patients_are_found_by_id_and_by_identifier(served: Service) -> None:
    with client(served) as hospital:
        patient = hospital.patient("100")
        stays = [stay.id for stay in hospital.stays_of(patient, _sort="date")]
        assert stays == ["1", "2"]
        assert served.forms[-1]["_sort"] == "date"
        with pytest.raises(NotFound) as raised:
            hospital.patient("99")
        assert raised.value.status == 404
        assert hospital.patient(identifier=f"{IPP_SYSTEM}|100").id == "100"
        with pytest.raises(Refused):
            hospital.patient(identifier=f"{IPP_SYSTEM}|100,{IPP_SYSTEM}|101")
        with pytest.raises(NotFound):
            hospital.patient(identifier=f"{IPP_SYSTEM}|99")


def test_parameters_are_posted_as_they_are(served: Service) -> None:
    parameters = {
        "name:exact": "Noël & é=1",
        "_lastUpdated": "ge2024-03-30T08:15+01:00",
    }
    with client(served, AUDIENCE="", SCOPE="") as hospital:
        assert list(hospital.patients(**parameters, _count=5)) == []
    assert served.requests[0].startswith("POST ")
    assert served.forms == [{**parameters, "_count": "5"}]


def test_columns_have_a_value_for_each_match(served: Service) -> None:
    with client(served) as hospital:
        columns = hospital.search(**PARAMETERS).columns()
    assert {len(values) for values in columns.values()} == {25}
    assert columns["patient_id"][:3] == ["100", "100", "101"]
    assert columns["last_updated"][0].tzinfo is UTC
    assert columns["end"][0] is None


def test_a_search_can_be_continued_and_expires(served: Service) -> None:
    with client(served) as hospital:
        first = next(hospital.search(**PARAMETERS).pages())
        rest = hospital.search().pages(resume=first.next_link)
        assert sum(len(page.resources) for page in rest) == 15
        served.lose_pages()
        with pytest.raises(ResultExpired):
            next(hospital.search().pages(resume=first.next_link))


# ---- errors


def test_errors_name_host_and_status_and_quote_nothing(
    served: Service, caplog: pytest.LogCaptureFixture
) -> None:
    served.faults = {1: Answer(503, "0"), 2: Answer(403)}
    name = "Martin"
    with (
        client(served) as hospital,
        caplog.at_level(logging.WARNING, "encounters_client"),
        pytest.raises(Refused) as raised,
    ):
        list(hospital.patients(name=name))
    text = "".join(traceback.format_exception(raised.value)) + caplog.text
    assert f"127.0.0.1:{served.port}: status 403, processing" in text
    assert f"127.0.0.1:{served.port}: status 503" in text
    for value in (name, "eyJ", served.environ()["CLIENT_SECRET"], "No."):
        assert value not in text
    assert raised.value.issues[0].diagnostics == "No."


def test_a_refused_token_is_named(served: Service) -> None:
    with (
        client(served, TOKEN_URL=f"{served.base}/Encounter") as hospital,
        pytest.raises(Refused) as raised,
    ):
        hospital.encounter("1")
    assert raised.value.status == 405
    assert served.environ()["CLIENT_SECRET"] not in str(raised.value)


def test_a_missing_setting_is_named(served: Service) -> None:
    environ = served.environ(BASE="", TOKEN_URL="")
    with pytest.raises(ValueError, match="BASE TOKEN_URL"):
        Encounters.from_environment(environ)


# ---- sync


def test_sync_reads_patients_ten_at_a_time(service: Service, tmp_path: Path) -> None:
    file = tmp_path / "copy.sqlite"
    service.open(90)
    with client(service) as hospital, SqliteStore(file) as store:
        hospital.sync(store, types=["Encounter"])
        service.hospital.change("Patient", "103", state=State.REMOVED)
        service.forget()
        steps: list[Progress] = []
        hospital.sync(store, types=["Patient"], on_progress=steps.append)
    assert [step.rows for step in steps] == [10, 20, 30, 31]
    assert {step.total for step in steps} == {31}
    # 31 patients: the CapabilityStatement, four searches, and why one is missing.
    assert len(service.requests) == 6
    assert copied(file, State.CANCELLED) == {("Patient", "103"): None}
