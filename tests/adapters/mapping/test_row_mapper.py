"""Rows become records, or the fault that says what to mend and never whose row it is."""
# ruff: noqa: DTZ001 (times without a zone, as columns have them)

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from adapters.contract import (
    AddressRecord,
    EncounterRecord,
    IdentifierRecord,
    NameRecord,
    OrganizationRecord,
    PatientRecord,
    ResourceType,
    RowFault,
    TelecomRecord,
)
from adapters.mapping.problems import MappingError
from adapters.mapping.row_mapper import RowMapper
from tests.adapters.mapping.good import HTTP, MINIMAL, WHOLE, changed, load

MapRow = Callable[..., Any]

STAY = {
    "id": 900001,
    "visit": "000123456",
    "patient": 42,
    "state": "S",
    "kind": "01",
    "day": date(2024, 3, 30),
    "hour": time(8, 15),
    "ended": "202403311700",
    "unit": "0123",
    "changed": datetime(2024, 4, 1, 1, 2, 3),
}
PATIENT = {
    **{"id": 42, "active": "O", "sex": "NO", "born": date(1990, 2, 1), "died": None},
    **{"ipp": "8000", "ins": "190027512345678", "ins_state": "VALI"},
    **{"name": "DUPONT", "first": "Anne  Marie", "title": None, "phone": "0102030405"},
    **{"street": "1 rue X", "street2": None, "town": "Paris", "code": "75001"},
}
SMALL = {"a": 1, "b": 2, "c": "S", "d": None}


@pytest.fixture
def stay(tmp_path):
    return row_mapper(WHOLE, tmp_path, ResourceType.ENCOUNTER, STAY)


@pytest.fixture
def patient(tmp_path):
    return row_mapper(WHOLE, tmp_path, ResourceType.PATIENT, PATIENT)


def row_mapper(text, directory, kind, usual):
    """Return a function that maps the usual row with some cells changed."""
    mapper = RowMapper(load(text, directory).resources[kind], tuple(usual))
    return lambda **cells: mapper(tuple({**usual, **cells}.values()))


A_UUID = "12345678-1234-5678-1234-567812345678"
CELLS = (
    # ids are what a person would write
    ("id", "042", "id", "042"),
    ("id", "42  ", "id", "42"),
    ("id", -7, "id", "-7"),
    ("id", 42.0, "id", "42"),
    ("id", Decimal("42.50"), "id", "42.5"),
    ("id", Decimal("4.2E+2"), "id", "420"),
    ("id", True, "id", "true"),
    ("id", UUID(A_UUID), "id", A_UUID),
    # absence
    ("visit", "  ", "visit_number", None),
    ("ended", "999912312359  ", "end", None),
    ("ended", 999912312359, "end", None),
    # the leading blank is the hospital's own
    ("visit", " 7 ", "visit_number", " 7"),
    ("kind", "URG ", "class_code", "EMER"),
    ("kind", "NEW", "class_code", "UNK"),
    ("kind", "", "class_code", "UNK"),
    # a date without its time of day has the `at` of the file, read in the source's zone
    ("hour", " ", "start", datetime(2024, 3, 30, 8, 0, tzinfo=UTC)),
    ("hour", timedelta(hours=9), "start", datetime(2024, 3, 30, 9, 0, tzinfo=UTC)),
    # a day that is a column of times has its time of day in the other column, too
    ("day", datetime(2024, 3, 30), "start", datetime(2024, 3, 30, 8, 15, tzinfo=UTC)),
    # an end with the start's instant is no fault
    ("ended", "202403300815", "end", datetime(2024, 3, 30, 8, 15, tzinfo=UTC)),
)


def test_cells(stay):
    for column, cell, field, expected in CELLS:
        assert getattr(stay(**{column: cell}), field) == expected, cell


EMPTY = "required and empty"
NO_ID = "not a FHIR id: up to 64 letters, digits, '-' and '.'"
NO_TEXT = "a value of type bytes is not a text: convert it in the SELECT"
AN_OBJECT = (
    "an object: name a path inside it, like patient.ipp, or convert it to a text in"
    " the SELECT"
)
FAULTS = (
    ("id", None, "id", EMPTY),
    ("state", None, "status", EMPTY),
    ("day", None, "start", EMPTY),
    ("state", "Z", "status", "no entry for 'Z' in codes.status"),
    (
        "state",
        "Marie Dupont, née Martin",
        "status",
        "no entry for a text of 24 characters in codes.status",
    ),
    ("id", "a_b", "id", NO_ID),
    ("patient", "x" * 65, "patient_id", NO_ID),
    ("visit", "12\x003", "visit_number", "contains a control character"),
    ("unit", b"\x01\x02", "functional_unit", NO_TEXT),
    ("unit", {"code": "U1"}, "functional_unit", AN_OBJECT),
    ("ended", "202403300814", "end", "ends before it starts"),
    ("ended", "31/03", "end", "not readable as %Y%m%d%H%M"),
    ("changed", "soon", "last_updated", "not readable as a time"),
    ("hour", "8h", "start", "not readable as a time of day"),
)


def test_faults(stay):
    for column, cell, field, rule in FAULTS:
        named = "day, hour" if field == "start" else column
        assert stay(**{column: cell}) == RowFault(field, named, rule)


def test_what_stands_before_an_id_is_stripped_and_must_be_there(tmp_path):
    text = changed(HTTP, "{from: patient.id}", "{from: patient.id, strip: Patient/}")
    row = {"id": 1, "patient.id": "Patient/7", "state": "S", "began": None}
    stay = row_mapper(text, tmp_path, ResourceType.ENCOUNTER, row)
    assert stay().patient_id == "7"
    for cell in ("7", "Group/7", "Patient"):
        fault = RowFault("patient_id", "patient.id", "does not begin with Patient/")
        assert stay(**{"patient.id": cell}) == fault


def test_a_row_that_is_not_served_is_no_fault(stay):
    for state, status in (("A", "hidden"), ("X", "removed")):
        for cells in ({"patient": None}, {"ended": "x"}, {"id": "a_b"}):
            assert stay(**cells, state=state).status == status


def test_a_row_whose_code_is_one_of_all_others_is_hidden(tmp_path):
    text = changed(MINIMAL, "A: hidden}", "F: finished}, otherwise: hidden")
    stay = row_mapper(text, tmp_path, ResourceType.ENCOUNTER, SMALL)
    for cells in ({"b": None}, {"d": "x"}, {"a": "a_b"}):
        assert stay(**cells, c="?").status == "hidden"
        assert isinstance(stay(**cells), RowFault)


def test_the_clock_changes_of_a_field_count_more_than_those_of_the_file(tmp_path):
    text = changed(
        MINIMAL,
        *("source:", "local_times: {twice: second, never: shift}\nsource:"),
        *("{from: d}", "{from: d, twice: first}"),
    )
    stay = row_mapper(text, tmp_path, ResourceType.ENCOUNTER, SMALL)
    twice, never = datetime(2024, 10, 27, 2, 30), datetime(2024, 3, 31, 2, 30)
    assert stay(d=twice).start == datetime(2024, 10, 27, 0, 30, tzinfo=UTC)
    assert stay(d=never).start == datetime(2024, 3, 31, 1, 0, tzinfo=UTC)


def test_a_stay_over_the_hour_that_happens_twice(tmp_path):
    start, late = "start: {from: d}", datetime(2024, 10, 27, 2, 50)
    for twice in ("", ", twice: first", ", twice: second"):
        text = changed(MINIMAL, start, f"{start}\n    end: {{from: e{twice}}}")
        usual = {**SMALL, "e": datetime(2024, 10, 27, 2, 10)}
        stay = row_mapper(text, tmp_path, ResourceType.ENCOUNTER, usual)
        assert stay(d=late).end == datetime(2024, 10, 27, 1, 10, tzinfo=UTC)
        if "second" not in twice:
            made = stay(d=usual["e"])
            assert made.start == made.end, "a stay of no minutes is none of an hour"
    # An end that says its offset is not read as a later one.
    for end in (
        datetime(2024, 10, 26, 2, 10),
        datetime(2024, 10, 27, 0, 10, tzinfo=UTC),
        "2024-10-27T02:10:00+02:00",
    ):
        assert stay(d=late, e=end) == RowFault("end", "e", "ends before it starts")


def test_absent_values_in_whatever_type(tmp_path):
    text = changed(
        MINIMAL,
        *("{from: d}", '{from: d, absent: ["9999-12-31"]}'),
        *("codes: status}", 'codes: status, absent: ["P", "-"]}'),
        *("id: {from: a}", 'id: {from: a, absent: ["0"]}'),
    )
    stay = row_mapper(text, tmp_path, ResourceType.ENCOUNTER, SMALL)
    day = datetime(9999, 12, 31)
    for value in (day, day.date(), "9999-12-31", "9999-12-31 "):
        assert stay(d=value).start is None
    assert [stay(c="-"), stay(c="P")] == [RowFault("status", "c", EMPTY)] * 2
    assert [stay(a="0"), stay(a=0)] == [RowFault("id", "a", EMPTY)] * 2


def test_a_patient(patient):
    system = "urn:oid:1.2.250.1.999.2"
    ins_system = "urn:oid:1.2.250.1.213.1.4.8"
    assert patient() == PatientRecord(
        id="42",
        active=True,
        identifiers=(
            IdentifierRecord("8000", system, "PI", "usual", "hospital-1"),
            IdentifierRecord("190027512345678", ins_system, "INS-NIR", "official"),
        ),
        names=(NameRecord("official", "DUPONT", ("Anne", "Marie")),),
        telecoms=(TelecomRecord("0102030405", "phone", "home"),),
        gender="male",
        birth_date=date(1990, 2, 1),
        addresses=(AddressRecord("home", ("1 rue X",), "Paris", "75001", "FR"),),
        organization_id="hospital-1",
    )
    nothing = dict.fromkeys(PATIENT) | {"id": 42}
    assert patient(**nothing) == PatientRecord("42", organization_id="hospital-1")


INS = "type: INS-NIR\n        system: urn:oid:1.2.3\n        use: temp\n"
TEMPORARY = IdentifierRecord("190027512345678", "urn:oid:1.2.3", "INS-NIR", "temp")
GIVEN, SEARCH = '{from: first, split: " "}', "[_id, name, family, given, "
UNIT = "    functional_unit: {from: unit}"
OPTIONS = (
    # A fault names the word of the file.
    (STAY, (", otherwise: UNK", ""), {"kind": None}, RowFault("class", "kind", EMPTY)),
    # A system from a column wins over the constant.
    (
        STAY,
        (UNIT, f"{UNIT}\n    visit_number_system: {{from: state}}"),
        {},
        {"visit_number_system": "S"},
    ),
    # What is known of a type is replaced by the file.
    (PATIENT, ("type: INS-NIR\n", INS), {"ipp": None}, {"identifiers": (TEMPORARY,)}),
    # A required list holds an item.
    (
        PATIENT,
        (f"  search: {SEARCH}", f"  requires: [telecoms]\n  search: {SEARCH}"),
        {"phone": None},
        RowFault("telecoms", "", EMPTY),
    ),
    # Given names are one text where nothing cuts it.
    (
        PATIENT,
        (GIVEN, "Anonyme", SEARCH, "[_id, "),
        {},
        {"names": (NameRecord("official", "DUPONT", ("Anonyme",)),)},
    ),
)
"""A row, changes of WHOLE, changed cells, and fields of the record, or the row's fault."""


def test_options(tmp_path):
    for usual, changes, cells, expected in OPTIONS:
        kind = ResourceType.ENCOUNTER if usual is STAY else ResourceType.PATIENT
        made = row_mapper(changed(WHOLE, *changes), tmp_path, kind, usual)(**cells)
        if isinstance(expected, RowFault):
            assert made == expected
        else:
            assert made._asdict().items() >= expected.items()


ITEMS = (
    ({"ins_state": "PROV"}, "identifiers", ["8000"]),
    ({"ins_state": 0}, "identifiers", ["8000", "190027512345678"]),
    ({"ins": ""}, "identifiers", ["8000"]),
    ({"ipp": None, "ins": None}, "identifiers", []),
    ({"phone": " "}, "telecoms", []),
    # a country alone, which is the same for all, is no address
    ({"street": "", "town": None, "code": None}, "addresses", []),
    # a title alone is no name
    ({"name": None, "first": "", "title": "Dr"}, "names", []),
)


def test_items_without_content_are_left_out(patient):
    for cells, field, expected in ITEMS:
        assert [item.value for item in getattr(patient(**cells), field)] == expected


def test_texts_for_people_lose_their_control_characters(patient):
    made = patient(name="DU\x00PONT\x1f", town="a\tb\nc", street="\x01")
    assert made.names == (NameRecord("official", "DU PONT", ("Anne", "Marie")),)
    assert (made.addresses[0].city, made.addresses[0].lines) == ("a\tb\nc", ())
    fault = RowFault("identifiers.value", "ipp", "contains a control character")
    assert patient(ipp="1\x00") == fault


def test_given_names_may_be_a_list(patient):
    made = patient(first=["Éléonore", None, "Anne-Marie ", ""])
    assert made.names[0].given == ("Éléonore", "Anne-Marie")
    fault = patient(first=["Anne", ["Marie"]])
    assert (fault.field, fault.column) == ("names.given", "first")
    assert fault.rule.startswith("a list: ")


NO_FLAG = RowFault(
    "active", "active", "not true or false: name a code table (codes: …)"
)
FLAGS = (
    *((True, True), (False, False), (0, False), (None, None), (" ", None)),
    *((Decimal(1), True), (b"\x01", True), (b"\x00", False)),
    *((value, NO_FLAG) for value in (2, "true", b"\x02", [1])),
)


def test_flags(patient, tmp_path):
    for code, flag in {"O": True, "N ": False, "": None}.items():
        assert patient(active=code).active is flag
    text = changed(
        WHOLE,
        *("{from: active, codes: yes}", "{from: active}"),
        *("  yes: {table: {O: true, N: false}}\n", ""),
    )
    uncoded = row_mapper(text, tmp_path, ResourceType.PATIENT, PATIENT)
    for value, expected in FLAGS:
        made = uncoded(active=value)
        assert (made if made == NO_FLAG else made.active) == expected, value


def test_an_organization_needs_a_name_or_an_identifier(tmp_path):
    unit = {"code": "1", "label": ""}
    made = row_mapper(WHOLE, tmp_path, ResourceType.ORGANIZATION, unit)
    rule = "an organization needs a name or an identifier"
    assert made() == RowFault("name", "label", rule)
    assert made(label="A ") == OrganizationRecord("1", name="A")


def test_columns_are_found_by_their_names(tmp_path):
    section = load(MINIMAL, tmp_path).resources[ResourceType.ENCOUNTER]
    mapper = RowMapper(section, ("d", "x", "c", "b", "a"))
    made = mapper((None, "?", "P", 2, 1))
    assert made == EncounterRecord("1", "planned", "2")
    with pytest.raises(MappingError) as refused:
        RowMapper(section, ("a", "b", "c1"))
    assert [str(p).removeprefix(f"{tmp_path}/") for p in refused.value.problems] == [
        "m.yaml:13:20: Encounter.status ← c: the SELECT returns no column 'c'; did you "
        "mean 'c1'?",
        "m.yaml:14:19: Encounter.period.start ← d: the SELECT returns no column 'd'",
    ]
