"""The package for Python against the fault server: behaviour.yaml, and what it adds."""

import logging
import traceback
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

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

from tests.clients.cases import (
    CASES,
    COMPLETE,
    INCOMPLETE,
    PAGE_SIZE,
    SERVED_CASES,
    Case,
    each_case,
)
from tests.clients.fault_server import Answer, FaultServer, Gone, Page, serving
from tests.clients.hospital import State, filled
from tests.clients.running import copied
from tests.clients.sql_service import SqlService
from tests.docs.pages import CALL, table

QUICK = Retry(first_wait_seconds=0.01)
NAME = "Martin"
SECRET = "a secret, with & and ="


def client(served: FaultServer, **changes: str) -> Encounters:
    """Return a client of the fault server that hardly waits."""
    return Encounters.from_environment(served.environ(**changes), retry=QUICK)


def error_of(error: EncountersError) -> str:
    return type(error).__name__


# ---- behaviour.yaml


def test_the_table_of_the_page_has_the_rules_of_the_cases() -> None:
    page = (CALL / "packages.md").read_text("utf-8")
    rules = [row[0] for row in table(page, "Rule")]
    assert sorted(rules) == sorted({case.rule for case in CASES})


def test_an_iterator_behaves_as_the_table_says() -> None:
    def iterate(case: Case) -> None:
        ids, error = [], None
        with (
            serving(case.service()) as served,
            client(served, TIMEOUT_SECONDS=str(case.timeout)) as hospital,
        ):
            search = hospital.search(**{"class": "IMP"})
            try:
                ids += [stay.id for stay in search]
            except EncountersError as raised:
                error = error_of(raised)
        assert error == case.error, case.name
        assert case.iterator_requests in (None, len(served.requests)), case.name
        assert served.tokens == case.tokens, case.name
        if error is None:
            assert sorted(set(ids)) == case.ids, case.name
            assert search.invalid_rows == len(case.invalid), case.name
            assert search.total == (25 if served.counting else None), case.name
            is_complete = case.exit == COMPLETE
            assert search.is_complete(len(set(ids))) == is_complete, case.name

    each_case(iterate)


def test_a_copy_behaves_as_the_table_says(tmp_path: Path) -> None:
    def copy(case: Case) -> None:
        file, error, report = tmp_path / case.name / "stays.csv", None, None
        file.parent.mkdir()
        with (
            serving(case.service()) as served,
            client(served, TIMEOUT_SECONDS=str(case.timeout)) as hospital,
        ):
            try:
                report = hospital.search().copy_to(file)
            except (Refused, Unavailable) as raised:
                error = error_of(raised)
        assert (error is None) == (case.exit in (COMPLETE, INCOMPLETE)), case.name
        assert case.requests in (None, len(served.requests)), case.name
        assert served.tokens == case.tokens, case.name
        names = {path.name for path in file.parent.iterdir()}
        if report is None:
            # What may succeed later continues later.
            assert names == ({"stays.csv.part"} if error == "Unavailable" else set())
        else:
            assert names == {"stays.csv"}, case.name
            ids = [line.split(",")[0] for line in file.read_text().splitlines()[1:]]
            assert sorted(ids) == case.ids, case.name
            assert report.is_complete == (case.exit == COMPLETE), case.name
            assert report.invalid_rows == len(case.invalid), case.name

    each_case(copy)


@pytest.mark.parametrize("full", [True, False], ids=["full", "update"])
def test_sync_behaves_as_the_table_says(full: bool, tmp_path: Path) -> None:
    def synchronize(case: Case) -> None:
        file, error, report = tmp_path / f"{case.name}.sqlite", None, None
        # Its first request is for the CapabilityStatement.
        faults = {number + 1: fault for number, fault in case.faults.items()}
        tokens = case.tokens + (case.server.get("expires_in") == 0)
        with (
            serving(replace(case.service(), faults={})) as served,
            SqliteStore(file) as store,
            client(served, TIMEOUT_SECONDS=str(case.timeout)) as hospital,
        ):
            whole = served.hospital
            if not full:
                served.hospital = replace(filled(1), now=whole.now)
                with client(served) as earlier:
                    assert earlier.sync(store, types=["Encounter"]).is_complete
            served.hospital, served.faults, served.tokens = whole, faults, 0
            served.requests.clear()
            try:
                report = hospital.sync(store, full=full, types=["Encounter"])
            except EncountersError as raised:
                error = error_of(raised)
        assert (error is None) == (case.exit in (COMPLETE, INCOMPLETE)), case.name
        expected = case.requests and case.requests + 1
        assert expected in (None, len(served.requests)), case.name
        assert served.tokens == tokens, case.name
        if report is not None:
            assert sorted(id for _, id in copied(file)) == case.ids, case.name
            assert report.is_complete == (case.exit == COMPLETE), case.name

    each_case(synchronize)


@pytest.mark.parametrize("case", SERVED_CASES, ids=lambda case: case.name)
def test_the_service_itself_is_read_as_the_table_says(
    case: Case, service: SqlService
) -> None:
    service.open_case(case)
    ids, error = [], None
    with Encounters.from_environment(service.environ(), retry=QUICK) as hospital:
        search = hospital.search(_count=PAGE_SIZE, _sort="date")
        try:
            ids += [stay.id for stay in search]
        except EncountersError as raised:
            error = error_of(raised)
    assert error == case.error
    assert case.iterator_requests in (None, len(service.requests))
    if error is None:
        assert sorted(ids) == case.ids
        assert search.is_complete(len(ids))
        assert search.invalid_rows == len(case.invalid)


# ---- objects


@pytest.fixture
def served() -> Iterator[FaultServer]:
    """Return a fault server without faults, with 25 stays."""
    with serving(FaultServer(filled(25))) as server:
        yield server


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


def test_patients_are_found_by_id_and_by_identifier(served: FaultServer) -> None:
    with client(served) as hospital:
        patient = hospital.patient("100")
        stays = [stay.id for stay in hospital.stays_of(patient, _sort="date")]
        assert stays == ["1", "2"]
        assert served.searches["s1"]["_sort"] == "date"
        with pytest.raises(NotFound) as raised:
            hospital.patient("99")
        assert raised.value.status == 404
        served.hospital = filled(1)
        assert hospital.patient(identifier="urn:oid:1.2|7").id == "100"
        served.hospital = filled(9)
        with pytest.raises(Refused):
            hospital.patient(identifier="urn:oid:1.2|7")
        served.hospital = filled(0)
        with pytest.raises(NotFound):
            hospital.patient(identifier="urn:oid:1.2|7")


def test_parameters_are_posted_as_they_are(served: FaultServer) -> None:
    with client(served, AUDIENCE="", SCOPE="") as hospital:
        parameters = {"date": "ge2024-03-30T08:15:00+01:00", "name:exact": "Noël & é=1"}
        assert len(list(hospital.search(**parameters, _count=5))) == 25
    assert served.requests[0].startswith("POST ")
    posted = {**parameters, "_count": "5", "type": "Encounter"}
    assert served.searches["s1"] == posted


def test_columns_have_a_value_for_each_match(served: FaultServer) -> None:
    with client(served) as hospital:
        columns = hospital.search().columns()
    assert {len(values) for values in columns.values()} == {25}
    assert columns["patient_id"][:3] == ["100", "100", "101"]
    assert columns["last_updated"][0].tzinfo is UTC
    assert columns["end"][0] is None


def test_a_search_can_be_continued_and_expires(served: FaultServer) -> None:
    with client(served) as hospital:
        first = next(hospital.search().pages())
        rest = hospital.search().pages(resume=first.next_link)
        assert sum(len(page.resources) for page in rest) == 15
        served.searches.clear()
        with pytest.raises(ResultExpired):
            next(hospital.search().pages(resume=first.next_link))


def test_the_other_host_of_a_link_gets_no_request() -> None:
    with serving(FaultServer(filled(1))) as other:

        def lead_away(page: dict[str, Any], _: FaultServer) -> None:
            link = {"relation": "next", "url": f"{other.base}/Bundle?_id=s1"}
            page["link"] = [link]

        with (
            serving(FaultServer(filled(3), {1: Page(lead_away)})) as served,
            client(served) as hospital,
            pytest.raises(Refused),
        ):
            list(hospital.search())
    assert other.requests == []


# ---- errors


def test_errors_name_host_and_status_and_quote_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    faults = {1: Answer(503, "0"), 2: Answer(403)}
    name = NAME
    with (
        serving(FaultServer(filled(1), faults)) as served,
        client(served) as hospital,
        caplog.at_level(logging.WARNING, "encounters_client"),
        pytest.raises(Refused) as raised,
    ):
        list(hospital.patients(name=name))
    text = "".join(traceback.format_exception(raised.value)) + caplog.text
    assert f"127.0.0.1:{served.port}: status 403, processing" in text
    assert f"127.0.0.1:{served.port}: status 503" in text
    for value in (name, "token-1", SECRET, "No."):
        assert value not in text
    assert raised.value.issues[0].diagnostics == "No."


def test_a_refused_token_is_named(served: FaultServer) -> None:
    with (
        client(served, TOKEN_URL=f"{served.base}/Encounter/none") as hospital,
        pytest.raises(Refused) as raised,
    ):
        hospital.encounter("1")
    assert raised.value.status == 401
    assert SECRET not in str(raised.value)


def test_a_missing_setting_is_named() -> None:
    environ = FaultServer(filled(1)).environ(BASE="", TOKEN_URL="")
    with pytest.raises(ValueError, match="BASE TOKEN_URL"):
        Encounters.from_environment(environ)


# ---- sync


def test_sync_reads_patients_ten_at_a_time(tmp_path: Path) -> None:
    with (
        serving(FaultServer(filled(90))) as served,
        client(served) as hospital,
        SqliteStore(tmp_path / "copy.sqlite") as store,
    ):
        hospital.sync(store, types=["Encounter"])
        served.hospital.change("Patient", "103", state=State.REMOVED)
        served.requests.clear()
        steps: list[Progress] = []
        hospital.sync(store, types=["Patient"], on_progress=steps.append)
    assert [step.rows for step in steps] == [10, 20, 30, 31]
    assert {step.total for step in steps} == {31}
    # 31 patients: the CapabilityStatement, four searches, and why one is missing.
    assert len(served.requests) == 6
    assert served.requests[-1] != served.requests[0]
    assert len([key for key in copied(tmp_path / "copy.sqlite") if key[0] == "Patient"])
    assert copied(tmp_path / "copy.sqlite", State.REMOVED) == {("Patient", "103"): None}


def test_a_sync_begins_again_when_pages_expire(tmp_path: Path) -> None:
    file = tmp_path / "copy.sqlite"
    with (
        serving(FaultServer(filled(25), {3: Gone()})) as served,
        client(served) as hospital,
        SqliteStore(file) as store,
    ):
        assert hospital.sync(store, types=["Encounter"]).is_complete
    assert len(copied(file)) == 25
