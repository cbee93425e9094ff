"""What a plan says of a column, and the index that would help."""

import re
from collections.abc import Mapping

from adapters.contract import ResourceType
from adapters.inspection import SAMPLE, Observation, Weight
from adapters.mapping.places import Place
from adapters.sql.dialects.plans import Origin, Plan
from adapters.sql.inspection.rows import Looked
from adapters.sql.statements import Shape

_VALUE = re.compile(r"'|<expr>|[=<>] -?\d")
"""What stands in a plan where an expression is compared with a value, not with a column."""

_NO_ALIAS = r"(?:ON|WHERE|JOIN|LEFT|RIGHT|INNER|CROSS|FULL|GROUP|ORDER|UNION)\b"
_ALIAS = re.compile(
    rf"\b(?:FROM|JOIN)\s+([\w.]+)(?:\s+(?:AS\s+)?(?!{_NO_ALIAS})(\w+))?", re.IGNORECASE
)


def seeks(looked: Looked, place: Place, plan: Plan) -> bool:
    """Tell whether a plan looks a field up in an index."""
    origin = origin_of(looked, place)
    if origin is None:
        return not plan.whole or _seeks_computed(looked, place, plan)
    # SQLite calls an integer key by its other name.
    column = re.escape(origin.column) + ("|rowid" if place.slot == "id" else "")
    named = _named(looked)
    return any(
        re.search(rf"\b({column})\b", by) and _is(origin, table, named, plan)
        for table, by in plan.sought
    )


def _seeks_computed(looked: Looked, place: Place, plan: Plan) -> bool:
    """Tell whether a value is looked up that is not when nothing is asked for.

    Stays of a patient are not told so: whoever replaced the patient is looked up too.
    """
    if place.slot == "patient_id":
        return False
    shape = Shape(looked.section.mapping.rows, (), looked.served.condition)
    always = looked.database.plan(shape, looked.served.values).sought
    return any(_VALUE.search(found.by) for found in {*plan.sought} - {*always})


def _is(origin: Origin, name: str, named: Mapping[str, str], plan: Plan) -> bool:
    """Whether a plan means the table of a column, as far as the name tells."""
    own = origin.table.rpartition(".")[2].strip('"')
    if not plan.aliases:
        return name == own
    # Within a view a table may have a name that nobody tells.
    return named.get(name, own).rpartition(".")[2] == own


def _named(looked: Looked) -> Mapping[str, str]:
    """Return the tables that are known, by the names that the mapping gives them."""
    found: dict[str, str] = {}
    for section in (*looked.mapping.resources.values(), looked.section.mapping):
        of_items = [i.rows for items in section.items.values() for i in items if i.rows]
        for rows in (*of_items, section.rows):
            origins = looked.origins_of(rows).values()
            found |= {origin.table: origin.table for origin in origins}
            found |= {alias or table: table for table, alias in _ALIAS.findall(rows)}
    return found


def origin_of(looked: Looked, place: Place) -> Origin | None:
    """Return the column that filters and sorts compare; None where it is computed."""
    origins = looked.origins_of(place.rows or looked.section.mapping.rows)
    return origins.get(place.field.filter_column or "")


def tables_of(looked: Looked, plan: Plan) -> str:
    """Return the tables that are read whole, by their own names where they have others."""
    named = _named(looked) if plan.aliases else {}
    return ", ".join(dict.fromkeys(named.get(name, name) for name in plan.whole))


def index_on(origin: Origin, *more: Origin) -> str:
    """Return the statement that makes an index."""
    columns = [each.column for each in (origin, *more)]
    name = origin.index_name(*columns)
    return f"CREATE INDEX {name} ON {origin.table} ({', '.join(columns)});"


def weight_of(looked: Looked) -> Weight:
    """Return how much it matters: organizations are few everywhere, stays only in a copy."""
    few = looked.kind is ResourceType.ORGANIZATION and len(looked.sample) < SAMPLE
    return Weight.NOTE if few else Weight.WARNING


def observed(
    looked: Looked, place: Place, text: str, weight: Weight, remedy: str
) -> Observation:
    """Return the observation of a field with the column that is compared."""
    origin = origin_of(looked, place)
    column = str(origin or place.field.filter_column or "")
    return Observation.at(place, column, text, weight, remedy)


def untold(looked: Looked, reason: str) -> Observation:
    """Return the note about what plans do not tell."""
    return looked.seen(f"indexes: not told, {reason}", Weight.NOTE)
