"""Columns of a SELECT of PostgreSQL: their types, and how their texts compare."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from adapters.sql.columns import TIMES, Column, Kind
from adapters.sql.dialects.base import Cursor

_ONE_BYTE = 18
"""The type "char", the only text without a collation."""

_KINDS: Mapping[int, Kind] = {
    16: Kind.BOOLEAN,
    _ONE_BYTE: Kind.TEXT,
    19: Kind.TEXT,
    20: Kind.INTEGER,
    21: Kind.INTEGER,
    23: Kind.INTEGER,
    25: Kind.TEXT,
    701: Kind.NUMBER,
    1042: Kind.TEXT,
    1043: Kind.TEXT,
    1082: Kind.DATE,
    1114: Kind.LOCAL_TIME,
    1184: Kind.INSTANT,
    1700: Kind.NUMBER,
    2950: Kind.UUID,
}
"""By the object id of the type, which is the same in every PostgreSQL (pg_type.dat)."""

_PLAIN = ('"default"', '"C"', '"POSIX"')
"""Collations that compare exactly, as everybody knows."""

TIME_TYPES = tuple(oid for oid, kind in _KINDS.items() if kind in TIMES)
"""The types whose every value is a day or a time."""


def read_columns(cursor: Cursor, rows: str) -> tuple[Column, ...]:
    """Return the columns of a SELECT, without reading a row."""
    cursor.execute(f"SELECT * FROM ({rows}\n) AS pas WHERE 1 = 0")
    described = [(column[0], column[1]) for column in cursor.description or ()]
    citext = _citext(cursor, [type_ for _, type_ in described])
    columns = [
        Column(name, Kind.TEXT if type_ == citext else _KINDS.get(type_, Kind.OTHER))
        for name, type_ in described
    ]
    texts = [
        place
        for place, column in enumerate(columns)
        if column.kind is Kind.TEXT and described[place][1] != _ONE_BYTE
    ]
    collations = _collations(cursor, rows, len(columns), texts) if texts else {}
    folding = _folding(cursor, {*collations.values()})
    return tuple(
        Column(
            column.name,
            Kind.FOLDING
            if described[place][1] == citext or collations.get(place) in folding
            else column.kind,
            collations.get(place) or "",
        )
        for place, column in enumerate(columns)
    )


def _citext(cursor: Cursor, types: Iterable[int]) -> int | None:
    """Return the type citext, whose number is another in every database."""
    unknown = [type_ for type_ in types if type_ not in _KINDS]
    if not unknown:
        return None
    named = "SELECT oid FROM pg_type WHERE typname = 'citext' AND oid = ANY(%s)"
    cursor.execute(named, (unknown,))
    return next((row[0] for row in cursor.fetchall()), None)


def _collations(
    cursor: Cursor, rows: str, size: int, texts: Sequence[int]
) -> Mapping[int, str | None]:
    """Return the collations of the texts at these places."""
    # One row of NULLs, each with the collation of its column.
    names = ", ".join(f"c{place}" for place in range(size))
    told = ", ".join(f"pg_collation_for(c{place})" for place in texts)
    cursor.execute(
        f"SELECT {told} FROM (SELECT 1) AS one LEFT JOIN"
        f" (SELECT * FROM ({rows}\n) AS pas LIMIT 0) AS pas ({names}) ON false"
    )
    (row,) = cursor.fetchall()
    return dict(zip(texts, row, strict=True))


def _folding(cursor: Cursor, collations: Collection[str | None]) -> Collection[str]:
    """Return those collations that take texts for the same that are not."""
    if not {*collations} - {None, *_PLAIN}:
        return ()
    cursor.execute(
        "SELECT name FROM unnest(%s::text[]) AS name JOIN pg_collation AS c"
        " ON c.oid = name::regcollation WHERE NOT c.collisdeterministic",
        (list(collations),),
    )
    return [row[0] for row in cursor.fetchall()]
