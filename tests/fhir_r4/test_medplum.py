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

from adapters.contract import Page, ResourceType, Sort, SortKey
from adapters.http.adapter import HttpAdapter
from adapters.mapping.load import load_mapping
from adapters.mapping.slots import UNSERVED
from adapters.testing.harness import (
    NEWEST_FIRST,
    ORGANIZATION,
    PATIENT,
    STAY,
    ask,
    dates,
    patient,
    rows_of,
    text,
    token,
    walk,
)
from app.cli import main
from tests.fhir_r4.hospital import bundle, changed_records, in_utc, model

HERE = Path(__file__).parent / "medplum"
RECORDS = changed_records()
MODEL = model(RECORDS)
ORDERS = [
    Sort(key, descending)
    for key in (SortKey.DATE, SortKey.LAST_UPDATED)
    for descending in (False, True)
]
HOSPITAL = """\
mapping: 1
extend: fhir-r4/fhir-r4.yaml
name: A hospital on Medplum
source: {timeout_seconds: 30, count_timeout_seconds: 30}
encounter: {list: {paging: {offset: _offset}}, sort: {nulls: low}}
patient: {list: {paging: {offset: _offset}}}
organization: {list: {paging: {offset: _offset}}}
without: [patient.search.name.exact, patient.search.family.exact, patient.search.given.exact]
"""
H1 = "urn:oid:1.2.250.1.999.1.1"
SEARCHES: tuple[tuple[ResourceType, Any], ...] = (
    (STAY, token("_id", "1", "42", "no-such")),
    (STAY, patient("3")),
    (STAY, patient("1", "8")),
    (STAY, dates("2024-03-14")),
    (STAY, dates("ne2024-03-14")),
    (STAY, dates("ge2024-03-14")),
    (STAY, dates("gt2024-03")),
    (STAY, dates("lt2024-03-14T10:00:00+01:00")),
    (STAY, dates("le2024-03-14T10:00:00+01:00")),
    (STAY, dates("ge2024-10-27T02:30:00+01:00")),
    (STAY, dates("ge2024-03-14T10:00:00Z", parameter="_lastUpdated")),
    (STAY, dates("lt2024-03-14T10:00:00Z", parameter="_lastUpdated")),
    (STAY, token("identifier", "000123")),
    (STAY, token("identifier", f"{H1}|000123")),
    (STAY, token("status", "planned")),
    (STAY, token("status", "in-progress", "planned")),
    (STAY, token("class", "EMER")),
    (STAY, token("class", "UNK")),
    (PATIENT, token("identifier", "urn:oid:1.2.4|0042")),
    (PATIENT, text("family", "martin")),
    (PATIENT, dates("1970-01-01", parameter="birthdate")),
    (PATIENT, dates("lt1970-01-01", parameter="birthdate")),
    (PATIENT, token("gender", "male")),
    (PATIENT, dates("ge2024-03-14", parameter="_lastUpdated")),
    (ORGANIZATION, token("_id", "H1", "42")),
    (ORGANIZATION, token("identifier", "750000001")),
)


@pytest.fixture(scope="module")
def medplum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    npm, node = shutil.which("npm"), shutil.which("node")
    if not (npm and node):
        pytest.skip("npm and node")
    folder = tmp_path_factory.mktemp("medplum")
    for file in HERE.iterdir():
        shutil.copy(file, folder)
    install = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder)]
    if subprocess.run(
        install, capture_output=True, timeout=300, check=False
    ).returncode:
        pytest.skip("npm cannot install Medplum")
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
def file(tmp_path: Path) -> Path:
    written = tmp_path / "hospital.yaml"
    written.write_text(HOSPITAL, encoding="utf-8")
    return written


@pytest.fixture
def adapter(medplum: str, file: Path) -> Iterator[HttpAdapter]:
    opened = HttpAdapter(load_mapping(file, {"FHIR_URL": medplum}))
    yield opened
    opened.close()


def shown(*pages: Page) -> list[str]:
    return sorted(repr(row) for page in pages for row in rows_of(page))


def keys(sort: Sort, *pages: Page) -> list[Any]:
    slot = {SortKey.DATE: "start", SortKey.LAST_UPDATED: "last_updated"}[sort.key]
    times = [getattr(row, slot) for page in pages for row in page.rows]
    return [time and time.astimezone(UTC) for time in times]


@pytest.mark.parametrize("sort", ORDERS, ids=str)
def test_every_stay_is_equal_in_every_order_and_both_directions(
    adapter: HttpAdapter, sort: Sort
) -> None:
    expected = MODEL.search(ask(sort=sort))
    pages = list(walk(adapter, ask(sort=sort, count=7)))
    assert shown(*pages) == shown(expected)
    assert keys(sort, *pages) == keys(sort, expected)
    assert adapter.count(ask(sort=sort)) == len(expected.rows)
    back = replace(ask(sort=sort, count=7), before=pages[-1].first)
    before = list(walk(adapter, back, back=True))
    assert [rows_of(page) for page in before] == [rows_of(p) for p in pages[-2::-1]]


def test_every_read_is_equal(adapter: HttpAdapter) -> None:
    for record in RECORDS:
        kind = ResourceType(type(record).__name__.removesuffix("Record"))
        if getattr(record, "status", "") not in UNSERVED:
            read, expected = adapter.read(kind, record.id), MODEL.read(kind, record.id)
            assert shown(Page((read,))) == shown(Page((expected,)))


@pytest.mark.parametrize(("kind", "criterion"), SEARCHES, ids=str)
def test_every_search_is_equal(
    adapter: HttpAdapter, kind: ResourceType, criterion: Any
) -> None:
    sort = NEWEST_FIRST if kind is STAY else Sort(SortKey.ID)
    query = ask(criterion, of=kind, sort=sort)
    expected = MODEL.search(query)
    page = adapter.search(query)
    assert shown(page) == shown(expected)
    assert adapter.count(query) == len(expected.rows)
    if kind is STAY:
        assert keys(sort, page) == keys(sort, expected)


def test_check_live_predicts_what_this_server_does_otherwise(
    medplum: str,
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FHIR_URL", medplum)
    main(["mapping", "check", "--live", str(file)])
    said = capsys.readouterr().out
    for fault in (" is wrong", "another order", "before those with"):
        assert fault not in said
    # It compares ids without regard to case, and the hospital has H2 and h2.
    (fault,) = [line for line in said.splitlines() if "does not filter" in line]
    assert "Organization.id" in fault
    # As the base file has it: stays without a start last.
    plain = HOSPITAL.replace("nulls: low", "nulls: last")
    file.write_text(plain, encoding="utf-8")
    assert main(["mapping", "check", "--live", str(file)]) == 1
    assert "puts rows without the key before" in capsys.readouterr().out
