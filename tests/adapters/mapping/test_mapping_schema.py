"""The shape of mapping files: what the schema refuses, at the line to mend."""
# ruff: noqa: E501

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from adapters.contract import EncounterRecord, ResourceType
from adapters.mapping import schema
from adapters.mapping.model import Constants
from adapters.mapping.row_mapper import RowMapper
from adapters.mapping.schema import mapping_schema, profile_schema
from adapters.mapping.slots import SLOTS, Kind, Slot
from adapters.parameters import SEARCH_PARAMETERS, ParameterType, SearchParameter
from tests.adapters.mapping.good import (
    HTTP,
    MINIMAL,
    WHOLE,
    assert_problems,
    changed,
    load,
)

CASES = (
    (MINIMAL, ("time_zone:", "timezone:"), ("4 timezone time_zone",)),
    (MINIMAL, ("  search:", "  serach:"), ("15 encounter.serach search",)),
    (MINIMAL, ("codes: status}", "code: status}"), ("13 Encounter.status codes",)),
    (MINIMAL, ("{from: a}", '{from: a, format: "%Y"}'), ("11 Encounter.id format",)),
    (MINIMAL, ("encounter:\n", "organization:\n"), ("1 encounter", "12 organization.fields.patient_id", "13 organization.fields.status", "14 organization.fields.start", "15 organization.search date", "16 organization.sort date",)),
    (MINIMAL, ("    id: {from: a}\n", ""), ("10 Encounter.id",)),
    (MINIMAL, ("  rows: SELECT a, b, c, d FROM t\n", ""), ("8 encounter.rows",)),
    (MINIMAL, ("source: {kind: sql, url: {env: PAS_URL}}\n", ""), ("1 source",)),
    (MINIMAL, (", url: {env: PAS_URL}", ""), ("5 source.url",)),
    (MINIMAL, ("name: Small", "name:"), ("2 name",)),
    (MINIMAL, ("name: Small", "name: [Small]"), ("2 name",)),
    (MINIMAL, ("search: [_id, date]", "search: _id"), ("15 encounter.search",)),
    (MINIMAL, ("source: {kind: sql, url: {env: PAS_URL}}", "source: sql"), ("5 source",)),
    (MINIMAL, ("{from: a}", "{}"), ("11 Encounter.id value",)),
    (MINIMAL, ("{from: a}", "{from: a, value: x}"), ("11 Encounter.id value",)),
    (MINIMAL, ("start: {from: d}", "start: 2024-03-30"), ("14 Encounter.period.start",)),
    (MINIMAL, ("start: {from: d}", 'start: {at: "00:00"}'), ("14 Encounter.period.start from",)),
    (MINIMAL, ("{from: a}", "{from: [a, b]}"), ("11 Encounter.id",)),
    (MINIMAL, ("{from: d}", "{from: [a, b, c]}"), ("14 Encounter.period.start",)),
    (MINIMAL, ("{from: a}", "{from: ''}"), ("11 Encounter.id",)),
    (MINIMAL, ("{from: a}", "[a]"), ("11 Encounter.id",)),
    (WHOLE, ('split: " "', 'split: ""'), ("79 Patient.name.given",)),
    (MINIMAL, ("kind: sql", "kind: sqll"), ("5 source.kind sql",)),
    (MINIMAL, ("kind: sql", "kind: [sql]"), ("5 source.kind",)),
    (WHOLE, ("timeout_seconds: 2.5", "timeout_seconds: 0", "connections: 4", "connections: 101"), ("22 source.timeout_seconds", "24 source.connections",)),
    (WHOLE, ("timeout_seconds: 2.5", "timeout_seconds: fast", "connections: 4", "connections: 4.5"), ("22 source.timeout_seconds", "24 source.connections",)),
    (WHOLE, ("timeout_seconds: 2.5", "timeout_seconds: nan"), ("22 source.timeout_seconds",)),
    (WHOLE, ("twice: second", "twice: later"), ("5 local_times.twice later",)),
    (WHOLE, ("date: period", "date: whole"), ("6 date whole",)),
    (WHOLE, ('in: [VALI, "0"]', "is: VALI"), ("71 Patient.identifier in", "71 Patient.identifier is",)),
    (WHOLE, ('in: [VALI, "0"]', "in: VALI"), ("71 Patient.identifier",)),
    (WHOLE, ("        value: {from: ins}\n", ""), ("69 Patient.identifier.value",)),
    (WHOLE, ("        family:", "        famly:"), ("78 Patient.name family",)),
    (MINIMAL, ("{env: PAS_URL}", "{environ: PAS_URL}"), ("5 source.url.environ env",)),
    (MINIMAL, ("{P: planned, S: finished, A: hidden}", "[P, S]"), ("7 codes.status",)),
    (MINIMAL, ("P: planned", "P: [planned]"), ("7 codes.status",)),
    (WHOLE, ("class_code_system:", "class_system:"), ("14 constants.class_system class_systems",)),
    (MINIMAL, ("{env: PAS_URL}", '"postgresql://pas/pas?user=a&password=b"'), ("5 source.url",)),
    (MINIMAL, ("{env: PAS_URL}", "pas.db"), ("5 source.url",)),
    (MINIMAL, (", codes: status", ""), ("13 Encounter.status",)),
    (WHOLE, (", codes: class}", "}"), ("41 Encounter.class",)),
    (MINIMAL, ("P: planned", "'': planned"), ("7 codes.status",)),
    (MINIMAL, ("P: planned", "'P ': planned"), ("7 codes.status",)),
    (MINIMAL, ("{from: c, codes: status}", "hidden", "codes:\n  status: {table: {P: planned, S: finished, A: hidden}}\n", ""), ("11 Encounter.status hidden",)),
    (WHOLE, ("use: official\n", "use: oficial\n"), ("77 Patient.name.use official",)),
    (WHOLE, ("organization_id: hospital-1", "organization_id: hospital_1"), ("49 Encounter.serviceProvider .",)),
    (WHOLE, ("urn:oid:1.2.250.1.999.2", "1.2.250.1.999.2"), ("66 Patient.identifier.system 1.2.250.1.999.2",)),
    (WHOLE, ("urn:oid:1.2.250.1.999.2", "urn:oid:1.02"), ("66 Patient.identifier.system urn:oid:1.02",)),
    (WHOLE, ("visit_number_system: urn:oid:1.2.250.1.999.1.1", "visit_number_system: 1.2.3", "{REC: https://example.org/classes}", "{REC: classes}"), ("9 constants.visit_number_system 1.2.3", "15 constants.class_systems.REC classes",)),
    (WHOLE, ("{REC:", "{RECU:"), ("15 constants.class_systems.RECU REC",)),
    (WHOLE, ("requires: [class, start]", "requires: [clas]"), ("53 encounter.requires class",)),
    (MINIMAL, ("[_id, date]", "[_id, date, _id]"), ("15 encounter.search _id",)),
    (WHOLE, ('        family: {from: name}\n        given: {from: first, split: " "}\n', "", "search: [_id, name, family, given,", "search: [_id,"), ("77 Patient.name names",)),
    (WHOLE, ('at: "08:00"', "at: 8h"), ("42 Encounter.period.start 8h",)),
    (WHOLE, ('at: "08:00"', 'at: "08:00Z"'), ("42 Encounter.period.start 08:00Z",)),
    (MINIMAL, ("[_id, date]", "[_id, dates]"), ("15 encounter.search date",)),
    (WHOLE, ("search: [_id, name]", "search: [_id, name, birthdate]"), ("97 organization.search birthdate",)),
    (MINIMAL, ("[_id, date]", "[_id, _count]"), ("15 encounter.search _count",)),
    (MINIMAL, ("[_id, date]", "[_id, _sort]"), ("15 encounter.search _sort",)),
    (MINIMAL, ("sort: [date]", "sort: [dates]"), ("16 encounter.sort date",)),
    (MINIMAL, ("start: {from: d}", "start: {form: d}"), ("14 Encounter.period.start format",)),
    (WHOLE, ("family: {from: name}", "family: {form: name}"), ("78 Patient.name.family from",)),
    (WHOLE, ("name: {from: label}", "name: {from: label}\n    telecoms: [{use: home, value: {from: phone}}]"), ("97 Organization.telecom.system", "97 Organization.telecom.use home",)),
    (HTTP, ("headers:", "header:"), ("8 source.header headers",)),
    (HTTP, ("  headers:", "  auth: {}\n  headers:"), ("8 source.auth",)),
    (HTTP, ("    total: n\n", ""), ("13 encounter.list",)),
    (HTTP, ("{offset: from}", "{offset: from, page: p}"), ("19 encounter.list.paging",)),
    (HTTP, ("{offset: from}", "{offset: from, first: 0}"), ("19 encounter.list.paging.first",)),
    (HTTP, ("/s/{id}", "/s/id"), ("12 encounter.read.path",)),
    (HTTP, ("    _id: {send: ids}", "    id: {send: ids}"), ("26 encounter.search.id _id",)),
    (HTTP, ("{send: ids}", "{sent: ids}"), ("26 encounter.search._id.sent send",)),
    (HTTP, ("{send: ids}", "{send: ids, several: many}"), ("26 encounter.search._id.several many",)),
    (HTTP, ("from: since, before: before, ", ""), ("27 encounter.search.date",)),
    (HTTP, ("before: before,", "before: before, until: u,"), ("27 encounter.search.date.until",)),
    (HTTP, (", -date: -d", ""), ("29 encounter.sort.by.date",)),
    (HTTP, ("date: d, -date: -d", "day: d"), ("29 encounter.sort.by.day",)),
    (HTTP, ("  sort:", "  order: any\n  sort:"), ("29 encounter.order",)),
    (HTTP, ('  read: {path: "/s/{id}"}\n', ""), ("11 encounter.read",)),
    (HTTP, ("  fields:", "  rows: SELECT 1\n  fields:"), ("20 encounter.rows",)),
)  # fmt: skip


@pytest.mark.parametrize(("base", "changes", "expected"), CASES)
def test_a_fault_of_the_shape_is_found_at_its_line(
    base: str, changes: tuple[str, ...], expected: tuple[str, ...], tmp_path: Path
) -> None:
    assert_problems(changed(base, *changes), tmp_path, expected)


def test_constants_are_those_of_the_model() -> None:
    known = mapping_schema()["definitions"]["Constants"]["properties"]
    assert set(known) == {field.name for field in fields(Constants)}


def test_what_a_profile_limits_is_what_can_be_searched() -> None:
    for kind in ResourceType:
        limits = profile_schema()["definitions"][f"Profile{kind}"]["properties"]
        more = {"_count", "_sort", "count", "unfiltered_search"}
        assert set(limits) == {*SEARCH_PARAMETERS[kind], *more}


@pytest.fixture
def with_more_rows(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give stays one more slot and one more parameter, by a row of each table."""
    stays = ResourceType.ENCOUNTER
    # Its attribute of the record is one that no other slot of this file fills.
    ward = Slot("ward", "location.display", Kind.EXACT, "functional_unit")
    others = tuple(s for s in SLOTS[stays] if s.record != ward.record)
    monkeypatch.setitem(SLOTS, stays, (*others, ward))
    row = SearchParameter("ward", ParameterType.TOKEN, ("ward",), "The ward.")
    parameters = SEARCH_PARAMETERS[stays]
    monkeypatch.setitem(parameters, "ward", row)
    _forget()
    yield
    monkeypatch.undo()
    _forget()


def _forget() -> None:
    """Let the schema be filled in again from the tables."""
    for cached in (schema._schema, schema._validator):
        cached.cache_clear()


@pytest.mark.usefixtures("with_more_rows")
def test_a_row_of_each_table_is_a_key_of_the_file_and_a_value_of_the_record(
    tmp_path: Path,
) -> None:
    text = changed(
        MINIMAL,
        *("{from: d}\n", "{from: d}\n    ward: {from: e}\n"),
        *("search: [_id, date]", "search: [_id, date, ward]"),
    )
    section = load(text, tmp_path).resources[ResourceType.ENCOUNTER]
    assert section.parameters == ("_id", "date", "ward")
    stay = RowMapper(section, ("a", "b", "c", "d", "e"))((1, 2, "S", None, "W 7 "))
    assert stay == EncounterRecord("1", "finished", "2", functional_unit="W 7")
    http = changed(
        HTTP,
        *(
            "    start: {from: began}\n",
            "    start: {from: began}\n    ward: {from: w}\n",
        ),
        *("    _id: {send: ids}\n", "    _id: {send: ids}\n    ward: {send: ward}\n"),
    )
    assert load(http, tmp_path).sections[0].parameters[:2] == ("_id", "ward")
    wrong = changed(text, "ward: {from: e}", "ward: {from: e, at: x}")
    assert_problems(wrong, tmp_path, ("15 Encounter.location.display at",))
