"""Mapping files as a whole: a good one says what it should, a bad one says all of it."""

from functools import cache
from pathlib import Path

import pytest

from adapters.mapping.load import load_mapping
from adapters.mapping.model import SourceMapping, from_disk
from adapters.mapping.problems import MappingError
from adapters.mapping.profile import profile_of
from tests.adapters.mapping.good import (
    MINIMAL,
    WHOLE,
    changed,
    load,
    problems,
)
from tests.hospital_sql import mapping_text
from toolkit.contract.hospital import EDGES


@pytest.fixture
def whole(tmp_path: Path) -> SourceMapping:
    return load(WHOLE, tmp_path)


def test_the_fingerprint_changes_with_what_a_walk_depends_on(
    whole: SourceMapping, tmp_path: Path
) -> None:
    def fingerprint(*changes: str) -> str:
        return load(changed(WHOLE, *changes), tmp_path).fingerprint

    assert (
        fingerprint("mapping: 1\n", "# moved down\nmapping: 1\n") == whole.fingerprint
    )
    assert fingerprint("name: Whole", "name: Renamed") == whole.fingerprint
    assert fingerprint("FROM stays", "FROM visits") != whole.fingerprint
    assert fingerprint("date: period", "date: start") != whole.fingerprint
    assert fingerprint("from: changed,", "from: modified,") != whole.fingerprint
    assert fingerprint("from: ipp}", "from: ipp2}") != whole.fingerprint
    assert fingerprint('absent: ["999912312359"]', "absent: ['0']") != whole.fingerprint
    assert (
        fingerprint("twice: first, never", "twice: refuse, never") != whole.fingerprint
    )
    assert fingerprint("X: removed", "X: hidden") != whole.fingerprint
    assert fingerprint('in: [VALI, "0"]', "in: [VALI]") != whole.fingerprint


def test_faults_of_shape_come_before_those_of_meaning(tmp_path: Path) -> None:
    no_table = changed(MINIMAL, "codes: status", "codes: statut")
    text = changed(no_table, "Europe/Paris", "Europe/Pari", "sort:", "sorts:")
    told = [problem.split(": ", 2)[1] for problem in problems(text, tmp_path)]
    assert told == ["time_zone", "encounter.sorts"]
    told = [problem.split(": ", 2)[1] for problem in problems(no_table, tmp_path)]
    assert told == ["Encounter.status"]


FROM_ENVIRON = {"PAS_URL": "sqlite:///hunter2.db"}
PROFILE = "profile: ours\npaging: true\nencounter: {patient: {}}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a mapping over a base that is named by its whole path, with a profile."""
    folder = tmp_path / "vendor"
    folder.mkdir()
    base = mapping_text(EDGES).replace("profile: full", "profile: ours.yaml")
    (folder / "base.yaml").write_text(base, "utf-8")
    (folder / "ours.yaml").write_text(PROFILE, "utf-8")
    file = tmp_path / "hospital.yaml"
    file.write_text(
        f"mapping: 1\nextend: {folder / 'base.yaml'}\nname: Ours\n", "utf-8"
    )
    return file


def test_the_profile_of_a_mapping_is_read_as_the_mapping_was(
    file: Path, tmp_path: Path
) -> None:
    mapping = load_mapping(file, FROM_ENVIRON, cache(from_disk))
    profile = profile_of(mapping)
    for gone in (file, *(tmp_path / "vendor").iterdir()):
        gone.unlink()
    assert profile_of(mapping) == profile
    with pytest.raises(MappingError):
        load_mapping(file, FROM_ENVIRON)


def test_a_variable_may_stand_in_a_file(tmp_path: Path) -> None:
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
