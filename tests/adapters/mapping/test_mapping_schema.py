"""The shape of mapping files: what the schema refuses, at the line to mend."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters.contract import EncounterRecord, ResourceType
from adapters.mapping import schema
from adapters.mapping.row_mapper import RowMapper
from adapters.mapping.schema import all_definitions
from adapters.mapping.slots import SLOTS, Slot, SlotKind
from adapters.parameters import (
    SEARCH_PARAMETERS,
    ParameterType,
    SearchParameter,
    profile_parameters,
)
from tests.adapters.mapping.good import (
    HTTP,
    MINIMAL,
    assert_problems,
    changed,
    load,
)


def test_what_a_profile_limits_is_what_can_be_searched() -> None:
    for kind in ResourceType:
        limits = all_definitions()[f"Profile{kind}"]["properties"]
        more = {"count", "unfiltered_search"}
        assert set(limits) == {*profile_parameters(kind), *more}


@pytest.fixture
def with_more_rows(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give stays one more slot and one more parameter, by a row of each table."""
    stays = ResourceType.ENCOUNTER
    # Its attribute of the record is one that no other slot of this file fills.
    bed = Slot("bed", "location.display", SlotKind.EXACT, attribute="functional_unit")
    others = tuple(s for s in SLOTS[stays] if s.record != bed.record)
    monkeypatch.setitem(SLOTS, stays, (*others, bed))
    row = SearchParameter("bed", ParameterType.TOKEN, ("bed",), "The bed.", "Bed", "id")
    parameters = SEARCH_PARAMETERS[stays]
    monkeypatch.setitem(parameters, "bed", row)
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
        *("{from: d}\n", "{from: d}\n    bed: {from: e}\n"),
        *("search: [_id, date]", "search: [_id, date, bed]"),
    )
    section = load(text, tmp_path).resources[ResourceType.ENCOUNTER]
    assert section.parameters == ("_id", "date", "bed")
    stay = RowMapper(section, ("a", "b", "c", "d", "e"))((1, 2, "S", None, "W 7 "))
    assert stay == EncounterRecord("1", "finished", "2", functional_unit="W 7")
    began = "    start: {from: began}\n"
    by_id = '    _id: {query: "ids={value}"}\n'
    http = changed(
        HTTP,
        *(began, f"{began}    bed: {{from: w}}\n"),
        *(by_id, f'{by_id}    bed: {{query: "bed={{value}}"}}\n'),
    )
    assert load(http, tmp_path).sections[0].parameters[:2] == ("_id", "bed")
    wrong = changed(text, "bed: {from: e}", "bed: {from: e, at: x}")
    assert_problems(wrong, tmp_path, ("15 Encounter.location.display at",))
