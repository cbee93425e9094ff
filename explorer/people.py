"""What the pages show of patients and hospitals: names, births, numbers, how to reach them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from explorer.language import gettext, partial_day, pgettext
from explorer.language import mark as _
from explorer.words import ADDRESSES, SEX_LETTERS, SEXES, TELECOMS

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
class Contact:
    """A way to reach somebody: `href` is "" where it is no link."""

    title: str
    lines: Sequence[str]
    href: str = ""


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
    gender: str
    sex: str
    numbers: Sequence[Number]
    contacts: Sequence[Contact]
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
        gender = resource.get("gender", "")
        links = resource.get("link", ())
        return cls(
            resource=resource,
            reference=f"Patient/{resource['id']}",
            name=name or gettext("no name"),
            birth_name=birth_name if birth_name != family else "",
            given_names=", ".join(official.get("given", ())),
            born=partial_day(resource.get("birthDate", "")),
            died=partial_day(resource.get("deceasedDateTime", "")),
            is_dead=bool(
                resource.get("deceasedBoolean") or resource.get("deceasedDateTime")
            ),
            gender=gender,
            sex=gettext(SEXES[gender]) if gender in SEXES else "",
            numbers=_numbers(resource),
            contacts=[*_contacts(resource)],
            site=_reference(resource.get("managingOrganization")),
            replaced_by=next((_reference(link["other"]) for link in links), ""),
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
        born = gettext("birth date unknown")
        if self.born:
            born = pgettext("man or unknown", "born %(date)s", date=self.born)
        if self.born and self.gender == "female":
            born = pgettext("woman", "born %(date)s", date=self.born)
        letter = SEX_LETTERS.get(self.gender)
        parts = (born, self.age(today), gettext(letter) if letter else "")
        return " · ".join(filter(None, parts))

    @property
    def masked_number(self) -> str:
        """The patient number as lists show it."""
        return next((n.masked for n in self.numbers if n.title != gettext("INS")), "")


@dataclass(frozen=True, slots=True)
class House:
    """A hospital in words; `part_of` is a reference, the identifiers are public."""

    resource: Resource
    reference: str
    name: str
    numbers: Sequence[Number]
    part_of: str
    is_closed: bool
    contacts: Sequence[Contact]

    @classmethod
    def of(cls, resource: Resource) -> "House":
        """Read a hospital as the service returns one."""
        return cls(
            resource=resource,
            reference=f"Organization/{resource['id']}",
            name=resource.get("name") or resource["id"],
            numbers=[
                Number("FINESS", text, text)
                for identifier in resource.get("identifier", ())
                if (text := identifier.get("value", ""))
            ],
            part_of=_reference(resource.get("partOf")),
            is_closed=resource.get("active") is False,
            contacts=[*_contacts(resource)],
        )


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


def _contacts(resource: Resource) -> Iterator[Contact]:
    for telecom in resource.get("telecom", ()):
        system, text = telecom.get("system", ""), telecom.get("value", "")
        any_use = TELECOMS.get((system, ""), _("Telephone"))
        title = TELECOMS.get((system, telecom.get("use", "")), any_use)
        scheme = {"phone": "tel:", "email": "mailto:"}.get(system, "")
        # A number of France reads in pairs.
        pairs = re.fullmatch(r"0\d{9}", text) and " ".join(re.findall("..", text))
        href = f"{scheme}{text}" if scheme and not re.search(r"[\s<>\"]", text) else ""
        yield Contact(gettext(title), (pairs or text,), href)
    for address in resource.get("address", ()):
        title = ADDRESSES.get(address.get("use", ""), _("Address"))
        place = " ".join(filter(None, map(address.get, ("postalCode", "city"))))
        lines = (*address.get("line", ()), place, address.get("country", ""))
        yield Contact(gettext(title), [*filter(None, lines)])
