"""What is requested: the same stays of every contender, in the words of each."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import cycle
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

import psycopg
from psycopg.rows import dict_row

from bench.cluster import Database

SAMPLE = 500
"""How many different requests a scenario has."""

LINKED = ("dutiful", "ours", "before")
"""Who has links to the next page; an item of that scenario holds one of each."""

TWO_PAGES = 201
"""A unit's page, the next one, and a row behind it."""

UNIT = "https://example.org/fhir/StructureDefinition/functional-unit"
SERVED = "(etat NOT IN ('A', 'AN', 'X', 'SUP') OR etat IS NULL)"
SYSTEMS = {2: "urn:oid:1.2.250.1.999.1.2", 3: "urn:oid:1.2.250.1.999.1.3"}
STATUSES = {
    **{"P": "planned", "PA": "planned"},
    **{"E": "in-progress", "EC": "in-progress", "R": "in-progress"},
    **{"S": "finished", "T": "finished", "F": "finished"},
}
CLASSES = {
    **{"URG": "EMER", "HC": "IMP", "HP": "IMP", "HS": "IMP", "PRE": "PRENC"},
    **{"PAD": "PRENC", "EXT": "AMB", "CS": "AMB", "HDJ": "AMB"},
    **{"SEA": "REC", "DIA": "REC"},
}
SHAPES: Mapping[str, str] = {
    "patient": "patient={patient}",
    "patient, from a day": "patient={patient}&date=ge{day}",
    "patient, a year": "patient={patient}&date=ge{day}&date=lt{year}",
    "patient, status": "patient={patient}&status={status}",
    "patient, class, oldest first": "patient={patient}&class={class}&_sort=date",
    "patient, page of 100": "patient={patient}&_count=100",
    "day": "date=ge{day}&date=lt{next}",
    "day, oldest first, page of 100": "date=ge{day}&date=lt{next}&_sort=date&_count=100",
    "day, class": "date=ge{day}&date=lt{next}&class={class}",
    "month, status, no total": "date=ge{day}&date=lt{month}&status={status}&_total=none",
    "from a day, no total": "date=ge{day}&_total=none",
    "identifier": "identifier={system}|{number}",
    "number alone": "identifier={number}",
    "status, no total": "status={status}&_total=none",
    "unit": "{unit}",
    "unit, month": "{unit}&date=ge{day}&date=lt{month}",
    "unit, class, status": "{unit}&class={class}&status={status}",
    "list of ids": "_id={ids}",
    "changed in an hour": "_lastUpdated=ge{changed}&_lastUpdated=lt{hour}",
    "changed in a day, last first": (
        "_lastUpdated=ge{changed}&_lastUpdated=lt{tomorrow}&_sort=-_lastUpdated"
    ),
}
"""The searches of the blend, each about a stay that was drawn; all contenders know them."""

SIZES = {"read": 800, "page": 86_000, "next": 86_000}
"""The bytes of a body of ours, which the floor sends; others are those of ten stays."""

NAMES = "family={family}&given={given}"


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
    """A kind of request; `items` are what its requests are about: an id, links or a form.

    `only` names those who can answer it, where that is not everybody. `is_cold`: each request
    is sent once, before everything else.
    """

    name: str
    items: Sequence[Sequence[str]]
    only: Collection[str] = ()
    resource: str = "Encounter"
    is_cold: bool = False

    def call(self, contender: str, item: Sequence[str]) -> Call:
        """Return the request about one item, as a contender takes it."""
        if contender == "floor":
            return Call(f"/{SIZES.get(self.name, 9_000)}")
        if self.name == "next":
            return Call(item[LINKED.index(contender)])
        root, prefix = _WORDS.get(contender, ("/fhir/v3", ""))
        if self.name == "read":
            return Call(f"{root}/{self.resource}/{item[0]}")
        # HAPI reads a point in a name as a chain.
        text = item[0].replace(_UNIT, "unit") if contender in _WORDS else item[0]
        form = [(f"{prefix}{name}", value) for name, value in parse_qsl(text)]
        return Call(f"{root}/{self.resource}/_search", form)


_WORDS = {"node ×2": ("/3_0_1", "asked-"), "hapi": ("/fhir", "")}
"""Where peers have their resources, and what their parameters begin with.

node's library takes a parameter that it knows, such as `date`, once only.
"""

_UNIT = "service-provider._extension"


def scenarios(database: Database) -> list[Scenario]:
    """Return the scenarios of this hospital: what they ask for is drawn once."""
    with psycopg.connect(database.libpq) as connection:
        connection.execute("SELECT setseed(0.1)")
        served = f"FROM sejour WHERE {SERVED}"
        patients = connection.execute(
            f"SELECT patient_id {served} GROUP BY patient_id HAVING count(*) = 10"
            f" ORDER BY random() LIMIT {SAMPLE}".encode()
        ).fetchall()
        units = connection.execute(
            f"SELECT uf_courante {served} AND uf_courante <> '' GROUP BY uf_courante"
            f" HAVING count(date_entree) >= {TWO_PAGES} ORDER BY random()".encode()
        ).fetchall()
        # Planned stays may have no start: whether a page has these differs.
        began = [state for state, code in STATUSES.items() if code != "planned"]
        cursor = connection.cursor(row_factory=dict_row)
        stays = cursor.execute(
            f"SELECT sejour.*, nom_naissance_recherche AS family,"
            f" split_part(prenoms_recherche, ' ', 1) AS given FROM sejour"
            f" JOIN identite USING (patient_id) WHERE etat = ANY(%s)"
            " AND type_sejour = ANY(%s) AND maj_utc IS NOT NULL AND num_venue <> ''"
            " AND date_entree IS NOT NULL AND uf_courante <> ''"
            " AND nom_naissance_recherche <> '' AND prenoms_recherche <> ''"
            f" ORDER BY random() LIMIT {2 * SAMPLE}".encode(),
            [began, list(CLASSES)],
        ).fetchall()
    drawn = [_values(stay) for stay in stays]
    blend = [
        (shape.format_map(values),)
        for shape, values in zip(cycle(SHAPES.values()), drawn, strict=False)
    ]
    names = [(NAMES.format_map(values),) for values in drawn[:SAMPLE]]
    ours = ("floor", "ours", "before")
    return [
        Scenario("blend, cold", blend[:SAMPLE], is_cold=True),
        Scenario("read", [(str(stay["sejour_id"]),) for stay in stays[:SAMPLE]]),
        Scenario("patient", [(f"patient=Patient/{id}",) for (id,) in patients]),
        Scenario("page", [(f"{_of_unit(code)}&_count=100",) for (code,) in units]),
        Scenario("blend", blend[SAMPLE:]),
        Scenario("names", names, only=ours, resource="Patient"),
    ]


def _of_unit(code: str) -> str:
    return f"{_UNIT}={UNIT}|{code}"


def _values(stay: Mapping[str, Any]) -> Mapping[str, object]:
    """Return what the searches about a stay may name."""
    day, changed = stay["date_entree"].date(), stay["maj_utc"].replace(microsecond=0)
    hour, tomorrow = changed + timedelta(hours=1), changed + timedelta(days=1)
    return {
        **{"patient": f"Patient/{stay['patient_id']}", "number": stay["num_venue"]},
        **{"status": STATUSES[stay["etat"]], "class": CLASSES[stay["type_sejour"]]},
        **{"system": SYSTEMS[stay["etab_id"]], "unit": _of_unit(stay["uf_courante"])},
        "ids": ",".join(str(stay["sejour_id"] + 100 * n) for n in range(8)),
        **{"day": day, "next": day + timedelta(1)},
        **{"month": day + timedelta(30), "year": day + timedelta(365)},
        "changed": f"{changed.isoformat()}Z",
        **{"hour": f"{hour.isoformat()}Z", "tomorrow": f"{tomorrow.isoformat()}Z"},
        **{"family": stay["family"], "given": stay["given"]},
    }
