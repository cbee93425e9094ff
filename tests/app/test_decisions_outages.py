"""Decision 23: a hospital system that is away, slow, or makes no sense."""

from pathlib import Path

import pytest

from app.service import EXTENSION
from tests.app.answers import refused
from tests.app.conftest import Mapped
from tests.serving import Served, ids, link


@pytest.fixture
def away(mapped: Mapped, tmp_path: Path) -> Served:
    """Return a service whose database is not there any more."""
    served = mapped()
    assert ids(served.search("Encounter", {"_id": "1"})) == ["1"]
    dead = mapped(("pas.db", "gone.db"))
    assert not (tmp_path / "gone.db").exists()
    return dead


ASKED = (
    "Encounter/1",
    "Patient/1",
    "Encounter",
    "Encounter?patient=1",
    "Patient?_id=1",
)


@pytest.mark.parametrize("path", ASKED)
def test_23_an_outage_is_503_never_404_and_never_empty(away: Served, path: str) -> None:
    answer = away.get(path)
    refused(answer, 503, "transient")
    assert int(answer.headers["Retry-After"]) > 0


@pytest.mark.parametrize("path", ASKED[:3])
def test_23_a_server_that_is_not_there_is_503_and_not_named(
    mapped: Mapped, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    url = f"postgresql+psycopg://x:hush@/pas?host={tmp_path}&port=1"
    monkeypatch.setenv("PAS_URL", url)
    served = mapped((f"sqlite:///{tmp_path / 'pas.db'}", "{env: PAS_URL}"))
    answer = served.get(path)
    refused(answer, 503, "transient")
    for secret in ("hush", "postgres", str(tmp_path), "pas"):
        assert secret not in answer.text


def test_23_an_outage_in_the_middle_of_a_walk_is_503_and_it_goes_on_after(
    mapped: Mapped, tmp_path: Path
) -> None:
    served = mapped()
    first = served.search("Encounter", {"_count": "3"})
    database, aside = tmp_path / "pas.db", tmp_path / "aside.db"
    database.rename(aside)
    served.app.extensions[EXTENSION].adapter.close()
    refused(served.get(link(first, "next")), 503, "transient")
    aside.rename(database)
    assert len(ids(served.follow(first, "next"))) == 3


SLOW = (
    "SELECT code, title, finess, changed FROM organizations",
    """|
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
    SELECT code, title, finess, changed FROM organizations, n WHERE n.i < 0""",
)


@pytest.mark.parametrize("path", ["Organization/H1", "Organization?_id=H1"])
def test_23_a_time_out_is_503(mapped: Mapped, path: str) -> None:
    served = mapped(SLOW, ("connections: 2", "timeout_seconds: 0.1"))
    answer = served.get(path)
    refused(answer, 503, "transient")
    assert answer.headers["Retry-After"]


NONSENSE = (
    # a table that is not there, a column that is not, and what is no SQL at all
    ("FROM organizations", "FROM organisations"),
    ("SELECT code, title, finess", "SELECT code, titre AS title, finess"),
    ("SELECT code, title, finess, changed FROM", "SELECT code title finess FROM"),
    ("SELECT code, title, finess, changed", "SELECT code, title, changed"),
)


@pytest.mark.parametrize("edit", NONSENSE, ids=str)
@pytest.mark.parametrize("path", ["Organization/H1", "Organization?_id=H1"])
def test_23_an_answer_that_makes_no_sense_is_502(
    mapped: Mapped, edit: tuple[str, str], path: str
) -> None:
    answer = mapped(edit).get(path)
    refused(answer, 502, "transient")
    for word in ("titre", "organisations", "finess", "no such", "near"):
        assert word not in answer.text


def test_23_one_section_that_fails_leaves_the_others(mapped: Mapped) -> None:
    served = mapped(NONSENSE[0])
    assert ids(served.search("Encounter", {"_id": "1"})) == ["1"]
