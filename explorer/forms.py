"""Searches in people's words: fields of forms, what is wrong with them, and what they become.

A form is the pairs of names and texts that a browser sends. `Conditions` reads one: its
faults beside their fields, its parts as a list of words, and the parameters of its searches.
The conditions on patients are a search of their own, which comes first.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from werkzeug.datastructures import MultiDict

from explorer.language import DATE_IN_TEXT, ReadingError, day, gettext, read_day
from explorer.language import mark as _
from explorer.offer import PublishedOffer
from explorer.words import CODES, RESOURCES

FormValues = MultiDict[str, str]

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
}
"""The conditions of each form, in its order."""


def fields_of(offer: PublishedOffer, kind: str) -> Sequence[FormField]:
    """Return the conditions of a form that the deployment offers."""
    fields = []
    for field in FIELDS[kind]:
        parameter = offer.parameter(field.of, field.parameter)
        if parameter and field.input == "days" and parameter.most == 1:
            # One value is a day; two would be a range.
            fields.append(replace(field, input="day"))
        elif parameter:
            fields.append(field)
    has_patient = offer.parameter(_PATIENT.of, _PATIENT.parameter)
    if kind == "Encounter" and _IPP not in fields and has_patient:
        fields.insert(0, _PATIENT)
    return fields


@dataclass(frozen=True, slots=True)
class FieldFault:
    """What is wrong with an input; `name` is its text where it may be somebody's name."""

    title: str
    text: str = ""
    name: str = ""


class Conditions:
    """The conditions of a form that was sent; `wards` are names of wards by their codes.

    `chips` are the conditions that it has, in words. `criteria` are the parameters of its
    search, `patients` those of a search for patients that comes before it.
    """

    def __init__(
        self,
        offer: PublishedOffer,
        kind: str,
        form: FormValues,
        wards: Mapping[str, str],
    ) -> None:
        self.kind, self.form, self.wards = kind, form, wards
        self.faults: dict[str, FieldFault] = {}
        self.chips: dict[FormField, str] = {}
        self.patients: list[tuple[str, str]] = []
        self.criteria: list[tuple[str, str]] = []
        for field in fields_of(offer, kind):
            words, values = self._read(field)
            if values:
                self.chips[field] = words
            extension = offer.searches[field.of].parameters[field.parameter].extension
            prefix = f"{extension}|" if extension else ""
            pairs = self.criteria if field.of == kind else self.patients
            pairs += [(field.parameter, f"{prefix}{value}") for value in values]

    def describe(self) -> str:
        """Return the search in words that identify no patient."""
        texts = [
            f"{gettext(field.title)} …" if field.name in IDENTIFYING else words
            for field, words in self.chips.items()
        ]
        title = gettext(RESOURCES[self.kind])
        value = ", ".join(texts) or gettext("without a condition")
        return gettext("%(title)s: %(value)s", title=title, value=value)

    def _read(self, field: FormField) -> tuple[str, Sequence[str]]:
        """Return a condition in words and its values, which are [] without one."""
        title = gettext(field.title)
        value = " ".join(self.form.get(field.name, "").split())
        match field.input:
            case "days":
                return self._read_days(field)
            case "day":
                chosen = self._read_day(field, field.name)
                shown = day(chosen) if chosen else ""
                sent = chosen.isoformat() if chosen else ""
            case "codes":
                names = CODES[field.parameter]
                codes = [c for c in self.form.getlist(field.name) if c in names]
                shown = _any_of([gettext(names[code]).lower() for code in codes])
                sent = ",".join(codes)
            case "number":
                sent = _escaped(value.replace(" ", ""))
                shown = sent
                if value and not re.search(r"\d", value):
                    text = gettext(
                        "“%(text)s” looks like a name: a number has digits.", text=value
                    )
                    self.faults[field.name] = FieldFault(title, text, value)
            case "ward":
                # A list of wards writes the name behind the code.
                code = value.partition(" ")[0]
                title = gettext("Ward")
                shown = f"{code} {self.wards.get(code, '')}".strip()
                sent = _escaped(code)
            case _:
                shown = value
                sent = _escaped(value)
        words = gettext("%(title)s: %(value)s", title=title, value=shown)
        return words, [sent] if sent else []

    def _read_day(self, field: FormField, name: str) -> date | None:
        text = self.form.get(name, "").strip()
        try:
            return read_day(text) if text else None
        except ReadingError as error:
            self.faults[name] = FieldFault(gettext(field.title), str(error))
            return None

    def _read_days(self, field: FormField) -> tuple[str, Sequence[str]]:
        """Return two days in words, and the values of the one or two bounds they make."""
        first_input, last_input = field.inputs
        first = self._read_day(field, first_input)
        last = self._read_day(field, last_input)
        title = gettext(field.title)
        if first and last and first > last:
            text = gettext("The first day is after the last one.")
            self.faults[last_input] = FieldFault(title, text)
        span = " – ".join(day(bound) if bound else "…" for bound in (first, last))
        values = []
        if first:
            values.append(f"ge{first}")
        if last:
            values.append(f"le{last}")
        if first and first == last:
            span = day(first)
            values = [first.isoformat()]
        return gettext("%(title)s: %(value)s", title=title, value=span), values


def _any_of(texts: Sequence[str]) -> str:
    if len(texts) < 2:
        return "".join(texts)
    first = ", ".join(texts[:-1])
    return gettext("%(first)s or %(last)s", first=first, last=texts[-1])


def _escaped(text: str) -> str:
    """Return a text as one value of a parameter (decision 4)."""
    return re.sub(r"([\\,|$])", r"\\\1", text)


def without(form: FormValues, name: str) -> FormValues:
    """Return a form without the condition of a name."""
    dropped = {name, f"{name}.from", f"{name}.to"}
    return MultiDict([p for p in form.items(multi=True) if p[0] not in dropped])


def read_box(
    offer: PublishedOffer, text: str
) -> tuple[str, Sequence[tuple[str, FormValues]]]:
    """Return how the text of the search box is read: in words, and as one or two forms.

    The text is a name, a birth date, both, or a number, which is a visit's or a patient's.
    Each form comes with its resource type. Raises ReadingError.
    """
    text = " ".join(text.split())
    if not text:
        raise ReadingError(gettext("Write a name, a number or a birth date."))
    name = text
    born = ""
    if match := DATE_IN_TEXT.search(text):
        name = " ".join(text.replace(match[0], " ").split())
        born = day(read_day(match[0]))
    bare = name.replace(" ", "")
    # Digits may come in groups; one with letters is a single word.
    is_number = bare.isdecimal() or (name == bare and re.search(r"\d", name))
    if not born and is_number:
        words = gettext("patient number (IPP) or visit number %(number)s", number=bare)
        forms = [{_VISIT: bare}, {_IPP: bare}]
    elif not born:
        words = gettext("name %(name)s", name=name)
        forms = [{_NAME: name}]
    elif not name:
        words = gettext("birth date %(date)s", date=born)
        forms = [{_BORN: born}]
    else:
        words = gettext("name %(name)s and birth date %(date)s", name=name, date=born)
        forms = [{_NAME: name, _BORN: born}]
    offered: list[tuple[str, FormValues]] = []
    for form in forms:
        if all(offer.parameter(field.of, field.parameter) for field in form):
            # The fields of a form are all of one resource type.
            kind = next(iter(form)).of
            values = {field.name: value for field, value in form.items()}
            offered.append((kind, MultiDict(values)))
    if not offered:
        raise ReadingError(
            gettext("This hospital does not offer a search by %(words)s.", words=words)
        )
    return words, offered
