"""A first mapping file: which column fills which slot, and the text of the file.

A part is a table with those that are joined to it, as `app.cli.tables` reads them.
"""

import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import NamedTuple

from adapters.contract import ResourceType
from adapters.mapping.slots import LINES, LISTS, REFERS, SLOTS, Kind, Slot
from adapters.parameters import SEARCH_PARAMETERS, SORTS
from adapters.sql.catalog import CodeCount, Holds
from app.cli.check import MARK
from app.cli.names import Column, best, meanings_of

PATIENT = ResourceType.PATIENT

_MOST_CANDIDATES = 6

TIMES = frozenset({Holds.DATE, Holds.LOCAL_TIME, Holds.INSTANT})
TEXTS = frozenset({Holds.TEXT, Holds.INTEGER})
_FITS = {
    **dict.fromkeys((Kind.ID, Kind.EXACT), TEXTS),
    **dict.fromkeys((Kind.CODE, Kind.FLAG), TEXTS | {Holds.FLAG}),
    **dict.fromkeys((Kind.TIME, Kind.DATE), TIMES),
    **dict.fromkeys((Kind.TEXT, Kind.PARTS), frozenset({Holds.TEXT})),
}
"""What a column may hold to fill a slot of a kind."""


@dataclass(frozen=True, slots=True)
class Field:
    """A slot: its column or constant, or else the columns that may fill it.

    `table` is the code table that reads it, "" for none.
    """

    slot: Slot
    column: Column | None = None
    note: str = ""
    constant: str = ""
    candidates: Sequence[str] = ()
    table: str = ""

    def lines(self) -> Iterator[str]:
        """Yield the field, or the question of what fills it."""
        name, mark = self.slot.name, f"  {MARK}{self.note}" if self.note else ""
        if self.constant:
            yield f"{name}: {_text(self.constant)}{mark}"
        elif self.column:
            value = f"[{self._flow()}]" if self.slot is LINES else self._flow()
            yield f"{name}: {value}{mark}"
        else:
            fitting = ", ".join(self.candidates) or "none has a type that fits"
            yield from _comments([f"{name}: which column? {fitting}"])
            yield from _comments([self.note] if self.note else [], "#   ")
            yield f"# {name}: {self._flow()}"

    def _flow(self) -> str:
        column, options = self.column, {"from": "…", "codes": self.table}
        if column:
            is_day = column.holds is Holds.DATE and self.slot.kind is Kind.TIME
            options["from"] = _text(column.name)
            options["at"] = '"00:00"' if is_day else ""
            options["absent"] = json.dumps(column.absent) if column.absent else ""
        pairs = (f"{key}: {value}" for key, value in options.items() if value)
        return f"{{{', '.join(pairs)}}}"

    def code_table(self) -> Iterator[str]:
        """Yield the table: codes that are the slot's own words, the others as questions."""
        if self.column is None or not self.table:
            return
        words = {word.lower(): word for word in self.slot.codes or ("true", "false")}
        shared, rare = _shared(self.column)
        is_filled = any(count.code.lower() in words for count in shared)
        yield f"{self.table}:  {MARK}what does each code of {self.column.name} mean?"
        yield "  table:" if is_filled else "  table: {}"
        for count in shared:
            code, rows = _text(count.code), f"{count.rows} rows"
            if word := words.get(count.code.lower()):
                yield f"    {code}: {word}  # {rows}"
            else:
                yield f"    {MARK}{code}:  # {rows}; {', '.join(words.values())}"
        if rare:
            yield f"    {MARK}{rare} more that too few rows have"


def _shared(column: Column) -> tuple[list[CodeCount], int]:
    """Return the codes that may be written, and how many others there are."""
    codes = column.counts() or ()
    shared = [c for c in codes if c.rows >= column.fewest or not c.rows]
    return shared, len(codes) - len(shared)


class Item(NamedTuple):
    """An item of a list; `head` says which rows hold it, empty for the section's own."""

    fields: Sequence[Field]
    head: Sequence[str] = ()

    def lines(self) -> Iterator[str]:
        """Yield the item as an entry of a list."""
        lines = [*self.head, *chain.from_iterable(f.lines() for f in self.fields)]
        yield f"- {lines[0]}"
        yield from _indented(lines[1:], 2)


@dataclass(frozen=True, slots=True)
class Part:
    """Rows: of a section, or (`children`) of a table whose rows may be items of a list.

    `tables` is what stands in a SELECT after its columns, `left` are further questions.
    """

    kind: ResourceType
    name: str
    columns: Sequence[Column]
    id: str
    id_note: str
    tables: Sequence[str]
    left: Sequence[str] = ()
    children: Sequence["Part"] = ()
    fields: Sequence[Field] = ()
    items: Mapping[str, Sequence[Item]] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """Yield the keys of the part."""
        yield from _comments(self.left)
        items = chain.from_iterable(self.items.values())
        own = chain.from_iterable(item.fields for item in items if not item.head)
        yield from self.select(*self.fields, *own)
        yield "fields:"
        yield from _indented(chain.from_iterable(f.lines() for f in self.fields), 2)
        for name, of in self.items.items():
            yield f"  {name}:" if of else f"  {MARK}{name}: which columns?"
            yield from _indented(chain.from_iterable(item.lines() for item in of), 4)

    def named_fields(self) -> Iterator[tuple[str, Field]]:
        """Yield each field with its name, as search parameters have it."""
        yield from ((each.slot.name, each) for each in self.fields)
        for name, of in self.items.items():
            for each in chain.from_iterable(item.fields for item in of):
                yield f"{name}.{each.slot.name}", each

    def select(self, *fields: Field) -> Iterator[str]:
        """Yield `rows` with a SELECT of the columns of fields."""
        columns = [each.column for each in fields if each.column]
        joins = dict.fromkeys(column.join for column in columns if column.join)
        tables = sorted((*self.tables, *joins), key=lambda t: t.startswith("WHERE"))
        # No line ends inside of a name.
        names = (c.selected.replace(" ", "\0") for c in columns)
        whole = ", ".join(dict.fromkeys(names)) or "*"
        lines = textwrap.wrap(whole, 80, break_long_words=False, break_on_hyphens=False)
        first, *others = (line.replace("\0", " ") for line in lines)
        yield from ("rows: |", f"  SELECT {first}")
        yield from _indented(others, 9)
        yield from _indented(tables, 2)


# Which column fills which slot


Sections = Mapping[ResourceType, Sequence[Part]]


def with_fields(sections: Sections, hospital: str = "") -> Sections:
    """Return the sections with fields and items; `hospital` is the id of the only one."""
    ids = {kind: f"{parts[0].name}.{parts[0].id}" for kind, parts in sections.items()}
    return {
        kind: [
            replace(part, fields=[*_fields(part, ids, hospital)], items=_items(part))
            for part in parts
        ]
        for kind, parts in sections.items()
    }


def _fields(
    part: Part, ids: Mapping[ResourceType, str], hospital: str
) -> Iterator[Field]:
    columns = [*part.columns]
    for slot in SLOTS[part.kind]:
        if slot.kind is Kind.SYSTEM:
            continue
        fitting = [column for column in columns if column.holds in _FITS[slot.kind]]
        column, note = _column_of(part, slot, fitting, ids)
        is_led = column is not None and column.refers
        if slot.name == "organization_id" and hospital and not is_led:
            yield Field(slot, note="the only hospital", constant=hospital)
        elif column is None:
            note = _derived(part) if slot.name == "status" else note
            table = _table_name(part, slot) if slot.takes else ""
            candidates = [*islice(_candidates(slot, fitting), _MOST_CANDIDATES)]
            yield Field(slot, None, note, candidates=candidates, table=table)
        else:
            yield _field(part, slot, column, note)
            columns.remove(column)


def _field(part: Part, slot: Slot, column: Column, note: str) -> Field:
    is_time = slot.kind is Kind.TIME
    notes = [
        note,
        column.note,
        _TIME_QUESTIONS.get(column.holds, "") if is_time else "",
    ]
    is_flag = slot.kind is Kind.FLAG and column.holds is Holds.FLAG
    table = _table_name(part, slot) if slot.takes and not is_flag else ""
    return Field(slot, column, "; ".join(filter(None, notes)), table=table)


def _table_name(part: Part, slot: Slot) -> str:
    return re.sub(r"\W", "_", f"{slot.name}_{part.name}")


def _candidates(slot: Slot, fitting: Sequence[Column]) -> Iterator[str]:
    """Yield columns that may fill a slot, those of codes with their codes."""
    for column in fitting:
        is_led = (column.refers or column.is_key) and slot.kind is not Kind.ID
        if is_led or column.is_audit or "other" in column.meanings:
            continue
        if not slot.takes:
            yield column.name
        elif codes := [f"{c.code}: {c.rows}" for c in _shared(column)[0][:9]]:
            yield f"{column.name} ({', '.join(codes)})"


def _derived(part: Part) -> str:
    """Return how a status follows from the times of a stay, "" where it cannot."""
    times = [column for column in part.columns if column.holds in TIMES]
    start, _ = _start_or_end("start", times)
    end, _ = _start_or_end("end", [column for column in times if column != start])
    if start is None or end is None:
        return ""
    return (
        "If none holds it, it follows from the times, once rows may use :now:"
        f" CASE WHEN {start.select} > :now THEN 'planned' WHEN {end.select} <= :now THEN"
        " 'finished' ELSE 'in-progress' END AS status"
    )


_TIME_QUESTIONS = {
    Holds.DATE: "at which time of day?",
    Holds.LOCAL_TIME: "by whose clock?",
}


def _column_of(
    part: Part, slot: Slot, fitting: Sequence[Column], ids: Mapping[ResourceType, str]
) -> tuple[Column | None, str]:
    """Return the column of a slot and what is open about it.

    The key, a column that leads to the section that the slot refers to, its namesake, or
    the one whose name fits best.
    """
    if slot.name == "id":
        return next((c for c in fitting if c.name == part.id), None), part.id_note
    id = ids.get(REFERS[slot.name]) if slot.name in REFERS else None
    if leading := [c for c in fitting if id and c.refers == id and not c.is_key]:
        named, note = best(leading, slot.name)
        return (leading[0], "") if len(leading) == 1 else (named, note)
    for column in fitting:
        if column.name.lower() == slot.name:
            is_guess = slot.name in REFERS or column.note
            return column, "by its name" if is_guess else ""
    if slot.name in ("start", "end"):
        return _start_or_end(slot.name, fitting)
    return best([c for c in fitting if not c.is_key and not c.refers], slot.name)


def _start_or_end(name: str, fitting: Sequence[Column]) -> tuple[Column | None, str]:
    times = [column for column in fitting if not column.is_audit]
    column, note = best(times, name)
    if column is None and name == "start":
        times = [column for column in times if "end" not in column.meanings]
        return next(iter(times), None), "the first time that is not the row's own"
    if column is None and len(times) == 1:
        return times[0], "the last time that is not the row's own"
    return column, note


# Items of lists

_EXAMPLE = "https://example.org/identifiers/patient"
_SLOTS_OF_ITEMS = {
    "names": ("family", "given", "prefix"),
    "addresses": (LINES.name, "city", "postal_code", "country"),
}


def _items(part: Part) -> Mapping[str, Sequence[Item]]:
    """Return items from the columns of a part, else from a table that refers to it."""
    items = {}
    for name in (listed.name for listed in LISTS[part.kind]):
        own = [Item(fields) for fields in _contents(name, part)]
        others = ([*_items_of(child, name)] for child in part.children)
        items[name] = own or next(filter(None, others), [])
    return items


def _items_of(child: Part, name: str) -> Iterator[Item]:
    key = next(column for column in child.columns if column.name == child.id)
    notes = filter(None, (f"rows of {child.name}", key.note, *child.left))
    line = f"key: {_text(key.name)}  {MARK}{'; '.join(notes)}"
    for fields in _contents(name, child, is_child=True):
        rows = child.select(Field(SLOTS[PATIENT][0], key), *fields)
        yield Item(fields, (*rows, line))


def _contents(
    name: str, part: Part, *, is_child: bool = False
) -> Iterator[Sequence[Field]]:
    """Yield the fields of each item of a list that columns of a part may fill."""
    slots = {s.name: s for of in LISTS[PATIENT] if of.name == name for s in of.slots}
    slots[LINES.name] = LINES
    is_patient = part.kind is PATIENT
    columns = [c for c in part.columns if not c.is_key and not c.refers]

    def take(slot: str, pattern: str = "") -> list[Field]:
        fitting = [c for c in columns if c.holds in _FITS[slots[slot].kind]]
        column, note = best(fitting, pattern or slot)
        if column is None:
            return []
        columns.remove(column)
        return [_field(part, slots[slot], column, note)]

    if name in _SLOTS_OF_ITEMS:
        wanted = _SLOTS_OF_ITEMS[name]
        fields = [field for slot in wanted for field in take(slot)]
        # A table of its own is one of names or addresses only if it has the second.
        needed = {wanted[1]} if is_child else {*wanted[:2]}
        yield from [fields] if needed & {f.slot.name for f in fields} else []
    elif not is_child and name == "telecoms":
        for kind in ("phone", "email"):
            constant = Field(slots["system"], None, "", kind)
            yield from ([constant, value] for value in take("value", kind))
    elif name == "telecoms" and _is_about(part, "contact", "phone"):
        phone = Field(slots["system"], None, "by the table's name", "phone")
        system = take("system") or [phone]
        yield from ([*system, value] for value in take("value"))
    elif name == "identifiers" and (_is_about(part, name) if is_child else is_patient):
        constants = [
            Field(slots["type"], None, "PI, RRI, INS-NIR, …", "PI"),
            Field(slots["system"], None, "the system of these numbers", _EXAMPLE),
        ]
        values = take("value", "" if is_child else name)
        yield from ([*constants, value] for value in values)


def _is_about(part: Part, *meanings: str) -> bool:
    return any(word & {*meanings} for word in meanings_of(part.name))


# The file

_WIDTH = 100
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+/-]*")

_HEAD = """\
# A first mapping, written from the catalogue of the database.
# "# ?" marks what is open: answer it, take the "# " from a line that you need, and remove the
# mark. What `rows` lacks must be added there. `encounters mapping check` says what is still
# missing. A line without a mark follows from names of slots, types and declared keys. Where a
# time is by the clock of UTC, its field needs time_zone: UTC.
mapping: 1
name: {name}  # ? the name that clients see
profile: full  # ? full, group-a or group-b
time_zone: Europe/Paris  # ? the hospital's zone; times without a zone are read in it

constants:
  # ? the system of the visit numbers (urn:oid:…), and the address agreed with the clients
  visit_number_system: https://example.org/identifiers/visit
  functional_unit_extension: https://example.org/fhir/StructureDefinition/functional-unit

source:
  kind: sql
  url: {{env: {variable}}}"""


def text_of(sections: Sections, variable: str, name: str) -> str:
    """Return the text of the file."""
    lines = [_HEAD.format(name=_text(name), variable=variable)]
    parts = [part for of in sections.values() for part in of]
    fields = [each for part in parts for _, each in part.named_fields()]
    if tables := [line for f in fields for line in f.code_table()]:
        lines += ["", "codes:", *_indented(tables, 2)]
    for kind, of in sections.items():
        lines += ["", f"{kind.lower()}:"]
        offered = _offered(kind, of)
        if len(of) == 1:
            lines += _indented([*of[0].lines(), *offered], 2)
            continue
        lines += _indented([*offered, "sources:"], 2)
        for number, part in enumerate(of, 1):
            prefix = re.sub(r"[^a-z]", "", part.name.lower())[:3]
            lines.append(
                f"    - prefix: {prefix}{number}-  {MARK}ids begin with it for ever"
            )
            lines += _indented(part.lines(), 6)
    return "\n".join(lines) + "\n"


def _offered(kind: ResourceType, parts: Sequence[Part]) -> list[str]:
    """Return the parameters and orders that every part can answer."""
    slots = [{name for name, each in p.named_fields() if each.column} for p in parts]
    can = set.intersection(*slots)
    # Nothing says that a last change covers every joined table.
    rows = [row for row in SEARCH_PARAMETERS[kind].values() if can & {*row.slots}]
    search = [row.name for row in rows if row.slots != ("last_updated",)]
    sort = [name for name, slot in SORTS[kind].items() if slot in can and name != "_id"]
    lines = [f"search: [{', '.join(search)}]"]
    return [*lines, f"sort: [{', '.join(sort)}]"] if sort else lines


def _comments(texts: Iterable[str], mark: str = MARK) -> Iterator[str]:
    """Yield texts as comments that begin with a mark, in lines that are not too long."""
    for text in texts:
        yield from textwrap.wrap(
            text,
            _WIDTH,
            initial_indent=mark,
            subsequent_indent="#".ljust(len(mark)),
            break_long_words=False,
            break_on_hyphens=False,
        )


def _indented(lines: Iterable[str], blanks: int) -> Iterator[str]:
    return (f"{' ' * blanks}{line}" for line in lines)


def _text(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)
