"""Patients of the demo hospital: files, identities, numbers, contacts, addresses.

Faker invents the people (`fr_FR`, seeded). What makes a patient special follows from the
patient's number, so that the smallest hospital has every special case. Nobody is real:
telephone numbers are from the ranges that ARCEP reserves for fiction, e-mail addresses
from example.org (RFC 2606), national numbers of the test authority.
"""

import unicodedata
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from itertools import count
from random import Random
from typing import Any, TypeAlias

import sqlalchemy as sa
from faker import Faker

from demo.tables import ADRESSE, IDENTIFIANT_PATIENT, IDENTITE, MOYEN_CONTACT, PATIENT

Row: TypeAlias = tuple[sa.Table, dict[str, Any]]

REFERENCE = datetime(2025, 6, 1, 12)  # noqa: DTZ001 - a local time, as the hospital's
"""The demo's "now": no row depends on the day on which it was made."""

GROUP, CHU, CHB, CLOSED = 1, 2, 3, 4
"""The `etab_id` of the group, of its two hospitals, and of a house that was closed."""

CANARY_PATIENT = 4
"""The patient whose name, telephone and number must never appear in a log."""

FREQUENT_PATIENT = 5
"""The patient with several hundred stays."""

CANARY_FAMILY, CANARY_PHONE, CANARY_INS = "Canarivel", "0199007731", "299129900077736"
CANARIES: tuple[str, ...] = (CANARY_FAMILY, CANARY_PHONE, CANARY_INS)

UNKNOWN_BIRTH = date(1900, 1, 1)
"""What the hospital writes for an unknown birth date."""

COMMON_FAMILY = "Martin"
DIFFICULT_FAMILIES: tuple[str, ...] = (
    "d’Artagnan", "D'Angelo", "L’Hôpital", "O'Connor", "Lebœuf", "Łukasik",
    "Sørensen", "Çelik", "Ünal", "Haÿ", "Ben Saïd", "Nguyễn", "Müller", "Saint-Aubin",
)  # fmt: skip
"""Names whose letters go wrong in searches."""

_POOL = 400
_FIRST_BIRTH = date(1925, 3, 1)
_BIRTH_DAYS = (date(2015, 5, 1) - _FIRST_BIRTH).days
_STATES = ("QUAL",) * 11 + ("VALI",) * 4 + ("RECU",) * 2 + ("PROV",) * 3
_LANDLINES = ("019900", "026191", "035301", "046571", "053649")
_MOBILES = ("063998",)
_LETTERS = str.maketrans(
    {"œ": "oe", "æ": "ae", "ø": "o", "ł": "l", "đ": "d", "ß": "ss"}
    | dict.fromkeys("-‐‑–'’‘", " ")
)


def search_form(text: str) -> str:
    """Return a text as the search columns have it: capitals, no accents, no hyphens."""
    letters = unicodedata.normalize("NFKD", text.lower().translate(_LETTERS))
    bare = "".join(c for c in letters if not unicodedata.combining(c))
    return " ".join(bare.upper().split())


def survivor(number: int) -> int | None:
    """Return the last survivor of a merged file, None for other files.

    Of each hundred, 18 was merged into 17, which was merged into 15: both point to 15.
    """
    return number - number % 100 + 15 if number % 100 in (17, 18) else None


def nothing(number: int) -> str | None:
    """Return an unknown value: '' and NULL are mixed."""
    return ("", None)[number % 2]


def _is_unidentified(number: int) -> bool:
    return number % 150 == 40


class People:
    """Generates the rows of patients, one patient after another."""

    def __init__(self, seed: str) -> None:
        faker = Faker("fr_FR")
        faker.seed_instance(seed)

        def pool(invent: Callable[[], str]) -> list[str]:
            # Faker takes too long to be called for each of a million patients.
            return list(dict.fromkeys(invent() for _ in range(_POOL)))

        self._families = pool(faker.last_name)
        self._families += [*(COMMON_FAMILY,) * 8, *DIFFICULT_FAMILIES * 2]
        self._women = pool(faker.first_name_female)
        self._men = pool(faker.first_name_male)
        self._streets = pool(faker.street_address)
        self._towns = [(faker.postcode(), faker.city()) for _ in range(_POOL)]
        self._rng = Random(seed)
        self._number_ids, self._contact_ids, self._address_ids = (
            count(1) for _ in range(3)
        )
        self._second_numbers = count(1)

    def rows(self, number: int) -> Iterator[Row]:
        """Yield the rows of one patient, the file first."""
        woman = self._rng.random() < 0.52
        identity = self._identity(number, woman)
        yield PATIENT, self._file(number)
        yield IDENTITE, identity
        for domain, value, house in self._numbers(identity, woman):
            yield (
                IDENTIFIANT_PATIENT,
                {
                    "identifiant_id": next(self._number_ids),
                    "patient_id": number,
                    "domaine": domain,
                    "valeur": value,
                    "etab_id": house,
                },
            )
        for kind, value in self._contacts(identity):
            yield (
                MOYEN_CONTACT,
                {
                    "contact_id": next(self._contact_ids),
                    "patient_id": number,
                    "type_contact": kind,
                    "valeur": value,
                },
            )
        if not _is_unidentified(number):
            for kind in ("DOM", "TMP", "ANC") if number % 20 == 3 else ("DOM",):
                yield ADRESSE, self._address(number, kind)

    def _file(self, number: int) -> dict[str, Any]:
        rng, merged = self._rng, survivor(number)
        changed = REFERENCE - timedelta(
            seconds=rng.randrange(300_000_000), microseconds=1
        )
        dead, died = ("N", "N", "", None)[number % 4], None
        if number % 25 in (7, 19):
            dead = "O"
        if number % 25 == 7:
            died = REFERENCE - timedelta(minutes=rng.randrange(60 * 24 * 60))
        return {
            "patient_id": number,
            "etab_id": CHU if rng.random() < 0.65 else CHB,
            "etat_dossier": "F" if merged else "I" if number % 80 == 60 else "A",
            "fusion_vers": merged,
            "decede": dead,
            "date_deces": died.date() if died else None,
            "heure_deces": died.strftime("%H:%M") if died else None,
            "maj_utc": None if number % 200 == 99 else changed,
        }

    def _identity(self, number: int, woman: bool) -> dict[str, Any]:
        rng = self._rng
        family, given = self._family(number), self._given(woman)
        married = woman and rng.random() < 0.4
        usual = rng.random() < 0.06
        names: dict[str, str | None] = {
            "nom_naissance": family.upper() if number % 3 == 0 else family,
            "prenoms": given,
            "nom_utilise": rng.choice(self._families) if married else nothing(number),
            "prenom_utilise": given.split()[-1] if usual else nothing(number + 1),
        }
        title = ("Mme" if woman else "M.") if number % 5 else nothing(number)
        status, sex = self._status(number), self._sex(number, woman)
        born: date | None = _FIRST_BIRTH + timedelta(days=rng.randrange(_BIRTH_DAYS))
        if number % 70 == 11:
            born = UNKNOWN_BIRTH
        if _is_unidentified(number):
            names = dict.fromkeys(names) | {"nom_naissance": f"INCONNU {number}"}
            status, title, sex = "PROV", None, ("I", "", None)[number % 3]
            born = (UNKNOWN_BIRTH, None)[number % 2]
        identity = {"patient_id": number, "statut": status, "civilite": title}
        for name, text in names.items():
            identity[name] = text
            identity[f"{name}_recherche"] = text and search_form(text)
        return identity | {"sexe": sex, "date_naissance": born}

    def _family(self, number: int) -> str:
        if number == CANARY_PATIENT:
            return CANARY_FAMILY
        name = self._rng.choice(self._families)
        if self._rng.random() < 0.08:
            return f"{name}-{self._rng.choice(self._families)}"
        return name

    def _given(self, woman: bool) -> str:
        pool = self._women if woman else self._men
        return " ".join(self._rng.sample(pool, self._rng.choice((1, 1, 2, 2, 3))))

    def _status(self, number: int) -> str | None:
        if number == CANARY_PATIENT:
            return "QUAL"
        if number % 60 == 31:
            return nothing(number)
        return self._rng.choice(_STATES)

    def _sex(self, number: int, woman: bool) -> str | None:
        if number in (63, 163):
            return "Z"  # not in the mapping
        if number % 120 == 50:
            return "A"
        return "F" if woman else ("M", "H")[number % 7 == 0]

    def _numbers(
        self, identity: dict[str, Any], woman: bool
    ) -> Iterator[tuple[str, str | None, int | None]]:
        number = identity["patient_id"]
        yield "IPP-CHU", f"{number:08d}", CHU
        if self._rng.random() < 0.3:
            # The second hospital counts for itself: its numbers are others' in the first.
            yield "IPP-CHB", f"{next(self._second_numbers):08d}", CHB
        if number % 90 == 33:
            yield "IPP-CHB", nothing(number // 90), CHB
        if identity["statut"] != "PROV":
            yield "INS-NIR", _national_number(identity, woman), None

    def _contacts(self, identity: dict[str, Any]) -> Iterator[tuple[str, str | None]]:
        number, rng = identity["patient_id"], self._rng
        if number == CANARY_PATIENT:
            yield "TF", CANARY_PHONE
        if rng.random() < 0.8:
            yield "TP", self._phone(_MOBILES)
        if rng.random() < 0.35:
            yield "TF", self._phone(_LANDLINES)
        if number % 20 == 3:
            yield "TW", self._phone(_LANDLINES)
            yield "FX", self._phone(_LANDLINES)
        if number % 45 == 9:
            yield "TF", nothing(number // 45)
        if rng.random() < 0.25 and identity["prenoms"]:
            name = f"{identity['prenoms'].split()[0]} {identity['nom_naissance']}"
            yield "ML", search_form(name).lower().replace(" ", ".") + "@example.org"

    def _phone(self, prefixes: tuple[str, ...]) -> str:
        return f"{self._rng.choice(prefixes)}{self._rng.randrange(10_000):04d}"

    def _address(self, number: int, kind: str) -> dict[str, Any]:
        postcode, town = self._rng.choice(self._towns)
        return {
            "adresse_id": next(self._address_ids),
            "patient_id": number,
            "type_adresse": kind,
            "ligne1": self._rng.choice(self._streets),
            "ligne2": "Bât. Été, 2ᵉ étage" if number % 9 == 0 else nothing(number),
            "code_postal": postcode,
            "commune": town[:40],
            "pays": ("France", "France", "", None)[number % 4],
        }


def _national_number(identity: dict[str, Any], woman: bool) -> str:
    """Return a number of the national form, with its key, of the test authority."""
    if identity["patient_id"] == CANARY_PATIENT:
        return CANARY_INS
    born = identity["date_naissance"] or UNKNOWN_BIRTH
    number = identity["patient_id"] % 1_000_000
    digits = f"{2 if woman else 1}{born:%y%m}99{number:06d}"
    return f"{digits}{97 - int(digits) % 97:02d}"
