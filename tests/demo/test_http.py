"""The demo hospital over HTTP: group A's mapping reads it."""

from contextlib import closing
from typing import Any

import pytest

from adapters.contract import EncounterRecord, SourceDataError
from adapters.http.adapter import HttpAdapter
from adapters.mapping.load import load_mapping
from demo import tables
from demo.hospital import generate
from demo.http import Pas, application, hospital
from demo.people import Row
from tests.hospital_http import SECRETS, serving
from tests.live import ROOT
from toolkit.contract.harness import ask

MAPPING = ROOT / "mappings" / "group-a" / "group-a.yaml"
KEY = SECRETS["PAS_KEY"]
UNSERVED = ("A", "AN", "X", "SUP")


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return list(generate(1000, 1))


@pytest.fixture(scope="module")
def pas(rows: list[Row]) -> Pas:
    return hospital(rows)


def of(rows: list[Row], table: Any) -> list[dict[str, Any]]:
    return [row for of_table, row in rows if of_table is table]


def _adapter(url: str, key: str = KEY) -> HttpAdapter:
    return HttpAdapter(load_mapping(MAPPING, {"PAS_URL": url, "PAS_KEY": key}))


def test_group_a_reads_all_stays_the_newest_first(rows: list[Row], pas: Pas) -> None:
    served = [row for row in of(rows, tables.SEJOUR) if row["etat"] not in UNSERVED]
    with serving(application(pas, KEY, paging=False)) as url:
        adapter = _adapter(url)
        assert adapter.count(ask()) == len(served)
        page = adapter.search(ask(count=20))
        adapter.close()
    assert (len(page.rows), page.more) == (20, True)
    entered = (s["date_entree"] for s in served if s["date_entree"])
    left = iter(sorted(entered, reverse=True)[:20])
    records = [row for row in page.rows if isinstance(row, EncounterRecord)]
    starts = [record.start.replace(tzinfo=None) for record in records if record.start]
    assert len(starts) == len(records)
    assert all(start in left for start in starts), "not in the order of entry"
    # A national number is shown of a qualified identity only.
    identities = of(rows, tables.IDENTITE)
    qualified = {row["patient_id"] for row in identities if row["statut"] == "QUAL"}
    numbers = of(rows, tables.IDENTIFIANT_PATIENT)
    numbered = {row["patient_id"] for row in numbers if row["domaine"] == "INS-NIR"}
    shown = {
        patient["id"]
        for patient in pas["patients"].values()
        if any(number["domaine"] == "INS-NIR" for number in patient["numeros"])
    }
    assert shown == numbered & qualified
    assert numbered - qualified


def test_a_key_is_needed(pas: Pas) -> None:
    with (
        serving(application(pas, KEY)) as url,
        closing(_adapter(url, "other")) as adapter,
        pytest.raises(SourceDataError, match="refuses the credentials"),
    ):
        adapter.search(ask())
