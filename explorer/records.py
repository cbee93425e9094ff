"""What the pages show of stays, patients and hospitals, read from their FHIR resources."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from explorer.language import day, duration, gettext, moment, partial_day, pgettext
from explorer.words import CLASSES, SEX_LETTERS, SEXES, STATUSES

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


@dataclass(frozen=True, slots=True)
class Person:
    """A patient in words; what is not known is "".

    `name` is the one used with a given name, as the hospital writes them, `birth_name` the
    family name at birth where that is another. `site` and `replaced_by` are references: to
    the hospital of the record, and to the record into which this one was merged.
    """

    resource: Resource
    reference: str
    name: str
    birth_name: str
    given_names: str
    born: str
    died: str
    is_dead: bool
    sex: str
    numbers: Sequence[Number]
    site: str
    replaced_by: str

    @classmethod
    def of(cls, resource: Resource) -> "Person":
        """Read a patient as the service returns one."""
        by_use = {name.get("use"): name for name in resource.get("name", ())}
        official, usual = by_use.get("official", {}), by_use.get("usual", {})
        family = usual.get("family") or official.get("family", "")
        given = [*usual.get("given", ()), *official.get("given", ())][:1]
        written = [name.get("text", "") for name in by_use.values()][:1]
        name = " ".join(filter(None, (family, *given))) or "".join(written)
        birth_name = official.get("family", "") if usual.get("family") else ""
        died = resource.get("deceasedDateTime", "")
        sex = SEXES.get(resource.get("gender", ""))
        links = [_reference(link["other"]) for link in resource.get("link", ())]
        return cls(
            resource=resource,
            reference=f"Patient/{resource['id']}",
            name=name or gettext("no name"),
            birth_name=birth_name if birth_name != family else "",
            given_names=", ".join(official.get("given", ())),
            born=partial_day(resource.get("birthDate", "")),
            died=partial_day(died),
            is_dead=bool(died or resource.get("deceasedBoolean")),
            sex=gettext(sex) if sex else "",
            numbers=_numbers(resource),
            site=_reference(resource.get("managingOrganization")),
            replaced_by="".join(links[:1]),
        )

    def age(self, today: date) -> str:
        """Return the age in years; of the dead at their death."""
        born = self.resource.get("birthDate", "")
        died = self.resource.get("deceasedDateTime", "")
        if len(born) < len("2024-12-31") or (self.is_dead and not died):
            return ""
        birth = date.fromisoformat(born)
        until = date.fromisoformat(died[:10]) if len(died) >= len(born) else today
        years = until.year - birth.year
        if (until.month, until.day) < (birth.month, birth.day):
            years -= 1
        return gettext("%(years)s years", years=years)

    def facts(self, today: date) -> str:
        """Return birth, age and sex in a line; a name never stands without the birth."""
        gender = self.resource.get("gender", "")
        born = gettext("birth date unknown")
        if self.born:
            born = pgettext("man or unknown", "born %(date)s", date=self.born)
        if self.born and gender == "female":
            born = pgettext("woman", "born %(date)s", date=self.born)
        letter = SEX_LETTERS.get(gender)
        parts = (born, self.age(today), gettext(letter) if letter else "")
        return " · ".join(filter(None, parts))

    @property
    def masked_number(self) -> str:
        """The patient number as lists show it."""
        return next((n.masked for n in self.numbers if n.title != gettext("INS")), "")


@dataclass(frozen=True, slots=True)
class House:
    """A hospital in words; its identifiers are public."""

    resource: Resource
    reference: str
    name: str
    finess: str

    @classmethod
    def of(cls, resource: Resource) -> "House":
        """Read a hospital as the service returns one."""
        return cls(
            resource=resource,
            reference=f"Organization/{resource['id']}",
            name=resource.get("name") or resource["id"],
            finess=", ".join(_values(resource)),
        )


@dataclass(frozen=True, slots=True)
class Stay:
    """A stay, with the patient and the hospital that came with it; None: they did not.

    `kind` is its code of type, UNK for one that nobody knows; `unit` the code of the ward and
    `ward` its name. `subject` and `site` are references. What is not known is "" or None.
    """

    resource: Resource
    id: str
    reference: str
    subject: str
    status: str
    kind: str
    start: datetime | None
    end: datetime | None
    changed: datetime | None
    unit: str
    ward: str
    site: str
    visit: str
    patient: Person | None = None
    house: House | None = None

    @classmethod
    def of(
        cls,
        resource: Resource,
        patient: Person | None = None,
        house: House | None = None,
    ) -> "Stay":
        """Read a stay as the service returns one."""
        provider = resource.get("serviceProvider", {})
        period = resource.get("period", {})
        code = resource.get("class", {}).get("code", "")
        units = [e.get("valueString", "") for e in provider.get("extension", ())]
        wards = [p["location"].get("display", "") for p in resource.get("location", ())]
        return cls(
            resource=resource,
            id=resource["id"],
            reference=f"Encounter/{resource['id']}",
            subject=_reference(resource.get("subject")),
            status=resource["status"],
            kind=code if code in CLASSES else "UNK",
            start=_time(period.get("start")),
            end=_time(period.get("end")),
            changed=changed(resource),
            unit="".join(units[:1]),
            ward="".join(wards[:1]),
            site=_reference(provider),
            visit="".join(_values(resource)[:1]),
            patient=patient,
            house=house,
        )

    @property
    def status_words(self) -> str:
        """Its status in words."""
        return gettext(STATUSES.get(self.status, self.status))

    @property
    def kind_words(self) -> str:
        """Its type in words."""
        return gettext(CLASSES[self.kind])

    def took(self, now: datetime) -> str:
        """Return how long it took, or has taken; "" for one that has not begun."""
        has_begun = self.start is not None and (self.end or self.start <= now)
        if self.start is None or not has_begun or self.status == "planned":
            return ""
        return duration((self.end or now) - self.start)

    @property
    def place(self) -> str:
        """The ward by code and name."""
        return " ".join(filter(None, (self.unit, self.ward)))

    @property
    def site_words(self) -> str:
        """The name of its hospital, else its id."""
        return self.house.name if self.house else self.site.rpartition("/")[2]

    @property
    def title(self) -> str:
        """What it is called: its type, and the day of the admission."""
        if self.start is None:
            return self.kind_words
        words, date = self.kind_words, day(self.start)
        return gettext("%(type)s of %(date)s", type=words, date=date)

    @property
    def line(self) -> str:
        """Type, times and place in a line."""
        times = gettext("no date of admission")
        if self.start:
            times = moment(self.start)
        if self.start and self.end:
            same_day = self.start.date() == self.end.date()
            times += f" – {self.end:%H:%M}" if same_day else f" – {moment(self.end)}"
        place = gettext("ward %(ward)s", ward=self.place) if self.place else ""
        return ", ".join(filter(None, (self.kind_words, times, place)))

    @property
    def sentence(self) -> str:
        """Everything about it in a line, for who cannot see its bar."""
        visit = gettext("visit %(number)s", number=self.visit) if self.visit else ""
        parts = (self.line, self.status_words.lower(), visit)
        return ", ".join(filter(None, parts))


def changed(resource: Resource) -> datetime | None:
    """Return when a resource was last changed, None where that is not known."""
    return _time(resource.get("meta", {}).get("lastUpdated"))


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
