"""A first mapping held against its database: is it whole, and are rows served by it."""

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from adapters import open_adapter
from adapters.contract import (
    Adapter,
    AdapterError,
    ResourceType,
    RowFault,
    SearchQuery,
    Sort,
    SortKey,
)
from adapters.mapping.load import load_mapping
from adapters.mapping.model import SourceMapping
from adapters.mapping.problems import MappingError

_ROWS = 500
"""How many rows of each resource type are tried."""


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of it: `troubles` to mend first, and how many rows are served."""

    troubles: tuple[str, ...]
    served: tuple[str, ...] = ()


def try_out(text: str, environ: Mapping[str, str]) -> Tried:
    """Load a file, open it on its database, and read the first rows by it."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "mapping.yaml"
        file.write_text(text, encoding="utf-8")
        try:
            mapping = load_mapping(file, environ)
        except MappingError as error:
            return Tried(tuple(f"line {p.mark.line}: {p.text}" for p in error.problems))
    adapter = open_adapter(_by_any_account(mapping))
    try:
        found = [
            p.text.replace(f"{file}:", "line ") for p in adapter.check() if p.serious
        ]
        served = () if found else tuple(_served(adapter))
    finally:
        adapter.close()
    return Tried(tuple(found), served)


def _by_any_account(mapping: SourceMapping) -> SourceMapping:
    """Return the mapping for an account that may write: that is asked for apart."""
    parts = tuple(
        replace(part, mapping=_by_any_account(part.mapping)) for part in mapping.parts
    )
    source = replace(mapping.source, may_write=True)
    return replace(mapping, source=source, parts=parts)


def _served(adapter: Adapter) -> Iterator[str]:
    """Yield for each resource type how many of its first rows are served, and why not all."""
    for kind in adapter.capabilities:
        try:
            yield _rows(adapter, kind)
        except AdapterError as error:
            yield f"{kind}: {error}"


def _rows(adapter: Adapter, kind: ResourceType) -> str:
    rows = adapter.search(SearchQuery(kind, (), Sort(SortKey.ID), _ROWS)).rows
    faults = Counter(f"{r.field}: {r.rule}" for r in rows if isinstance(r, RowFault))
    told = (
        f"{kind}: {len(rows) - faults.total()} of the first {len(rows)} rows are served"
    )
    reasons = "".join(f"\n    {n} not: {fault}" for fault, n in faults.most_common())
    return told + reasons
