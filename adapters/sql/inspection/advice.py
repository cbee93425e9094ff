"""What a plan says of a column, and the index that would help."""

import re

from adapters.contract import ResourceType
from adapters.inspection import SAMPLE, Observation, Weight
from adapters.mapping.places import Place
from adapters.sql.dialects.plans import Origin, Plan
from adapters.sql.inspection.rows import Looked

COMPUTED = ", as the SELECT computes the column (search: may name a plain one)"

_ALIAS = re.compile(r"\b(?:FROM|JOIN)\s+([\w.]+)(?:\s+(?:AS\s+)?(\w+))?", re.IGNORECASE)


def seeks(looked: Looked, place: Place, plan: Plan) -> bool:
    """Tell whether a plan looks a field up in an index."""
    origin = origin_of(looked, place)
    if origin is None:
        return not plan.whole
    is_id = place.slot == "id"
    return plan.seeks(origin.column) or (is_id and "rowid" in plan.sought)


def origin_of(looked: Looked, place: Place) -> Origin | None:
    """Return the column that filters and sorts compare; None where it is computed."""
    origins = looked.origins_of(place.rows or looked.section.mapping.rows)
    return origins.get(place.field.filter_column or "")


def tables_of(looked: Looked, plan: Plan) -> str:
    """Return the tables that are read whole, by their own names where they have others."""
    rows = looked.section.mapping.rows
    named = {}
    for table, alias in _ALIAS.findall(rows):
        named[alias or table] = table
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
