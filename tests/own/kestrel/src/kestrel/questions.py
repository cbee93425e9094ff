"""Searches as conditions on visits; values are always bound."""

from datetime import UTC, datetime, timedelta

from adapters.contract import (
    Criterion,
    DateCriterion,
    DateValue,
    Group,
    Position,
    Prefix,
    ReferenceCriterion,
    SearchQuery,
    SortKey,
    TokenCriterion,
)
from kestrel.visits import PHASES

KEYS = {SortKey.DATE: "arrived", SortKey.LAST_UPDATED: "touched"}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Part = tuple[str, list[object]]
NOTHING: Part = ("0", [])


def conditions(query: SearchQuery) -> Part:
    """Return what holds for the visits that match."""
    parts = [_condition(criterion) for criterion in query.criteria]
    parts.append(("coalesce(phase, '') NOT IN ('A', 'X')", []))
    return " AND ".join(sql for sql, _ in parts), [v for _, some in parts for v in some]


def _condition(criterion: Criterion) -> Part:
    if isinstance(criterion, DateCriterion):
        return _any([_date(value) for value in criterion.values])
    if isinstance(criterion, ReferenceCriterion):
        survivor = "SELECT coalesce(merged, person) FROM persons WHERE CAST(person AS TEXT) = ?"
        return _any(
            [
                (f"person IN ({survivor})", [id])
                for id in criterion.values
                if id.isprintable()
            ]
        )
    assert isinstance(criterion, TokenCriterion)
    texts = [token.code or "" for token in criterion.values]
    if criterion.parameter == "_id":
        known = [text for text in texts if text.isprintable()]
        return _any([("CAST(visit AS TEXT) = ?", [text]) for text in known])
    codes = [code for code, status in PHASES.items() if status in texts]
    return _any([("phase = ?", [code]) for code in codes])


def _any(parts: list[Part]) -> Part:
    if not parts:
        return NOTHING
    return f"({' OR '.join(s for s, _ in parts)})", [
        v for _, some in parts for v in some
    ]


def _date(value: DateValue) -> Part:
    low, high = _micros(value.low), _micros(value.high)
    match value.prefix:
        case Prefix.EQ:
            return "(arrived >= ? AND arrived < ?)", [low, high]
        case Prefix.NE:
            return "(arrived < ? OR arrived >= ?)", [low, high]
        case Prefix.GT:
            return "arrived >= ?", [high]
        case Prefix.GE:
            return "arrived >= ?", [low]
        case Prefix.LT:
            return "arrived < ?", [low]
        case Prefix.LE:
            return "arrived < ?", [high]


def _micros(instant: datetime) -> int:
    return (instant - EPOCH) // timedelta(microseconds=1)


def place(query: SearchQuery) -> tuple[str, str, list[object]]:
    """Return where the page goes on, its order, and the values of the former."""
    key = KEYS[query.sort.key]
    falls = query.sort.descending is not query.backwards
    way = "DESC" if falls else "ASC"
    unkeyed = "DESC" if query.backwards else "ASC"
    order = f"({key} IS NULL) {unkeyed}, {key} {way}, visit {way}"
    mark = query.before if query.backwards else query.after
    if not isinstance(mark, Position):
        return "1", order, []
    sign = "<" if falls else ">"
    if mark.group is Group.KEYED:
        seam = "0" if query.backwards else f"{key} IS NULL"
        beyond = f"({seam} OR {key} {sign} ? OR ({key} = ? AND visit {sign} ?))"
        return beyond, order, [mark.key, mark.key, mark.id]
    seam = f"{key} IS NOT NULL OR" if query.backwards else f"{key} IS NULL AND"
    return f"({seam} visit {sign} ?)", order, [mark.id]
