"""Which column of a table is likely to hold what: habits, and the choosing.

The habits are in habits.yaml. One says which meanings a name has, what the column may
hold, and how sure that is. Words left over make a guess less sure, strange ones (of a
doctor, a plan, a user) end it.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from adapters.contract import ResourceType
from adapters.sql.tables import Holds, Table, TableColumn
from app.tools.starting.data import data
from app.tools.starting.words import Meaning, meaning

DAYS = frozenset({Holds.DATE, Holds.LOCAL_TIME, Holds.INSTANT})
MOMENTS = frozenset({Holds.LOCAL_TIME, Holds.INSTANT})
WRITTEN = frozenset({Holds.TEXT, Holds.INTEGER, Holds.NUMBER})
TIMES = DAYS | WRITTEN
CLOCKS = frozenset({Holds.CLOCK, Holds.TEXT, Holds.INTEGER})
CODES = frozenset({Holds.TEXT, Holds.INTEGER, Holds.NUMBER, Holds.FLAG, Holds.OTHER})
FLAGS = CODES
TEXTS = frozenset({Holds.TEXT, Holds.OTHER})
IDS = frozenset({Holds.TEXT, Holds.INTEGER, Holds.NUMBER, Holds.OTHER})

_KINDS: Mapping[str, tuple[frozenset[Holds], frozenset[str]]] = MappingProxyType(
    {
        "time": (TIMES, frozenset({"DATE", "TIME", "UTC"})),
        "moment": (MOMENTS, frozenset({"DATE", "TIME", "UTC"})),
        "day": (DAYS, frozenset({"DATE", "TIME", "UTC"})),
        "written": (TEXTS, frozenset({"TIME", "UTC"})),
        "clock": (CLOCKS, frozenset({"TIME"})),
        "code": (CODES, frozenset({"CODE", "ID", "FLAG"})),
        "flag": (FLAGS, frozenset({"CODE", "FLAG"})),
        "number": (IDS, frozenset({"NUMBER", "CODE", "ID", "ALIAS"})),
        "text": (TEXTS, frozenset({"LABEL", "NAME"})),
        "ref": (IDS, frozenset({"ID", "NUMBER", "CODE"})),
    }
)
"""What a column may hold, and the words that say nothing beyond its kind."""

STRANGE = frozenset(data("habits")["strange"].split())
"""Words of something else: a doctor, a plan, a user."""

LEAST = 40
_RIVAL = 55
_LONGEST_COMMENT = 40
_LEFT_OVER, _UNKNOWN, _OWN = 30, 12, 20


class Habit(NamedTuple):
    """What a name means when its column fills a slot; `sure` goes up to 100."""

    slot: str
    meanings: frozenset[str]
    kind: str
    sure: int


def _habits(*names: str) -> tuple[Habit, ...]:
    return tuple(
        Habit(slot, frozenset(words.split("+")), kind, int(sure))
        for name in names
        for key, ways in data("habits")[name].items()
        for slot, _, kind in [key.partition(".")]
        for words, _, sure in [way.partition(":") for way in ways.split()]
    )


HABITS: Mapping[ResourceType, tuple[Habit, ...]] = MappingProxyType(
    {
        ResourceType.ENCOUNTER: _habits("encounter", "every"),
        ResourceType.PATIENT: _habits("patient", "every", "reached"),
        ResourceType.ORGANIZATION: _habits("organization", "every", "reached"),
    }
)

UNIT_HABITS = _habits("unit")
"""The column of a table of units that people know a unit by."""

CHILD_HABITS: Mapping[str, tuple[Habit, ...]] = MappingProxyType(
    {
        "identifiers": _habits("identifiers"),
        "telecoms": _habits("telecoms"),
        "addresses": _habits("addresses", "reached"),
        "names": _habits("names"),
    }
)
"""Tables with several rows a patient, by the list that they fill."""


def choose(
    table: Table,
    habits: Iterable[Habit],
    neutral: frozenset[str] = frozenset(),
    keys: Container[str] = (),
) -> Mapping[str, TableColumn]:
    """Return the likeliest column of each slot, each column for one slot only.

    Words of the table's own name say nothing in its columns, nor do the meanings
    `neutral`. `keys` are columns that lead to other tables: they fill references only.
    """
    own = meaning(table.bare).known
    guesses = sorted(_guesses(table, habits, own, neutral, keys), key=lambda g: -g[0])
    chosen: dict[str, TableColumn] = {}
    taken: set[str] = set()
    for _, slot, column in guesses:
        if slot not in chosen and column.name not in taken:
            chosen[slot] = column
            taken.add(column.name)
    return chosen


def rivals(
    table: Table,
    habits: Iterable[Habit],
    neutral: frozenset[str],
    keys: Container[str],
    chosen: Mapping[str, TableColumn],
) -> Mapping[str, tuple[TableColumn, ...]]:
    """Return the columns that could fill a slot as well as the one that was chosen."""
    own = meaning(table.bare).known
    taken = {*table.primary_key, *(column.name for column in chosen.values())}
    found: dict[str, dict[str, TableColumn]] = {}
    for sure, slot, column in _guesses(table, habits, own, neutral, keys):
        marks = slot in ("cancelled", "deleted")
        if sure < _RIVAL or marks or column.name in taken:
            continue
        if slot in chosen:
            found.setdefault(slot, {})[column.name] = column
    return {slot: tuple(of.values()) for slot, of in found.items()}


def _guesses(
    table: Table,
    habits: Iterable[Habit],
    own: frozenset[str],
    neutral: frozenset[str],
    keys: Container[str],
) -> Iterator[tuple[int, str, TableColumn]]:
    known = tuple(habits)
    for column in table.columns:
        heard = said(column)
        for habit in known:
            sure = _sure(habit, column, heard, own | neutral)
            if sure >= LEAST and (habit.kind == "ref" or column.name not in keys):
                # `evaluation_type` of evaluations goes before their `visit_type`.
                yield sure + _OWN * bool(habit.meanings & own), habit.slot, column


def said(column: TableColumn) -> Meaning:
    """Return what a column says of itself: its name, or else its comment."""
    named = meaning(column.name)
    short = column.comment if len(column.comment) <= _LONGEST_COMMENT else ""
    return named if named.known or not short else meaning(short)


def _sure(
    habit: Habit, column: TableColumn, heard: Meaning, own: frozenset[str]
) -> int:
    may_hold, neutral = _KINDS[habit.kind]
    if column.holds not in may_hold or not habit.meanings <= heard.known:
        return 0
    left = heard.known - habit.meanings - neutral - own
    if left & STRANGE:
        return 0
    return habit.sure - _LEFT_OVER * len(left) - _UNKNOWN * heard.unknown
