"""`encounters mapping confirm`: stays compared with the hospital's own screens.

No row shows that a time is by another clock, that a unit comes from the wrong one of two
columns, or what a code means. The hospital's screens do. A file of answers beside the
mapping holds what they show of some stays: `run` writes its questions; for `check --live`,
`confirm` compares the answers with what clients get, and names what no screen has confirmed.

No finding quotes a value of a row or an answer: only codes that the mapping file names.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from adapters.contract import (
    AdapterError,
    EncounterRecord,
    GoneError,
    NotFoundError,
    ResourceType,
    Sort,
    SortKey,
    SourceDataError,
    TooCostlyError,
)
from adapters.folding import fold
from adapters.mapping.load import load_mapping
from adapters.mapping.model import Mark, ResourceMapping
from adapters.mapping.problems import MappingError
from adapters.mapping.schema import problems_of
from adapters.mapping.slots import FHIR_ID, REFERS, Place, named_slots, places_of
from adapters.mapping.yaml import Items, Scalar, Table, parse_file
from app.console import FINE, CannotRunError
from toolkit.checks.rows import code_of, plain_text
from toolkit.console import MappingFile, write_text
from toolkit.findings import Finding, Severity
from toolkit.searches import RefusedSearchError, Searches, searching
from toolkit.source_rows import SourceReader

STAY, PATIENT, ORGANIZATION = ResourceType

UNCONFIRMED = "parts that no screen has confirmed"
"""The topic of findings about what is not compared."""

UNASKED = "types with fields that no screen confirms"
"""The topic of notes about fields that nobody is asked about."""

QUESTIONS: Mapping[str, tuple[ResourceType, str]] = {
    "visit_number": (STAY, "visit_number"),
    "status": (STAY, "status"),
    "class": (STAY, "class"),
    "start": (STAY, "start"),
    "end": (STAY, "end"),
    "functional_unit": (STAY, "functional_unit"),
    "family": (PATIENT, "names.family"),
    "given": (PATIENT, "names.given"),
    "name": (PATIENT, "names.text"),
    "birth_date": (PATIENT, "birth_date"),
    "gender": (PATIENT, "gender"),
    "hospital": (ORGANIZATION, "name"),
}
"""What is asked of a stay, its patient and its hospital, and the slot that has it."""

_IF_ANY = ("given", "name", "gender")
"""Asked only if clients get a value. The others are always asked: no value may be a mistake."""

_CODED = ("status", "class", "gender")
_OPEN, _EMPTY, _UNSEEN = "?", "none", "unseen"
"""Answers: not looked up yet; the screen shows nothing here; no screen shows this at all."""

_FEW_CLASSES = 6
"""With up to so many source codes of the class, stays are grouped by these, else by FHIR's."""

_MOST_STAYS = 60
"""How many stays of each source are sampled at most."""

_MOST_UNITS = 5
"""How many units are counted at most."""

_DAY_LENGTH = len("2024-03-30")
_CLOCK_PART = "the zone of the hospital's clock"
_COUNT_PART = "how many stays there are"

_HEAD = """\
# Write what the hospital's own screens show in place of each "?": times by its clock
# (2024-03-30 08:15), codes as clients read them, none for an empty field, unseen for what
# no screen has. These are data of patients: the file stays at the hospital.
# The time zone of the hospital's clock, such as Europe/Paris:
clock: "?"
stays:
"""
_COUNTS = """\
# How many stays each search has to find, from statistics of the hospital.
counts:
"""
_ABSENT = """\
# Stays that must not be served: cancelled and deleted ones, those of test patients.
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
    opened = MappingFile.open(file, os.environ)
    with SourceReader(opened) as reader, searching(opened.mapping) as searches:
        served = ServedMapping(reader, searches, opened.mapping.source.zone)
        questions = _questions(served.sample())
        if not questions:
            raise CannotRunError("the source has no stay that can be served")
        write_text(out, "".join(_text(questions, served)))
    number = sum(len(keys) for _, keys in questions)
    print(f"{out}: {number} questions about {len(questions)} stays")
    return FINE


def confirm(path: Path, *, is_wrong: bool) -> Iterator[Finding]:
    """Yield where screens show something else, or what no screen has confirmed.

    The latter is omitted if there are differences, or if `is_wrong`: errors of the mapping
    come first.
    """
    mapping = load_mapping(path, os.environ)
    stays = [section for section in mapping.sections if section.resource_type is STAY]
    # The rows of a custom adapter cannot be compared.
    if not any(section.rows or section.http for section in stays):
        return
    answers, problems = _answers(beside(path))
    yield from problems
    if problems or (is_wrong and not answers):
        return
    clock = _zone(_answer(answers, "clock")) or mapping.source.zone
    try:
        file = MappingFile.open(path, os.environ)
        with SourceReader(file) as reader, searching(file.mapping) as searches:
            comparison = _Comparison(ServedMapping(reader, searches, clock), answers)
            for finding in comparison.differences():
                is_wrong = True
                yield finding
            if not is_wrong:
                yield from comparison.unconfirmed()
    except AdapterError as error:
        text = f"the comparison with the hospital's screens is not complete: {error}"
        yield Finding.at(
            stays[0].mark,
            text,
            element=STAY,
            severity=Severity.WARNING,
            topic=UNCONFIRMED,
        )


def _answers(path: Path) -> tuple[Table, list[Finding]]:
    """Return the answers of a file, and what is wrong with the file.

    The answers are empty where there is no file, or where it is not YAML.
    """
    empty = Table(Mark(str(path), 1, 1))
    if not os.path.lexists(path):
        return empty, []
    try:
        root = parse_file(path)
    except MappingError as error:
        safe = "not readable as YAML: quote texts with special characters, and write no key twice"
        findings = []
        for problem in error.problems:
            # What the parser quotes may be an answer.
            text = safe if "'" in problem.text else problem.text
            findings.append(Finding.at(problem.mark, text))
        return empty, findings
    # Without the paths of problems: a key in them may be an answer in the wrong place.
    problems = [problem for problem, _ in problems_of(root, "ConfirmedFile")]
    findings = [Finding.at(problem.mark, problem.text) for problem in problems]
    clock = _answer(root, "clock")
    if not findings and clock not in (_OPEN, _UNSEEN) and _zone(clock) is None:
        text = "no such time zone: write its name, such as Europe/Paris, or unseen"
        findings.append(Finding.at(root["clock"].mark, text, "time_zone"))
    return root, findings


def _zone(name: str) -> ZoneInfo | None:
    """Return the time zone of a name, None if there is none."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None


# What clients get


class AnswerPart(NamedTuple):
    """What an answer can confirm: a slot of a section in a case, such as "of class 'HC'".

    `case` is in the words of a finding; `of` distinguishes cases in the same words.
    """

    section: Mark
    slot: str
    case: str = ""
    of: str = ""


class ServedResource(NamedTuple):
    """A resource that clients get, and the cells of its row by column."""

    section: ResourceMapping
    record: Any
    cells: Mapping[str, object]

    def values(self, name: str) -> list[Any]:
        """Return the values of a slot; one in a list (`names.family`) may have several."""
        slot = dict(named_slots(self.section.resource_type))[name]
        listed = name.rpartition(".")[0]
        items = getattr(self.record, listed) if listed else (self.record,)
        values = [getattr(item, slot.record) for item in items]
        return [value for value in values if value not in (None, ())]

    def place(self, name: str) -> Place | None:
        """Return the field of a slot, the first of several."""
        places = (place for place in places_of(self.section) if place.slot == name)
        return next(places, None)

    def code(self, name: str) -> str:
        """Return the source code of a slot by its name in the mapping file, "" for none."""
        place = self.place(name)
        if place is None or place.field.codes is None or not place.field.columns:
            return ""
        code = code_of(place, self.cells[place.field.columns[0]])
        # A code that the file does not name may be anything.
        return f"'{code}'" if code in place.field.codes.table else "otherwise"


class ScreenField(NamedTuple):
    """What a screen has to show for a question, and what a right answer confirms."""

    shown: Sequence[str]
    parts: Set[AnswerPart]


class ServedStay:
    """A stay with its patient and its hospital, as far as clients get them.

    `fields` has what the screens must show, by question; `case` is the class in words.
    """

    def __init__(
        self, resources: Mapping[ResourceType, ServedResource], clock: ZoneInfo
    ) -> None:
        self.resources, self._clock = resources, clock
        self._stay = resources[STAY]
        self.record: EncounterRecord = self._stay.record
        self.case = f"of class {self._class()}"
        self.fields: dict[str, ScreenField] = {}
        for key, (kind, slot) in QUESTIONS.items():
            resource = resources.get(kind)
            if resource is None:
                continue
            values = resource.values(slot)
            # A patient whose name is one text needs no family name.
            has_text = key == "family" and bool(resource.values("names.text"))
            if not values and (key in _IF_ANY or has_text):
                continue
            place = resource.place(slot)
            shown = [_shown(value, place, clock) for value in values]
            parts = {*self._parts(key, resource, slot, has_value=bool(values))}
            self.fields[key] = ScreenField(shown, parts)

    def _class(self) -> str | None:
        """Return the source code of the class; the class of FHIR where there are many codes."""
        field = self._stay.section.fields.get("class_code")
        if field and field.codes and len(field.codes.table) <= _FEW_CLASSES:
            return self._stay.code("class")
        return self.record.class_code

    def _parts(
        self, key: str, resource: ServedResource, slot: str, *, has_value: bool
    ) -> Iterator[AnswerPart]:
        """Yield what a right answer confirms."""
        mark, stay = resource.section.mark, self._stay.section.mark
        case = "" if has_value else "where it is empty"
        if resource is self._stay and key != "class":
            # The SELECT may compute it from another column for other classes.
            case = self.case
        yield AnswerPart(mark, slot, case)
        if key in ("status", "start", "end"):
            # The SELECT may compute these in another way for another state of the stay.
            end = "no end" if self.record.end is None else "an end"
            state = f"{self.record.class_code}, {self.record.status}, {end}"
            yield AnswerPart(mark, slot, "in another state", state)
        if key in _CODED and (code := resource.code(slot)):
            yield AnswerPart(mark, slot, code)
        if key == "start" and (side := _side(self.record.start, self._clock)):
            yield AnswerPart(mark, slot, side)
        # No screen shows ids: a reference is right if the name of what it refers to is.
        if key in ("family", "name", "birth_date") and has_value:
            yield AnswerPart(stay, "patient_id", self.case)
            if self.is_merged:
                yield AnswerPart(stay, "patient_id", "of a merged patient")
        if key == "hospital" and has_value:
            hospital = self.record.organization_id or ""
            yield AnswerPart(stay, "organization_id", self.case)
            yield AnswerPart(stay, "organization_id", "of another hospital", hospital)

    @property
    def all_parts(self) -> set[AnswerPart]:
        """All that right answers about this stay confirm."""
        return {part for field in self.fields.values() for part in field.parts}

    @property
    def is_merged(self) -> bool:
        """Whether the row has the id of a merged patient, and clients get the survivor's."""
        field = self._stay.section.fields["patient_id"]
        if not field.columns:
            return False
        text = plain_text(self._stay.cells[field.columns[0]]).removeprefix(field.strip)
        return field.prefix + text != self.record.patient_id


def _shown(value: Any, place: Place | None, clock: ZoneInfo) -> str:
    """Return a value as a screen shows it: a time by the hospital's clock."""
    if not isinstance(value, datetime):
        return " ".join(value) if isinstance(value, tuple) else str(value)
    rule = place.field.time if place else None
    if rule and rule.at is not None and value.astimezone(rule.zone).time() == rule.at:
        # The file adds the time of day, which no screen shows.
        return f"{value.astimezone(rule.zone):%Y-%m-%d}"
    return f"{value.astimezone(clock):%Y-%m-%d %H:%M:%S}"


def _side(start: datetime | None, clock: ZoneInfo) -> str:
    """Return "in summer" or "in winter" by the clock, "" if its offset from UTC never changes."""
    if start is None:
        return ""
    local = start.astimezone(clock)
    in_january = local.replace(month=1, day=1).utcoffset() or timedelta()
    in_july = local.replace(month=7, day=1).utcoffset() or timedelta()
    if in_january == in_july:
        return ""
    # South of the equator, January has summer time.
    is_summer_time = local.utcoffset() == max(in_january, in_july)
    return "in summer" if is_summer_time else "in winter"


class ServedMapping(NamedTuple):
    """What clients get of a mapping; `clock` is the hospital's."""

    reader: SourceReader
    searches: Searches
    clock: ZoneInfo

    def sample(self) -> list[ServedStay]:
        """Return stays that differ: ordinary ones first, the newest of them first."""
        sampled: list[ServedResource] = []
        for section in self.reader.file.sections(STAY):
            now = datetime.now(UTC)
            stays = sorted(self._newest(section), key=lambda stay: _rank(stay, now))
            # Stays that show something new, and those that show what others have shown.
            varied: list[ServedResource] = []
            alike: list[ServedResource] = []
            shown: set[AnswerPart] = set()
            for resource in stays:
                stay = ServedStay({STAY: resource}, self.clock)
                # Its patient and its hospital are not read yet: their ids stand for them.
                parts = stay.all_parts | {
                    AnswerPart(section.mark, "", str(stay.is_merged)),
                    AnswerPart(section.mark, "", stay.record.organization_id or ""),
                }
                if parts <= shown:
                    alike.append(resource)
                else:
                    varied.append(resource)
                shown |= parts
            # The patients of stays that are alike may differ.
            sampled += [*varied, *alike][:_MOST_STAYS]
        return self._with_references(sampled)

    def _newest(self, section: ResourceMapping) -> list[ServedResource]:
        """Return the newest stays of a section, and the first ones by id."""
        capabilities = self.reader.adapter(section).capabilities[STAY]
        # A page of all stays may have planned ones only, so past stays are searched too.
        past = f"lt{datetime.now(self.clock):%Y-%m-%d}"
        pages = []
        for parameters in ({"status": "finished", "date": past}, {"date": past}, {}):
            with suppress(RefusedSearchError):
                query = self.searches.query(STAY, [*parameters.items()])
                if SortKey.DATE in capabilities.sorts:
                    sort = Sort(SortKey.DATE, descending=True)
                    size = self.reader.page_size(section)
                    query = replace(query, sort=sort, count=size)
                    pages.append(self.reader.search(section, query))
        pages += islice(self.reader.pages(section), 1)
        newest: dict[str, ServedResource] = {}
        for row in chain.from_iterable(pages):
            if row.stay and row.stay.id not in newest:
                cells = dict(zip(row.columns, row.cells, strict=True))
                newest[row.stay.id] = ServedResource(section, row.stay, cells)
        return [*newest.values()]

    def stays(self, ids: Iterable[str]) -> Mapping[str, ServedStay]:
        """Return stays by id, as far as clients get them."""
        stays = self._with_references([*self.read(STAY, ids).values()])
        return {stay.record.id: stay for stay in stays}

    def _with_references(self, stays: Sequence[ServedResource]) -> list[ServedStay]:
        """Return stays with their patients and their hospitals."""
        patients = self.read(PATIENT, [s.record.patient_id for s in stays])
        hospitals = self.read(ORGANIZATION, [s.record.organization_id for s in stays])
        served = []
        for stay in stays:
            resources = {STAY: stay}
            if patient := patients.get(stay.record.patient_id):
                resources[PATIENT] = patient
            if hospital := hospitals.get(stay.record.organization_id):
                resources[ORGANIZATION] = hospital
            served.append(ServedStay(resources, self.clock))
        return served

    def read(
        self, kind: ResourceType, ids: Iterable[str | None]
    ) -> Mapping[str | None, ServedResource]:
        """Return resources by id, as far as clients get them."""
        records: dict[str | None, Any] = {}
        for id in dict.fromkeys(ids):
            if id and FHIR_ID.fullmatch(id) and self.reader.file.sections(kind):
                with suppress(NotFoundError, GoneError, SourceDataError):
                    records[id] = self.searches.adapter.read(kind, id)
        rows = self.reader.rows(kind, [id for id in records if id])
        resources: dict[str | None, ServedResource] = {}
        for (id, record), row in zip(records.items(), rows, strict=True):
            cells = dict(zip(row.columns, row.cells, strict=True))
            resources[id] = ServedResource(row.section, record, cells)
        return resources


def _rank(stay: ServedResource, now: datetime) -> tuple[bool, bool, bool]:
    """Return a sort key: stays first that are finished, then past ones, then those with an end."""
    start = stay.record.start
    is_past = start is not None and start <= now
    return stay.record.status != "finished", not is_past, stay.record.end is None


# The questions


def _questions(stays: Sequence[ServedStay]) -> list[tuple[ServedStay, list[str]]]:
    """Return a small number of stays that together show every part, each with its questions.

    They are the first stay of each class, which is the most ordinary one, then those that show
    the most that is not asked yet: a code, the other side of a clock change, a merged patient.
    """
    unasked = {part for stay in stays for part in stay.all_parts}
    first_of_class: dict[tuple[Mark, str], ServedStay] = {}
    for stay in stays:
        section = stay.resources[STAY].section
        first_of_class.setdefault((section.mark, stay.case), stay)
    candidates = list(first_of_class.values())
    questions = []
    while unasked:
        if candidates:
            stay = candidates.pop(0)
        else:
            stay = max(stays, key=lambda stay: len(unasked & stay.all_parts))
        keys = [key for key, field in stay.fields.items() if unasked & field.parts]
        questions.append((stay, keys))
        unasked -= stay.all_parts
    return questions


def _text(
    questions: Sequence[tuple[ServedStay, Sequence[str]]], served: ServedMapping
) -> Iterator[str]:
    """Yield the lines of the file of questions."""
    yield _HEAD
    for stay, keys in questions:
        yield f"  # {_name_of(stay)}\n  - id: {json.dumps(stay.record.id)}\n"
        yield from (f'    {key}: "{_OPEN}"\n' for key in keys)
    searches = _countable(served, [stay.record for stay, _ in questions])
    yield _COUNTS if searches else ""
    for search in searches:
        pairs = (f"{name}: {json.dumps(value)}, " for name, value in search)
        yield f'  - {{{"".join(pairs)}stays: "{_OPEN}"}}\n'
    yield _ABSENT


def _name_of(stay: ServedStay) -> str:
    """Return what a clerk searches a stay by: its visit number and the patient's number."""
    patient = stay.resources.get(PATIENT)
    numbers = patient.values("identifiers.value") if patient else []
    name = f"patient number {numbers[0]}" if numbers else "patient without a number"
    name = f"visit number {stay.record.visit_number or 'unknown'}, {name}"
    # The text is a comment: no line ends in it.
    return json.dumps(name, ensure_ascii=False)[1:-1]


def _countable(
    served: ServedMapping, stays: Sequence[EncounterRecord] = ()
) -> list[Sequence[tuple[str, str]]]:
    """Return the searches whose numbers of stays the hospital is asked for.

    They are the stays of a month; those that began before it; of these, those of each class and
    of up to five units. What takes too long to count is asked of the month only. The month is
    the last one, or the newest of an older copy; without a search by date all stays are meant.
    """
    today = datetime.now(served.clock)
    last_month = f"{today.replace(day=1) - timedelta(days=1):%Y-%m}"
    starts = [stay.start for stay in stays if stay.start]
    months = [f"{start.astimezone(served.clock):%Y-%m}" for start in starts]
    past_months = [month for month in months if month <= last_month]
    newest = max(past_months, default=last_month)
    period = [("date", newest)]
    if not _is_offered(served, period):
        period = []

    classes = dict.fromkeys(stay.class_code for stay in stays if stay.class_code)
    units = dict.fromkeys(s.functional_unit for s in stays if s.functional_unit)
    url = served.reader.file.mapping.constants.functional_unit_extension
    groups = [("class", code) for code in classes]
    for unit in [*units][:_MOST_UNITS]:
        groups.append(("service-provider._extension", f"{url}|{unit}"))

    before = ("date", f"lt{newest}")
    searches = [period]
    if _is_counted_in_time(served, [before]):
        searches.append([before])
    for group in groups:
        is_quick = _is_counted_in_time(served, [before, group])
        searches.append([before, group] if is_quick else [*period, group])
    return [search for search in searches if _is_offered(served, search)]


def _is_offered(served: ServedMapping, search: Sequence[tuple[str, str]]) -> bool:
    """Whether the service accepts a search of stays."""
    with suppress(RefusedSearchError):
        served.searches.query(STAY, search)
        return True
    return False


def _is_counted_in_time(
    served: ServedMapping, search: Sequence[tuple[str, str]]
) -> bool:
    """Whether a search is offered, and its stays are counted within the time for counts."""
    with suppress(RefusedSearchError, TooCostlyError):
        served.searches.count(served.searches.query(STAY, search))
        return True
    return False


# The answers


class _Comparison:
    """Compares the answers of a file with what clients get, and notes what they confirm."""

    def __init__(self, served: ServedMapping, answers: Table) -> None:
        self._served, self._answers = served, answers
        self._confirmed: set[AnswerPart] = set()
        self._unseen: set[tuple[Mark, str]] = set()

    def differences(self) -> Iterator[Finding]:
        """Yield where the screens show something else."""
        entries = [
            (_answer(entry, "id"), entry) for entry in self._answers.tables("stays")
        ]
        stays = self._served.stays(id for id, _ in entries)
        for id, entry in entries:
            if id not in stays:
                text = "clients do not get this stay: run mapping explain --live for the reason"
                yield Finding.at(entry.mark, text, STAY)
                continue
            for key, node in entry.items():
                if key in QUESTIONS and isinstance(node, Scalar):
                    yield from self._compare(key, node, stays[id])
        absent = self._answers.get("absent")
        for answer in absent if isinstance(absent, Items) else ():
            if self._served.read(STAY, [str(answer)]):
                text = "clients get this stay, which must not be served"
                yield Finding.at(answer.mark, text, STAY)
        for entry in self._answers.tables("counts"):
            if text := self._miscounted(entry):
                yield Finding.at(entry.mark, text, STAY)

    def _compare(self, key: str, node: Scalar, stay: ServedStay) -> Iterator[Finding]:
        """Compare an answer with what clients get, and note what it confirms."""
        answer = str(node)
        kind, slot = QUESTIONS[key]
        resource = stay.resources.get(kind)
        shown, parts = stay.fields.get(key, ScreenField((), frozenset()))
        if answer == _UNSEEN and resource:
            self._unseen.add((resource.section.mark, slot))
        if answer in (_OPEN, _UNSEEN):
            return
        is_right_blank = answer == _EMPTY and not shown
        if is_right_blank or any(_is_same(answer, text, key) for text in shown):
            self._confirmed.update(parts)
            return
        place = resource.place(slot) if resource else None
        columns = place.field.columns if place else ()
        if resource is None:
            text = f"clients do not get the {kind.lower()} of this stay"
            yield Finding.at(node.mark, text, f"{STAY}.{kind.lower()}")
            return
        if place is None:
            text = "the screen shows something, but the file has no field for it"
        elif answer == _EMPTY:
            text = "the screen shows nothing here, but clients get something"
        else:
            text = "the screen shows something else" if shown else "clients get nothing"
            others = [
                column
                for column, cell in resource.cells.items()
                if plain_text(cell) == answer and column not in columns
            ]
            if shown and key in ("start", "end"):
                text += f": {_apart(answer, shown[0])}"
            elif others:
                text += f": column {others[0]} contains it"
        element = place.element if place else kind
        yield Finding.at(node.mark, text, element, ", ".join(columns))

    def _miscounted(self, entry: Table) -> str:
        """Return what is wrong with a number of stays, "" if a search finds as many."""
        number = re.sub(r"[^0-9]", "", _answer(entry, "stays"))
        if not number:
            return ""
        searches = self._served.searches
        names = [name for name in entry if name != "stays"]
        try:
            query = searches.query(STAY, [(n, _answer(entry, n)) for n in names])
            total = searches.count(query)
        except RefusedSearchError:
            offer = searches.offer.resources.get(STAY)
            offered = ", ".join(offer.parameters) if offer else "nothing"
            return f"clients cannot search like this: they may use {offered}"
        except TooCostlyError:
            return "the count takes too long: write a search with fewer matches"
        if total == int(number):
            return ""
        word = "more" if total > int(number) else "fewer"
        return f"a search finds {total:,} stays, {word} than the hospital counts"

    def unconfirmed(self) -> Iterator[Finding]:
        """Yield what no screen has confirmed: a warning, and a note of what nobody asks."""
        file, sample = self._served.reader.file, self._served.sample()
        left = {part for stay in sample for part in stay.all_parts} - self._confirmed
        remedy = f"encounters mapping confirm {file.mapping.file} writes the questions"

        # Parts of the whole file, which are reported with its first section.
        general = []
        if _answer(self._answers, "clock") == _OPEN:
            general.append(_CLOCK_PART)
        counts = [_answer(entry, "stays") for entry in self._answers.tables("counts")]
        is_counted = any(count != _OPEN for count in counts)
        if not is_counted and _countable(self._served):
            general.append(_COUNT_PART)

        for section in (s for kind in ResourceType for s in file.sections(kind)):
            parts = [
                f"{part.slot} {part.case}".rstrip()
                for part in left
                if part.section == section.mark and part[:2] not in self._unseen
            ]
            if sample:
                parts, general = sorted(parts) + general, []
            kind, of_source = section.resource_type, file.of_source(section)
            if parts:
                text = f"parts{of_source} that no screen has confirmed: {len(parts)}"
                more = f"{remedy}\n{', '.join(dict.fromkeys(parts))}"
                yield Finding.at(
                    section.mark,
                    text,
                    element=kind,
                    severity=Severity.WARNING,
                    remedy=more,
                    topic=UNCONFIRMED,
                )
            if others := [*dict.fromkeys(_unasked(section))]:
                text = f"fields{of_source} that no screen confirms: {', '.join(others)}"
                yield Finding.at(
                    section.mark,
                    text,
                    element=kind,
                    severity=Severity.NOTE,
                    topic=UNASKED,
                )


def _unasked(section: ResourceMapping) -> Iterator[str]:
    """Yield the fields of a section that no question is about."""
    slots = {slot for kind, slot in QUESTIONS.values() if kind is section.resource_type}
    for place in places_of(section):
        # A reference is confirmed by the answers about what it refers to.
        is_asked = place.slot in (slots | {"id", *REFERS})
        if place.field.columns and not is_asked:
            yield place.slot


def _answer(table: Table, key: str) -> str:
    """Return the answer of a key, "?" if the key is missing."""
    return table.text(key, _OPEN)


def _is_same(answer: str, shown: str, key: str) -> bool:
    """Whether an answer means the value that clients get.

    A time may lack its seconds. A name may differ in case and accents.
    """
    if key in ("start", "end"):
        is_whole = len(answer) > _DAY_LENGTH or len(shown) == _DAY_LENGTH
        return is_whole and shown.startswith(answer.replace("T", " "))
    is_name = key in ("family", "given", "name", "hospital")
    return answer == shown or (is_name and fold(answer) == fold(shown))


def _apart(answer: str, shown: str) -> str:
    """Return how far a time on a screen is from that of clients, such as "2 h later"."""
    if len(answer) == _DAY_LENGTH < len(shown):
        return "write the time of day too"
    try:
        apart = datetime.fromisoformat(answer) - datetime.fromisoformat(shown)
    except ValueError:
        return "this day or time does not exist"
    hours = abs(apart) / timedelta(hours=1)
    if hours >= 72:
        number, unit = hours / 24, "days"
    elif hours >= 1:
        number, unit = hours, "h"
    else:
        number, unit = hours * 60, "min"
    direction = "later" if apart > timedelta() else "earlier"
    return f"{round(number, 2):,g} {unit} {direction}"
