"""What is asked: the same stays of every contender, each in its own words."""

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlencode

import psycopg

from bench.cluster import Database
from bench.handwritten import SERVED, UNIT

SAMPLE = 500
"""How many different requests a scenario has."""

LINKED = ("dutiful", "ours", "before")
"""Who has links to the next page; an item of that scenario holds one of each."""

TWO_PAGES = 201
"""A unit's page, the next one, and a row behind it."""

_WHOLE = (
    "etat IN ('P','PA','E','EC','R','S','T','F') AND maj_utc IS NOT NULL"
    " AND num_venue <> '' AND date_entree IS NOT NULL AND uf_courante <> ''"
)
"""Stays with nothing missing or unknown: peers have no answer to the others."""


class Call(NamedTuple):
    """One request; without a form it is a GET."""

    path: str
    form: Sequence[tuple[str, str]] = ()

    @property
    def body(self) -> str:
        """Return the form as it is sent."""
        return urlencode(self.form)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A kind of request; `items` are what its requests are about.

    `only` names those who can answer it, where that is not everybody.
    """

    name: str
    title: str
    items: Sequence[Sequence[str]]
    only: Collection[str] = ()

    def call(self, contender: str, item: Sequence[str]) -> Call:
        """Return the request about one item, as a contender takes it."""
        if contender == "floor":
            return Call(f"/{self.name}", [("_count", "100")] * (self.name != "read"))
        if self.name == "next":
            return Call(item[LINKED.index(contender)])
        root, unit = _WORDS[contender.partition(" ")[0]]
        if self.name == "read":
            return Call(f"{root}/Encounter/{item[0]}")
        path = f"{root}/Encounter/_search"
        if self.name == "patient":
            return Call(path, [("patient", f"Patient/{item[0]}")])
        value = f"{UNIT}|{item[0]}" if unit.startswith("service") else item[0]
        return Call(path, [(unit, value), ("_count", "100")])


_UNIT = "service-provider._extension"
_WORDS: Mapping[str, tuple[str, str]] = {
    "ours": ("/fhir/v3", _UNIT),
    "before": ("/fhir/v3", _UNIT),
    "handwritten": ("/fhir/v3", _UNIT),
    "dutiful": ("/fhir/v3", _UNIT),
    "node": ("/3_0_1", "functional-unit"),
    "hapi": ("/fhir", "functional-unit"),
}
"""Where each has its resources, and what it calls the unit of a stay."""


def scenarios(database: Database) -> list[Scenario]:
    """Return the scenarios of this hospital: stays, patients, units and days drawn once."""
    drawn = random.Random(1)
    with psycopg.connect(database.libpq) as connection:

        def some(statement: str) -> list[tuple[str, ...]]:
            rows = connection.execute(statement.encode()).fetchall()
            drawn.shuffle(rows)
            return [tuple(map(str, row)) for row in rows[:SAMPLE]]

        reads = some(
            f"SELECT sejour_id FROM sejour WHERE sejour_id % 97 = 0 AND {_WHOLE}"
        )
        patients = some(
            f"SELECT patient_id FROM sejour WHERE {SERVED} GROUP BY patient_id"
            f" HAVING count(*) = 10 AND bool_and(coalesce({_WHOLE}, false))"
        )
        units = some(
            "SELECT u.code FROM (SELECT DISTINCT uf_courante AS code FROM sejour) u,"
            f" LATERAL (SELECT bool_and(coalesce({_WHOLE}, false)) AS whole,"
            "  count(*) AS found FROM (SELECT * FROM sejour WHERE uf_courante = u.code"
            f"   AND {SERVED} AND date_entree IS NOT NULL"
            f"   ORDER BY date_entree DESC, sejour_id DESC LIMIT {TWO_PAGES}) s) first"
            f" WHERE first.whole AND first.found = {TWO_PAGES}"
        )
    return [
        Scenario("read", "read by id", reads),
        Scenario("patient", "patient's stays, 10 rows", patients),
        Scenario("page", "page of 100 of a unit, with its total", units),
    ]
