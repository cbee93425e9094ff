"""Stays around now: a hospital whose last stay began years ago has nobody in it.

`make run` replaces them when it starts. All other stays keep their dates, and so do the
patients of the documentation, who have none of these.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import make_url

from demo.hospital import connect_to
from demo.people import CHB, CHU, survivor
from demo.tables import MOUVEMENT, SEJOUR, UNITE_FONCTIONNELLE

LAST_PATIENTS = 90
"""How many patients have these stays: the last ones."""

FIRST_VISIT = 900_000_001


class Wave(NamedTuple):
    """Stays alike: when they begin, in hours from now, and how long they take, in hours."""

    stays: int
    state: str
    kinds: tuple[str, ...]
    begin: tuple[float, float]
    hours: tuple[float, float] | None = None


WAVES = (
    Wave(14, "E", ("HC", "HC", "HC", "HP", "HS"), (-300, -14)),
    Wave(6, "E", ("URG",), (-9, -0.3)),
    Wave(2, "EC", ("HDJ", "DIA"), (-5, -1)),
    Wave(6, "S", ("URG",), (-160, -14), (2, 11)),
    Wave(4, "S", ("HC", "HP"), (-165, -110), (30, 100)),
    Wave(4, "S", ("CS", "EXT", "DIA"), (-150, -4), (0.4, 3.5)),
    Wave(5, "P", ("PRE", "PAD", "HC"), (16, 400)),
)
"""The stays: of each forty or so a half is in the hospital."""


def enliven(url: str, stays: int, now: datetime) -> None:
    """Replace the stays around a time in the hospital's zone, unless they are of this hour.

    `stays` is the number of those that keep their dates: the ids go on from there.
    """
    engine = connect_to(make_url(url))
    latest = sa.select(sa.func.max(SEJOUR.c.maj_utc)).where(SEJOUR.c.sejour_id > stays)
    try:
        with engine.begin() as connection:
            written = connection.scalar(latest)
            utc = now.astimezone(UTC).replace(tzinfo=None)
            if written and utc - timedelta(hours=1) < written <= utc:
                return
            for table in (MOUVEMENT, SEJOUR):
                connection.execute(table.delete().where(table.c.sejour_id > stays))
            for table, row in _rows(connection, stays, now):
                connection.execute(table.insert(), row)
    finally:
        engine.dispose()


def _rows(
    connection: sa.Connection, stays: int, at: datetime
) -> Iterator[tuple[sa.Table, dict[str, Any]]]:
    """Yield each stay with its movement."""
    chance, offset = Random("living"), at.utcoffset() or timedelta(0)
    now = at.replace(second=0, microsecond=0, tzinfo=None)
    last = connection.scalar(sa.text("SELECT max(patient_id) FROM patient")) or 0
    move = connection.scalar(sa.text("SELECT max(mouvement_id) FROM mouvement")) or 0
    patients = [n for n in range(last - LAST_PATIENTS, last + 1) if not survivor(n)]
    chance.shuffle(patients)
    units = [*connection.execute(sa.select(UNITE_FONCTIONNELLE)).mappings()]
    of_house = {
        house: [unit for unit in units if unit["etab_id"] == house]
        for house in (CHU, CHB)
    }
    plans = [wave for wave in WAVES for _ in range(wave.stays)]
    for number, wave in enumerate(plans, 1):
        begin = now + timedelta(hours=chance.uniform(*wave.begin))
        start = begin.replace(minute=begin.minute // 5 * 5, second=0, microsecond=0)
        if wave.state == "P":
            start = start.replace(hour=chance.choice((7, 8, 9, 14)), minute=0)
        end = None
        if wave.hours:
            end = start + timedelta(minutes=int(60 * chance.uniform(*wave.hours)))
        house = CHU if chance.random() < 0.65 else CHB
        kind = chance.choice(wave.kinds)
        # The first unit of each hospital is its emergency unit.
        unit = of_house[house][0]
        if kind != "URG":
            unit = chance.choice(of_house[house][1:15])
        yield (
            SEJOUR,
            {
                "sejour_id": stays + number,
                "etab_id": house,
                "num_venue": f"{FIRST_VISIT + number:09d}",
                "patient_id": patients[number],
                "etat": wave.state,
                "type_sejour": kind,
                "date_prevue": start if wave.state == "P" else None,
                "date_entree": start,
                "date_sortie": end,
                "uf_courante": unit["code"],
                "uf_libelle": unit["libelle"],
                "maj_utc": min(end or start, now) - offset,
            },
        )
        yield (
            MOUVEMENT,
            {
                "mouvement_id": move + number,
                "sejour_id": stays + number,
                "rang": 1,
                "nature": "ADM",
                "uf_id": unit["uf_id"],
                "date_debut": start,
                "date_fin": end,
            },
        )
