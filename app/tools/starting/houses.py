"""The section organization: the table of hospitals."""

from adapters.contract import ResourceType
from adapters.sql.tables import Table, TableColumn
from app.tools.starting.building import Builder
from app.tools.starting.draft import Found, Item, Line, Part, Value
from app.tools.starting.guesses import slots
from app.tools.starting.keys import put_id
from app.tools.starting.reached import addresses, telecoms
from app.tools.starting.select import Select
from app.tools.starting.timing import put_changed
from app.tools.starting.words import meaning

_FINESS = "urn:oid:1.2.250.1.71.4.2.2"
_LEGAL = frozenset({"ej", "juridique", "juridiq", "entitejuridique"})
_ORGANIZATION_SYSTEM = "https://example.org/identifiers/organization"
_ORDER = ("id", "active", "name", "part_of", "last_updated")


def organizations(builder: Builder, table: Table) -> Part:
    """Return the section for the table of hospitals."""
    part = Part(Select(table))
    found = slots(table, ResourceType.ORGANIZATION, builder.references)
    put_id(builder, part)
    if column := found.get("active"):
        builder.flag(part, "active", "active", Found(table, column))
    _name(builder, part, table)
    if column := found.get("part_of"):
        part.put("part_of", {"from": part.select.add(column)})
    put_changed(builder, part, table, found)
    _identifiers(part, table, found.get("number"))
    part.lists["telecoms"] = telecoms(part.select, found, 0, home="work")
    part.lists["addresses"] = addresses(part.select, found, 0, use="work")
    part.lines.sort(key=lambda line: _ORDER.index(line.key))
    return part


def _name(builder: Builder, part: Part, table: Table) -> None:
    found = slots(table, ResourceType.ORGANIZATION, builder.references)
    if column := found.get("name"):
        value: dict[str, Value] = {"from": part.select.add(column)}
        if folded := found.get("name_search"):
            value["search"] = part.select.add(folded)
        part.put("name", value)
        return
    for way in builder.references.of(table).values():
        further = slots(way.target, ResourceType.ORGANIZATION, builder.references)
        if "name" in further and meaning(way.target.bare).known & {
            "PERSON",
            "ORGANIZATION",
        }:
            place = part.select.join([way])
            read = part.select.add(further["name"], place)
            part.put("name", {"from": read}, f"found over {way.column}")
            return
    part.questions.append("name: no column looks like it")


def _identifiers(part: Part, table: Table, number: TableColumn | None) -> None:
    items = []
    for column in table.columns:
        said = meaning(column.name)
        if "FINESS" in said.known:
            type_ = "FINEJ" if _LEGAL & set(said.words) else "FINEG"
            items.append(_item(type_, _FINESS, part.select.add(column), ""))
    if number is not None and not items:
        question = "its type and system (urn:oid:…)"
        items.append(
            _item("INTRN", _ORGANIZATION_SYSTEM, part.select.add(number), question)
        )
    part.lists["identifiers"] = items
    if items:
        part.searchable.add("identifiers.value")


def _item(type_: str, system: str, column: str, question: str) -> Item:
    value: Value = {"from": column}
    lines = [Line("type", type_), Line("system", system), Line("value", value)]
    return Item(
        [*lines, Line("use", "official")] if not question else lines, question=question
    )
