"""Patients of the demo hospital: files, identities, numbers, telephones, addresses.

What makes a patient special follows from the patient's number, so that every special
case is there in the smallest hospital and grows with it.
"""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from random import Random

from demo.names import (
    FAMILIES,
    GIVEN_F,
    GIVEN_M,
    LANDLINES,
    MOBILES,
    STREETS,
    TOWNS,
    search_form,
)
from demo.rows import Adresse, IdentifiantPatient, Identite, MoyenContact, Patient, Row
from demo.sites import CHB, CHU, REFERENCE

CANARY_PATIENT = 4
"""The patient whose name, telephone and number must never leave by a side door."""

FREQUENT_PATIENT = 5
"""The patient with several hundred stays."""

CANARY_FAMILY = "Canarivel"
CANARY_PHONE = "0199007731"
CANARY_INS = "299129900077736"
CANARIES: tuple[str, ...] = (CANARY_FAMILY, CANARY_PHONE, CANARY_INS)
"""Values of one patient that can be looked for in logs, errors and stores."""

UNKNOWN_BIRTH = date(1900, 1, 1)
"""What the hospital writes for a birth date that nobody knows."""

_FIRST_BIRTH = date(1925, 3, 1)
_BIRTH_DAYS = (date(2015, 5, 1) - _FIRST_BIRTH).days
_STATES = ("QUAL",) * 11 + ("VALI",) * 4 + ("RECU",) * 2 + ("PROV",) * 3


def survivor(number: int) -> int | None:
    """Return the last survivor of a file that was merged away, None for the others.

    Of each hundred, 18 was merged into 17, which was merged into 15: both point to 15.
    """
    return number - number % 100 + 15 if number % 100 in (17, 18) else None


def is_unidentified(number: int) -> bool:
    """Tell whether nobody knows who the patient is."""
    return number % 150 == 40


class People:
    """The rows of patients, one patient after another."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._second_numbers = 0
        self._identifiers = 0
        self._contacts = 0
        self._addresses = 0

    def rows(self, number: int) -> Iterator[Row]:
        """Yield the rows of one patient."""
        woman = self._rng.random() < 0.52
        identity = self._identity(number, woman)
        yield self._file(number)
        yield identity
        yield from self._numbers(identity, woman)
        yield from self._ways_to_reach(identity)
        yield from self._homes(number)

    def _file(self, number: int) -> Patient:
        rng, merged = self._rng, survivor(number)
        dead, died = self._death(number)
        changed = REFERENCE - timedelta(
            seconds=rng.randrange(300_000_000), microseconds=1
        )
        return Patient(
            patient_id=number,
            etab_id=CHU if rng.random() < 0.65 else CHB,
            etat_dossier="F" if merged else "I" if number % 80 == 60 else "A",
            fusion_vers=merged,
            decede=dead,
            date_deces=died.date() if died else None,
            heure_deces=died.strftime("%H:%M") if died else None,
            maj_utc=None if number % 200 == 99 else changed,
        )

    def _death(self, number: int) -> tuple[str | None, datetime | None]:
        if number % 25 == 7:
            minutes = self._rng.randrange(60 * 24 * 60)
            return "O", REFERENCE - timedelta(minutes=minutes)
        if number % 25 == 19:
            return "O", None
        return ("N", "N", "", None)[number % 4], None

    # --------------------------------------------------------------------- identity

    def _identity(self, number: int, woman: bool) -> Identite:
        if is_unidentified(number):
            return self._nobody(number)
        rng = self._rng
        family, given = self._family(number), self._given(woman)
        used = (
            rng.choice(FAMILIES) if woman and rng.random() < 0.4 else _nothing(number)
        )
        called = given.split()[-1] if rng.random() < 0.06 else _nothing(number + 1)
        if number % 3 == 0:
            family = family.upper()
        return Identite(
            patient_id=number,
            statut=self._state(number),
            civilite=("Mme" if woman else "M.") if number % 5 else _nothing(number),
            nom_naissance=family,
            nom_naissance_recherche=search_form(family),
            prenoms=given,
            prenoms_recherche=search_form(given),
            nom_utilise=used,
            nom_utilise_recherche=used and search_form(used),
            prenom_utilise=called,
            prenom_utilise_recherche=called and search_form(called),
            sexe=self._sex(number, woman),
            date_naissance=self._birth(number),
        )

    def _nobody(self, number: int) -> Identite:
        name = f"INCONNU {number}"
        sex = ("I", "", None)[number % 3]
        born = (UNKNOWN_BIRTH, None)[number % 2]
        empty = (None,) * 6
        return Identite(number, "PROV", None, name, name, *empty, sex, born)

    def _family(self, number: int) -> str:
        if number == CANARY_PATIENT:
            return CANARY_FAMILY
        name = self._rng.choice(FAMILIES)
        if self._rng.random() < 0.08:
            return f"{name}-{self._rng.choice(FAMILIES)}"
        return name

    def _given(self, woman: bool) -> str:
        pool = GIVEN_F if woman else GIVEN_M
        return " ".join(self._rng.sample(pool, self._rng.choice((1, 1, 2, 2, 3))))

    def _state(self, number: int) -> str | None:
        if number == CANARY_PATIENT:
            return "QUAL"
        return (
            ("", None)[number % 2] if number % 60 == 31 else self._rng.choice(_STATES)
        )

    def _sex(self, number: int, woman: bool) -> str | None:
        if number in (63, 163):
            return "Z"  # nobody mapped it
        if number % 120 == 50:
            return "A"
        return "F" if woman else ("M", "H")[number % 7 == 0]

    def _birth(self, number: int) -> date:
        if number % 70 == 11:
            return UNKNOWN_BIRTH
        return _FIRST_BIRTH + timedelta(days=self._rng.randrange(_BIRTH_DAYS))

    # ---------------------------------------------------------------------- numbers

    def _numbers(self, identity: Identite, woman: bool) -> Iterator[IdentifiantPatient]:
        number = identity.patient_id
        yield self._numbered(number, "IPP-CHU", f"{number:08d}", CHU)
        if self._rng.random() < 0.3:
            # The second hospital counts for itself: its numbers are others' in the first.
            self._second_numbers += 1
            yield self._numbered(number, "IPP-CHB", f"{self._second_numbers:08d}", CHB)
        if number % 90 == 33:
            yield self._numbered(number, "IPP-CHB", _nothing(number // 90), CHB)
        if not is_unidentified(number) and identity.statut != "PROV":
            yield self._numbered(number, "INS-NIR", _ins(identity, woman), None)

    def _numbered(
        self, number: int, domain: str, value: str | None, etab_id: int | None
    ) -> IdentifiantPatient:
        self._identifiers += 1
        return IdentifiantPatient(self._identifiers, number, domain, value, etab_id)

    # ------------------------------------------------------------------- to reach them

    def _ways_to_reach(self, identity: Identite) -> Iterator[MoyenContact]:
        number, rng = identity.patient_id, self._rng
        if number == CANARY_PATIENT:
            yield self._contact(number, "TF", CANARY_PHONE)
        if rng.random() < 0.8:
            yield self._contact(number, "TP", f"{MOBILES}{rng.randrange(10_000):04d}")
        if rng.random() < 0.35:
            yield self._contact(number, "TF", self._landline())
        if number % 20 == 3:
            yield self._contact(number, "TW", self._landline())
            yield self._contact(number, "FX", self._landline())
        if number % 45 == 9:
            yield self._contact(number, "TF", _nothing(number // 45))
        if rng.random() < 0.25 and not is_unidentified(number):
            yield self._contact(number, "ML", _mail(identity))

    def _landline(self) -> str:
        return f"{self._rng.choice(LANDLINES)}{self._rng.randrange(10_000):04d}"

    def _contact(self, number: int, kind: str, value: str | None) -> MoyenContact:
        self._contacts += 1
        return MoyenContact(self._contacts, number, kind, value)

    def _homes(self, number: int) -> Iterator[Adresse]:
        if is_unidentified(number):
            return
        yield self._address(number, "DOM")
        if number % 20 == 3:
            yield self._address(number, "TMP")
            yield self._address(number, "ANC")

    def _address(self, number: int, kind: str) -> Adresse:
        self._addresses += 1
        code, town = self._rng.choice(TOWNS)
        street = f"{self._rng.randrange(1, 200)} {self._rng.choice(STREETS)}"
        second = "Bât. Été, 2ᵉ étage" if number % 9 == 0 else _nothing(number)
        country = ("France", "France", "", None)[number % 4]
        return Adresse(
            self._addresses, number, kind, street, second, code, town, country
        )


def _nothing(number: int) -> str | None:
    """Return what stands where nothing is known: '' and NULL are mixed."""
    return ("", None)[number % 2]


def _ins(identity: Identite, woman: bool) -> str:
    """Return a number of the national form, with its key, for the test authority."""
    if identity.patient_id == CANARY_PATIENT:
        return CANARY_INS
    born = identity.date_naissance or UNKNOWN_BIRTH
    digits = f"{2 if woman else 1}{born:%y%m}99{identity.patient_id % 1_000_000:06d}"
    return f"{digits}{97 - int(digits) % 97:02d}"


def _mail(identity: Identite) -> str:
    name = f"{(identity.prenoms or 'x').split()[0]} {identity.nom_naissance}"
    return f"{search_form(name).lower().replace(' ', '.')}@example.org"
