"""HTTP adapters opened on the edge cases, in the variant that a test wants."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from adapters.contract import Page, RowFault
from adapters.http import HttpAdapter
from adapters.mapping.load import load_mapping
from adapters.testing import asking
from adapters.testing.hospital import Hospital
from adapters.testing.stays import EDGES
from tests.hospital_http import SECRETS, Api, serving
from tests.hospital_http_mapping import OFFSET, http_mapping_text
from tests.hospital_http_rows import COLUMNS


def opened_at(
    url: str,
    directory: Path,
    *,
    changes: tuple[tuple[str, str], ...] = (),
    hospital: Hospital = EDGES,
    paging: str = OFFSET,
    total: str = "total: nombre",
    source: str = ", timeout_seconds: 30, count_timeout_seconds: 30",
) -> HttpAdapter:
    """Return an adapter on an address, its mapping changed in places."""
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


def rows_of(page: Page) -> list[Any]:
    """Return the rows of a page for comparing, columns by the suite's names of them."""
    rows = tuple(
        row._replace(column=COLUMNS.get(row.column, row.column))
        if isinstance(row, RowFault)
        else row
        for row in page.rows
    )
    return asking.rows_of(replace(page, rows=rows))
