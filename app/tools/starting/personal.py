"""What may identify a person: of such columns no value is ever asked for, only counts.

It is told by the words of a name alone, before any statement is made. Where in doubt a
column is taken for a personal one: then a guess is lost, and nothing else.
"""

from collections.abc import Mapping
from types import MappingProxyType

from adapters.contract import ResourceType
from adapters.sql.tables import Holds, Table, TableColumn
from app.tools.starting.data import data
from app.tools.starting.habits import said
from app.tools.starting.words import meaning

_PERSONAL = frozenset(data("habits")["personal"].split())
_CODED = frozenset(data("habits")["coded"].split())
_LISTED = frozenset({"STATUS", "CLASS", "KIND"})
_OF_PEOPLE = frozenset(
    {"FAMILY", "GIVEN", "BIRTH", "PHONE", "MOBILE", "EMAIL", "STREET", "POSTAL"}
    | {"CITY", "PATIENTNO", "VISITNO", "INS", "USER", "DOCTOR", "RELATIVE"}
)
"""What no table has that lists codes, in its name or in a text."""

LONGEST_STATE = 2
"""How many letters no number of a file has."""

TRIED: Mapping[ResourceType, frozenset[str]] = MappingProxyType(
    {
        ResourceType.ENCOUNTER: frozenset(
            {"id", "patient_id", "status", "class", "start", "end"}
            | {"functional_unit", "organization_id", "last_updated"}
        ),
        ResourceType.PATIENT: frozenset(
            {"id", "active", "gender", "deceased"}
            | {"organization_id", "replaced_by", "last_updated"}
        ),
        ResourceType.ORGANIZATION: frozenset(
            {"id", "active", "part_of", "last_updated"}
        ),
    }
)
"""The slots of ids, references, codes and times: the only ones that a trial reads."""


def may_show(table: Table, column: TableColumn) -> bool:
    """Tell whether values of a column may be asked for, as codes or times."""
    known = said(column).known
    if not known & _PERSONAL or known & _CODED or is_state_of_file(column):
        return True
    return _is_label(column) and is_list_of_codes(table)


def is_state_of_file(column: TableColumn) -> bool:
    """Tell whether a column named after a file is too short for its number: (A, F, I)."""
    is_short = column.length is not None and column.length <= LONGEST_STATE
    return is_short and said(column).known == {"FILE"} and not said(column).unknown


def is_list_of_codes(table: Table) -> bool:
    """Tell whether a table lists states, classes or kinds, each with its name."""
    known = meaning(table.bare).known
    texts = [said(c).known for c in table.columns if c.holds is Holds.TEXT]
    return bool(known & _LISTED) and not any(of & _OF_PEOPLE for of in (known, *texts))


def _is_label(column: TableColumn) -> bool:
    known = meaning(column.name).known
    return column.holds is Holds.TEXT and bool(known) and known <= {"NAME", "LABEL"}
