"""Searches in people's words: fields of forms, what is wrong with them, and what they become.

A form is the pairs of names and texts that a browser sends. `Conditions` reads one: its
faults beside their fields, its parts as a list of words, and the parameters of its searches.
The conditions on patients are a search of their own, which comes first.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from werkzeug.datastructures import MultiDict

from explorer.language import DATE_IN_TEXT, DateError, day, gettext, read_day
from explorer.language import mark as _
from explorer.offer import Offer
from explorer.words import CODES, PRESETS, RESOURCES

Form = MultiDict[str, str]

PATIENTS_OF_A_SEARCH = 100
"""How many patients a search for stays may name: the service takes no more values."""

IDENTIFYING = frozenset({"name", "born", "ipp", "visit", "patient"})
"""Fields that are never written into the list of recent searches."""


@dataclass(frozen=True, slots=True)
class FormField:
    """A condition of a form; `parameter` is one of the resource type `of`.

    `input` is how it is filled in: as "text" or a "number", by a "day" or two "days", by a
    "ward" or by "codes" that are ticked.
    """

    name: str
    title: str
    input: str
    of: str
    parameter: str

    @property
    def inputs(self) -> Sequence[str]:
        """The names of its inputs."""
        is_span = self.input == "days"
        return (f"{self.name}.from", f"{self.name}.to") if is_span else (self.name,)


_NAME = FormField("name", _("Name"), "text", "Patient", "name")
_BORN = FormField("born", _("Birth date"), "day", "Patient", "birthdate")
_IPP = FormField("ipp", _("Patient number (IPP)"), "number", "Patient", "identifier")
_VISIT = FormField("visit", _("Visit number"), "number", "Encounter", "identifier")
_PATIENT = FormField("patient", _("Patient id"), "number", "Encounter", "patient")
"""The condition of a deployment whose patients are not found by their number."""

_UNIT = "service-provider._extension"

FIELDS: Mapping[str, Sequence[FormField]] = {
    "Encounter": (
        _NAME,
        _BORN,
        _IPP,
        _VISIT,
        FormField("admission", _("Admission"), "days", "Encounter", "date"),
        FormField("ward", _("Ward (unit)"), "ward", "Encounter", _UNIT),
        FormField("status", _("Status"), "codes", "Encounter", "status"),
        FormField("class", _("Type of stay"), "codes", "Encounter", "class"),
    ),
    "Patient": (
        _NAME,
        _BORN,
        _IPP,
        FormField("gender", _("Sex"), "codes", "Patient", "gender"),
    ),
    "Organization": (
        FormField("name", _("Name"), "text", "Organization", "name"),
        FormField("finess", "FINESS", "number", "Organization", "identifier"),
    ),
}
"""The conditions of each form, in its order."""


def fields_of(offer: Offer, kind: str) -> Sequence[FormField]:
    """Return the conditions of a form that the deployment offers."""
    fields = []
    for condition in FIELDS[kind]:
        parameter = offer.parameter(condition.of, condition.parameter)
        if parameter and condition.input == "days" and parameter.most == 1:
            # One value is a day; two would be a range.
            fields.append(replace(condition, input="day"))
        elif parameter:
            fields.append(condition)
    if kind == "Encounter" and _IPP not in fields and is_offered(offer, _PATIENT):
        fields.insert(0, _PATIENT)
    return fields


def is_offered(offer: Offer, condition: FormField) -> bool:
    """Return whether the deployment offers a condition."""
    return offer.parameter(condition.of, condition.parameter) is not None


@dataclass(frozen=True, slots=True)
class FieldFault:
    """What is wrong with an input; `name` is its text where it may be somebody's name."""

    title: str
    text: str = ""
    name: str = ""


class Conditions:
    """A form as it was sent, read; `wards` are the names of wards by their codes.

    `chips` are the conditions that it has, in words. `criteria` are the parameters of its
    search, `patients` those of a search for patients that comes before it.
    """

    def __init__(
        self, offer: Offer, kind: str, form: Form, wards: Mapping[str, str]
    ) -> None:
        self.kind, self.form, self.wards = kind, form, wards
        self.faults: dict[str, FieldFault] = {}
        self.chips: dict[FormField, str] = {}
        self.patients: list[tuple[str, str]] = []
        self.criteria: list[tuple[str, str]] = []
        for condition in fields_of(offer, kind):
            words, values = self._read(condition)
            if values:
                self.chips[condition] = words
            name = condition.parameter
            extension = offer.searches[condition.of].parameters[name].extension
            before = f"{extension}|" if extension else ""
            is_first_search = condition.of == "Patient" and kind != "Patient"
            pairs = self.patients if is_first_search else self.criteria
            pairs += [(name, f"{before}{value}") for value in values]

    def describe(self) -> str:
        """Return the search in words that identify no patient."""
        preset = PRESETS.get(self.form.get("preset", ""))
        texts = [gettext(preset)] if preset else []
        for condition, words in self.chips.items():
            if condition.name in IDENTIFYING and condition.of != "Organization":
                title = gettext(condition.title)
                if not title.isupper():
                    title = title[:1].lower() + title[1:]
                texts.append(gettext("by %(title)s", title=title))
            elif not preset or condition.input == "ward":
                texts.append(words)
        text = ", ".join(texts) or gettext("without a condition")
        if preset:
            return text
        title = gettext(RESOURCES[self.kind])
        return gettext("%(title)s: %(value)s", title=title, value=text)

    def _read(self, condition: FormField) -> tuple[str, Sequence[str]]:
        """Return a condition in words and its values, which are [] without one."""
        if condition.input == "days":
            return self._read_days(condition)
        title = gettext(condition.title)
        value = " ".join(self.form.get(condition.name, "").split())
        shown, sent = value, _escaped(value)
        if condition.input == "codes":
            names = CODES[condition.parameter]
            codes = [c for c in self.form.getlist(condition.name) if c in names]
            shown = _any_of([gettext(names[code]).lower() for code in codes])
            sent = ",".join(codes)
        elif condition.input == "day" and value:
            born = self._read_day(condition, condition.name)
            shown, sent = (day(born), born.isoformat()) if born else ("", "")
        elif condition.input == "number":
            shown = sent = _escaped(value.replace(" ", ""))
            is_name = condition.name in IDENTIFYING and not re.search(r"\d", value)
            if value and is_name:
                text = gettext(
                    "“%(text)s” looks like a name: a number has digits.", text=value
                )
                self.faults[condition.name] = FieldFault(title, text, value)
                sent = ""
        elif condition.input == "ward":
            # A list of wards writes the name behind the code.
            code = value.partition(" ")[0]
            title = gettext("Ward")
            shown, sent = f"{code} {self.wards.get(code, '')}".strip(), _escaped(code)
        words = gettext("%(title)s: %(value)s", title=title, value=shown)
        return words, [sent] if sent else []

    def _read_day(self, condition: FormField, name: str) -> date | None:
        text = self.form.get(name, "").strip()
        try:
            return read_day(text) if text else None
        except DateError as error:
            self.faults[name] = FieldFault(gettext(condition.title), str(error))
            return None

    def _read_days(self, condition: FormField) -> tuple[str, Sequence[str]]:
        first, last = (self._read_day(condition, name) for name in condition.inputs)
        texts = {"title": gettext(condition.title)}
        texts |= {"first": day(first)} if first else {}
        texts |= {"last": day(last)} if last else {}
        if first and last and first > last:
            text = gettext("The first day is after the last one.")
            self.faults[condition.inputs[1]] = FieldFault(texts["title"], text)
        if first and first == last:
            return gettext("%(title)s on %(first)s", **texts), [first.isoformat()]
        if first and last:
            words = gettext("%(title)s from %(first)s to %(last)s", **texts)
            return words, [f"ge{first}", f"le{last}"]
        if first:
            return gettext("%(title)s since %(first)s", **texts), [f"ge{first}"]
        if last:
            return gettext("%(title)s until %(last)s", **texts), [f"le{last}"]
        return "", []


def _any_of(texts: Sequence[str]) -> str:
    if len(texts) < 2:
        return "".join(texts)
    first = ", ".join(texts[:-1])
    return gettext("%(first)s or %(last)s", first=first, last=texts[-1])


def _escaped(text: str) -> str:
    """Return a text as one value of a parameter (decision 4)."""
    return re.sub(r"([\\,|$])", r"\\\1", text)


def without(form: Form, condition: FormField) -> Form:
    """Return a form without one of its conditions."""
    dropped = {*condition.inputs, "preset"}
    return MultiDict([p for p in form.items(multi=True) if p[0] not in dropped])


def preset(name: str, today: date, ward: str = "") -> Form:
    """Return the form of a search that needs no typing."""
    pairs = {"preset": name}
    if name == "now":
        return MultiDict({**pairs, "status": "in-progress", "ward": ward})
    first = today if name == "today" else today - timedelta(days=6)
    days = {"admission.from": first.isoformat(), "admission.to": today.isoformat()}
    return MultiDict({**pairs, **days})


def presets_of(offer: Offer) -> Sequence[str]:
    """Return the presets that the deployment can answer."""
    date = offer.parameter("Encounter", "date")
    names = ["now"] if offer.parameter("Encounter", "status") else []
    return [*names, "today", "week"] if date and date.most != 1 else names


# --------------------------------------------------------------------------- the one box


@dataclass(frozen=True, slots=True)
class BoxReading:
    """How the text of the search box is read: as a form of each resource type in turn."""

    words: str
    forms: Sequence[tuple[str, Form]] = ()
    fault: str = ""


def read_box(offer: Offer, text: str) -> BoxReading:
    """Read a name, a birth date, both, or a number; a number is a patient's or a visit's."""
    text = " ".join(text.split())
    if not text:
        return BoxReading("", fault=gettext("Write a name, a number or a birth date."))
    name, born = text, ""
    if match := DATE_IN_TEXT.search(text):
        name = " ".join((text[: match.start()] + " " + text[match.end() :]).split())
        try:
            born = day(read_day(match[0]))
        except DateError as error:
            return BoxReading("", fault=str(error))
    bare = name.replace(" ", "")
    is_number = bare.isdecimal() or (name == bare and re.search(r"\d", name))
    if is_number and not born:
        words = gettext("patient number (IPP) or visit number %(number)s", number=bare)
        forms = [
            (field.of, MultiDict({field.name: bare}))
            for field in (_VISIT, _IPP)
            if is_offered(offer, field)
        ]
    else:
        words = gettext("name %(name)s and birth date %(date)s", name=name, date=born)
        if not born:
            words = gettext("name %(name)s", name=name)
        elif not name:
            words = gettext("birth date %(date)s", date=born)
        texts = {_NAME: name, _BORN: born}
        fields = [field for field in texts if texts[field]]
        form = MultiDict({field.name: texts[field] for field in fields})
        forms = [("Patient", form)]
        if not all(is_offered(offer, field) for field in fields):
            forms = []
    if not forms:
        fault = gettext(
            "This hospital does not offer a search by %(words)s.", words=words
        )
        return BoxReading(words, fault=fault)
    return BoxReading(words, forms)
