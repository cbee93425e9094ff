"""A first mapping held against its database: is it whole, and are rows served by it.

The whole file is held against the columns of the tables, without a row. Rows are read by
a shorter one, which has no line for what identifies a person: no name, number, day of
birth, telephone or address is in any statement that returns rows.
"""

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
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
from app.tools.starting.draft import VISIT_NUMBER_SYSTEM, Draft, Line, Part, Value
from app.tools.starting.personal import TRIED
from app.tools.starting.writing import written

_ROWS = 500
"""How many rows of each resource type are tried."""


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of it: `troubles` to mend first, and how many rows are served."""

    troubles: tuple[str, ...]
    served: tuple[str, ...] = ()


def try_out(draft: Draft, environ: Mapping[str, str]) -> Tried:
    """Load a file, hold it against its database, and read the first rows by a part of it."""
    troubles = tuple(_opened(draft, environ, _fit))
    if troubles:
        return Tried(troubles)
    return Tried((), tuple(_opened(without_people(draft), environ, _served)))


def load(draft: Draft, environ: Mapping[str, str]) -> Tried:
    """Load a file whose source is not asked."""
    with tempfile.TemporaryDirectory() as directory:
        loaded = _loaded(draft, environ, Path(directory) / "mapping.yaml")
    return Tried(tuple(loaded) if isinstance(loaded, list) else ())


def without_people(draft: Draft) -> Draft:
    """Return a draft with the slots of ids, references, codes and times alone."""
    kept = {
        kind: [_shorter(kind, part) for part in parts]
        for kind, parts in draft.sections.items()
    }
    lines = [line for parts in kept.values() for part in parts for line in part.lines]
    used = {line.value.get("codes") for line in lines if isinstance(line.value, dict)}
    codes = {name: table for name, table in draft.codes.items() if name in used}
    systems = {k: of for k, of in draft.systems.items() if k != VISIT_NUMBER_SYSTEM}
    return replace(draft, systems=systems, codes=codes, sections=kept)


def _shorter(kind: ResourceType, part: Part) -> Part:
    slots = TRIED[kind]
    lines = [line for line in part.lines if line.key in slots]
    names = {name for line in lines for name in _columns(line.value)}
    if kind is ResourceType.ORGANIZATION and (
        part.line("name") or part.lists.get("identifiers")
    ):
        # An organization needs one of them, which may stand among names of people.
        lines.append(Line("name", "not-read"))
    return Part(
        part.select.only(names),
        part.prefix,
        lines,
        searchable=part.searchable & slots,
    )


def _columns(value: Value) -> Iterator[str]:
    """Yield the columns that a field is read from."""
    from_ = value.get("from", "") if isinstance(value, dict) else ""
    yield from map(str, from_ if isinstance(from_, list) else [from_])


def _opened(
    draft: Draft, environ: Mapping[str, str], ask: Callable[[Adapter], Iterable[str]]
) -> list[str]:
    """Return what an adapter answers that serves a draft, or why none can be made."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "mapping.yaml"
        loaded = _loaded(draft, environ, file)
    if isinstance(loaded, list):
        return loaded
    with closing(open_adapter(_by_any_account(loaded))) as adapter:
        return [text.replace(f"{file}:", "line ") for text in ask(adapter)]


def _loaded(
    draft: Draft, environ: Mapping[str, str], file: Path
) -> SourceMapping | list[str]:
    """Return the mapping of a draft, or what is wrong with it."""
    file.write_text(written(draft), encoding="utf-8")
    try:
        return load_mapping(file, environ)
    except MappingError as error:
        return [f"line {p.mark.line}: {p.text}" for p in error.problems]


def _fit(adapter: Adapter) -> Iterator[str]:
    """Yield where the file does not fit its database; no row is read for it."""
    return (problem.text for problem in adapter.check() if problem.serious)


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
