"""The likeliest column of each slot of a resource, and what could be instead."""

from collections.abc import Callable, Container, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType

from adapters.contract import ResourceType
from adapters.sql.tables import Table, TableColumn
from app.tools.starting.habits import HABITS, choose, rivals
from app.tools.starting.references import References

OWN: Mapping[ResourceType, frozenset[str]] = MappingProxyType(
    {
        ResourceType.ENCOUNTER: frozenset({"STAY"}),
        ResourceType.PATIENT: frozenset({"PATIENT", "PERSON"}),
        ResourceType.ORGANIZATION: frozenset({"ORGANIZATION"}),
    }
)
"""Meanings that say nothing more in a table that holds such resources."""


@lru_cache(1024)
def slots(
    table: Table, kind: ResourceType, references: References
) -> Mapping[str, TableColumn]:
    """Return the likeliest column of each slot of a resource."""
    return choose(table, HABITS[kind], OWN[kind], references.of(table).keys())


def instead(
    table: Table, kind: ResourceType, references: References
) -> Mapping[str, tuple[TableColumn, ...]]:
    """Return the columns that could fill a slot as well as the chosen one."""
    keys = references.of(table).keys()
    chosen = slots(table, kind, references)
    return rivals(table, HABITS[kind], OWN[kind], keys, chosen)


def others(
    table: Table,
    kind: ResourceType,
    references: References,
    read: Container[str],
    shown: Callable[[TableColumn], str],
) -> Iterator[str]:
    """Yield a question for each slot that a column not `read` could fill as well.

    `shown` tells what a column holds, by counts alone, and "" where it tells nothing apart.
    """
    chosen = slots(table, kind, references)
    for slot, columns in instead(table, kind, references).items():
        unread = (column for column in columns if column.name not in read)
        names = " or ".join(filter(None, map(shown, unread)))
        if names:
            said, own = slot.replace("_", " "), chosen[slot]
            yield f"{said} is read from {shown(own) or own.name}: or is it {names}?"
