"""Stays and movements of the demo hospital, in the order in which they were entered."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from random import Random
from types import MappingProxyType
from typing import TypeVar

from demo.people import CANARY_PATIENT, FREQUENT_PATIENT, survivor
from demo.plans import STILL_HERE, Plan, special_plans
from demo.rows import Mouvement, Sejour, UniteFonctionnelle
from demo.sites import CHB, CHU, REFERENCE

T = TypeVar("T")

FREQUENT_STAYS = 300
USUAL_STAYS = 10
"""How many stays the most common regular patients have."""

MIGRATION = datetime(2021, 3, 14, 2, 0, 0, 120_000)  # noqa: DTZ001 - UTC by its column
"""When an old system was taken over: one instant for many rows."""

_YEARS = timedelta(days=3650)
_BEGIN = REFERENCE - _YEARS - timedelta(days=2)

_STAY_COUNTS = (
    *(1,) * 16, *(2,) * 14, *(3,) * 13, *(4,) * 12, *(5,) * 10, *(6,) * 8, *(7,) * 6,
    *(8,) * 5, *(10,) * 9, *(12,) * 3, *(15,) * 2, *(20,) * 2, *(0,) * 3,
)  # fmt: skip
"""How many stays patients have: about five on average."""

_KINDS: tuple[str | None, ...] = (
    *("HC",) * 22, *("HP",) * 5, *("HS",) * 3, *("URG",) * 15, *("EXT",) * 25,
    *("CS",) * 14, *("HDJ",) * 8, *("SEA",) * 4, *("DIA",) * 2, "ZZZ", "", None,
)  # fmt: skip

_HOURS: Mapping[str | None, float] = MappingProxyType(
    {"HC": 120, "HP": 60, "HS": 30, "URG": 8, "HDJ": 7, "SEA": 4, "DIA": 4}
)
"""How long a stay of a kind lasts, about; others last an hour."""


def share_out(stays: int, rng: Random) -> tuple[list[int], int]:
    """Return the patient of each stay, shuffled, and how many patients there are."""
    owners: list[int] = []
    number = 0
    while len(owners) < stays:
        number += 1
        owners += [number] * _stay_count(number, rng)
    del owners[stays:]
    rng.shuffle(owners)
    return owners, number


def _stay_count(number: int, rng: Random) -> int:
    if survivor(number):
        return 0
    if number == FREQUENT_PATIENT:
        return FREQUENT_STAYS
    return USUAL_STAYS if number == CANARY_PATIENT else rng.choice(_STAY_COUNTS)


class Stays:
    """The rows of stays and of their movements, one stay after another."""

    def __init__(
        self,
        rng: Random,
        units: Mapping[int, Sequence[UniteFonctionnelle]],
        *,
        spring_gap: bool,
    ) -> None:
        self._rng = rng
        self._units = units
        self._special = special_plans(spring_gap=spring_gap)
        self._visits = dict.fromkeys(units, 0)
        self._movements = 0

    def rows(self, owners: Sequence[int]) -> Iterator[Sejour | Mouvement]:
        """Yield each stay with its movements; `owners` holds the patient of each."""
        step = _YEARS / len(owners)
        for number, patient in enumerate(owners, 1):
            plan = self._special.get(number)
            if plan is None:
                plan = self._plan(_BEGIN + step * number, patient)
            yield from self._stay(number, patient, plan)

    def _stay(
        self, number: int, patient: int, plan: Plan
    ) -> Iterator[Sejour | Mouvement]:
        house = CHU if self._rng.random() < 0.65 else CHB
        unit = self._unit(house, plan.kind)
        yield Sejour(
            sejour_id=number,
            etab_id=house,
            num_venue=self._visit_number(number, house, plan),
            patient_id=patient,
            etat=plan.state,
            type_sejour=plan.kind,
            date_prevue=plan.planned,
            date_entree=plan.start,
            date_sortie=plan.end,
            uf_courante=unit.code if unit else ("", None)[number % 2],
            maj_utc=self._changed(number, plan.start),
        )
        yield from self._moves(number, house, unit, plan)

    # ----------------------------------------------------------------- what it is

    def _plan(self, day: datetime, patient: int) -> Plan:
        rng = self._rng
        lot = rng.random()
        if lot < 0.03:
            return self._planned(lot)
        kind = "DIA" if patient == FREQUENT_PATIENT else _one_of(rng, _KINDS)
        start = _on_the_clock(day + timedelta(minutes=int(rng.random() * 1440)))
        minutes = int(_HOURS.get(kind, 1) * 60 * (0.2 + 1.6 * rng.random()))
        end = _on_the_clock(start + timedelta(minutes=minutes))
        if lot < 0.07:
            return Plan(_one_of(rng, ("A", "AN")), kind, start, end)
        if lot < 0.08:
            return Plan(_one_of(rng, ("X", "SUP")), kind, start, end)
        if end >= REFERENCE or lot < 0.1:
            here = _one_of(rng, (None, None, STILL_HERE))
            return Plan(_one_of(rng, ("E", "E", "EC", "R")), kind, start, here)
        state = _one_of(rng, ("S", "S", "S", "S", "T", "F"))
        return Plan(state, kind, start, end if lot < 0.995 else None)

    def _planned(self, lot: float) -> Plan:
        rng = self._rng
        day = REFERENCE + timedelta(days=int(1 + rng.random() * 120))
        start = day.replace(hour=_one_of(rng, (7, 8, 9, 10, 14)), minute=0)
        state = _one_of(rng, ("P", "PA"))
        kind = _one_of(rng, ("PRE", "PAD", "PRE", "HC"))
        return Plan(state, kind, None if lot < 0.012 else start, None, start)

    def _visit_number(self, number: int, house: int, plan: Plan) -> str | None:
        """Return the next number of the house; what is only planned may have none."""
        if plan.planned and plan.start is None:
            return ("", None)[number % 2]
        self._visits[house] += 1
        return f"{self._visits[house]:09d}"

    def _changed(self, number: int, start: datetime | None) -> datetime | None:
        if number % 500 == 250:
            return None
        lag = timedelta(hours=3, seconds=self._rng.random() * 1_000_000)
        if start is None or start >= REFERENCE:
            return REFERENCE - lag
        if start + lag >= REFERENCE:
            return start + (REFERENCE - start) * self._rng.random()
        if number % 40 == 5 and start < MIGRATION:
            return MIGRATION
        return start + lag

    # ----------------------------------------------------------------- where it is

    def _unit(self, house: int, kind: str | None) -> UniteFonctionnelle | None:
        units = self._units[house]
        if kind == "URG":
            return units[0]
        place = int(self._rng.random() * len(units) * 1.01)
        return units[place] if place < len(units) else None

    def _moves(
        self, number: int, house: int, unit: UniteFonctionnelle | None, plan: Plan
    ) -> Iterator[Mouvement]:
        """Yield one to three movements, the last of them in `unit`."""
        lot = self._rng.random()
        count = 1 if plan.start is None or lot < 0.6 else 2 if lot < 0.88 else 3
        times = _cut(plan, count)
        for i in range(count):
            here = unit if i == count - 1 else self._unit(house, None)
            self._movements += 1
            yield Mouvement(
                mouvement_id=self._movements,
                sejour_id=number,
                rang=i + 1,
                nature="MUT" if i else "ADM",
                uf_id=here.uf_id if here else None,
                date_debut=times[i],
                date_fin=times[i + 1],
            )


def _cut(plan: Plan, count: int) -> list[datetime | None]:
    """Return the bounds of a stay's movements."""
    start, end = plan.start, plan.end
    if start is None or count == 1:
        return [start, end]
    known = end is not None and end != STILL_HERE
    part = (end - start) // count if known and end else timedelta(minutes=30)
    inner = [
        (start + part * i).replace(second=0, microsecond=0) for i in range(1, count)
    ]
    return [start, *map(_on_the_clock, inner), end]


def _on_the_clock(local: datetime) -> datetime:
    """Return a local time to the minute; the hour that spring leaves out is passed over."""
    local = local.replace(second=0, microsecond=0)
    if local.hour == 2 and local.month == 3 and local.day > 24:
        return local + timedelta(hours=local.isoweekday() == 7)
    return local


def _one_of(rng: Random, values: Sequence[T]) -> T:
    """Return one of the values; a third of what Random.choice costs."""
    return values[int(rng.random() * len(values))]
