"""What the pages show of a Bundle: stays and patients in words, columns, CSV.

All of it is computed from the resources that the service returned. What is not known is "",
or None for a time.
"""

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from typing import Any

from flask import request

from explorer.language import duration, gettext, language, moment, partial_day
from explorer.language import mark as _
from explorer.words import CLASSES, SEXES, STATUSES

Resource = Mapping[str, Any]

COLUMN_COOKIE = "columns-"

_INS = re.compile(r"urn:oid:1\.2\.250\.1\.213\.1\.4\.\d+")
"""The systems of the national health id of France."""

_HIDDEN = "•"

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What makes a spreadsheet compute a cell."""


@dataclass(frozen=True, slots=True)
class Number:
    """An identifier: its title, its whole text, and what is shown of it at first."""

    title: str
    text: str
    masked: str


class Person:
    """A patient in words.

    `name` is the one used with a given name, as the hospital writes them, `birth_name` the
    family name at birth where that is another. `site` and `replaced_by` are references: to
    the hospital of the record, and to the record into which this one was merged.
    """

    def __init__(self, resource: Resource) -> None:
        by_use = {name.get("use"): name for name in resource.get("name", ())}
        official = by_use.get("official", {})
        usual = by_use.get("usual", {})
        birth_name = official.get("family", "")
        family = usual.get("family") or birth_name
        given = _first([*usual.get("given", ()), *official.get("given", ())])
        text = _first([name.get("text", "") for name in by_use.values()])
        links = [_reference(link["other"]) for link in resource.get("link", ())]
        self.resource = resource
        self.changed = _changed(resource)
        self.reference = f"Patient/{resource['id']}"
        self.name = f"{family} {given}".strip() or text or gettext("no name")
        self.birth_name = birth_name if birth_name != family else ""
        self.given_names = ", ".join(official.get("given", ()))
        self.born = partial_day(resource.get("birthDate", ""))
        self.died = partial_day(resource.get("deceasedDateTime", ""))
        self.is_dead = bool(self.died or resource.get("deceasedBoolean"))
        self.gender = resource.get("gender", "")
        self.sex = gettext(SEXES[self.gender]) if self.gender in SEXES else ""
        self.numbers = _numbers(resource)
        self.site = _reference(resource.get("managingOrganization"))
        self.replaced_by = _first(links)

    def age(self, today: date) -> int | None:
        """Return the age in years; of the dead at their death."""
        born = self.resource.get("birthDate", "")
        died = self.resource.get("deceasedDateTime", "")
        # A year or a month gives no age, nor does a death without a date.
        if len(born) < len("2024-12-31") or (self.is_dead and not died):
            return None
        birth = date.fromisoformat(born)
        until = date.fromisoformat(died[:10]) if len(died) >= len(born) else today
        has_had_birthday = (until.month, until.day) >= (birth.month, birth.day)
        years = until.year - birth.year
        return years if has_had_birthday else years - 1

    @property
    def masked_number(self) -> str:
        """The patient number as lists show it."""
        return _first([n.masked for n in self.numbers if n.title != gettext("INS")])


class Stay:
    """A stay; `included` are the patients and hospitals of its Bundle, by reference.

    `patient` is None where the patient is not among them.
    `class_code` is its type, UNK for one that nobody knows; `unit` the code of the ward and
    `ward` its name. `subject` and `site` are references.
    """

    def __init__(
        self, resource: Resource, included: Mapping[str, Resource] | None = None
    ) -> None:
        provider = resource.get("serviceProvider", {})
        period = resource.get("period", {})
        code = resource.get("class", {}).get("code", "")
        units = [e.get("valueString", "") for e in provider.get("extension", ())]
        wards = [p["location"].get("display", "") for p in resource.get("location", ())]
        visits = [number.get("value", "") for number in resource.get("identifier", ())]
        self.resource = resource
        self.changed = _changed(resource)
        self.id: str = resource["id"]
        self.reference = f"Encounter/{self.id}"
        self.subject = _reference(resource.get("subject"))
        self.site = _reference(provider)
        patient = (included or {}).get(self.subject)
        self.patient = Person(patient) if patient else None
        self.site_name = site_name(self.site, included or {})
        self.status: str = resource["status"]
        self.status_words = gettext(STATUSES.get(self.status, self.status))
        self.class_code = code if code in CLASSES else "UNK"
        self.class_words = gettext(CLASSES[self.class_code])
        self.start = _time(period.get("start"))
        self.end = _time(period.get("end"))
        self.unit = _first(units)
        self.ward = _first(wards)
        self.place = f"{self.unit} {self.ward}".strip()
        self.visit = _first(visits)

    def took(self, now: datetime) -> str:
        """Return the duration of the stay until now; "" for one that has not begun."""
        if self.start is None or self.status == "planned":
            return ""
        if self.end is None and self.start > now:
            return ""
        return duration((self.end or now) - self.start)


def site_name(reference: str, included: Mapping[str, Resource]) -> str:
    """Return the name of a hospital that came along, else its id."""
    return str(included.get(reference, {}).get("name") or reference.rpartition("/")[2])


def _changed(resource: Resource) -> datetime | None:
    return _time(resource.get("meta", {}).get("lastUpdated"))


def _first(texts: Sequence[str]) -> str:
    return texts[0] if texts else ""


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _reference(element: Resource | None) -> str:
    return str((element or {}).get("reference", ""))


def _numbers(resource: Resource) -> Sequence[Number]:
    """Return the numbers of a patient: those of hospitals, then the national one."""
    of_hospitals, national = [], []
    for identifier in resource.get("identifier", ()):
        text = str(identifier.get("value", ""))
        if _INS.fullmatch(identifier.get("system", "")):
            masked = f"{text[:1]} {text[1:3]} {_HIDDEN * 7}"
            national.append(Number(gettext("INS"), text, masked))
        else:
            end = text[-4:] if len(text) > 4 else ""
            masked = f"{_HIDDEN * 4} {end}".strip()
            of_hospitals.append(Number(gettext("IPP"), text, masked))
    return [*of_hospitals, *national]


# ------------------------------------------------------------------------- a Bundle


class BundleEntries:
    """The entries of a Bundle: matches, what is included, and issues of the service."""

    def __init__(self, bundle: Resource) -> None:
        self.total: int | None = bundle.get("total")
        self.matches: list[Resource] = []
        self.included: dict[str, Resource] = {}
        self.issues: list[Resource] = []
        for entry in bundle.get("entry", []):
            resource, mode = entry["resource"], entry["search"]["mode"]
            if mode == "match":
                self.matches.append(resource)
            elif mode == "include":
                self.included[f"{resource['resourceType']}/{resource['id']}"] = resource
            else:
                self.issues += resource["issue"]

    @cached_property
    def stays(self) -> Sequence[Stay]:
        """The matches, which are stays, with their patients and hospitals."""
        return [Stay(resource, self.included) for resource in self.matches]

    def rows(self, kind: str) -> Sequence[Any]:
        """Return the matches of a type: stays or patients."""
        if kind == "Encounter":
            return self.stays
        return [Person(resource) for resource in self.matches]


# ------------------------------------------------------------------------- columns


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table; `text` returns its text for a row and the present time.

    `sort` is what the service sorts it by, "" for nothing.
    """

    name: str
    title: str
    text: Callable[[Any, datetime], str]
    sort: str = ""


def _when(time: datetime | None) -> str:
    return moment(time) if time else ""


_CHANGED = TableColumn(
    "changed",
    _("Last changed"),
    lambda row, _: _when(row.changed),
    "_lastUpdated",
)

COLUMNS: Mapping[str, Sequence[TableColumn]] = {
    "Encounter": (
        TableColumn("status", _("Status"), lambda stay, _: stay.status_words),
        TableColumn("class", _("Type"), lambda stay, _: stay.class_words),
        TableColumn("start", _("Admission"), lambda stay, _: _when(stay.start), "date"),
        TableColumn("end", _("Discharge"), lambda stay, _: _when(stay.end)),
        TableColumn("duration", _("Length"), lambda stay, now: stay.took(now)),
        TableColumn("ward", _("Ward"), lambda stay, _: stay.place),
        TableColumn("site", _("Hospital"), lambda stay, _: stay.site_name),
        TableColumn("visit", _("Visit number"), lambda stay, _: stay.visit),
        _CHANGED,
    ),
    "Patient": (
        TableColumn("sex", _("Sex"), lambda person, _: person.sex),
        TableColumn("ipp", _("IPP"), lambda person, _: person.masked_number),
        _CHANGED,
    ),
}
"""The columns beside the first one, which names who a row is."""


def columns_of(kind: str) -> Sequence[TableColumn]:
    """Return the columns that the person has chosen for a table, else the usual ones."""
    names = request.cookies.get(f"{COLUMN_COOKIE}{kind}", "").split(".")
    chosen = [column for column in COLUMNS[kind] if column.name in names]
    return chosen or [column for column in COLUMNS[kind] if column is not _CHANGED]


def csv_lines(kind: str, rows: Sequence[Any], now: datetime, *, head: bool) -> str:
    """Return rows as CSV (RFC 4180), as spreadsheets of the language read it.

    French ones separate by semicolons. No cell is a formula.
    """
    file = io.StringIO()
    writer = csv.writer(file, delimiter=";" if language() == "fr" else ",")
    columns = columns_of(kind)
    if head:
        titles = [_("Patient"), _("Born"), *(column.title for column in columns)]
        writer.writerow(map(gettext, titles))
    for row in rows:
        person = row.patient if kind == "Encounter" else row
        texts = [person.name, person.born] if person else ["", ""]
        texts += [column.text(row, now) for column in columns]
        writer.writerow(f"'{t}" if t.startswith(_FORMULA) else t for t in texts)
    return file.getvalue()
