"""mappings/fhir-r4 on a second R4 server of somebody else: Medplum's, from npm.

It differs from HAPI's: pages by offset, resources without a start first when ascending, a
period without a start matches each later bound, equal times have no order by id, ids and
numbers are compared without regard to case.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from adapters.contract import Page, Sort, SortKey, StringCriterion
from adapters.http.adapter import HttpAdapter
from tests.fhir_r4.hospital import bundle, changed_records, in_utc, model
from tests.fhir_r4.scenario import (
    BY_ID,
    CHANGED,
    OLDEST_FIRST,
    SEARCHES,
    compare_reads,
    opened,
)
from tests.npm import npm_install
from tests.toolkit.live_hospital import checked
from toolkit.contract.harness import NEWEST_FIRST, STAY, ask, dates, rows_of, walk

pytestmark = pytest.mark.extended

HERE = Path(__file__).parent / "medplum"
RECORDS = changed_records()
MODEL = model(RECORDS)
ORDERS = (NEWEST_FIRST, OLDEST_FIRST, *CHANGED)
HOSPITAL = """\
mapping: 1
extend: fhir-r4/fhir-r4.yaml
name: A hospital on Medplum
source: {timeout_seconds: 30, count_timeout_seconds: 30}
encounter: {list: {paging: {offset: _offset}}, sort: {nulls: low}}
patient:
  list: {paging: {offset: _offset}}
  search:
    name: {query: "name={values}", contains: "name:contains={values}", separator: ","}
    family: {query: "family={values}", contains: "family:contains={values}", separator: ","}
    given: {query: "given={values}", contains: "given:contains={values}", separator: ","}
organization: {list: {paging: {offset: _offset}}}
"""
ASKED = [
    (STAY, dates("ne2024-03-14")),
    *((kind, each) for kind, each in SEARCHES if not isinstance(each, StringCriterion)),
]


@pytest.fixture(scope="module")
def medplum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("medplum")
    for file in HERE.iterdir():
        shutil.copy(file, folder)
    node = npm_install(folder)
    (folder / "bundle.json").write_text(
        json.dumps(bundle(in_utc(RECORDS))), encoding="utf-8"
    )
    command = [node, str(folder / "server.mjs"), str(folder / "bundle.json")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/fhir"
        finally:
            process.terminate()


@pytest.fixture
def adapter(medplum: str) -> Iterator[HttpAdapter]:
    with opened(medplum, HOSPITAL) as adapter:
        yield adapter


def shown(*pages: Page) -> list[str]:
    return sorted(repr(row) for page in pages for row in rows_of(page))


def keys(sort: Sort, *pages: Page) -> list[Any]:
    slot = {SortKey.DATE: "start", SortKey.LAST_UPDATED: "last_updated"}[sort.key]
    times = [getattr(row, slot) for page in pages for row in page.rows]
    return [time and time.astimezone(UTC) for time in times]


def test_every_stay_is_equal_in_every_order_and_both_directions(
    adapter: HttpAdapter,
) -> None:
    for sort in ORDERS:
        expected = MODEL.search(ask(sort=sort))
        pages = list(walk(adapter, ask(sort=sort, count=7)))
        assert shown(*pages) == shown(expected), sort
        assert keys(sort, *pages) == keys(sort, expected), sort
        assert adapter.count(ask(sort=sort)) == len(expected.rows)
        back = replace(ask(sort=sort, count=7), before=pages[-1].first)
        before = [rows_of(page) for page in walk(adapter, back, back=True)]
        assert before == [rows_of(page) for page in pages[-2::-1]], sort


def test_every_read_and_search_is_equal(adapter: HttpAdapter) -> None:
    compare_reads(adapter, RECORDS, MODEL)
    for kind, criterion in ASKED:
        sort = NEWEST_FIRST if kind is STAY else BY_ID
        query = ask(criterion, of=kind, sort=sort)
        expected, page = MODEL.search(query), adapter.search(query)
        assert shown(page) == shown(expected), criterion
        assert adapter.count(query) == len(expected.rows), criterion
        if kind is STAY:
            assert keys(sort, page) == keys(sort, expected), criterion


def test_check_live_predicts_what_this_server_does_otherwise(
    medplum: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "hospital.yaml"
    file.write_text(HOSPITAL, encoding="utf-8")
    monkeypatch.setenv("FHIR_URL", medplum)
    findings = checked(file, capsys)
    texts = [finding["text"] for finding in findings]
    for fault in (" is wrong", "another order", "without a value first"):
        assert not any(fault in text for text in texts)
    # It compares ids and numbers without regard to case: the hospital has H2 and h2.
    faults = [one["element"] for one in findings if "does not filter" in one["text"]]
    assert faults == ["Encounter.identifier.value", "Organization.id"]
    # As the base file has it: stays without a start last.
    file.write_text(HOSPITAL.replace("nulls: low", "nulls: last"), encoding="utf-8")
    texts = [finding["text"] for finding in checked(file, capsys)]
    assert any("without a value first" in text for text in texts)
