"""Mapping files as a whole: a good one says what it should, a bad one says all of it."""

from functools import cache
from typing import Any

import pytest

from adapters.contract import ResourceType
from adapters.mapping.load import load_mapping
from adapters.mapping.model import from_disk
from adapters.mapping.problems import MappingError
from adapters.mapping.profile import profile_of
from adapters.mapping.row_mapper import RowMapper
from tests.adapters.mapping.good import (
    HTTP,
    HTTP_ENVIRON,
    MINIMAL,
    TWO,
    WHOLE,
    changed,
    load,
)

SAME = (
    (WHOLE, ("mapping: 1\n", "# moved down\nmapping: 1\n")),
    (HTTP, ("name: Small", "name: Other")),
)
OTHER = (
    *((WHOLE, ("FROM stays", "FROM visits")), (WHOLE, ("date: period", "date: start"))),
    *((WHOLE, ("changed,", "modified,")), (WHOLE, ("from: ipp}", "from: ipp2}"))),
    (WHOLE, ('absent: ["999912312359"]', "absent: ['0']")),
    (WHOLE, ("twice: first, never", "twice: refuse, never")),
    *((WHOLE, ("X: removed", "X: hidden")), (WHOLE, ('[VALI, "0"]', "[VALI]"))),
    *((HTTP, ("path: /s\n", "path: /t\n")), (HTTP, ("-date: by=-d", "-date: by=e"))),
    *((HTTP, ("{by:", "{nulls: high, by:")), (HTTP, ("total: n", "total: n[0]"))),
)


def test_the_fingerprint_changes_with_what_a_walk_depends_on(tmp_path):
    """And with no secret."""
    for cases, is_same in ((SAME, True), (OTHER, False)):
        for text, change in cases:
            usual = load(text, tmp_path).fingerprint
            other = load(changed(text, *change), tmp_path).fingerprint
            assert (other == usual) is is_same, change
    first = load(HTTP, tmp_path).fingerprint
    again = load_mapping(tmp_path / "m.yaml", {**HTTP_ENVIRON, "KEY": "other"})
    assert again.fingerprint == first


def test_the_profile_of_a_mapping_is_read_as_the_mapping_was(tmp_path):
    """Also that of a base."""
    environ = {"PAS_URL": "sqlite:///hunter2.db"}
    base, profile = tmp_path / "base.yaml", tmp_path / "ours.yaml"
    base.write_text(changed(MINIMAL, "profile: full", "profile: ours.yaml"), "utf-8")
    profile.write_text("profile: ours\npaging: true\nencounter: {_id: {}}\n", "utf-8")
    (tmp_path / "below").mkdir()
    file = tmp_path / "below" / "m.yaml"
    file.write_text(f"mapping: 1\nextend: {base}\nname: Ours\n", "utf-8")
    mapping = load_mapping(file, environ, cache(from_disk))
    read = profile_of(mapping)
    for gone in (file, base, profile):
        gone.unlink()
    assert profile_of(mapping) == read
    with pytest.raises(MappingError):
        load_mapping(file, environ)


def test_a_variable_may_stand_in_a_file(tmp_path):
    secret, mapping = tmp_path / "url", tmp_path / "hospital.yaml"
    mapping.write_text(MINIMAL, "utf-8")
    secret.write_bytes(b"\xef\xbb\xbfpostgresql://pas/pas\r\n")
    from_file = {"PAS_URL_FILE": str(secret)}
    assert load_mapping(mapping, from_file).source.url == "postgresql://pas/pas"
    for environ, variable in (
        ({**from_file, "PAS_URL": "postgresql://hunter2/pas"}, "PAS_URL"),
        ({"PAS_URL_FILE": str(tmp_path)}, "PAS_URL_FILE"),
        ({"PAS_URL_FILE": str(tmp_path / "none")}, "PAS_URL_FILE"),
    ):
        with pytest.raises(MappingError) as refused:
            load_mapping(mapping, environ)
        (problem,) = refused.value.problems
        assert (problem.mark.line, problem.element) == (5, "source.url.env")
        assert variable in problem.text
        assert "hunter2" not in problem.text
        assert str(tmp_path) not in problem.text


def test_one_named_source_is_one_source(tmp_path):
    text = TWO[: TWO.index("encounter:")] + (
        "encounter:\n  rows: SELECT a FROM t\n  fields:\n    id: {from: a}\n"
        "    patient_id: {from: a}\n    status: {from: a, codes: status}\n"
    )
    south = "  south: {kind: sql, url: {env: PAS_URL}, time_zone: UTC}\n"
    mapping = load(changed(text, south, ""), tmp_path)
    assert not mapping.parts
    assert mapping.resources[ResourceType.ENCOUNTER].rows == "SELECT a FROM t"


def test_reference_names_one_of_two_tables_by_its_prefix(tmp_path):
    south = "- {source: south, prefix: s-"
    text = changed(TWO, south, "- {source: north, prefix: s-")
    named = "patient_id: {from: b, source: "
    text = changed(text, f"{named}south}}", f"{named}s-}}")
    with pytest.raises(MappingError, match=r"Encounter\.subject.*prefix"):
        load(text, tmp_path)
    text = changed(text, f"{named}north}}", f"{named}n-}}")
    north, south_part, *_ = load(text, tmp_path).parts
    assert north.section.fields["patient_id"].prefix == "n-"
    assert south_part.section.fields["patient_id"].prefix == "s-"
    # Whom they merged with is known where they are.
    assert ResourceType.PATIENT not in south_part.mapping.resources


def test_ids_from_a_code_table_carry_the_prefix_of_their_source(tmp_path):
    coded = "organization_id: {from: e, codes: units, source: north}"
    text = changed(TWO, "organization_id: h-1", coded)
    table = "  units: {table: {U: u-1}, otherwise: u-0}\n"
    text = changed(text, "encounter:\n", f"{table}encounter:\n") + (
        "organization:\n  sources:\n"
        "    - {source: north, prefix: n-, rows: SELECT a FROM o, fields: {id: {from: a}}}\n"
        "    - {source: south, prefix: s-, rows: SELECT a FROM r, fields: {id: {from: a}}}\n"
    )
    north = load(text, tmp_path).parts[0].section
    stay = RowMapper(north, ("a", "b", "c", "d", "e"))
    made: Any = [stay((1, 2, "S", None, unit)) for unit in "UV"]
    assert [each.organization_id for each in made] == ["n-u-1", "n-u-0"]
