"""What the pages show of patients and hospitals: names, births, numbers, how to reach them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any

from explorer.language import gettext, partial_day, pgettext
from explorer.language import mark as _
from explorer.words import ADDRESSES, SEX_LETTERS, SEXES, TELECOMS

Resource = Mapping[str, Any]

_INS = re.compile(r"urn:oid:1\.2\.250\.1\.213\.1\.4\.\d+")
"""The systems of the national health id of France."""

_HIDDEN = "•"


@dataclass(frozen=True)
class Number:
    """An identifier: its title, its whole text, and what is shown of it until asked."""

    title: str
    text: str
    masked: str
    is_local: bool


@dataclass(frozen=True)
class Contact:
    """A way to reach somebody: `href` is "" where it is no link."""

    title: str
    lines: Sequence[str]
    href: str = ""


@dataclass(frozen=True)
class Person:
    """A patient, as the service returns one."""

    resource: Resource

    @property
    def reference(self) -> str:
        """The reference to the patient."""
        return f"Patient/{self.resource['id']}"

    def _name(self, use: str) -> Resource:
        names = self.resource.get("name", ())
        return next((name for name in names if name.get("use") == use), {})

    @cached_property
    def name(self) -> str:
        """The name used and a given name, as the hospital writes them."""
        official, usual = self._name("official"), self._name("usual")
        family = usual.get("family") or official.get("family", "")
        given = [*usual.get("given", ()), *official.get("given", ())][:1]
        texts = [name.get("text", "") for name in self.resource.get("name", ())]
        name = " ".join(filter(None, (family, *given))) or " ".join(texts[:1])
        return name or gettext("no name")

    @property
    def birth_name(self) -> str:
        """The family name at birth, where it is not the one used."""
        family: str = self._name("official").get("family", "")
        used = self._name("usual").get("family")
        return family if used and used != family else ""

    @property
    def given_names(self) -> str:
        """All given names."""
        return ", ".join(self._name("official").get("given", ()))

    @property
    def born(self) -> str:
        """The birth date, "" where it is unknown."""
        text: str = self.resource.get("birthDate", "")
        return partial_day(text) if text else ""

    @property
    def died(self) -> str:
        """The day of death, "" where it is unknown."""
        text: str = self.resource.get("deceasedDateTime", "")
        return partial_day(text) if text else ""

    @property
    def is_dead(self) -> bool:
        """Whether the patient has died."""
        return bool(self.died or self.resource.get("deceasedBoolean"))

    def age(self, today: date) -> str:
        """Return the age in years; of the dead at their death, "" where it is unknown."""
        born: str = self.resource.get("birthDate", "")
        died: str = self.resource.get("deceasedDateTime", "")
        if len(born) < len("2024-12-31") or (self.is_dead and not died):
            return ""
        birth = date.fromisoformat(born)
        until = date.fromisoformat(died[:10]) if len(died) >= len(born) else today
        before_birthday = (until.month, until.day) < (birth.month, birth.day)
        years = until.year - birth.year - before_birthday
        return gettext("%(years)s years", years=years)

    @property
    def gender(self) -> str:
        """The code of the sex."""
        return str(self.resource.get("gender", ""))

    @property
    def sex(self) -> str:
        """The sex in a word."""
        return gettext(SEXES[self.gender]) if self.gender in SEXES else ""

    @property
    def sex_letter(self) -> str:
        """The sex in a letter, where it is one."""
        letter = SEX_LETTERS.get(self.gender)
        return gettext(letter) if letter else ""

    @property
    def born_on(self) -> str:
        """The birth in words; a name never stands without them."""
        if not self.born:
            return gettext("birth date unknown")
        if self.gender == "female":
            return pgettext("woman", "born %(date)s", date=self.born)
        return pgettext("man or unknown", "born %(date)s", date=self.born)

    def facts(self, today: date) -> str:
        """Return birth, age and sex in a line."""
        parts = (self.born_on, self.age(today), self.sex_letter)
        return " · ".join(filter(None, parts))

    @property
    def numbers(self) -> Sequence[Number]:
        """The numbers of the patient: those of hospitals, then the national one."""
        return sorted(
            map(_number, self.resource.get("identifier", ())),
            key=lambda number: not number.is_local,
        )

    @property
    def masked_number(self) -> str:
        """The patient number as lists show it."""
        return next((n.masked for n in self.numbers if n.is_local), "")

    @property
    def site(self) -> str:
        """The reference to the hospital of the record."""
        return _reference(self.resource.get("managingOrganization"))

    @property
    def replaced_by(self) -> str:
        """The reference to the record into which this one was merged."""
        links = self.resource.get("link", ())
        return next((_reference(link["other"]) for link in links), "")

    @property
    def contacts(self) -> Sequence[Contact]:
        """How to reach the patient."""
        return [*_contacts(self.resource)]


@dataclass(frozen=True)
class House:
    """A hospital, as the service returns one."""

    resource: Resource

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.resource.get("name") or self.resource["id"])

    @property
    def reference(self) -> str:
        """The reference to it."""
        return f"Organization/{self.resource['id']}"

    @property
    def numbers(self) -> Sequence[Number]:
        """Its identifiers, which are public."""
        return [
            Number(_type(identifier) or "FINESS", text, text, is_local=True)
            for identifier in self.resource.get("identifier", ())
            if (text := identifier.get("value", ""))
        ]

    @property
    def part_of(self) -> str:
        """The reference to what it is a part of."""
        return _reference(self.resource.get("partOf"))

    @property
    def is_closed(self) -> bool:
        """Whether it is no longer open."""
        return self.resource.get("active") is False

    @property
    def contacts(self) -> Sequence[Contact]:
        """How to reach it."""
        return [*_contacts(self.resource)]


def _reference(element: Resource | None) -> str:
    return str((element or {}).get("reference", ""))


def _type(identifier: Resource) -> str:
    codings = identifier.get("type", {}).get("coding", [{}])
    return str(codings[0].get("code", ""))


def _number(identifier: Resource) -> Number:
    text = str(identifier.get("value", ""))
    if _INS.fullmatch(identifier.get("system", "")):
        shown = f"{text[:1]} {text[1:3]} {_HIDDEN * 7}"
        return Number(gettext("INS"), text, shown, is_local=False)
    shown = f"{_HIDDEN * 4} {text[-4:]}" if len(text) > 4 else _HIDDEN * 4
    return Number(gettext("IPP"), text, shown, is_local=True)


def _contacts(resource: Resource) -> Iterator[Contact]:
    for telecom in resource.get("telecom", ()):
        system, text = telecom.get("system", ""), telecom.get("value", "")
        title = TELECOMS.get((system, telecom.get("use", ""))) or TELECOMS.get(
            (system, ""), _("Telephone")
        )
        scheme = {"phone": "tel:", "email": "mailto:"}.get(system, "")
        # A number of France reads in pairs.
        pairs = re.fullmatch(r"0\d{9}", text) and " ".join(re.findall("..", text))
        href = f"{scheme}{text}" if scheme and not re.search(r"[\s<>\"]", text) else ""
        yield Contact(gettext(title), (pairs or text,), href)
    for address in resource.get("address", ()):
        title = ADDRESSES.get(address.get("use", ""), _("Address"))
        place = " ".join(filter(None, (address.get("postalCode"), address.get("city"))))
        lines = (*address.get("line", ()), place, address.get("country", ""))
        yield Contact(gettext(title), [*filter(None, lines)])
