"""Tables with several rows a patient: names, numbers, telephones, addresses."""

from collections.abc import Mapping
from dataclasses import dataclass

from adapters.sql.tables import Table
from app.tools.starting.habits import CHILD_HABITS, choose
from app.tools.starting.references import Reference, References
from app.tools.starting.words import meaning

_NAMED = {
    "identifiers": (frozenset({"ALIAS", "PATIENTNO", "NUMBER"}), ("value",)),
    "telecoms": (frozenset({"CONTACT", "PHONE", "EMAIL"}), ("value", "type")),
    "addresses": (frozenset({"ADDRESS"}), ("city",)),
    "names": (frozenset({"NAME", "FAMILY"}), ("family",)),
}
"""For each list what the name of its table means, and the columns that it needs."""


@dataclass(frozen=True, slots=True)
class Child:
    """Such a table; `reference` is its way to the patient or person."""

    table: Table
    reference: Reference


def find_children(
    references: References, patient: Table | None, person: Reference | None
) -> Mapping[str, Child]:
    """Return the table of each list that has one."""
    targets = [table for table in (patient, person and person.target) if table]
    taken = {table.name for table in targets}
    found: dict[str, Child] = {}
    for reference in (r for target in targets for r in references.to(target)):
        if reference.table.name in taken:
            continue
        name = _list_of(reference.table)
        if name and name not in found:
            found[name] = Child(reference.table, reference)
            taken.add(reference.table.name)
    return found


def _list_of(table: Table) -> str:
    """Return the list that a table fills, "" for none."""
    known = meaning(table.bare).known
    for name, (words, wanted) in _NAMED.items():
        if words & known:
            columns = choose(table, CHILD_HABITS[name])
            if all(slot in columns for slot in wanted):
                return name
    return ""
