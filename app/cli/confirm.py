"""`encounters mapping confirm`: rows held against the hospital's own screens.

No row shows that a time is by another clock, that a unit comes from the wrong one of two
columns, or what a code means. The hospital's screens do. A file beside the mapping holds
what they show of some stays; `check --live` compares, and names what no screen has
confirmed. The command writes that file with its questions. Findings quote no value of a row
but codes.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from adapters.contract import (
    AdapterError,
    EncounterRecord,
    GoneError,
    NotFoundError,
    Record,
    ResourceType,
    RowFault,
    SearchQuery,
    Sort,
    SortKey,
    SourceDataError,
)
from adapters.folding import fold
from adapters.inspection import (
    SAMPLE,
    SMALL_SAMPLE,
    RowReader,
    SourcePage,
    SourceRow,
    all_pages,
    find_rows,
    plain_text,
)
from adapters.mapping.lineage import TracedField, trace
from adapters.mapping.model import CodeTable, FieldMapping, Mark, ResourceMapping
from adapters.mapping.problems import did_you_mean
from adapters.mapping.schema import problems_of
from adapters.mapping.slots import SECTIONS, Kind, Place, places_of
from adapters.mapping.yaml import Items, Node, Scalar, Table, parse_file, plain
from adapters.registry import open_source
from app.cli.tools import (
    FINE,
    CannotRunError,
    Finding,
    MappingFile,
    Severity,
    write_text,
)
from app.cli.trial import RefusedError, Searches, searching

_STAY, _PATIENT, _ORGANIZATION = ResourceType

_OPEN = "?"
"""Stands for what nobody has looked up yet."""

_NOTHING = "none"
"""Stands for what a screen shows to be empty."""

_UNSEEN = "unseen"
"""Stands for what no screen shows at all: nobody can confirm it."""

_BY_CLASS = {"start", "end", "functional_unit"}
"""Slots that a SELECT often takes from elsewhere for some classes of stays."""

_UNASKED = {"id", "patient_id", "organization_id", "system", "use", "type", "assigner"}
"""Slots that no screen shows, and references: what they lead to is asked instead."""

UNCONFIRMED = "parts that no screen has confirmed"
"""The topic of what nothing but the rows themselves speaks for."""

_COUNTED = "how many stays there are"
_TOLD = ("the clock in winter", "the clock in summer", _COUNTED)
_MOST_ROWS = 40
_MINUTES = 16  # The characters of a day with hour and minute.

_HEAD = """\
# Write what the hospital's own screens show in place of each "?": times by its clock
# (2024-03-30 08:15), codes as clients read them, none for an empty field, unseen for what
# no screen has. These are data of patients: the file stays at the hospital.
# How far the hospital's clock is from UTC, such as "+01:00":
clock: {winter: "?", summer: "?"}
stays:
"""
_COUNTS = """\
# How many stays searches have to find, from a statistic of the hospital.
counts:
  - {date: "%s", stays: "?"}
# Stays that must not be served: deleted ones, those of test patients.
# absent: [id, id]
"""


def beside(mapping: Path) -> Path:
    """Return the file of what screens confirm of a mapping file."""
    return mapping.with_suffix(".confirmed.yaml")


def run(*, file: Path, out: Path | None) -> int:
    """Write the questions about a mapping, beside it if no other file is named."""
    out = out or beside(file)
    if out.exists():
        raise CannotRunError(f"{out} exists already: name another file with --out")
    mapping = MappingFile.open(file, os.environ)
    with searching(mapping.mapping) as searches:
        asked = _questions(_Shown(mapping, searches).sample())
    if not asked:
        raise CannotRunError("the source has no stay that can be served")
    write_text(out, "".join(_text(asked)))
    number = sum(len(of) for _, slots in asked for of in slots.values())
    print(f"{out}: {number} questions about {len(asked)} stays")
    return FINE


def confirm(path: Path, *, is_wrong: bool) -> Iterator[Finding]:
    """Yield where screens show something else, and what none has confirmed.

    With `is_wrong` there is something to mend first, and nothing is said of the latter.
    """
    file, written = MappingFile.open(path, os.environ), beside(path)
    if not any(s.rows or s.http for s in file.sections(_STAY)):
        return
    root = parse_file(written) if written.exists() else None
    if root and (problems := problems_of(root, "ConfirmedFile")):
        yield from (Finding.of(problem) for problem, _ in problems)
        return
    with searching(file.mapping) as searches:
        shown = _Shown(file, searches)
        answers = _Answers(shown, root.entries if root else {})
        try:
            yield from (differing := [*answers.findings()])
            if not (differing or is_wrong):
                yield from answers.unconfirmed()
        except AdapterError as error:
            text = f"nothing is compared with the hospital's screens: {error}"
            mark = file.sections(_STAY)[0].mark
            yield Finding.at(mark, text, _STAY, "", Severity.NOTE, "", UNCONFIRMED)


class Aspect(NamedTuple):
    """What one value of a screen can confirm: a field, or a code or the clock of one."""

    field: Mark
    slot: str
    variant: str = ""

    def __str__(self) -> str:
        return f"{self.slot} {self.variant}".rstrip()


class Stay(NamedTuple):
    """A stay with the rows that it becomes visible by: its own, its patient's, its hospital's."""

    record: EncounterRecord
    rows: Mapping[ResourceType, SourceRow]

    @property
    def aspects(self) -> Mapping[ResourceType, Sequence[Aspect]]:
        """What its values can confirm, by the resource that has them."""
        return {kind: [a for _, a in _aspects(row)] for kind, row in self.rows.items()}


def _traced(row: SourceRow) -> Sequence[TracedField]:
    """Return the fields of a row that give something."""
    every = trace(row.section, row.columns, row.cells, row.items)
    given = (t for t in every if t.is_included and t.counts)
    return [t for t in given if t.value not in (None, (), "")]


def _aspects(row: SourceRow) -> Iterator[tuple[TracedField, Aspect]]:
    """Yield what a screen can show of a row: fields with what their values confirm."""
    kinds = {place.field.mark: place.kind for place in places_of(row.section)}
    every = _traced(row)
    of_class = next((f"of {t.value}" for t in every if t.name == "class"), "")
    for traced in every:
        field, kind = traced.field, kinds[traced.field.mark]
        is_fixed = not traced.cells and kind is not Kind.CODE
        if is_fixed or kind is Kind.SYSTEM or traced.name.split(".")[-1] in _UNASKED:
            continue
        yield traced, Aspect(field.mark, traced.name, _variant(traced))
        if of_class and traced.name in _BY_CLASS:
            yield traced, Aspect(field.mark, traced.name, of_class)


def _variant(traced: TracedField) -> str:
    """Return which code or which of the hospital's two clocks a value shows."""
    if traced.field.codes and traced.cells:
        return _code(traced.field.codes, traced.cells[0][1])
    is_by_clock = isinstance(traced.value, datetime) and not traced.has_offset
    if is_by_clock and not _is_day(traced):
        return _season(traced.value, traced.field)
    return ""


def _code(codes: CodeTable, cell: object) -> str:
    """Return a code that the file names; what else a cell has may be anything."""
    code = plain_text(cell)
    return f"'{code}'" if code in codes.table else "otherwise"


def _is_day(traced: TracedField) -> bool:
    """Whether a time is a day to which the file adds the time."""
    return len(traced.field.columns) == 1 and bool(
        traced.field.time and traced.field.time.at
    )


def _season(value: datetime, field: FieldMapping) -> str:
    """Return which of the two clocks of a zone a time is by, "" where it has one."""
    assert field.time is not None, "the loader gives every time a rule"
    local = value.astimezone(field.time.written)
    january, july = (local.replace(month=m, day=1).utcoffset() for m in (1, 7))
    if january is None or july is None or january == july:
        return ""
    return "in summer" if local.utcoffset() == max(january, july) else "in winter"


@dataclass(frozen=True, slots=True)
class _Shown:
    """What clients get of a mapping whose source is open."""

    file: MappingFile
    searches: Searches

    def sample(self) -> list[Stay]:
        """Return stays that differ: by codes, by the clock, by what they lack."""
        adapter, ids = self.searches.adapter, list[str]()
        for section in self.file.sections(_STAY):
            if section.rows or section.http:
                source = self.file.source_of(section)
                with closing(open_source(source)) as reader:
                    assert isinstance(reader, RowReader), (
                        "only custom adapters are none"
                    )
                    pages = [*_ends(reader)]
                ids += _varied(section, pages)
        records = [adapter.read(_STAY, id) for id in ids]
        return self.stays(r for r in records if isinstance(r, EncounterRecord))

    def stays(self, records: Iterable[EncounterRecord]) -> list[Stay]:
        """Return stays with their rows, and those of what they refer to."""
        every = [*records]
        own = dict(self._rows(_STAY, [record.id for record in every]))
        patients = dict(self._rows(_PATIENT, [r.patient_id for r in every]))
        hospitals = [r.organization_id for r in every if r.organization_id]
        organizations = dict(self._rows(_ORGANIZATION, hospitals))
        return [
            Stay(
                record,
                {_STAY: own[record.id]}
                | _under(_PATIENT, patients.get(record.patient_id))
                | _under(
                    _ORGANIZATION, organizations.get(record.organization_id or "")
                ),
            )
            for record in every
        ]

    def _rows(
        self, kind: ResourceType, ids: Sequence[str]
    ) -> Iterator[tuple[str, SourceRow]]:
        """Yield the rows of resources by id; what is not there is reported elsewhere."""
        adapter, mapping, found = self.searches.adapter, self.file.mapping, []
        for id in dict.fromkeys(ids) if self.file.sections(kind) else ():
            with suppress(NotFoundError, GoneError, SourceDataError):
                adapter.read(kind, id)
                found.append(id)
        if found:
            yield from zip(found, find_rows(mapping, kind, found), strict=True)


def _under(kind: ResourceType, row: SourceRow | None) -> dict[ResourceType, SourceRow]:
    return {kind: row} if row else {}


def _ends(reader: RowReader) -> Iterator[SourcePage]:
    """Yield a page of the first stays by id, and one of the newest."""
    able = reader.capabilities[_STAY]
    yield from islice(all_pages(reader, _STAY), 1)
    if SortKey.DATE in able.sorts:
        size = SAMPLE if able.keyset else SMALL_SAMPLE
        newest = Sort(SortKey.DATE, descending=True)
        yield reader.search_rows(SearchQuery(_STAY, (), newest, size))


def _varied(section: ResourceMapping, pages: Sequence[SourcePage]) -> list[str]:
    """Return the ids of rows that show something which those before do not."""
    seen, ids = set[object](), dict[str, None]()
    for page in pages:
        rows = zip(page.page.rows, page.cells, strict=True)
        for record, cells in ((r, c) for r, c in rows if not isinstance(r, RowFault)):
            cell = dict(zip(page.columns, cells, strict=True))
            shows = {_shows(p, name, record, cell) for name, p in _by_name(section)}
            if shows - seen and len(ids) < _MOST_ROWS:
                ids[record.id] = None
                seen |= shows
    return [*ids]


def _by_name(section: ResourceMapping) -> Iterator[tuple[str, Place]]:
    own = [place for place in places_of(section) if place.item is None]
    yield from ((place.field.slot, place) for place in own)


def _shows(
    place: Place, name: str, record: Record, cells: Mapping[str, object]
) -> object:
    """Return what a record shows of a field, as far as `_aspects` distinguishes it."""
    value, columns = getattr(record, name), place.field.columns
    if place.field.codes and columns:
        return name, _code(place.field.codes, cells[columns[0]])
    is_time = isinstance(value, datetime)
    return name, _season(value, place.field) if is_time else value is None


class Question(NamedTuple):
    """A stay to look up, and the slots to look at, by resource."""

    stay: Stay
    slots: Mapping[ResourceType, Sequence[str]]


def _questions(stays: Sequence[Stay]) -> list[Question]:
    """Return few stays that together show everything, each with what it is asked for."""
    open_ = {aspect for stay in stays for aspect in _all(stay)}
    left, asked = [*stays], list[Question]()
    while open_:
        best = max(left, key=lambda stay: len(open_ & {*_all(stay)}))
        left.remove(best)
        slots = {
            kind: [*dict.fromkeys(aspect.slot for aspect in of if aspect in open_)]
            for kind, of in best.aspects.items()
        }
        open_ -= {*_all(best)}
        asked.append(Question(best, slots))
    return asked


def _all(stay: Stay) -> Iterator[Aspect]:
    return (aspect for aspects in stay.aspects.values() for aspect in aspects)


def _text(asked: Sequence[Question]) -> Iterator[str]:
    """Yield the lines of the file of questions."""
    yield _HEAD
    for stay, slots in asked:
        number = stay.record.visit_number
        about = f"visit {number}, " if number else ""
        yield f"  - id: {json.dumps(stay.record.id)}"
        yield f"  # {about}patient {stay.record.patient_id}\n"
        for kind, of in slots.items():
            every = Counter(traced.name for traced in _traced(stay.rows[kind]))
            blanks = 4 if kind is _STAY else 6
            if of and kind is not _STAY:
                yield f"    {kind.lower()}:\n"
            for slot in of:
                times = every[slot]
                answer = json.dumps([_OPEN] * times if times > 1 else _OPEN)
                yield f"{' ' * blanks}{slot}: {answer}\n"
    starts = [stay.record.start for stay, _ in asked if stay.record.start]
    yield _COUNTS % (f"{max(starts):%Y-%m}" if starts else "2024-03")


class _Answers:
    """What a file of answers says, held against what clients get."""

    def __init__(self, shown: _Shown, entries: Mapping[str, Node]) -> None:
        self._shown, self._entries = shown, entries
        self._confirmed, self._unseen = set[Aspect](), set[Mark]()
        self._told = set[str]()

    def findings(self) -> Iterator[Finding]:
        """Yield where the screens show something else."""
        written = {_id(entry): entry for entry in _tables(self._entries, "stays")}
        records = dict[str, EncounterRecord]()
        for id, entry in written.items():
            try:
                record = self._shown.searches.adapter.read(_STAY, id)
            except (NotFoundError, GoneError):
                text = (
                    "clients do not get this stay: it is not in rows, or never served"
                )
                yield Finding.at(entry.mark, text, _STAY)
            except SourceDataError:
                yield Finding.at(entry.mark, "the row of this stay is invalid", _STAY)
            else:
                assert isinstance(record, EncounterRecord), "as it was asked"
                records[id] = record
        for stay in self._shown.stays(records.values()):
            yield from self._compared(written[stay.record.id], stay)
        yield from self._clock()
        yield from self._absent()
        yield from self._counted()

    def _compared(self, entry: Table, stay: Stay) -> Iterator[Finding]:
        """Yield where a stay, its patient or its hospital are shown with other values."""
        nested = {kind: entry.entries.get(kind.lower()) for kind in ResourceType}
        for kind, table in ((_STAY, entry), *nested.items()):
            if isinstance(table, Table):
                row = stay.rows.get(kind)
                if row is None:
                    text = f"the stay leads to no {kind.lower()} that clients get"
                    yield Finding.at(table.mark, text, f"{_STAY}.{kind.lower()}")
                else:
                    yield from self._row(kind, table, row)

    def _row(
        self, kind: ResourceType, table: Table, row: SourceRow
    ) -> Iterator[Finding]:
        slots = dict.fromkeys(place.slot for place in places_of(row.section))
        every, aspects = [*_traced(row)], [*_aspects(row)]
        for slot, node in table.entries.items():
            if slot == "id" or slot in SECTIONS:
                continue
            if slot not in slots:
                near = did_you_mean(slot, slots)
                text = f"the section has no field '{slot}'{near}"
                yield Finding.at(table.keys[slot], text, kind)
                continue
            given = [traced for traced in every if traced.name == slot]
            texts = [said.text for said in _texts(node)]
            more = [t for t in given if not any(_is_same(text, t) for text in texts)]
            if len(given) > len(texts) and more and not {_OPEN, _UNSEEN} & {*texts}:
                text = "clients get more than the screen shows"
                yield _finding(node.mark, text, slot, more, row)
            for said in _texts(node):
                same = [t for t in given if _is_same(said.text, t)]
                self._confirmed |= {a for traced, a in aspects if traced in same}
                if said.text == _UNSEEN:
                    self._unseen |= {t.field.mark for t in given}
                is_right = not given if said.text == _NOTHING else bool(same)
                if said.text not in (_OPEN, _UNSEEN) and not is_right:
                    yield _other(said, slot, given, every, row)

    def _clock(self) -> Iterator[Finding]:
        """Yield where the hospital's clock is at another distance from UTC."""
        node, zone = self._entries.get("clock"), self._shown.file.mapping.time_zone
        this_year = datetime.now(zone)
        both = [this_year.replace(month=month, day=1) for month in (1, 7)]
        both.sort(key=lambda each: each.utcoffset() or timedelta())
        for season, said in node.entries.items() if isinstance(node, Table) else ():
            offset = both[season == "summer"].isoformat()[-6:]
            if isinstance(said, Scalar) and said.text != _OPEN:
                self._told.add(f"the clock in {season}")
                if said.text != offset:
                    text = f"the clock of {zone.key} is {offset} from UTC in {season}"
                    yield Finding.at(said.mark, text, "time_zone")

    def _absent(self) -> Iterator[Finding]:
        for node in _texts(self._entries.get("absent")):
            with suppress(NotFoundError, GoneError):
                self._shown.searches.adapter.read(_STAY, node.text)
                text = "clients get this stay, which must not be served"
                yield Finding.at(node.mark, text, _STAY)

    def _counted(self) -> Iterator[Finding]:
        """Yield the searches that find more or fewer stays than the hospital counts."""
        searches = self._shown.searches
        for entry in _tables(self._entries, "counts"):
            values = {key: plain(node) for key, node in entry.entries.items()}
            wanted = values.pop("stays")
            if wanted == _OPEN:
                continue
            try:
                query = searches.query(_STAY, [*values.items()])
                found = searches.adapter.count(query)
            except RefusedError as error:
                yield Finding.at(entry.mark, f"cannot be counted: {error}", _STAY)
                continue
            self._told.add(_COUNTED)
            if str(found) != wanted:
                text = (
                    f"a search finds {found:,} stays, and the hospital counts {wanted}"
                )
                yield Finding.at(entry.mark, text, _STAY)

    def unconfirmed(self) -> Iterator[Finding]:
        """Yield what no screen has confirmed, a warning for each resource type."""
        file, every = self._shown.file, self._shown.sample()
        remedy = f"encounters mapping confirm {file.mapping.file} writes the questions"
        for kind in ResourceType:
            aspects = (
                aspect for stay in every for aspect in stay.aspects.get(kind, ())
            )
            open_ = {a for a in aspects if a.field not in self._unseen}
            names = sorted({*map(str, open_ - self._confirmed)})
            names += [t for t in _TOLD if kind is _STAY and t not in self._told]
            if every and names:
                text = f"{len(names)} parts are" if names[1:] else "1 part is"
                text += " not confirmed by the hospital's screens"
                mark, more = (
                    file.sections(kind)[0].mark,
                    f"{remedy}\n{', '.join(names)}",
                )
                details = (text, kind, "", Severity.WARNING, more, UNCONFIRMED)
                yield Finding.at(mark, *details)


def _id(entry: Table) -> str:
    return str(plain(entry.entries["id"]))


def _tables(entries: Mapping[str, Node], key: str) -> Iterator[Table]:
    node = entries.get(key)
    items = node.items if isinstance(node, Items) else ()
    return (item for item in items if isinstance(item, Table))


def _texts(node: Node | None) -> Iterator[Scalar]:
    items = node.items if isinstance(node, Items) else (node,)
    return (item for item in items if isinstance(item, Scalar))


def _as_shown(value: Any) -> str:
    """Return a value as a screen shows it."""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if isinstance(value, tuple):
        return " ".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_same(said: str, traced: TracedField) -> bool:
    value, shown = traced.value, _as_shown(traced.value)
    if isinstance(value, datetime):
        least = len("2024-03-30") if _is_day(traced) else _MINUTES
        return len(said) >= least and shown.startswith(said.replace("T", " "))
    is_for_people = "." in traced.name and not traced.name.startswith("identifiers.")
    return said == shown or (is_for_people and fold(said) == fold(shown))


def _other(
    said: Scalar,
    slot: str,
    given: Sequence[TracedField],
    every: Sequence[TracedField],
    row: SourceRow,
) -> Finding:
    """Return the finding of a value that a screen shows otherwise."""
    if said.text == _NOTHING:
        text = "the screen shows nothing here, and clients get something"
    else:
        text = (
            "the screen shows something else" if given else "clients get nothing here"
        )
    # Where the value is instead may say what is wrong.
    places = [t.name for t in every if t.name != slot and _is_same(said.text, t)]
    cells = zip(row.columns, row.cells, strict=True)
    read = {column for traced in given for column in traced.field.columns}
    places += [
        c for c, cell in cells if plain_text(cell) == said.text and c not in read
    ]
    hints = [*map(_apart, [said.text] * len(given), given)]
    hints += [f"{places[0]} has it"] if places else []
    hint = next(filter(None, hints), "")
    text += f": {hint}" if hint else ""
    return _finding(said.mark, text, slot, given, row)


def _finding(
    mark: Mark, text: str, slot: str, given: Sequence[TracedField], row: SourceRow
) -> Finding:
    columns = ", ".join(dict.fromkeys(c for t in given for c in t.field.columns))
    element = next(p.element for p in places_of(row.section) if p.slot == slot)
    return Finding.at(mark, text, element, columns)


def _apart(said: str, traced: TracedField) -> str:
    """Return how far a time is from that of a screen, "" for what is no time."""
    if not isinstance(traced.value, datetime) or len(said) < _MINUTES:
        return ""
    try:
        shown = datetime.fromisoformat(said).replace(tzinfo=traced.value.tzinfo)
    except ValueError:
        return "write it as 2024-03-30 08:15"
    hours = (shown - traced.value).total_seconds() / 3600
    return f"{abs(hours):.4g} h {'later' if hours > 0 else 'earlier'}"
