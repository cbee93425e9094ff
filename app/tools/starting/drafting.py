"""Roles of tables → the draft of a mapping file."""

from collections.abc import Iterator

from adapters.contract import ResourceType
from adapters.sql.database import Database
from adapters.sql.tables import Catalogue, Table
from app.tools.starting.building import Builder
from app.tools.starting.draft import VISIT_NUMBER_SYSTEM, Draft, Part
from app.tools.starting.houses import organizations
from app.tools.starting.people import patients
from app.tools.starting.references import References
from app.tools.starting.stays import stays
from app.tools.starting.survivors import ask_for_survivors
from app.tools.starting.tables import Roles
from app.tools.starting.unread import tell_unread
from app.tools.starting.writing import named

_VISIT_SYSTEM = "https://example.org/identifiers/visit"
_UNIT_EXTENSION = "https://example.org/fhir/StructureDefinition/functional-unit"


def draft_of(
    database: Database,
    catalogue: Catalogue,
    references: References,
    roles: Roles,
    variable: str,
    kind: str = "sql",
) -> Draft:
    """Return a draft of the whole file for a `kind` of source.

    Raises SourceUnavailableError when the database goes away meanwhile.
    """
    draft = Draft(variable, kind)
    builder = Builder(database, catalogue, references, roles, draft)
    draft.sections[ResourceType.ENCOUNTER] = stays(builder)
    if roles.patient is not None:
        people = patients(builder, roles.patient)
        draft.sections[ResourceType.PATIENT] = [people]
        ask_for_survivors(builder, draft.sections[ResourceType.ENCOUNTER], people)
    if roles.organization is not None:
        house = organizations(builder, roles.organization)
        draft.sections[ResourceType.ORGANIZATION] = [house]
    _systems(draft)
    told: set[str] = set()
    for parts in draft.sections.values():
        for part in parts:
            tell_unread(builder, part, told)
    for way in roles.parts:
        draft.notes.append(
            f"{way.table.name} also looks like stays, but each of its rows has a"
            f" {way.column}: a part of one of {way.target.name}, and not served"
        )
    used = {table.name for table in _used(draft)}
    unused = [table.name for table in catalogue.tables if table.name not in used]
    if unused:
        draft.notes.append(f"tables that nothing reads: {named(unused)}")
    return draft


def _systems(draft: Draft) -> None:
    """Say the constants that the fields need, as placeholders."""
    keys = {
        line.key
        for part in draft.sections[ResourceType.ENCOUNTER]
        for line in part.lines
    }
    if "visit_number" in keys:
        question = (
            "the system of the visit numbers (urn:oid:…); where each hospital counts for"
            " itself, a field visit_number_system says it, by a code table"
        )
        draft.systems[VISIT_NUMBER_SYSTEM] = (_VISIT_SYSTEM, question)
    if "functional_unit" in keys:
        question = "the address that was agreed with the clients"
        draft.systems["functional_unit_extension"] = (_UNIT_EXTENSION, question)


def _used(draft: Draft) -> Iterator[Table]:
    for parts in draft.sections.values():
        for part in parts:
            yield from _of_part(part)


def _of_part(part: Part) -> Iterator[Table]:
    yield from part.select.tables
    for items in part.lists.values():
        for item in items:
            if item.select is not None:
                yield from item.select.tables
