"""HTTP adapters on the edge cases, in the variant of the mapping that a test needs."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.contract import AdapterError, Page, RowFault
from adapters.http.adapter import HttpAdapter
from adapters.mapping.load import load_mapping
from tests.hospital_http import (
    COLUMNS,
    OFFSET,
    SECRETS,
    Api,
    http_mapping_text,
    serving,
    stay,
)
from toolkit.contract import harness as asking
from toolkit.contract.hospital import EDGES, Hospital

URL = "http://pas.invalid/api"
LIMITS = "timeout_seconds: 30, count_timeout_seconds: 30"
"""Of a source, on a machine that does other work too."""

SECRET = "Canari Jeanne"
WORD = f'{{"erreur": "{SECRET}"}}'
STAY_1 = {"id": 1, "patient": {"ipp": 1}, "etat": "S", "etablissement": {"id": "H1"}}
ROWS = [stay(EDGES, row) for row in EDGES.stays]


def fails(kind: type[AdapterError], call: Callable[[], Any]) -> None:
    """Check that a call fails so, and that its error quotes neither answer nor address."""
    with pytest.raises(kind) as caught:
        call()
    assert type(caught.value) is kind
    assert SECRET not in str(caught.value)
    assert "pas.invalid" not in str(caught.value)


def opened_at(
    url: str,
    directory: Path,
    *,
    changes: tuple[tuple[str, str], ...] = (),
    hospital: Hospital = EDGES,
    paging: str = OFFSET,
    total: str = "total: nombre",
    source: str = "",
) -> HttpAdapter:
    """Return an adapter on an address, its mapping changed in places."""
    source = f", {LIMITS}{source}"
    text = http_mapping_text(hospital, paging=paging, total=total, source=source)
    if not paging:
        text = text.replace("profile: full", "profile: group-a")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file = directory / "hospital.yaml"
    file.write_text(text, encoding="utf-8")
    return HttpAdapter(load_mapping(file, {"PAS_URL": url, **SECRETS}))


@contextmanager
def api_and_adapter(
    directory: Path, **variant: object
) -> Iterator[tuple[Api, HttpAdapter]]:
    """Serve the edge cases, and open an adapter on them."""
    api = Api(EDGES)
    with serving(api) as url:
        adapter = opened_at(url, directory, **variant)  # type: ignore[arg-type]
        try:
            yield api, adapter
        finally:
            adapter.close()


def rows_of(page: Page, columns: Mapping[str, str] = COLUMNS) -> list[Any]:
    """Return the rows of a page for comparing, columns by the suite's names of them."""
    rows = tuple(
        replace(row, column=columns.get(row.column, row.column))
        if isinstance(row, RowFault)
        else row
        for row in page.rows
    )
    return asking.rows_of(replace(page, rows=rows))
