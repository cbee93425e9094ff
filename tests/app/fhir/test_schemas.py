"""Schemas: records as STU3 resources, from a whole record down to the barest one."""

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import orjson
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from marshmallow import Schema

from adapters.contract import (
    AddressRecord,
    EncounterRecord,
    IdentifierRecord,
    NameRecord,
    OrganizationRecord,
    PatientRecord,
    ResourceType,
    TelecomRecord,
)
from adapters.mapping.model import Constants
from app.fhir.resources import CLASS_LABELS, SCHEMAS
from tests.validity.client import validate
from tests.validity.stu3 import codes

PARIS = ZoneInfo("Europe/Paris")
UNIT_URL = "https://example.org/fhir/StructureDefinition/functional-unit"
TYPES = "https://example.org/fhir/identifier-types"
CONSTANTS = Constants(
    functional_unit_extension=UNIT_URL,
    patient_identifier_type_system=TYPES,
    organization_identifier_type_system=TYPES,
)
KINDS = {
    EncounterRecord: ResourceType.ENCOUNTER,
    PatientRecord: ResourceType.PATIENT,
    OrganizationRecord: ResourceType.ORGANIZATION,
}

ENCOUNTER = EncounterRecord(
    id="e-1",
    status="finished",
    patient_id="p-1",
    visit_number="000123456",
    visit_number_system="urn:oid:1.2.250.1.999.1.1",
    class_code="IMP",
    start=datetime(2024, 3, 30, 8, 15, tzinfo=PARIS),
    end=datetime(2024, 3, 31, 17, 0, tzinfo=PARIS),
    functional_unit="0123",
    ward="Cardiologie 2 – Est",
    organization_id="o-1",
    last_updated=datetime(2024, 4, 1, 6, 0, 0, 120_000, tzinfo=UTC),
)
PATIENT = PatientRecord(
    id="p-1",
    active=True,
    identifiers=(
        IdentifierRecord("42", "urn:oid:1.2.250.1", "PI", "usual", "o-1"),
        IdentifierRecord("1840", "urn:oid:1.2.250.1.213.1.4.10", "INS-NIR", "official"),
    ),
    names=(
        NameRecord("official", "Noël", ("Zoé", "Anne"), "Dr"),
        NameRecord(use="usual", text="Zoé N."),
    ),
    telecoms=(TelecomRecord("0102030405", "phone", "home"),),
    gender="female",
    birth_date=date(1984, 2, 29),
    addresses=(
        AddressRecord("home", ("1 rue Haute", "Bât. B"), "Lyon", "69001", "FR"),
    ),
    organization_id="o-1",
    last_updated=datetime(2024, 4, 1, tzinfo=UTC),
)
ORGANIZATION = OrganizationRecord(
    id="uf-0123",
    active=True,
    identifiers=(IdentifierRecord("690000001", "urn:oid:1.2.250.1", "FINEG"),),
    name="Cardiologie",
    telecoms=(TelecomRecord("0102030405", "phone", "work"),),
    addresses=(AddressRecord(lines=("1 rue Haute",), city="Lyon"),),
    part_of="o-1",
    last_updated=datetime(2024, 4, 1, tzinfo=UTC),
)


def written(record, constants=CONSTANTS):
    """Return the resource as a client reads it, valid by STU3 and the spec."""
    resource = SCHEMAS[KINDS[type(record)]](constants).dump(record)
    body = orjson.loads(orjson.dumps(resource))
    validate(body)
    return body


WHOLE = yaml.safe_load(
    """
Encounter:
  resourceType: Encounter
  id: e-1
  meta: {lastUpdated: "2024-04-01T06:00:00.120000+00:00"}
  identifier:
    - use: official
      type:
        coding:
          - system: http://www.interopsante.org/fhir/valueset/fr-encounter-identifier-type
            version: 3.0.1
            code: VN
            display: Visit Number
      system: urn:oid:1.2.250.1.999.1.1
      value: "000123456"
      assigner: {reference: Organization/o-1}
  status: finished
  subject: {reference: Patient/p-1}
  period: {start: "2024-03-30T08:15:00+01:00", end: "2024-03-31T17:00:00+02:00"}
  location: [{location: {display: Cardiologie 2 – Est}}]
  serviceProvider:
    extension:
      - url: https://example.org/fhir/StructureDefinition/functional-unit
        valueString: "0123"
    reference: Organization/o-1
  class:
    code: IMP
    display: inpatient encounter
    system: http://hl7.org/fhir/v3/ActCode
Patient:
  resourceType: Patient
  id: p-1
  meta: {lastUpdated: "2024-04-01T00:00:00+00:00"}
  identifier:
    - use: usual
      type: {coding: [{system: https://example.org/fhir/identifier-types, code: PI}]}
      system: urn:oid:1.2.250.1
      value: "42"
      assigner: {reference: Organization/o-1}
    - use: official
      type: {coding: [{system: https://example.org/fhir/identifier-types, code: INS-NIR}]}
      system: urn:oid:1.2.250.1.213.1.4.10
      value: "1840"
  active: true
  name:
    - {use: official, family: Noël, given: [Zoé, Anne], prefix: [Dr]}
    - {use: usual, text: Zoé N.}
  telecom: [{system: phone, value: "0102030405", use: home}]
  gender: female
  birthDate: "1984-02-29"
  address:
    - use: home
      line: [1 rue Haute, Bât. B]
      city: Lyon
      postalCode: "69001"
      country: FR
  managingOrganization: {reference: Organization/o-1}
Organization:
  resourceType: Organization
  id: uf-0123
  meta: {lastUpdated: "2024-04-01T00:00:00+00:00"}
  identifier:
    - type: {coding: [{system: https://example.org/fhir/identifier-types, code: FINEG}]}
      system: urn:oid:1.2.250.1
      value: "690000001"
  active: true
  name: Cardiologie
  telecom: [{system: phone, value: "0102030405", use: work}]
  address: [{line: [1 rue Haute], city: Lyon}]
  partOf: {reference: Organization/o-1}
"""
)


def test_a_record_is_the_whole_resource_in_its_order():
    for record in (ENCOUNTER, PATIENT, ORGANIZATION):
        resource = WHOLE[KINDS[type(record)]]
        assert [*written(record).items()] == [*resource.items()]
    assert written(EncounterRecord(id="e-1", status="planned", patient_id="p-1")) == {
        **{"resourceType": "Encounter", "id": "e-1", "status": "planned"},
        "subject": {"reference": "Patient/p-1"},
    }


DIED = datetime(2024, 1, 2, 3, 4, 5, tzinfo=PARIS)
OTHER_TELECOM = {"system": "other", "value": "1"}
MERGED = [{"other": {"reference": "Patient/p-2"}, "type": "replaced-by"}]
BEGAN = {"start": WHOLE["Encounter"]["period"]["start"]}
UNIT = {"extension": [{"url": UNIT_URL, "valueString": "0123"}]}
OWN = {"reference": "Organization/o-1"}


@pytest.mark.parametrize(
    ("record", "changed", "element", "value"),
    [
        (ENCOUNTER, {"end": None}, "period", BEGAN),
        (ENCOUNTER, {"start": None, "end": None}, "period", None),
        (ENCOUNTER, {"visit_number": None}, "identifier", None),
        (ENCOUNTER, {"class_code": None}, "class", None),
        (ENCOUNTER, {"ward": ""}, "location", None),
        (ENCOUNTER, {"organization_id": None}, "serviceProvider", UNIT),
        (ENCOUNTER, {"functional_unit": None}, "serviceProvider", OWN),
        (
            PATIENT,
            {"names": (NameRecord(), NameRecord(family="A", given=("", "B")))},
            *("name", [{"family": "A", "given": ["B"]}]),
        ),
        (PATIENT, {"addresses": (AddressRecord(lines=("",)),)}, "address", None),
        (PATIENT, {"telecoms": (TelecomRecord("1"),)}, "telecom", [OTHER_TELECOM]),
        (PATIENT, {"deceased": False}, "deceasedBoolean", False),
        (PATIENT, {"deceased": True, "deceased_at": DIED}, "deceasedBoolean", None),
        (PATIENT, {"deceased_at": DIED}, "deceasedDateTime", DIED.isoformat()),
        (PATIENT, {"replaced_by": "p-2"}, "active", False),
        (PATIENT, {"replaced_by": "p-2"}, "link", MERGED),
    ],
)
def test_an_element_holds_what_the_record_knows(record, changed, element, value):
    assert written(record._replace(**changed)).get(element) == value


def test_what_names_no_system_has_none():
    body = written(ENCOUNTER._replace(visit_number_system=None), Constants())
    assert [*body["identifier"][0]] == ["use", "type", "value", "assigner"]
    assert body["serviceProvider"] == OWN


def test_class_labels_are_those_of_the_code_system():
    known = codes("v3-ActCode")
    for code in ("EMER", "IMP", "PRENC", "AMB"):
        assert CLASS_LABELS[code] == known[code]


TEXT = st.none() | st.sampled_from(("", "0", "a", "é 1"))
TEXT_TUPLES = st.lists(st.sampled_from(("", "a", "b")), max_size=2).map(tuple)
MOMENTS = st.none() | st.datetimes(timezones=st.just(UTC) | st.just(PARIS))


def tuples_of(record, **values):
    texts = dict.fromkeys(record._fields, TEXT)
    return st.lists(st.builds(record, **{**texts, **values}), max_size=2).map(tuple)


OPTIONS = {
    "identifiers": tuples_of(IdentifierRecord),
    "names": tuples_of(NameRecord, given=TEXT_TUPLES),
    "telecoms": tuples_of(TelecomRecord),
    "addresses": tuples_of(AddressRecord, lines=TEXT_TUPLES),
    **dict.fromkeys(("start", "end", "last_updated", "deceased_at"), MOMENTS),
    **dict.fromkeys(("active", "deceased"), st.none() | st.booleans()),
    "class_code": st.none() | st.sampled_from([*CLASS_LABELS]),
    "birth_date": st.none() | st.dates() | st.sampled_from(["1950", "1950-06"]),
}


@given(st.data())
def test_any_record_is_what_marshmallow_itself_dumps(data):
    record_type = data.draw(st.sampled_from([*KINDS]))
    fields = {name: OPTIONS.get(name, TEXT) for name in record_type._fields}
    records = data.draw(st.lists(st.builds(record_type, **fields), max_size=3))
    constants = data.draw(st.sampled_from((CONSTANTS, Constants())))
    schema = SCHEMAS[KINDS[record_type]](constants)
    resources = schema.dump(records, many=True)
    expected = Schema.dump(schema, records, many=True)
    assert [[*r.items()] for r in resources] == [[*r.items()] for r in expected]
