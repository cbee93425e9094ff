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
    ParameterCapability,
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
from app.console import FINDINGS, FINE, CannotRunError, aligned, print_json
from app.search.types import TYPES
from toolkit.checks.selects import steps, without_comments
from toolkit.checks.sql_inspection import origins_of
from toolkit.console import MappingFile
from toolkit.searches import RefusedError, Searches, parsed_search, searching
from toolkit.source_rows import SourceReader
from toolkit.tried_row import MASK, PERSONAL, TriedRow


class ParameterRow(NamedTuple):
    """One search parameter: whether it is offered, and why not or how far."""

    resource_type: ResourceType
    parameter: str
    offered: bool
    reason: str


def run(
    *, file: Path, search: str | None, live: bool, redact: bool, as_json: bool
) -> int:
    """Print the table of parameters, what one search would send, or where a resource is."""
    if live:
        return _show_resource(file, search or "", redact=redact, as_json=as_json)
    with searching(load_mapping(file, os.environ)) as searches:
        if search is not None:
            return _show_search(searches, search, as_json=as_json)
        rows = [*_rows(searches)]
    if as_json:
        print_json({"parameters": [row._asdict() for row in rows]})
    else:
        words = {True: "offered", False: "refused"}
        table = [(of, name, words[offered], why) for of, name, offered, why in rows]
        print(*aligned(table), sep="\n")
    return FINE


def _rows(searches: Searches) -> Iterator[ParameterRow]:
    """Yield each parameter of each section of the file."""
    mapping = searches.mapping
    profile = profile_of(mapping)
    for kind in dict.fromkeys(section.resource_type for section in mapping.sections):
        sections = [s for s in mapping.sections if s.resource_type is kind]
        listed = {name for section in sections for name in section.parameters}
        able = searches.adapter.capabilities[kind].parameters
        wanted = profile.resources.get(kind)
        for name in SEARCH_PARAMETERS[kind]:
            if wanted is None or name not in wanted.parameters:
                reason = f"profile {profile.name} leaves it out"
            elif name not in listed:
                reason = "the file does not list it under search"
            elif name not in able:
                reason = "not every source can filter by it"
            else:
                reason = _extent(kind, name, wanted.parameters[name], able[name])
                yield ParameterRow(kind, name, offered=True, reason=reason)
                continue
            yield ParameterRow(kind, name, offered=False, reason=reason)


def _extent(
    kind: ResourceType, name: str, values: int, able: ParameterCapability
) -> str:
    """Return how far an offered parameter goes."""
    extent = "one value" if values == 1 else f"up to {values} values"
    row = SEARCH_PARAMETERS[kind][name]
    words = TYPES[row.type].extent(row, able)
    if words:
        extent += f"; {words}"
    return extent


def _show_search(searches: Searches, search: str, *, as_json: bool) -> int:
    try:
        query = searches.query(*parsed_search(search))
        text, refused = searches.sent(query), False
    except RefusedError as error:
        text, refused = str(error), True
    if as_json:
        print_json({"search": search, "refused": refused, "text": text})
    else:
        print(f"refused: {text}" if refused else text)
    return FINDINGS if refused else FINE


# One resource

_REFERENCE = re.compile(rf"(?:.*/)?({'|'.join(ResourceType)})/([^/?]+)")


class Whereabouts(NamedTuple):
    """How far a row gets on its way to clients, in a word and a sentence, and the row.

    The words are served, invalid, hidden, removed, filtered (the SELECT leaves it out), absent
    (its table has no such row), and unknown.
    """

    state: str
    text: str
    tried: TriedRow | None = None


def _show_resource(path: Path, search: str, *, redact: bool, as_json: bool) -> int:
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
    if as_json:
        tried = where.tried.as_json() if where.tried else {}
        print_json({"name": name, "state": where.state, "text": where.text, **tried})
    else:
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
        return Whereabouts("removed", "the API says that it is gone")
    except NotFoundError:
        return _not_selected(reader, kind, id)
    tried = TriedRow.of(file, row, masked)
    if tried.unserved:
        origin = tried.origin_of(tried.named("status")[0])
        return Whereabouts(tried.unserved, f"by {origin.rule} ({origin.place})", tried)
    if tried.faults:
        number = f"{len(tried.faults)} rules" if tried.faults[1:] else "a rule"
        return Whereabouts("invalid", f"its row breaks {number} of the file", tried)
    try:
        searches.adapter.read(kind, id)
    except (NotFoundError, GoneError, SourceDataError) as error:
        # Such as merged patients who lead into a circle: no row shows it alone.
        return Whereabouts("invalid", f"its row is valid, but {error}", tried)
    return Whereabouts("served", "clients get it", tried)


def _not_selected(reader: SourceReader, kind: ResourceType, id: str) -> Whereabouts:
    """Return why no row of the source has an id, as far as the source shows it."""
    try:
        section = reader.section_of(kind, id)
    except NotFoundError:
        prefixes = (s.fields["id"].prefix for s in reader.file.sections(kind))
        text = (
            f"no id of the file begins like this: they begin with {', '.join(prefixes)}"
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
    """Return which JOIN or condition of a SELECT leaves the row of an id out.

    The SELECT is run for that id in steps: the first that has no row loses it.
    """
    name = section.fields["id"].filter_column or ""
    origin = origins_of(adapter.database, section.rows).get(name)
    table = origin.table if origin else ""
    if origin:
        alone = f"SELECT {origin.column} AS {name} FROM {table}"
        if _has(adapter, section, alone, id) is False:
            return Whereabouts("absent", f"{table} has no row with this id")
    column = origin.column if origin else name
    for step in steps(without_comments(section.rows), name, column):
        is_there = _has(adapter, section, step.select, id)
        if is_there is None:
            # Its table comes with a later JOIN.
            continue
        if not is_there and not table:
            return Whereabouts("absent", f"{step.first_table} has no row with this id")
        table = table or step.first_table
        if not is_there:
            text = f"{table} has the row, and the SELECT leaves it out: {step.added}"
            return Whereabouts("filtered", text)
    if not table:
        text = "the SELECT returns no such row. From which table its ids come cannot be"
        return Whereabouts("unknown", f"{text} read from it")
    text = f"{table} has the row, and the SELECT leaves it out; by which part of it is"
    return Whereabouts("filtered", f"{text} not known")


def _has(
    adapter: SqlAdapter, section: ResourceMapping, select: str, id: str
) -> bool | None:
    """Return whether a SELECT has a row of an id, None where the database refuses it."""
    database, zone = adapter.database, adapter.mapping.source.zone
    try:
        described = database.columns(select)
        columns = Columns(database.dialect, select, described, zone=zone)
        condition = columns.equal(section.fields["id"], [id])
        ((number,),) = database.fetch(columns.count(condition))
    except SourceDataError:
        return None
    return bool(number)
