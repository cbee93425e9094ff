"""Which column of a table is likely to hold what: habits as data, and the choosing.

A habit says which meanings a name has, what the column may hold, and how sure that is.
Words left over make a guess less sure, strange ones (of a doctor, a plan, a user) end it.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from adapters.contract import ResourceType
from adapters.sql.catalogue import Holds, Table, TableColumn
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
        "clock": (CLOCKS, frozenset({"TIME"})),
        "code": (CODES, frozenset({"CODE", "ID", "FLAG"})),
        "flag": (FLAGS, frozenset({"CODE", "FLAG"})),
        "number": (IDS, frozenset({"NUMBER", "CODE", "ID", "ALIAS"})),
        "text": (TEXTS, frozenset({"LABEL", "NAME"})),
        "ref": (IDS, frozenset({"ID", "NUMBER", "CODE"})),
    }
)
"""What a column may hold, and the words that say nothing beyond its kind."""

STRANGE = frozenset(
    "BIRTH CANCEL CLOSED CREATED DEATH DELETE DOCTOR EXPECTED FORMER INSURANCE MERGED"
    " MOTHER PLACE REASON RELATIVE SEARCH TITLE USER ZONE BED WORK".split()
)

LEAST = 40
_LEFT_OVER, _UNKNOWN, _OWN = 30, 12, 20


class Habit(NamedTuple):
    """What a name means when its column fills a slot; `sure` goes up to 100."""

    slot: str
    meanings: frozenset[str]
    kind: str
    sure: int


def _habits(text: str) -> tuple[Habit, ...]:
    found = []
    for line in filter(None, text.splitlines()):
        slot, kind, *ways = line.split()
        for way in ways:
            words, _, sure = way.partition(":")
            found.append(Habit(slot, frozenset(words.split("+")), kind, int(sure)))
    return tuple(found)


_CHANGES = """
changed       time   CHANGED+DATE:95 CHANGED:85
created       time   CREATED+DATE:95 CREATED:85
"""
_REACHED = """
phone         text   PHONE:95
mobile        text   MOBILE:95 PHONE+MOBILE:97
fax           text   FAX:95
email         text   EMAIL:95
line1         text   STREET:95 LINE:90 ADDRESS+LINE:95 ADDRESS+STREET:95 ADDRESS:70
line2         text   STREET:80 LINE:80 ADDRESS+LINE:90 ADDRESS+STREET:90
postal_code   text   POSTAL:95 ADDRESS+POSTAL:95
city          text   CITY:95 ADDRESS+CITY:95
country       text   COUNTRY:95 ADDRESS+COUNTRY:90
"""

HABITS: Mapping[ResourceType, tuple[Habit, ...]] = MappingProxyType(
    {
        ResourceType.ENCOUNTER: _habits(
            """
visit_number    number VISITNO:100 STAY+NUMBER:95 ENTRY+NUMBER:85 FILE+NUMBER:75 NUMBER:60
visit_number    number APPOINTMENT+NUMBER:85 STAY+CODE:70 STAY+ALIAS:60 FILE:45
patient_id      ref    PATIENT+ID:95 PATIENT:90 PATIENTNO:85 PERSON:60 PERSON+ID:65
status          code   STATUS+STAY:100 STATUS:95
class           code   CLASS:95 CLASS+PATIENT:97 KIND+STAY:95 KIND+ENTRY:85 KIND+CLASS:90
class           code   KIND+APPOINTMENT:80 KIND+OUTPATIENT:80 KIND:60
start           time   ENTRY+DATE:100 START+DATE:80 STAY+DATE:55 APPOINTMENT+DATE:55 DATE:45
start           moment ENTRY+TIME:92
start           day    ENTRY:88 START:75
start_clock     clock  ENTRY+TIME:90 START+TIME:80
end             time   EXIT+DATE:100 END+DATE:80
end             moment EXIT+TIME:92
end             day    EXIT:88 END:75
end_clock       clock  EXIT+TIME:90 END+TIME:80
planned         time   EXPECTED+ENTRY+DATE:90 EXPECTED+DATE:80 EXPECTED+ENTRY:85
cancelled       flag   CANCEL:90
deleted         flag   DELETE:90
functional_unit number UNITCODE:98 UNIT+CODE:95 UNIT:85
organization_id ref    ORGANIZATION:85
"""
            + _CHANGES
        ),
        ResourceType.PATIENT: _habits(
            """
number          number PATIENTNO:95 PATIENT+NUMBER:85 FILE+NUMBER:70 PATIENT+CODE:60
ins             text   INS:95
ins_status      code   INS+STATUS:95 STATUS+PERSON:60
active          flag   ACTIVE:90 ACTIVE+FLAG:92 STATUS+FILE:60 STATUS+PATIENT:55
gender          code   SEX:95
birth_date      time   BIRTH+DATE:100
birth_date      day    BIRTH:90
deceased        flag   DEATH:80 DEATH+FLAG:95 DEATH+STATUS:70
deceased_at     time   DEATH+DATE:100
deceased_at     day    DEATH:85
deceased_clock  clock  DEATH+TIME:90
replaced_by     ref    MERGED:90 MERGED+PATIENT:95 MERGED+ID:92
deleted         flag   DELETE:90
organization_id ref    ORGANIZATION:85
birth_family    text   BIRTH+FAMILY:97 BIRTH+NAME:90
birth_family_search text BIRTH+FAMILY+SEARCH:99 BIRTH+NAME+SEARCH:95
used_family     text   USAGE+FAMILY:97 USAGE+NAME:80
used_family_search  text USAGE+FAMILY+SEARCH:99
family          text   FAMILY:95 FAMILY+NAME:95
family_search   text   FAMILY+SEARCH:97
given           text   GIVEN:95 GIVEN+NAME:95 BIRTH+GIVEN:80
given_search    text   GIVEN+SEARCH:97
used_given      text   USAGE+GIVEN:97
used_given_search   text USAGE+GIVEN+SEARCH:99
title           text   TITLE:90
name            text   NAME:60 PATIENT+NAME:65
"""
            + _CHANGES
            + _REACHED
        ),
        ResourceType.ORGANIZATION: _habits(
            """
name            text   NAME:90 LABEL:90 ORGANIZATION+NAME:95 ORGANIZATION+LABEL:95 FAMILY:70
name            text   ORGANIZATION:50
name_search     text   NAME+SEARCH:95 FAMILY+SEARCH:90 LABEL+SEARCH:95
finess          text   FINESS:95
number          number NUMBER:50 CODE:60 ORGANIZATION+CODE:70 ORGANIZATION+NUMBER:70
active          flag   ACTIVE:90 STATUS:41
part_of         ref    PARENT:90 PARENT+ORGANIZATION:95
"""
            + _CHANGES
            + _REACHED
        ),
    }
)

UNIT_HABITS = _habits("code number UNITCODE:98 UNIT+CODE:95 CODE:90 NUMBER:60")
"""The column of a table of units that people know a unit by."""

CHILD_HABITS: Mapping[str, tuple[Habit, ...]] = MappingProxyType(
    {
        "identifiers": _habits(
            """
type            code   DOMAIN:90 KIND:85 KIND+ALIAS:95 DOMAIN+ALIAS:95
value           text   MEDIUM:95 NUMBER:85 ALIAS:80 ALIAS+NUMBER:95 CODE:70
organization_id ref    ORGANIZATION:85
status          code   STATUS:85
"""
        ),
        "telecoms": _habits(
            """
type            code   KIND:90 KIND+CONTACT:97 KIND+PHONE:90 KIND+MEDIUM:90
value           text   MEDIUM:95 NUMBER:80 PHONE:90 PHONE+NUMBER:95 CONTACT:60 EMAIL:70
"""
        ),
        "addresses": _habits(
            "type          code   KIND:90 KIND+ADDRESS:97 USAGE:80 USAGE+ADDRESS:85\n" + _REACHED
        ),
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


def _guesses(
    table: Table,
    habits: Iterable[Habit],
    own: frozenset[str],
    neutral: frozenset[str],
    keys: Container[str],
) -> Iterator[tuple[int, str, TableColumn]]:
    known = tuple(habits)
    for column in table.columns:
        said = meaning(column.name)
        for habit in known:
            sure = _sure(habit, column, said, own | neutral)
            if sure >= LEAST and (habit.kind == "ref" or column.name not in keys):
                # `evaluation_type` of evaluations goes before their `visit_type`.
                yield sure + _OWN * bool(habit.meanings & own), habit.slot, column


def _sure(habit: Habit, column: TableColumn, said: Meaning, own: frozenset[str]) -> int:
    may_hold, neutral = _KINDS[habit.kind]
    if column.holds not in may_hold or not habit.meanings <= said.known:
        return 0
    left = said.known - habit.meanings - neutral - own
    if left & STRANGE:
        return 0
    return habit.sure - _LEFT_OVER * len(left) - _UNKNOWN * said.unknown
