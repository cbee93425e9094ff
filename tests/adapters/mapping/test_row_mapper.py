"""Rows become records, or the fault that says what to mend and never whose row it is."""

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
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
    Record,
    ResourceType,
    RowFault,
    TelecomRecord,
)
from adapters.mapping.problems import MappingError
from adapters.mapping.row_mapper import RowMapper, item_columns
from tests.adapters.mapping.good import MINIMAL, WHOLE, changed, load

MapRow = Callable[..., Record | RowFault]

STAY: Mapping[str, object] = {
    "id": 900001,
    "visit": "000123456",
    "patient": 42,
    "state": "S",
    "kind": "01",
    "day": date(2024, 3, 30),
    "hour": time(8, 15),
    "ended": "202403311700",
    "unit": "0123",
    "changed": datetime(2024, 4, 1, 1, 2, 3),  # noqa: DTZ001 (as the column is)
}
PATIENT: Mapping[str, object] = {
    **{"id": 42, "active": "O", "sex": "NO", "born": date(1990, 2, 1), "died": None},
    **{"ipp": "8000", "ins": "190027512345678", "ins_state": "VALI"},
    **{"name": "DUPONT", "first": "Anne  Marie", "title": None, "phone": "0102030405"},
    **{"street": "1 rue X", "street2": None, "town": "Paris", "code": "75001"},
}


@pytest.fixture
def stay(tmp_path: Path) -> MapRow:
    return row_mapper(WHOLE, tmp_path, ResourceType.ENCOUNTER, STAY)


@pytest.fixture
def patient(tmp_path: Path) -> MapRow:
    return row_mapper(WHOLE, tmp_path, ResourceType.PATIENT, PATIENT)


def row_mapper(
    text: str, directory: Path, kind: ResourceType, usual: Mapping[str, object]
) -> MapRow:
    """Return a function that maps the usual row with some cells changed."""
    mapper = RowMapper(load(text, directory).resources[kind], tuple(usual))
    return lambda **cells: mapper(tuple({**usual, **cells}.values()))


# -------------------------------------------------------------------- encounters


def test_a_stay(stay: MapRow) -> None:
    made = stay()
    assert isinstance(made, EncounterRecord)
    assert made == EncounterRecord(
        id="900001",
        status="finished",
        patient_id="42",
        visit_number="000123456",
        visit_number_system="urn:oid:1.2.250.1.999.1.1",
        class_code="IMP",
        start=datetime(2024, 3, 30, 8, 15, tzinfo=UTC),
        end=datetime(2024, 3, 31, 16, 0, tzinfo=UTC),
        functional_unit="0123",
        organization_id="hospital-1",
        last_updated=datetime(2024, 4, 1, 1, 2, 3, tzinfo=UTC),
    )
    assert made.start is not None
    assert made.end is not None
    assert made.start.isoformat() == "2024-03-30T09:15:00+01:00"
    assert made.end.isoformat() == "2024-03-31T18:00:00+02:00"


WRITTEN = (
    ("042", "042"),
    ("42  ", "42"),
    (42, "42"),
    (-7, "-7"),
    (10**20, "1" + "0" * 20),
    (42.0, "42"),
    (1e3, "1000"),
    (Decimal("42"), "42"),
    (Decimal("42.00"), "42"),
    (Decimal("42.50"), "42.5"),
    (Decimal("4.2E+2"), "420"),
    (True, "true"),
    (
        UUID("12345678-1234-5678-1234-567812345678"),
        "12345678-1234-5678-1234-567812345678",
    ),
    (date(2024, 3, 30), "2024-03-30"),
)


@pytest.mark.parametrize(("value", "text"), WRITTEN)
def test_ids_are_what_a_person_would_write(
    stay: MapRow, value: object, text: str
) -> None:
    made = stay(id=value)
    assert isinstance(made, EncounterRecord)
    assert made.id == text


def test_kinds_of_value_that_come_from_a_known_one(stay: MapRow) -> None:
    class Text(str):
        __slots__ = ()

    made = stay(id=Text("a1 "))
    assert isinstance(made, EncounterRecord)
    assert made.id == "a1"


CELLS: tuple[tuple[dict[str, object], str, object], ...] = (
    # absence
    ({"visit": None}, "visit_number", None),
    ({"visit": ""}, "visit_number", None),
    ({"visit": "  "}, "visit_number", None),
    ({"ended": None}, "end", None),
    ({"ended": " "}, "end", None),
    ({"ended": "999912312359"}, "end", None),
    ({"ended": "999912312359  "}, "end", None),
    ({"ended": 999912312359}, "end", None),
    # the leading blank is the hospital's own
    ({"visit": " 7 "}, "visit_number", " 7"),
    # codes
    ({"kind": "URG "}, "class_code", "EMER"),
    ({"kind": "NEW"}, "class_code", "UNK"),
    ({"kind": None}, "class_code", "UNK"),
    ({"kind": ""}, "class_code", "UNK"),
    ({"state": "X"}, "status", "removed"),
    ({"state": "A"}, "status", "hidden"),
    # a date without its time of day has the `at` of the file, read in the source's zone
    ({"hour": None}, "start", datetime(2024, 3, 30, 8, 0, tzinfo=UTC)),
    ({"hour": timedelta(hours=9)}, "start", datetime(2024, 3, 30, 9, 0, tzinfo=UTC)),
    # a day that is a column of times has its time of day in the other column, too
    (
        {"day": datetime(2024, 3, 30)},  # noqa: DTZ001
        "start",
        datetime(2024, 3, 30, 8, 15, tzinfo=UTC),
    ),
    # an end with the start's instant is no fault
    ({"ended": "202403300815"}, "end", datetime(2024, 3, 30, 8, 15, tzinfo=UTC)),
)


@pytest.mark.parametrize(("cells", "field", "expected"), CELLS)
def test_cells(
    stay: MapRow, cells: dict[str, object], field: str, expected: object
) -> None:
    made = stay(**cells)
    assert isinstance(made, EncounterRecord)
    assert getattr(made, field) == expected


FAULTS: tuple[tuple[dict[str, object], RowFault], ...] = (
    ({"id": None}, RowFault("id", "id", "required and empty")),
    ({"id": " "}, RowFault("id", "id", "required and empty")),
    ({"patient": None}, RowFault("patient_id", "patient", "required and empty")),
    ({"state": None}, RowFault("status", "state", "required and empty")),
    ({"day": None}, RowFault("start", "day, hour", "required and empty")),
    (
        {"state": "Z"},
        RowFault("status", "state", "no entry for 'Z' in codes.status"),
    ),
    (
        {"state": 7},
        RowFault("status", "state", "no entry for '7' in codes.status"),
    ),
    (
        {"state": "Marie Dupont, née Martin"},
        RowFault(
            "status", "state", "no entry for a text of 24 characters in codes.status"
        ),
    ),
    (
        {"id": "a_b"},
        RowFault("id", "id", "not a FHIR id: up to 64 letters, digits, '-' and '.'"),
    ),
    (
        {"patient": "x" * 65},
        RowFault(
            "patient_id",
            "patient",
            "not a FHIR id: up to 64 letters, digits, '-' and '.'",
        ),
    ),
    (
        {"visit": "12\x003"},
        RowFault("visit_number", "visit", "holds a control character"),
    ),
    (
        {"unit": b"\x01\x02"},
        RowFault(
            "functional_unit",
            "unit",
            "a value of type bytes is no text: make one in the SELECT",
        ),
    ),
    (
        {"unit": {"code": "U1"}},
        RowFault(
            "functional_unit",
            "unit",
            "an object: name a path inside it, like patient.ipp, or make a text of it in"
            " the SELECT",
        ),
    ),
    ({"ended": "202403300814"}, RowFault("end", "ended", "ends before it starts")),
    ({"ended": "31/03"}, RowFault("end", "ended", "not readable as %Y%m%d%H%M")),
    (
        {"changed": "soon"},
        RowFault("last_updated", "changed", "not readable as a time"),
    ),
    ({"hour": "8h"}, RowFault("start", "day, hour", "not readable as a time of day")),
)


@pytest.mark.parametrize(("cells", "fault"), FAULTS)
def test_faults(stay: MapRow, cells: dict[str, object], fault: RowFault) -> None:
    assert stay(**cells) == fault


def test_a_required_class_is_named_by_the_word_of_the_file(tmp_path: Path) -> None:
    text = changed(WHOLE, ", otherwise: UNK", "")
    stay = row_mapper(text, tmp_path, ResourceType.ENCOUNTER, STAY)
    assert stay(kind=None) == RowFault("class", "kind", "required and empty")


@pytest.mark.parametrize("status", ["hidden", "removed"])
@pytest.mark.parametrize("cells", [{"patient": None}, {"ended": "x"}, {"id": "a_b"}])
def test_a_row_that_is_not_served_is_no_fault(
    stay: MapRow, status: str, cells: dict[str, object]
) -> None:
    made = stay(**cells, state={"hidden": "A", "removed": "X"}[status])
    assert isinstance(made, EncounterRecord)
    assert made.status == status


def test_a_stay_over_the_hour_that_happens_twice(tmp_path: Path) -> None:
    text = changed(
        MINIMAL,
        "start: {from: d}",
        "start: {from: d}\n    end: {from: e, twice: second}",
    )
    columns: dict[str, object] = {"a": 1, "b": 2, "c": "S", "d": None, "e": None}
    stay = row_mapper(text, tmp_path, ResourceType.ENCOUNTER, columns)
    made = stay(
        d=datetime(2024, 10, 27, 2, 50),  # noqa: DTZ001
        e=datetime(2024, 10, 27, 2, 10),  # noqa: DTZ001
    )
    assert isinstance(made, EncounterRecord)
    assert made.end == datetime(2024, 10, 27, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    "value",
    [
        date(9999, 12, 31),
        datetime(9999, 12, 31),  # noqa: DTZ001
        "9999-12-31",
        "9999-12-31 ",
    ],
)
def test_a_sentinel_day_in_whatever_type(tmp_path: Path, value: object) -> None:
    text = changed(MINIMAL, "{from: d}", '{from: d, absent: ["9999-12-31"]}')
    columns = {"a": 1, "b": 2, "c": "S", "d": value}
    made = row_mapper(text, tmp_path, ResourceType.ENCOUNTER, columns)()
    assert isinstance(made, EncounterRecord)
    assert made.start is None


def test_absent_texts_of_a_coded_field(tmp_path: Path) -> None:
    text = changed(MINIMAL, "codes: status}", 'codes: status, absent: ["P", "-"]}')
    columns = {"a": 1, "b": 2, "c": "-", "d": None}
    stay = row_mapper(text, tmp_path, ResourceType.ENCOUNTER, columns)
    empty = RowFault("status", "c", "required and empty")
    assert [stay(c="-"), stay(c="P")] == [empty, empty]


# ---------------------------------------------------------------------- patients


def test_a_patient(patient: MapRow) -> None:
    assert patient() == PatientRecord(
        id="42",
        active=True,
        identifiers=(
            IdentifierRecord(
                "8000", "urn:oid:1.2.250.1.999.2", "PI", "usual", "hospital-1"
            ),
            IdentifierRecord(
                "190027512345678", "urn:oid:1.2.250.1.213.1.4.8", "INS-NIR", "official"
            ),
        ),
        names=(NameRecord("official", "DUPONT", ("Anne", "Marie")),),
        telecoms=(TelecomRecord("0102030405", "phone", "home"),),
        gender="male",
        birth_date=date(1990, 2, 1),
        addresses=(AddressRecord("home", ("1 rue X",), "Paris", "75001", "FR"),),
        organization_id="hospital-1",
    )


ITEMS: tuple[tuple[dict[str, object], str, object], ...] = (
    ({"ins_state": "PROV"}, "identifiers", ["8000"]),
    ({"ins_state": None}, "identifiers", ["8000"]),
    ({"ins_state": 0}, "identifiers", ["8000", "190027512345678"]),
    ({"ins": ""}, "identifiers", ["8000"]),
    ({"ipp": None, "ins": None}, "identifiers", []),
    ({"phone": " "}, "telecoms", []),
    # a country alone, which is the same for all, is no address
    ({"street": "", "town": None, "code": None}, "addresses", []),
    # a title alone is no name
    ({"name": None, "first": "", "title": "Dr"}, "names", []),
)


@pytest.mark.parametrize(("cells", "field", "expected"), ITEMS)
def test_items_without_content_are_left_out(
    patient: MapRow, cells: dict[str, object], field: str, expected: list[str]
) -> None:
    made = getattr(patient(**cells), field)
    assert [item.value if field == "identifiers" else item for item in made] == expected


def test_texts_for_people_lose_their_control_characters(patient: MapRow) -> None:
    made = patient(
        name="DU\x00PONT\x1f", first="Éléonore\x07", town="a\tb\nc", street="\x01"
    )
    assert isinstance(made, PatientRecord)
    assert made.names[0].family == "DU PONT"
    assert made.names[0].given == ("Éléonore",)
    assert made.addresses[0].city == "a\tb\nc"
    assert made.addresses[0].lines == ()


def test_given_names_may_be_a_list(patient: MapRow) -> None:
    made = patient(name="DUPONT", first=["Éléonore", None, "Anne-Marie ", ""])
    assert isinstance(made, PatientRecord)
    assert made.names[0].given == ("Éléonore", "Anne-Marie")
    assert patient(name="DUPONT", first=["Anne", ["Marie"]]) == RowFault(
        "names.given",
        "first",
        "a list: read it by an item with 'rows', or make a text of it in the SELECT",
    )


def test_given_names_are_one_text_where_nothing_cuts_it(tmp_path: Path) -> None:
    text = changed(WHOLE, 'given: {from: first, split: " "}', "given: {from: first}")
    made = row_mapper(text, tmp_path, ResourceType.PATIENT, PATIENT)()
    assert isinstance(made, PatientRecord)
    assert made.names == (NameRecord("official", "DUPONT", ("Anne  Marie",)),)


def test_a_given_name_that_is_the_same_for_all(tmp_path: Path) -> None:
    text = changed(WHOLE, 'given: {from: first, split: " "}', "given: Anonyme")
    text = changed(text, "[_id, name, family, given, ", "[_id, ")
    names = {k: v for k, v in PATIENT.items() if k != "first"}
    made = row_mapper(text, tmp_path, ResourceType.PATIENT, names)()
    assert isinstance(made, PatientRecord)
    assert made.names == (NameRecord("official", "DUPONT", ("Anonyme",)),)


def test_a_faulty_item_is_named_by_its_list(patient: MapRow) -> None:
    assert patient(ipp="1\x00") == RowFault(
        "identifiers.value", "ipp", "holds a control character"
    )


FLAGS = (
    *((True, True), (False, False), (1, True), (0, False), (None, None), (" ", None)),
    *((Decimal(1), True), (1.0, True), (b"\x01", True), (b"\x00", False)),
)


@pytest.mark.parametrize(("value", "expected"), FLAGS)
def test_flags(tmp_path: Path, value: object, expected: bool | None) -> None:
    made = flag_mapper(tmp_path)(active=value)
    assert isinstance(made, PatientRecord)
    assert made.active is expected


@pytest.mark.parametrize("value", [2, "true", "O", b"\x02", [1]])
def test_what_is_no_flag(tmp_path: Path, value: object) -> None:
    rule = "not true or false: name a code table (codes: …)"
    assert flag_mapper(tmp_path)(active=value) == RowFault("active", "active", rule)


def flag_mapper(directory: Path) -> MapRow:
    text = changed(
        WHOLE,
        "{from: active, codes: yes}",
        "{from: active}",
        "  yes: {table: {O: true, N: false}}\n",
        "",
    )
    return row_mapper(text, directory, ResourceType.PATIENT, PATIENT)


@pytest.mark.parametrize(("code", "expected"), [("O", True), ("N ", False), ("", None)])
def test_coded_flags(patient: MapRow, code: str, expected: bool | None) -> None:
    made = patient(active=code)
    assert isinstance(made, PatientRecord)
    assert made.active is expected


def test_a_constant_flag(tmp_path: Path) -> None:
    text = changed(WHOLE, "{from: label}", "{from: label}\n    active: true")
    unit = {"code": "0123", "label": "Cardiologie "}
    made = row_mapper(text, tmp_path, ResourceType.ORGANIZATION, unit)()
    assert made == OrganizationRecord("0123", active=True, name="Cardiologie")


def test_a_patient_needs_an_id_alone(patient: MapRow) -> None:
    made = patient(**dict.fromkeys(PATIENT, None) | {"id": 42})
    assert made == PatientRecord("42", organization_id="hospital-1")


def test_an_organization_needs_a_name_or_an_identifier(tmp_path: Path) -> None:
    made = row_mapper(
        WHOLE, tmp_path, ResourceType.ORGANIZATION, {"code": "1", "label": ""}
    )()
    rule = "an organization needs a name or an identifier"
    assert made == RowFault("name", "label", rule)
    text = changed(
        WHOLE,
        "    name: {from: label}",
        "    identifiers: [{type: FINEG, system: urn:oid:1.2, value: {from: label}}]",
    ).replace("search: [_id, name]\n", "search: [_id]\n")
    numbered = row_mapper(
        text, tmp_path, ResourceType.ORGANIZATION, {"code": "1", "label": "99"}
    )
    assert isinstance(numbered(), OrganizationRecord)
    assert numbered(label=None) == RowFault("name", "", rule)


# ------------------------------------------------------------- a SELECT of its own


def test_items_from_their_own_rows(tmp_path: Path) -> None:
    section = load(WHOLE, tmp_path).resources[ResourceType.PATIENT]
    numbers = section.items["identifiers"][2]
    assert item_columns(numbers) == ("patient_id", "number")
    mapper = RowMapper(section, tuple(PATIENT))
    row = tuple({**PATIENT, "ipp": None, "ins": None}.values())
    made = mapper(row, {numbers: [(42, "A1"), (42, None), (42, 7)]})
    assert isinstance(made, PatientRecord)
    assert made.identifiers == (
        IdentifierRecord("A1", "https://example.org/numbers"),
        IdentifierRecord("7", "https://example.org/numbers"),
    )
    without = mapper(row)
    assert isinstance(without, PatientRecord)
    assert without.identifiers == ()


def test_columns_of_own_rows_key_first_each_once(tmp_path: Path) -> None:
    text = changed(
        WHOLE,
        "        value: {from: number}\n",
        "        value: {from: number}\n        assigner: {from: patient_id}\n"
        "        use: {from: kind, codes: use}\n"
        "        only_if: {from: state, in: [A]}\n",
        "codes:\n  status",
        "codes:\n  use: {table: {P: usual}}\n  status",
    )
    section = load(text, tmp_path).resources[ResourceType.PATIENT]
    numbers = section.items["identifiers"][2]
    assert item_columns(numbers) == ("patient_id", "number", "kind", "state")
    mapper = RowMapper(section, tuple(PATIENT))
    made: Any = mapper(
        tuple({**PATIENT, "ipp": None, "ins": None}.values()),
        {numbers: [(42, "A1", "P", "A"), (42, "A2", "P", "B"), (42, "A3", "?", "B")]},
    )
    (number,) = made.identifiers
    assert number == IdentifierRecord(
        "A1", "https://example.org/numbers", None, "usual", "42"
    )


# ------------------------------------------------------------------------ columns


def test_a_column_that_the_select_does_not_return(tmp_path: Path) -> None:
    section = load(MINIMAL, tmp_path).resources[ResourceType.ENCOUNTER]
    with pytest.raises(MappingError) as refused:
        RowMapper(section, ("a", "b", "c1"))
    assert [str(p).removeprefix(f"{tmp_path}/") for p in refused.value.problems] == [
        "m.yaml:13:20: Encounter.status ← c: the SELECT returns no column 'c'; did you "
        "mean 'c1'?",
        "m.yaml:14:19: Encounter.period.start ← d: the SELECT returns no column 'd'",
    ]


def test_columns_in_another_order_and_more_of_them(tmp_path: Path) -> None:
    section = load(MINIMAL, tmp_path).resources[ResourceType.ENCOUNTER]
    mapper = RowMapper(section, ("d", "x", "c", "b", "a"))
    made = mapper((None, "?", "P", 2, 1))
    assert made == EncounterRecord("1", "planned", "2")
