"""What the pages show of stays, patients and hospitals, read from their FHIR resources.

What is not known is "", or None for a time.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from explorer.language import duration, gettext, partial_day
from explorer.words import CLASSES, SEXES, STATUSES

Resource = Mapping[str, Any]

_INS = re.compile(r"urn:oid:1\.2\.250\.1\.213\.1\.4\.\d+")
"""The systems of the national health id of France."""

_HIDDEN = "•"


@dataclass(frozen=True, slots=True)
class Number:
    """An identifier: its title, its whole text, and what is shown of it until asked."""

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
        official, usual = by_use.get("official", {}), by_use.get("usual", {})
        family = usual.get("family") or official.get("family", "")
        given = _first([*usual.get("given", ()), *official.get("given", ())])
        written = _first([name.get("text", "") for name in by_use.values()])
        name = f"{family} {given}".strip() or written
        birth_name = official.get("family", "") if usual.get("family") else ""
        links = [_reference(link["other"]) for link in resource.get("link", ())]
        self.resource = resource
        self.reference = f"Patient/{resource['id']}"
        self.name = name or gettext("no name")
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
        return until.year - birth.year - (0 if has_had_birthday else 1)

    @property
    def masked_number(self) -> str:
        """The patient number as lists show it."""
        return next((n.masked for n in self.numbers if n.title != gettext("INS")), "")


class House:
    """A hospital in words; its identifiers are public."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.reference = f"Organization/{resource['id']}"
        self.name = resource.get("name") or resource["id"]
        self.finess = ", ".join(_values(resource))


class Stay:
    """A stay, with the patient and the hospital that came with it; None: they did not.

    `class_code` is its type, UNK for one that nobody knows; `unit` the code of the ward and
    `ward` its name. `subject` and `site` are references.
    """

    def __init__(self, resource: Resource) -> None:
        provider = resource.get("serviceProvider", {})
        period = resource.get("period", {})
        code = resource.get("class", {}).get("code", "")
        units = [e.get("valueString", "") for e in provider.get("extension", ())]
        wards = [p["location"].get("display", "") for p in resource.get("location", ())]
        self.resource = resource
        self.patient: Person | None = None
        self.house: House | None = None
        self.id: str = resource["id"]
        self.reference = f"Encounter/{self.id}"
        self.subject = _reference(resource.get("subject"))
        self.status: str = resource["status"]
        self.status_words = gettext(STATUSES.get(self.status, self.status))
        self.class_code = code if code in CLASSES else "UNK"
        self.class_words = gettext(CLASSES[self.class_code])
        self.start = _time(period.get("start"))
        self.end = _time(period.get("end"))
        self.unit = _first(units)
        self.ward = _first(wards)
        self.place = f"{self.unit} {self.ward}".strip()
        self.site = _reference(provider)
        self.visit = _first(_values(resource))

    @property
    def site_name(self) -> str:
        """The name of its hospital, else its id."""
        return self.house.name if self.house else self.site.rpartition("/")[2]

    def took(self, now: datetime) -> str:
        """Return how long it took, or has taken; "" for one that has not begun."""
        has_begun = self.start is not None and (self.end or self.start <= now)
        if self.start is None or not has_begun or self.status == "planned":
            return ""
        return duration((self.end or now) - self.start)


def changed(resource: Resource) -> datetime | None:
    """Return when a resource was last changed, None where that is not known."""
    return _time(resource.get("meta", {}).get("lastUpdated"))


def _first(texts: Sequence[str]) -> str:
    return texts[0] if texts else ""


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _reference(element: Resource | None) -> str:
    return str((element or {}).get("reference", ""))


def _values(resource: Resource) -> Sequence[str]:
    return [number.get("value", "") for number in resource.get("identifier", ())]


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
