"""What is asked of a FHIR R4 server through mappings/fhir-r4, and compared with the model."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.contract import (
    Adapter,
    NotAskableError,
    Record,
    ResourceType,
    Sort,
    SortKey,
    StringCriterion,
    StringMatch,
    Token,
    TokenCriterion,
)
from adapters.http.adapter import HttpAdapter
from adapters.mapping.load import load_mapping
from adapters.mapping.slots import UNSERVED
from adapters.matching import resource_type_of
from adapters.memory import MemoryAdapter
from app.cli import main
from tests.fhir_r4.hospital import model, records
from toolkit.contract.harness import (
    NEWEST_FIRST,
    ORGANIZATION,
    PATIENT,
    STAY,
    ask,
    dates,
    patient,
    plain,
    rows_of,
    text,
    token,
    walk,
)

BASE = Path(__file__).parents[2] / "mappings" / "fhir-r4" / "fhir-r4.yaml"
MODEL = model()
BY_ID, OLDEST_FIRST = Sort(SortKey.ID), Sort(SortKey.DATE)
CHANGED = (Sort(SortKey.LAST_UPDATED), Sort(SortKey.LAST_UPDATED, descending=True))
H1 = "urn:oid:1.2.250.1.999.1.1"

HOSPITAL = f"""\
mapping: 1
extend: {BASE}
name: A hospital's own
source: {{timeout_seconds: 30, count_timeout_seconds: 30}}
"""

RESOURCES = (STAY, PATIENT, ORGANIZATION)
CHANGES = tuple(
    dates(value, parameter="_lastUpdated")
    for value in ("2024-03-14", "ge2024-03-14T10:00:00Z", "lt2024-03-14T10:00:00Z")
)
SEARCHES: tuple[tuple[ResourceType, Any], ...] = (
    (STAY, token("_id", "1", "42", "no-such")),
    (STAY, patient("3")),
    (STAY, patient("1", "8")),
    (STAY, dates("2024-03-14")),
    (STAY, dates("ge2024-03-14")),
    (STAY, dates("gt2024-03")),
    (STAY, dates("lt2024-03-14T10:00:00+01:00")),
    (STAY, dates("le2024-03-14T10:00:00+01:00")),
    (STAY, dates("ge2024-10-27T02:30:00+01:00")),
    (STAY, token("identifier", "000123")),
    (STAY, token("identifier", f"{H1}|000123")),
    (STAY, token("identifier", f"{H1}|000123", "O'B")),
    (STAY, token("status", "planned")),
    (STAY, token("status", "in-progress", "planned")),
    (STAY, token("class", "EMER")),
    (STAY, token("class", "UNK")),
    (STAY, token("class", "UNK", "IMP")),
    *((kind, changed) for kind in RESOURCES for changed in CHANGES),
    (PATIENT, token("_id", "1", "8")),
    (PATIENT, token("identifier", "0042")),
    (PATIENT, token("identifier", "urn:oid:1.2.4|0042")),
    (PATIENT, text("family", "martin")),
    (PATIENT, text("given", "jean")),
    (PATIENT, StringCriterion("family", ("Martin",), StringMatch.EXACT)),
    (PATIENT, dates("1970-01-01", parameter="birthdate")),
    (PATIENT, dates("lt1970-01-01", parameter="birthdate")),
    (PATIENT, token("gender", "male")),
    (ORGANIZATION, token("_id", "H1", "42")),
    (ORGANIZATION, token("identifier", "750000001")),
    (ORGANIZATION, text("name", "clinique")),
)
REFUSED = (
    dates("ne2024-03-14"),
    dates("ge2024-03-14T10:00:00.5+01:00"),
)


@contextmanager
def opened(url: str, text: str = HOSPITAL) -> Iterator[HttpAdapter]:
    """Open a hospital's own file that extends the base."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "hospital.yaml"
        file.write_text(text, encoding="utf-8")
        adapter = HttpAdapter(load_mapping(file, {"FHIR_URL": url}))
        try:
            yield adapter
        finally:
            adapter.close()


def drafted(url: str, *options: str) -> tuple[int, str]:
    """Return the exit status of `mapping new` on a server, and the file that it writes."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "new.yaml"
        status = main(["mapping", "new", "--from", url, "--out", str(file), *options])
        return status, file.read_text("utf-8") if file.exists() else ""


def compare_all(adapter: Adapter) -> None:
    """Compare every read, order, walk and search with the model."""
    compare_reads(adapter, records(), MODEL)
    for sort in (NEWEST_FIRST, OLDEST_FIRST, *CHANGED):
        expected = rows_of(MODEL.search(ask(sort=sort)))
        pages = list(walk(adapter, ask(sort=sort, count=20)))
        assert [row for page in pages for row in rows_of(page)] == expected
        assert pages[0].total == len(expected)
    for sort in (BY_ID, *CHANGED):
        for kind in (PATIENT, ORGANIZATION):
            compare(adapter, kind, (), sort)
    for kind, criterion in SEARCHES:
        compare(adapter, kind, (criterion,), NEWEST_FIRST if kind is STAY else BY_ID)
    # FHIR would read a system before the bar.
    for value in ("a|b", "urn:oid:1.2|1", "a$b", "a\\"):
        criterion = TokenCriterion("identifier", (Token(None, value),))
        assert adapter.search(ask(criterion)).rows == ()
    for criterion in REFUSED:
        with pytest.raises(NotAskableError):
            adapter.search(ask(criterion))


def compare_reads(
    adapter: Adapter, held: Sequence[Record], expected: MemoryAdapter
) -> None:
    """Compare what is read of each record that is served with the model."""
    for record in held:
        kind = resource_type_of(record)
        if getattr(record, "status", "") not in UNSERVED:
            read = adapter.read(kind, record.id)
            assert plain(read) == plain(expected.read(kind, record.id))


def compare(
    adapter: Adapter, kind: ResourceType, criteria: tuple[Any, ...], sort: Sort
) -> None:
    """Compare the rows and the number of a search with the model."""
    query = ask(*criteria, of=kind, sort=sort)
    expected = rows_of(MODEL.search(query))
    assert rows_of(adapter.search(query)) == expected, criteria
    assert adapter.count(replace(query, count=1)) == len(expected)
