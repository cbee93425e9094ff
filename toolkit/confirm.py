"""`encounters mapping confirm`: rows held against the hospital's own screens.

No row shows that a time is by another clock, that a unit comes from the wrong one of two
columns, or what a code means. The hospital's screens do. A file of answers beside the
mapping holds what they show of some stays: `run` writes its questions; for `check --live`,
`confirm` compares the answers with what clients get, and names what no screen has confirmed.

No finding quotes a value of a row or an answer: only codes that the mapping file names.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

from adapters.contract import AdapterError, ResourceType, TooCostlyError
from adapters.folding import fold
from adapters.mapping.load import load_mapping
from adapters.mapping.model import Mark
from adapters.mapping.problems import MappingError, did_you_mean
from adapters.mapping.schema import problems_of
from adapters.mapping.slots import UNSERVED, Kind, Place, named_slots, places_of
from adapters.mapping.yaml import Items, Node, Scalar, Table, find, parse_file
from app.console import FINE, CannotRunError
from toolkit.checks.engine import plain_text
from toolkit.console import Finding, Severity, write_text
from toolkit.lineage import TracedField
from toolkit.served import (
    ORGANIZATION,
    PATIENT,
    STAY,
    Aspect,
    Resource,
    Served,
    Stay,
    is_day,
    offsets,
    serving,
)
from toolkit.trial import RefusedError, Searches, written

_OPEN, _EMPTY, _UNSEEN = "?", "none", "unseen"
"""Answers: not looked up yet; the screen shows nothing here; no screen shows this at all."""

UNCONFIRMED = "parts that no screen has confirmed"
"""The topic of findings about what is not compared."""

_CLOCKS = {"winter": "the clock in winter", "summer": "the clock in summer"}
_COUNTED = "how many stays there are"
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d)?)?", re.ASCII)
_DAY = len("2024-03-30")
_NUMBER = re.compile(r"[0-9]{1,12}")
_SEPARATORS = re.compile(r"[ ,.'\u00a0\u202f]")

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
"""
_ABSENT = """\
# Stays that must not be served: deleted ones, those of test patients.
# absent: [id, id]
"""


def beside(mapping: Path) -> Path:
    """Return the file of answers of a mapping file."""
    return mapping.with_suffix(".confirmed.yaml")


def run(*, file: Path, out: Path | None) -> int:
    """Write the questions about a mapping, beside it if no other file is named."""
    out = out or beside(file)
    if os.path.lexists(out):
        raise CannotRunError(f"{out} exists already: name another file with --out")
    with serving(file) as served:
        questions = _questions(served.sample())
        if not questions:
            raise CannotRunError("the source has no stay that can be served")
        write_text(out, "".join(_text(questions, served)))
    number = sum(len(slots) for _, asked in questions for slots in asked.values())
    print(f"{out}: {number} questions about {len(questions)} stays")
    return FINE


def confirm(path: Path, *, is_wrong: bool) -> Iterator[Finding]:
    """Yield where screens show something else, and what none has confirmed.

    With `is_wrong` the mapping has errors to correct first: the latter is left out.
    """
    sections = load_mapping(path, os.environ).sections
    stays = [section for section in sections if section.resource_type is STAY]
    # The rows of a custom adapter cannot be compared.
    if not any(section.rows or section.http for section in stays):
        return
    answers, problems = _answers(beside(path))
    yield from problems
    if problems or (is_wrong and not answers):
        return
    try:
        with serving(path) as served:
            comparison = _Comparison(served, answers)
            for finding in comparison.differences():
                is_wrong = True
                yield finding
            if not is_wrong:
                yield from comparison.unconfirmed()
    except AdapterError as error:
        text = f"the comparison with the hospital's screens is not complete: {error}"
        details = (text, STAY, "", Severity.WARNING, "", UNCONFIRMED)
        yield Finding.at(stays[0].mark, *details)


def _answers(path: Path) -> tuple[Table, list[Finding]]:
    """Return the answers of a file, none if there is no file, and what is wrong with it."""
    none = Table(Mark(str(path), 1, 1))
    if not os.path.lexists(path):
        return none, []
    try:
        root = parse_file(path)
    except MappingError as error:
        # What YAML cannot read may be an answer: a text with quotes may quote it.
        safe = "not readable as YAML: quote texts with signs in them, and write no key twice"
        texts = [(p.mark, safe if "'" in p.text else p.text) for p in error.problems]
        return none, [Finding.at(mark, text) for mark, text in texts]
    # Their paths hold keys, which may be answers in the wrong place.
    problems = [problem for problem, _ in problems_of(root, "ConfirmedFile")]
    return root, [Finding.at(p.mark, p.text) for p in problems]


# The questions


class Question(NamedTuple):
    """A stay to look up, and the slots to look at, by resource."""

    stay: Stay
    slots: Mapping[ResourceType, Sequence[str]]


def _questions(stays: Sequence[Stay]) -> list[Question]:
    """Return few stays that together show everything, each with what it is asked for.

    First the newest of each class: how they go on is what mappings often miss.
    """
    left, questions = {a for stay in stays for a in stay.aspects}, list[Question]()

    def ask(stay: Stay) -> None:
        slots = {
            kind: [*dict.fromkeys(a.slot for a in resource.aspects if a in left)]
            for kind, resource in stay.resources.items()
        }
        left.difference_update(stay.aspects)
        questions.append(Question(stay, slots))

    for stay in stays:
        if any(aspect.slot == "class" for aspect in left & stay.aspects):
            ask(stay)
    while left:
        ask(max(stays, key=lambda each: len(left & each.aspects)))
    return questions


def _text(questions: Sequence[Question], served: Served) -> Iterator[str]:
    """Yield the lines of the file of questions."""
    yield _HEAD
    for stay, asked in questions:
        number = stay.record.visit_number
        about = f"visit {json.dumps(number)[1:-1]}, " if number else ""
        yield f"  - id: {json.dumps(stay.record.id)}"
        yield f"  # {about}patient {stay.record.patient_id}\n"
        for kind, slots in asked.items():
            if slots and kind is not STAY:
                yield f"    {kind.lower()}:\n"
            for slot in slots:
                fields = stay.resources[kind].named(slot)
                answer = json.dumps([_OPEN] * len(fields) if fields[1:] else _OPEN)
                is_told = "." in slot and (fields[1:] or ".value" in slot)
                labels = ", ".join(map(_label, fields)) if is_told else ""
                about = f"  # {labels}" if labels else ""
                yield f"{'    ' if kind is STAY else '      '}{slot}: {answer}{about}\n"
    starts = [stay.record.start for stay, _ in questions if stay.record.start]
    months = sorted(f"{start:%Y-%m}" for start in starts) or ["2024-03"]
    # No statistic has a month that goes on, or one to come.
    past = [month for month in months if month < f"{datetime.now(UTC):%Y-%m}"]
    if counts := _countable(served.searches, (past or months)[-1]):
        yield _COUNTS
        for parameters in counts:
            search = (f"{name}: {json.dumps(v)}, " for name, v in parameters.items())
            yield f'  - {{{"".join(search)}stays: "{_OPEN}"}}\n'
    yield _ABSENT


def _label(traced: TracedField) -> str:
    """Return which of several values one is, by what the file says of it."""
    fields = traced.item.fields if traced.item else {}
    said = (fields[name] for name in ("type", "system", "use") if name in fields)
    words = [each.constant for each in said if each.constant]
    return " ".join(words) or ", ".join(traced.field.columns)


def _countable(searches: Searches, month: str) -> Sequence[Mapping[str, str]]:
    """Return the searches of stays that clients have, of all and of a month."""
    found = []
    for parameters in (dict[str, str](), {"date": month}):
        with suppress(RefusedError):
            searches.query(STAY, [*parameters.items()])
            found.append(parameters)
    return found


# The answers


@dataclass(frozen=True, slots=True)
class _Comparison:
    """The answers of a file, held against what clients get; it notes what they confirm."""

    served: Served
    answers: Table
    confirmed: set[Aspect] = field(default_factory=set)
    unseen: set[tuple[Mark, str]] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)

    def differences(self) -> Iterator[Finding]:
        """Yield where the screens show something else."""
        entries = [(_answer(each, "id"), each) for each in self._tables("stays")]
        stays = self.served.stays(id for id, _ in entries)
        for id, entry in entries:
            if id in stays:
                yield from self._stay(entry, stays[id])
            else:
                text = "clients do not get this stay: it is not in rows, it is never"
                text += " served, or its row is invalid"
                yield Finding.at(entry.mark, text, STAY)
        yield from self._clock()
        yield from self._absent()
        yield from self._counts()

    def unconfirmed(self) -> Iterator[Finding]:
        """Yield what no screen has confirmed, a warning for each section."""
        file, sample = self.served.file, self.served.sample()
        names = {section.mark: set[str]() for section in file.mapping.sections}
        for aspect in (aspect for stay in sample for aspect in stay.aspects):
            is_unseen = (aspect.section, aspect.slot) in self.unseen
            if not is_unseen and aspect not in self.confirmed:
                names[aspect.section].add(str(aspect))
        general = {*_CLOCKS.values()}
        if _countable(self.served.searches, "2024-03"):
            general.add(_COUNTED)
        remedy = f"encounters mapping confirm {file.mapping.file} writes the questions"
        for section in (s for kind in ResourceType for s in file.sections(kind)):
            parts = sorted(names[section.mark])
            if sample and section.resource_type is STAY:
                parts += sorted(general - self.answered)
                general.clear()
            if parts:
                text = f"{len(parts)} parts" if parts[1:] else "1 part"
                text += f"{file.of_source(section)} {'are' if parts[1:] else 'is'}"
                text += " not confirmed by the hospital's screens"
                more = f"{remedy}\n{', '.join(parts)}"
                details = (section.resource_type, "", Severity.WARNING, more)
                yield Finding.at(section.mark, text, *details, UNCONFIRMED)

    def _tables(self, key: str) -> Iterator[Table]:
        return iter(self.answers.tables(key))

    def _stay(self, entry: Table, stay: Stay) -> Iterator[Finding]:
        """Yield where a stay, its patient or its hospital are shown with other values."""
        nested = {kind.lower(): kind for kind in (PATIENT, ORGANIZATION)}
        own = {k: n for k, n in entry.items() if k not in {"id", *nested}}
        yield from self._resource(Table(entry.mark, own, entry.key_marks), stay, STAY)
        for key, kind in nested.items():
            table = entry.get(key)
            if isinstance(table, Table):
                yield from self._resource(table, stay, kind)

    def _resource(
        self, table: Table, stay: Stay, kind: ResourceType
    ) -> Iterator[Finding]:
        resource = stay.resources.get(kind)
        if resource is None:
            text = f"the stay leads to no {kind.lower()} that clients get"
            yield Finding.at(table.mark, text, f"{STAY}.{kind.lower()}")
            return
        places = {place.slot: place for place in places_of(resource.row.section)}
        known = {name for name, _ in named_slots(kind)}
        for slot, node in table.items():
            if slot in places:
                yield from self._slot(node, resource, places[slot])
            elif slot not in known:
                text = f"there is no such field{did_you_mean(slot, places)}"
                yield Finding.at(table.key_marks[slot], text, kind)
            elif not self._lack(slot, node, resource):
                text = "the screen shows something, and the file has no field for it"
                yield Finding.at(node.mark, text, kind)

    def _lack(self, slot: str, node: Node, resource: Resource) -> bool:
        """Note that screens show nothing either; return whether they do not."""
        texts = {*map(str, _scalars(node))}
        if _UNSEEN in texts:
            self.unseen.add((resource.row.section.mark, slot))
        if _EMPTY in texts:
            self.confirmed.update(a for a in resource.lacks if a.slot == slot)
        return texts <= {_OPEN, _EMPTY, _UNSEEN}

    def _slot(self, node: Node, resource: Resource, place: Place) -> Iterator[Finding]:
        """Compare the answers about a slot with its values, one by one in their order."""
        values, answers = resource.named(place.slot), [*_scalars(node)]
        if not values:
            self._lack(place.slot, node, resource)
        texts = [*map(str, answers)]
        if _UNSEEN in texts:
            self.unseen.add((resource.row.section.mark, place.slot))
        is_each = len(values) == len(texts)
        pairs = [[each] for each in values] if is_each else [values] * len(texts)
        shown = [
            t for a, of in zip(texts, pairs, strict=True) for t in of if _is_same(a, t)
        ]
        for traced, aspects in resource.values:
            if traced in shown:
                self.confirmed.update(aspects)
        columns = ", ".join(dict.fromkeys(c for t in values for c in t.field.columns))
        where = (place.element, columns)
        has_more = len(values) > len(texts) and any(t not in shown for t in values)
        if has_more and not {_OPEN, _UNSEEN} & {*texts}:
            text = "clients get more than the screen shows"
            yield Finding.at(node.mark, text, *where)
        for answer, of in zip(answers, pairs, strict=True):
            if text := _difference(answer, place, of, resource):
                yield Finding.at(answer.mark, text, *where)

    def _clock(self) -> Iterator[Finding]:
        """Yield where the hospital's clock is at another distance from UTC."""
        zone = self.served.file.mapping.time_zone
        now = datetime.now(zone)
        for season, offset in zip(_CLOCKS, offsets(now), strict=True):
            expected = now.replace(tzinfo=timezone(offset)).isoformat()[-6:]
            text = f"the clock of {zone.key} is {expected} from UTC in {season}"
            for answer in _scalars(find(self.answers, ("clock", season))):
                if answer != _OPEN:
                    self.answered.add(_CLOCKS[season])
                if answer not in (_OPEN, _UNSEEN, expected):
                    yield Finding.at(answer.mark, text, "time_zone")

    def _absent(self) -> Iterator[Finding]:
        """Yield the stays that clients get and must not."""
        for answer in _scalars(find(self.answers, ("absent",))):
            if self.served.record(STAY, str(answer)):
                text = "clients get this stay, which must not be served"
                yield Finding.at(answer.mark, text, STAY)

    def _counts(self) -> Iterator[Finding]:
        """Yield the searches that find more or fewer stays than the hospital counts."""
        for entry in self._tables("counts"):
            number = _SEPARATORS.sub("", _answer(entry, "stays"))
            if number == _OPEN:
                continue
            text = "write the number of stays in digits, or unseen"
            if number == _UNSEEN or _NUMBER.fullmatch(number):
                self.answered.add(_COUNTED)
                text = "" if number == _UNSEEN else self._miscounted(entry, int(number))
            if text:
                yield Finding.at(entry.mark, text, STAY)

    def _miscounted(self, entry: Table, number: int) -> str:
        """Return what is wrong with the number of stays that a search finds, "" if nothing."""
        searches = self.served.searches
        names = [name for name in entry if name != "stays"]
        try:
            parameters = [(name, _answer(entry, name)) for name in names]
            total = searches.count(searches.query(STAY, parameters))
        except RefusedError:
            offer = searches.offer.resources.get(STAY)
            offered = ", ".join(offer.parameters) if offer else "nothing"
            return f"clients cannot search so: they are offered {offered}"
        except TooCostlyError:
            return "the count takes too long: write a search that finds less"
        word = "more" if total > number else "fewer"
        text = f"a search finds {total:,} stays, {word} than the hospital counts"
        return "" if total == number else text


def _answer(table: Table, key: str) -> str:
    """Return the text of a key, that of an open question if it is not there."""
    return table.text(key, _OPEN)


def _scalars(node: Node | None) -> Iterator[Scalar]:
    items = node if isinstance(node, Items) else (node,)
    return (item for item in items if isinstance(item, Scalar))


def _as_shown(value: Any) -> str:
    """Return a value as a screen shows it."""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    return " ".join(value) if isinstance(value, tuple) else written(value)


def _is_same(answer: str, traced: TracedField) -> bool:
    """Whether a screen shows a value: a time as far as it shows it, a name however written."""
    value, shown = traced.value, _as_shown(traced.value)
    if isinstance(value, datetime):
        is_whole = len(answer) > _DAY or is_day(traced)
        is_time = _moment(answer) is not None and is_whole
        return is_time and shown.startswith(answer.replace("T", " "))
    is_for_people = traced.kind in (Kind.TEXT, Kind.PARTS)
    return answer == shown or (is_for_people and fold(answer) == fold(shown))


def _difference(
    answer: str, place: Place, values: Sequence[TracedField], resource: Resource
) -> str:
    """Return how an answer differs from the values of its slot, "" if it does not."""
    if answer in (_OPEN, _UNSEEN) or any(_is_same(answer, each) for each in values):
        return ""
    if answer == _EMPTY:
        text = "the screen shows nothing here, and clients get something"
        return text if values else ""
    if form := _right_form(answer, place):
        return f"this cannot be compared: write {form}"
    text = "the screen shows something else" if values else "clients get nothing here"
    hints = [_apart(answer, each) for each in values]
    hints += [f"{name} has it" for name in _elsewhere(answer, place, resource)]
    return ": ".join([text, *[*filter(None, hints)][:1]])


def _right_form(answer: str, place: Place) -> str:
    """Return how an answer has to be written, "" for one that can be compared."""
    if place.takes and answer not in place.takes:
        return f"one of {', '.join(c for c in place.takes if c not in UNSERVED)}"
    if place.kind is Kind.TIME and _moment(answer) is None:
        return "a time as 2024-03-30 08:15"
    if place.kind is Kind.DATE and (len(answer) > _DAY or _moment(answer) is None):
        return "a day as 2024-03-30"
    return ""


def _moment(answer: str) -> datetime | None:
    try:
        # It is a local time, as screens show it.
        return datetime.fromisoformat(answer) if _MOMENT.fullmatch(answer) else None
    except ValueError:
        return None


def _elsewhere(answer: str, place: Place, resource: Resource) -> Iterator[str]:
    """Yield the other fields and the columns that have what a screen shows in a field."""
    if place.takes:
        return
    every = [value.traced for value in resource.values]
    others = [each for each in every if each.name != place.slot]
    same = [
        each for each in every if each.name == place.slot and _is_same(answer, each)
    ]
    yield from ("another one of these" for _ in same)
    yield from (each.name for each in others if _is_same(answer, each))
    read = {c for each in resource.named(place.slot) for c in each.field.columns}
    for column, cell in zip(resource.row.columns, resource.row.cells, strict=True):
        if column not in read and plain_text(cell) == answer:
            yield column


def _apart(answer: str, traced: TracedField) -> str:
    """Return how far a time is from that of a screen, "" for what is no time."""
    value, shown = traced.value, _moment(answer)
    if not isinstance(value, datetime) or shown is None:
        return ""
    if len(answer) == _DAY:
        return "" if is_day(traced) else "write the time of day too"
    apart = shown - value.replace(tzinfo=None)
    hours = abs(apart) / timedelta(hours=1)
    units = ((hours / 24, "days", 72), (hours, "h", 1), (hours * 60, "min", 0))
    number, unit = next((n, unit) for n, unit, least in units if hours >= least)
    word = "later" if apart > timedelta() else "earlier"
    return f"{round(number, 2):,g} {unit} {word}"
