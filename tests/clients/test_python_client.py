"""The package for Python: behaviour.yaml, and what it adds."""

import logging
import traceback
from datetime import UTC, datetime

import pytest
from encounters_client import (
    Encounter,
    Encounters,
    EncountersError,
    NotFound,
    Patient,
    Refused,
    Retry,
    SqliteStore,
)
from encounters_client.store import CANCELLED, REMOVED

from tests.clients.cases import CASES, COMPLETE, ERRORS, PARAMETERS
from tests.clients.running import copied
from tests.clients.service import status
from tests.docs.pages import CALL, table
from toolkit.contract.hospital import IPP_SYSTEM

EACH_CASE = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def client(served, **changes):
    """Return a client of the service that hardly waits."""
    retry = Retry(first_wait_seconds=0.01)
    return Encounters.from_environment(served.environ(**changes), retry=retry)


# ---- behaviour.yaml


def test_the_table_of_the_page_has_the_rules_of_the_cases():
    page = (CALL / "packages.md").read_text("utf-8")
    rules = [row[0] for row in table(page, "Rule")]
    assert sorted(rules) == sorted({case.rule for case in CASES})


@EACH_CASE
def test_an_iterator_behaves_as_the_table_says(case, service):
    case.begin(service)
    ids, error = [], None
    with client(service, TIMEOUT_SECONDS=str(case.timeout)) as hospital:
        search = hospital.search(**PARAMETERS)
        try:
            ids += [stay.id for stay in search]
        except EncountersError as raised:
            error = type(raised).__name__
    result = {"total": search.total, "invalidRows": search.invalid_rows}
    result["isComplete"] = search.is_complete(len(set(ids)))
    case.assert_iterated(service, error, ids, result)


@EACH_CASE
def test_a_copy_behaves_as_the_table_says(case, service, tmp_path):
    case.begin(service)
    file, error = tmp_path / "stays.csv", None
    with client(service, TIMEOUT_SECONDS=str(case.timeout)) as hospital:
        try:
            report = hospital.search(**PARAMETERS).copy_to(file)
        except EncountersError as raised:
            error = type(raised).__name__
    assert error == ERRORS.get(case.exit)
    assert case.requests in (None, len(service.requests))
    assert service.tokens == case.tokens
    names = {path.name for path in tmp_path.iterdir()}
    if error:
        # What may succeed later continues later.
        assert names == ({"stays.csv.part"} if error == "Unavailable" else set())
    else:
        assert names == {"stays.csv"}
        ids = [line.split(",")[0] for line in file.read_text().splitlines()[1:]]
        assert sorted(ids) == case.ids
        assert report.is_complete == (case.exit == COMPLETE)
        assert report.invalid_rows == len(case.invalid)


# ---- objects


def test_stays_are_typed_and_keep_their_json():
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
        stay.raw = {}
    empty = Encounter({"resourceType": "Encounter", "id": "8"})
    assert (empty.start, empty.last_updated, empty.status, empty.ward) == (
        None,
        None,
        "",
        "",
    )
    patient = Patient({"id": "1", "birthDate": "1980", "name": [{"family": "A"}]})
    assert (patient.birth_date, patient.family, patient.given) == (None, "A", ())


def test_patients_are_found_by_id_and_by_identifier(served):
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


def test_columns_have_a_value_for_each_match(served):
    with client(served) as hospital:
        columns = hospital.search(**PARAMETERS).columns()
    assert {len(values) for values in columns.values()} == {25}
    assert columns["patient_id"][:3] == ["100", "100", "101"]
    assert columns["last_updated"][0].tzinfo is UTC
    assert columns["end"][0] is None


# ---- errors


def test_errors_name_host_and_status_and_quote_nothing(served, caplog):
    served.faults = {1: status(503, "0"), 2: status(403)}
    name = "Martin"
    with (
        client(served) as hospital,
        caplog.at_level(logging.WARNING, "encounters_client"),
        pytest.raises(Refused) as raised,
    ):
        list(hospital.patients(name=name))
    text = "".join(traceback.format_exception(raised.value)) + caplog.text
    assert f"{served.host}: status 403, processing" in text
    assert f"{served.host}: status 503" in text
    for value in (name, "eyJ", served.environ()["CLIENT_SECRET"], "No."):
        assert value not in text
    assert raised.value.issues[0].diagnostics == "No."


def test_a_refused_token_is_named(served):
    with (
        client(served, TOKEN_URL=f"{served.environ()['BASE']}/Encounter") as hospital,
        pytest.raises(Refused) as raised,
    ):
        hospital.encounter("1")
    assert raised.value.status == 405
    assert served.environ()["CLIENT_SECRET"] not in str(raised.value)


def test_a_missing_setting_is_named(served):
    environ = served.environ(BASE="", TOKEN_URL="")
    with pytest.raises(ValueError, match="BASE TOKEN_URL"):
        Encounters.from_environment(environ)


# ---- sync


def test_sync_reads_patients_ten_at_a_time(service, tmp_path):
    file = tmp_path / "copy.sqlite"
    service.open(90)
    with client(service) as hospital, SqliteStore(file) as store:
        hospital.sync(store, types=["Encounter"])
        service.hospital.change("Patient", 103, REMOVED)
        service.forget()
        steps = []
        hospital.sync(store, types=["Patient"], on_progress=steps.append)
    assert [step.rows for step in steps] == [10, 20, 30, 31]
    assert {step.total for step in steps} == {31}
    # 31 patients: the CapabilityStatement, four searches, and why one is missing.
    assert len(service.requests) == 6
    assert copied(file, CANCELLED) == {("Patient", "103"): None}
