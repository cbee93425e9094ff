"""Searches in people's words: fields of forms, what is wrong with them, and what they become.

A form is the pairs of names and texts that a browser sends. `Conditions` reads one: its
faults beside their fields, its parts as a list of words, and the parameters of its searches.
The conditions on patients are a search of their own, which comes first.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from enum import Enum, auto

from werkzeug.datastructures import MultiDict

from explorer.language import DATE_IN_TEXT, DateError, day, gettext, read_day
from explorer.language import mark as _
from explorer.offer import Offer
from explorer.sessions import Pairs
from explorer.words import CODES, PRESETS, RESOURCES

Form = MultiDict[str, str]

PATIENTS_OF_A_SEARCH = 100
"""How many patients a search for stays may name: the service takes no more values."""


class FieldKind(Enum):
    """How a condition is filled in."""

    TEXT = auto()
    NUMBER = auto()
    DAY = auto()
    DAYS = auto()
    WARD = auto()
    CODES = auto()


@dataclass(frozen=True, slots=True)
class Field:
    """A condition of a form; `parameter` is one of the resource type `of`.

    One that identifies a patient is never written into the list of recent searches.
    """

    name: str
    title: str
    kind: FieldKind
    of: str
    parameter: str
    identifies: bool = False

    @property
    def inputs(self) -> Sequence[str]:
        """The names of its inputs."""
        if self.kind is FieldKind.DAYS:
            return (f"{self.name}.from", f"{self.name}.to")
        return (self.name,)


_NAME = Field("name", _("Name"), FieldKind.TEXT, "Patient", "name", identifies=True)
_BORN = Field(
    "born", _("Birth date"), FieldKind.DAY, "Patient", "birthdate", identifies=True
)
_IPP = Field(
    "ipp",
    _("Patient number (IPP)"),
    FieldKind.NUMBER,
    "Patient",
    "identifier",
    identifies=True,
)
_VISIT = Field(
    "visit",
    _("Visit number"),
    FieldKind.NUMBER,
    "Encounter",
    "identifier",
    identifies=True,
)
_WARD = "service-provider._extension"

FIELDS: Mapping[str, Sequence[Field]] = {
    "Encounter": (
        _NAME,
        _BORN,
        _IPP,
        _VISIT,
        Field("admission", _("Admission"), FieldKind.DAYS, "Encounter", "date"),
        Field("ward", _("Ward (unit)"), FieldKind.WARD, "Encounter", _WARD),
        Field("status", _("Status"), FieldKind.CODES, "Encounter", "status"),
        Field("class", _("Type of stay"), FieldKind.CODES, "Encounter", "class"),
    ),
    "Patient": (
        _NAME,
        _BORN,
        _IPP,
        Field("gender", _("Sex"), FieldKind.CODES, "Patient", "gender"),
    ),
    "Organization": (
        Field("name", _("Name"), FieldKind.TEXT, "Organization", "name"),
        Field("finess", "FINESS", FieldKind.NUMBER, "Organization", "identifier"),
    ),
}
"""The conditions of each form, in its order."""

_PATIENT = Field(
    "patient",
    _("Patient id"),
    FieldKind.NUMBER,
    "Encounter",
    "patient",
    identifies=True,
)
"""The condition of a deployment whose patients are not found by their number."""


def fields_of(offer: Offer, kind: str) -> Sequence[Field]:
    """Return the conditions of a form that the deployment offers."""
    fields = []
    for condition in FIELDS[kind]:
        parameter = offer.parameter(condition.of, condition.parameter)
        if parameter and condition.kind is FieldKind.DAYS and parameter.most == 1:
            # One value is a day; two would be a range.
            fields.append(replace(condition, kind=FieldKind.DAY))
        elif parameter:
            fields.append(condition)
    if kind == "Encounter" and _IPP not in fields:
        fields.insert(0, _PATIENT)
    return fields


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with an input; `name` is its text where it may be somebody's name."""

    title: str
    text: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Chip:
    """A condition in words, and its field."""

    field: Field
    text: str


@dataclass
class Conditions:
    """A form as it was sent, read.

    `criteria` are the parameters of its search, `patients` those of a search for patients
    that comes before it.
    """

    kind: str
    form: Form
    faults: dict[str, Fault] = field(default_factory=dict)
    chips: list[Chip] = field(default_factory=list)
    patients: list[tuple[str, str]] = field(default_factory=list)
    criteria: list[tuple[str, str]] = field(default_factory=list)

    def describe(self) -> str:
        """Return the search in words that identify no patient."""
        preset = PRESETS.get(self.form.get("preset", ""))
        texts = [gettext(preset)] if preset else []
        for chip in self.chips:
            if chip.field.identifies:
                title = gettext(chip.field.title)
                by = gettext("by %(title)s", title=title[:1].lower() + title[1:])
                texts.append(by)
            elif not preset or chip.field.kind is FieldKind.WARD:
                texts.append(chip.text)
        text = ", ".join(texts) or gettext("without a condition")
        return text if preset else f"{gettext(RESOURCES[self.kind])}: {text}"


def read_form(
    offer: Offer, kind: str, form: Form, wards: Mapping[str, str]
) -> Conditions:
    """Read a form; `wards` are the names of wards by their codes."""
    conditions = Conditions(kind, form)
    for condition in fields_of(offer, kind):
        parameter = offer.parameter(condition.of, condition.parameter)
        if parameter is None:
            continue
        words, pairs = _read_field(condition, form, conditions.faults, wards)
        if not pairs:
            continue
        if parameter.extension:
            pairs = [(name, f"{parameter.extension}|{text}") for name, text in pairs]
        conditions.chips.append(Chip(condition, words))
        if condition.of == "Patient" and kind != "Patient":
            conditions.patients += pairs
        else:
            conditions.criteria += pairs
    return conditions


def _read_field(
    condition: Field, form: Form, faults: dict[str, Fault], wards: Mapping[str, str]
) -> tuple[str, Pairs]:
    """Return a condition in words and its parameters, which are [] without a value."""
    if condition.kind is FieldKind.DAYS:
        return _read_days(condition, form, faults)
    if condition.kind is FieldKind.CODES:
        return _read_codes(condition, form)
    title = gettext(condition.title)
    value = " ".join(form.get(condition.name, "").split())
    if not value:
        return "", []
    shown, sent = value, _escaped(value)
    if condition.kind is FieldKind.DAY:
        try:
            born = read_day(value)
        except DateError as error:
            faults[condition.name] = Fault(title, str(error))
            return "", []
        shown, sent = day(born), born.isoformat()
    elif condition.kind is FieldKind.NUMBER:
        if condition.identifies and not re.search(r"\d", value):
            text = gettext(
                "“%(text)s” looks like a name: a number has digits.", text=value
            )
            faults[condition.name] = Fault(title, text, value)
            return "", []
        shown = sent = _escaped(value.replace(" ", ""))
    elif condition.kind is FieldKind.WARD:
        # A list of wards writes the name behind the code.
        code = value.partition(" ")[0]
        title = gettext("Ward")
        shown, sent = f"{code} {wards.get(code, '')}".strip(), _escaped(code)
    words = gettext("%(title)s: %(value)s", title=title, value=shown)
    return words, [(condition.parameter, sent)]


def _read_codes(condition: Field, form: Form) -> tuple[str, Pairs]:
    words = CODES[condition.parameter]
    codes = [code for code in form.getlist(condition.name) if code in words]
    if not codes:
        return "", []
    texts = [gettext(words[code]).lower() for code in codes]
    choice = texts[0]
    if len(texts) > 1:
        first = ", ".join(texts[:-1])
        choice = gettext("%(first)s or %(last)s", first=first, last=texts[-1])
    title = gettext(condition.title)
    text = gettext("%(title)s: %(value)s", title=title, value=choice)
    return text, [(condition.parameter, ",".join(codes))]


def _read_days(
    condition: Field, form: Form, faults: dict[str, Fault]
) -> tuple[str, Pairs]:
    title, parameter = gettext(condition.title), condition.parameter
    days: dict[str, date] = {}
    for name in condition.inputs:
        if text := form.get(name, "").strip():
            try:
                days[name] = read_day(text)
            except DateError as error:
                faults[name] = Fault(title, str(error))
    first, last = map(days.get, condition.inputs)
    if first and last:
        if first > last:
            text = gettext("The first day is after the last one.")
            faults[condition.inputs[1]] = Fault(title, text)
        texts = {"title": title, "first": day(first), "last": day(last)}
        if first == last:
            words = gettext("%(title)s on %(first)s", **texts)
            return words, [(parameter, first.isoformat())]
        words = gettext("%(title)s from %(first)s to %(last)s", **texts)
        return words, [(parameter, f"ge{first}"), (parameter, f"le{last}")]
    if first:
        words = gettext("%(title)s since %(first)s", title=title, first=day(first))
        return words, [(parameter, f"ge{first}")]
    if last:
        words = gettext("%(title)s until %(last)s", title=title, last=day(last))
        return words, [(parameter, f"le{last}")]
    return "", []


def _escaped(text: str) -> str:
    """Return a text as one value of a parameter (decision 4)."""
    return re.sub(r"([\\,|$])", r"\\\1", text)


def without(form: Form, condition: Field) -> Form:
    """Return a form without one of its conditions."""
    dropped = {*condition.inputs, "preset"}
    pairs = [(n, t) for n, t in form.items(multi=True) if n not in dropped]
    return MultiDict(pairs)


def preset(name: str, today: date, ward: str = "") -> Form:
    """Return the form of a search that needs no typing."""
    pairs = [("preset", name)]
    if name == "now":
        pairs += [("status", "in-progress"), ("ward", ward)]
    else:
        first = today if name == "today" else today - timedelta(days=6)
        pairs += [("admission.from", first.isoformat())]
        pairs += [("admission.to", today.isoformat())]
    return MultiDict(pairs)


def presets_of(offer: Offer) -> Sequence[str]:
    """Return the presets that the deployment can answer."""
    date = offer.parameter("Encounter", "date")
    names = ["now"] if offer.parameter("Encounter", "status") else []
    return [*names, "today", "week"] if date and date.most != 1 else names


# --------------------------------------------------------------------------- the one box


@dataclass(frozen=True, slots=True)
class Reading:
    """How the text of the search box is read: as a form of each resource type in turn."""

    words: str
    forms: Sequence[tuple[str, Form]] = ()
    fault: str = ""


def read_box(offer: Offer, text: str) -> Reading:
    """Read a name, a birth date, both, or a number; a number is a patient's or a visit's."""
    text = " ".join(text.split())
    if not text:
        return Reading("", fault=gettext("Write a name, a number or a birth date."))
    name, born = text, ""
    if match := DATE_IN_TEXT.search(text):
        name = " ".join((text[: match.start()] + " " + text[match.end() :]).split())
        try:
            born = day(read_day(match[0]))
        except DateError as error:
            return Reading("", fault=str(error))
    bare = name.replace(" ", "")
    is_number = bare.isdecimal() or (name == bare and re.search(r"\d", name))
    if is_number and not born:
        words = gettext("patient number (IPP) or visit number %(number)s", number=bare)
        parts = (("Encounter", _VISIT), ("Patient", _IPP))
        forms = [(k, MultiDict([(f.name, bare)])) for k, f in parts if _has(offer, f)]
    else:
        sent = MultiDict([(n, t) for n, t in (("name", name), ("born", born)) if t])
        words = gettext("name %(name)s and birth date %(date)s", name=name, date=born)
        if not born:
            words = gettext("name %(name)s", name=name)
        elif not name:
            words = gettext("birth date %(date)s", date=born)
        needed = [f for f in (_NAME, _BORN) if f.name in sent]
        forms = [("Patient", sent)] if all(_has(offer, f) for f in needed) else []
    if not forms:
        fault = gettext(
            "This hospital does not offer a search by %(words)s.", words=words
        )
        return Reading(words, fault=fault)
    return Reading(words, forms)


def _has(offer: Offer, condition: Field) -> bool:
    return offer.parameter(condition.of, condition.parameter) is not None
