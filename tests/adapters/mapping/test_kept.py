"""A kept mapping is the one that was kept, whatever has become of its files."""

from pathlib import Path

import pytest

from adapters.mapping.kept import SUFFIX
from adapters.mapping.load import keep_mapping, load_mapping
from adapters.mapping.problems import MappingError
from adapters.mapping.profile import profile_of
from adapters.testing.stays import EDGES
from tests.hospital_sql import mapping_text

ENVIRON = {"PAS_URL": "sqlite:///hunter2.db"}
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


def test_it_is_read_as_it_was(file: Path, tmp_path: Path) -> None:
    place = tmp_path / f"mapping{SUFFIX}"
    kept = keep_mapping(file, ENVIRON, place)
    profile = profile_of(kept)
    for gone in (file, *(tmp_path / "vendor").iterdir()):
        gone.write_text("nonsense: 1", "utf-8")
    loaded = load_mapping(place, ENVIRON)
    # Equal to the last line and column, so problems are told where they are mended.
    assert "hunter2" in repr(kept)
    assert repr(loaded) == repr(kept)
    assert loaded.fingerprint == kept.fingerprint
    assert profile_of(loaded) == profile
    for gone in (file, *(tmp_path / "vendor").iterdir()):
        gone.unlink()
    assert repr(load_mapping(place, ENVIRON)) == repr(kept)


def test_no_secret_is_kept(file: Path, tmp_path: Path) -> None:
    place = tmp_path / f"mapping{SUFFIX}"
    keep_mapping(file, ENVIRON, place)
    assert b"hunter2" not in place.read_bytes()


def test_a_mapping_at_fault_is_not_kept(file: Path, tmp_path: Path) -> None:
    place = tmp_path / f"mapping{SUFFIX}"
    kept = keep_mapping(file, ENVIRON, place)
    (tmp_path / "vendor" / "ours.yaml").write_text(PROFILE + "pages: 1\n", "utf-8")
    with pytest.raises(MappingError, match="pages"):
        keep_mapping(file, ENVIRON, place)
    assert repr(load_mapping(place, ENVIRON)) == repr(kept)
    assert list(tmp_path.glob("*.new")) == []
