"""`encounters mapping explain`: what is offered and why, what a search would send.

With `--live`, why clients get a resource or not: its row is followed from the table to them.
"""

import os
import re
from collections.abc import Iterator, Set
from pathlib import Path
from typing import NamedTuple

from adapters.contract import (
    GoneError,
    NotFoundError,
    ResourceType,
    SourceDataError,
)
from adapters.mapping.load import load_mapping
from adapters.mapping.model import ResourceMapping
from adapters.mapping.profile import profile_of
from adapters.mapping.slots import FHIR_ID
from adapters.parameters import SEARCH_PARAMETERS
from adapters.sql.adapter import SqlAdapter
from adapters.sql.query import Columns
from app.console import FINDINGS, FINE, CannotRunError, aligned
from app.search.types import TYPES
from toolkit.checks.sql_inspection import origins_of
from toolkit.console import MappingFile
from toolkit.searches import RefusedSearchError, Searches, parsed_search, searching
from toolkit.source_rows import SourceReader
from toolkit.tried_row import MASK, PERSONAL, TriedRow


def run(*, file: Path, search: str | None, live: bool, redact: bool) -> int:
    """Print the table of parameters, what one search would send, or where a resource is."""
    if live:
        return _show_resource(file, search or "", redact=redact)
    with searching(load_mapping(file, os.environ)) as searches:
        if search is not None:
            return _show_search(searches, search)
        print(*aligned([*_parameters(searches)]), sep="\n")
    return FINE


def _parameters(searches: Searches) -> Iterator[tuple[str, str, str, str]]:
    """Yield the type and name of each parameter, "offered" or "refused", and its limits or why."""
    mapping = searches.mapping
    profile = profile_of(mapping)
    for kind in dict.fromkeys(section.resource_type for section in mapping.sections):
        sections = [s for s in mapping.sections if s.resource_type is kind]
        listed = {name for section in sections for name in section.parameters}
        supported = searches.adapter.capabilities[kind].parameters
        in_profile = profile.resources.get(kind)
        for name, row in SEARCH_PARAMETERS[kind].items():
            answer = "refused"
            if in_profile is None or name not in in_profile.parameters:
                reason = f"profile {profile.name} leaves it out"
            elif name not in listed:
                reason = "the file does not list it under search"
            elif name not in supported:
                reason = "not every source can filter by it"
            else:
                answer = "offered"
                values = in_profile.parameters[name]
                extent = "One value." if values == 1 else f"Up to {values} values."
                sentences = TYPES[row.type].sentences(row, supported[name])
                reason = " ".join((extent, *sentences))
            yield kind, name, answer, reason


def _show_search(searches: Searches, search: str) -> int:
    """Print what a search sends to the source, or why it is refused."""
    try:
        query = searches.query(*parsed_search(search))
        print(searches.sent(query))
    except RefusedSearchError as error:
        print(f"refused: {error}")
        return FINDINGS
    return FINE


# One resource

_REFERENCE = re.compile(rf"(?:.*/)?({'|'.join(ResourceType)})/([^/?]+)")


class Whereabouts(NamedTuple):
    """Whether clients get a resource, why in a sentence, and its row if it was read.

    `state` is served, invalid, hidden, removed, filtered (the SELECT leaves the row out),
    absent (the source has no such row), or unknown.
    """

    state: str
    text: str
    tried: TriedRow | None = None


def _show_resource(path: Path, search: str, *, redact: bool) -> int:
    """Print why clients get a resource, such as `Encounter/42`, or do not."""
    match = _REFERENCE.fullmatch(search)
    if match is None:
        text = "--live explains one resource: name it, such as Encounter/42"
        raise CannotRunError(text)
    kind, id = ResourceType(match[1]), match[2]
    file = MappingFile.open(path, os.environ)
    masked = PERSONAL if redact else frozenset[str]()
    with SourceReader(file) as reader, searching(file.mapping) as searches:
        where = whereabouts(reader, searches, kind, id, masked)
    name = f"{kind}/{MASK if f'{kind}.id' in masked else id}"
    print(f"{name}: {where.state}: {where.text}")
    if where.tried:
        print("", *where.tried.as_text(), sep="\n")
    return FINE if where.state == "served" else FINDINGS


def whereabouts(
    reader: SourceReader,
    searches: Searches,
    kind: ResourceType,
    id: str,
    masked: Set[str],
) -> Whereabouts:
    """Return why clients get a resource or not. Raises AdapterError."""
    file = reader.file
    if not file.sections(kind):
        return Whereabouts("absent", f"the file has no section '{kind.lower()}'")
    if not FHIR_ID.fullmatch(id):
        return Whereabouts(
            "absent", "the id is not a FHIR id, so no client can request it"
        )
    try:
        row = reader.row(kind, id)
    except GoneError:
        return Whereabouts("removed", "the API reports that it is gone")
    except NotFoundError:
        return _not_selected(reader, kind, id)
    tried = TriedRow.of(file, row, masked)
    if tried.unserved:
        origin = tried.origin_of(tried.named("status")[0])
        return Whereabouts(tried.unserved, f"by {origin.rule} ({origin.place})", tried)
    if tried.faults:
        number = f"{len(tried.faults)} rules" if tried.faults[1:] else "a rule"
        return Whereabouts("invalid", f"its row fails {number} of the file", tried)
    try:
        searches.adapter.read(kind, id)
    except (NotFoundError, GoneError, SourceDataError) as error:
        # An error that one row alone does not show, such as a circle of merged patients.
        return Whereabouts("invalid", f"its row is valid, but {error}", tried)
    return Whereabouts("served", "clients get it", tried)


def _not_selected(reader: SourceReader, kind: ResourceType, id: str) -> Whereabouts:
    """Return why the source returns no row with an id."""
    try:
        section = reader.section_of(kind, id)
    except NotFoundError:
        prefixes = (s.fields["id"].prefix for s in reader.file.sections(kind))
        text = (
            f"no id of the file begins like this: ids begin with {', '.join(prefixes)}"
        )
        return Whereabouts("absent", text)
    prefix = section.fields["id"].prefix
    if not id.startswith(prefix):
        return Whereabouts("absent", f"ids begin with {prefix}")
    adapter = reader.adapter(section)
    if not isinstance(adapter, SqlAdapter):
        return Whereabouts("absent", "the API has no such row, or does not return it")
    return _left_out(adapter, section, id)


def _left_out(adapter: SqlAdapter, section: ResourceMapping, id: str) -> Whereabouts:
    """Return whether the table of the ids has a row that the SELECT leaves out."""
    database, zone = adapter.database, adapter.mapping.source.zone
    name = section.fields["id"].filter_column or ""
    origin = origins_of(database, section.rows).get(name)
    if origin is None:
        text = "the SELECT returns no such row, and the table of its ids is not known"
        return Whereabouts("unknown", text)
    table = origin.table
    select = f"SELECT {origin.column} AS {name} FROM {table}"
    try:
        columns = Columns(database.dialect, select, database.columns(select), zone=zone)
        condition = columns.equal(section.fields["id"], [id])
        ((number,),) = database.fetch(columns.count(condition))
    except SourceDataError as error:
        return Whereabouts(
            "unknown", f"the SELECT returns no such row; {table}: {error}"
        )
    if not number:
        return Whereabouts("absent", f"{table} has no row with this id")
    text = f"{table} has the row, but a JOIN or a condition of the SELECT leaves it out"
    return Whereabouts("filtered", text)
