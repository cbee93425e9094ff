"""An invented hospital system (PAS) of a group of two French hospitals, in any database.

`fill` creates it in an empty database: houses, units, people, and stays with their
movements, among them every case that real hospitals have. The same arguments give the
same rows. `demo.tables` explains the tables.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url

from demo.people import (
    CANARY_PATIENT,
    CHB,
    CHU,
    CLOSED,
    FREQUENT_PATIENT,
    GROUP,
    REFERENCE,
    People,
    Row,
    nothing,
    search_form,
    survivor,
)
from demo.tables import (
    ETABLISSEMENT,
    INDEXES,
    MOUVEMENT,
    SEJOUR,
    TABLES,
    UNITE_FONCTIONNELLE,
    VIEWS,
)

T = TypeVar("T")

LEAST_STAYS = 1_000
"""A smaller hospital would not have every special case."""

BATCH = 20_000
"""How many rows of a table are sent at once."""

MIGRATION = datetime(2021, 3, 14, 2, 0, 0, 120_000)  # noqa: DTZ001 - UTC by its column
"""When an old system was taken over: one instant for many rows."""

STILL_HERE = datetime(2999, 12, 31)  # noqa: DTZ001 - a local time, as the hospital's
"""The end of some stays while the patient is in the hospital."""

SAME_MINUTE_STAYS = 120
"""How many consultations of one morning start in the same minute."""

_UNITS = (
    "Médecine interne", "Chirurgie digestive", "Maternité", "Pédiatrie", "Néonatologie",
    "Réanimation", "Cardiologie", "Gériatrie aiguë", "Hôpital de jour", "Psychiatrie",
    "Consultations externes", "Hémodialyse", "Oncologie", "Neurologie", "ORL",
)  # fmt: skip

_STAYS_OF_FREQUENT, _STAYS_OF_CANARY = 300, 10
_STAY_COUNTS = (
    *(1,) * 16, *(2,) * 14, *(3,) * 13, *(4,) * 12, *(5,) * 10, *(6,) * 8, *(7,) * 6,
    *(8,) * 5, *(10,) * 9, *(12,) * 3, *(15,) * 2, *(20,) * 2, *(0,) * 3,
)  # fmt: skip
"""How many stays other patients have: about five on average."""

_KINDS: tuple[str | None, ...] = (
    *("HC",) * 22, *("HP",) * 5, *("HS",) * 3, *("URG",) * 15, *("EXT",) * 25,
    *("CS",) * 14, *("HDJ",) * 8, *("SEA",) * 4, *("DIA",) * 2, "ZZZ", "", None,
)  # fmt: skip
_HOURS = {"HC": 120, "HP": 60, "HS": 30, "URG": 8, "HDJ": 7, "SEA": 4, "DIA": 4}
"""How long a stay of a kind lasts, about; others last an hour."""

_YEARS = timedelta(days=3650)
_BEGIN = REFERENCE - _YEARS - timedelta(days=2)


class Plan(NamedTuple):
    """State, kind and times of a stay, before it gets a patient, a number and a unit."""

    state: str | None
    kind: str | None
    start: datetime | None
    end: datetime | None = None
    planned: datetime | None = None


def _plan(state: str | None, kind: str, start: str, end: str = "") -> Plan:
    ends = datetime.fromisoformat(end) if end else None
    return Plan(state, kind, datetime.fromisoformat(start), ends)


_CASES: tuple[Plan, ...] = (
    # The hour that happens twice, in two autumns.
    _plan("S", "HC", "2024-10-27T02:30", "2024-10-29T11:00"),
    _plan("S", "URG", "2024-10-27T02:30", "2024-10-27T09:05"),
    _plan("T", "URG", "2024-10-26T22:10", "2024-10-27T02:30"),
    _plan("S", "HC", "2024-10-27T02:00", "2024-10-28T10:00"),
    _plan("S", "URG", "2024-10-27T01:59", "2024-10-27T03:00"),
    _plan("F", "URG", "2023-10-29T02:30", "2023-10-29T07:45"),
    # Around the hour that never happens, in two springs.
    _plan("S", "HC", "2024-03-30T08:15", "2024-03-31T17:00"),
    _plan("S", "URG", "2025-03-30T01:59", "2025-03-30T03:00"),
    _plan("S", "URG", "2025-03-30T03:00", "2025-03-30T06:20"),
    # The edges of days and years.
    _plan("S", "HC", "2024-01-01T00:00", "2024-01-04T10:00"),
    _plan("S", "EXT", "2023-12-31T23:59", "2024-01-01T00:00"),
    _plan("S", "HC", "2024-02-29T00:00", "2024-02-29T23:59"),
    # In the hospital since long ago, without an end and with the end of those still here.
    _plan("E", "HC", "2016-05-02T09:00", "2999-12-31T00:00"),
    _plan("EC", "HC", "2017-09-14T14:30"),
    # States that are in no mapping.
    _plan("Q7", "HC", "2025-05-20T10:00", "2025-05-21T10:00"),
    _plan("Q7", "EXT", "2024-11-05T09:00", "2024-11-05T09:40"),
    _plan("?", "CS", "2022-02-02T15:00", "2022-02-02T15:30"),
    _plan(None, "HC", "2021-07-07T07:07", "2021-07-09T09:00"),
    _plan("", "HC", "2020-08-08T08:08", "2020-08-10T10:00"),
)
_MORNING = _plan("S", "CS", "2024-06-11T08:00", "2024-06-11T08:20")
_SPECIAL = dict(enumerate(_CASES, 101)) | dict.fromkeys(
    range(301, 301 + SAME_MINUTE_STAYS), _MORNING
)
"""The plans of special stays, by the number of the stay."""


def generate(stays: int, seed: int) -> Iterator[Row]:
    """Yield every row with its table. Raises ValueError for fewer than LEAST_STAYS stays."""
    if stays < LEAST_STAYS:
        raise ValueError(f"a demo hospital has at least {LEAST_STAYS} stays")
    yield from houses()
    units = _units(stays)
    for of_house in units.values():
        for unit in of_house:
            yield UNITE_FONCTIONNELLE, unit
    owners, patients = _owners(stays, Random(f"{seed} owners"))
    people = People(f"{seed} people")
    for number in range(1, patients + 1):
        yield from people.rows(number)
    yield from _Stays(Random(f"{seed} stays"), units).rows(owners)


def houses() -> Iterator[Row]:
    """Yield the group and its houses."""
    for etab_id, name, legal, place in (
        (GROUP, "Groupement hospitalier des Trois-Vallées", "990000018", None),
        (CHU, "CHU Hôtel-Dieu", "990000018", "990000117"),
        (CHB, "Centre hospitalier de l’Épine-Blanche", "990000026", "990000216"),
        (CLOSED, "Clinique du Cœur-Volant", "", ""),
    ):
        is_open = etab_id != CLOSED
        house = {
            "etab_id": etab_id,
            "raison_sociale": name,
            "nom_recherche": search_form(name),
            "finess_ej": legal,
            "finess_et": place,
            "telephone": f"04657100{etab_id:02d}" if is_open else None,
            "courriel": f"accueil{etab_id}@example.org" if is_open else "",
            "ligne1": f"{etab_id} place de l’Hôpital",
            "code_postal": "38000",
            "commune": "Grenoble",
            "parent_id": None if etab_id == GROUP else GROUP,
            "ouvert": "O" if is_open else "N",
            "maj_utc": datetime(2020, 1, etab_id, 8, 30),  # noqa: DTZ001 - UTC
        }
        yield ETABLISSEMENT, house


def _units(stays: int) -> Mapping[int, Sequence[dict[str, Any]]]:
    """Return the units of each hospital; the first of each is its emergency unit."""
    count = max(20, stays // 2500)
    return {
        house: [
            {
                "uf_id": first_id + place,
                "etab_id": house,
                "code": _unit_code(house, place) if place else "0123",
                "libelle": _UNITS[place % len(_UNITS)] if place else "Urgences",
            }
            for place in range(count)
        ]
        for house, first_id in ((CHU, 1), (CHB, count + 1))
    }


def _unit_code(house: int, place: int) -> str:
    """Return 0203, 0206 … for one hospital, 0204, 0207 … and A010 for the other."""
    if house == CHB and place % 10 == 0:
        return f"A{place:03d}"
    first = 201 if house == CHB else 200
    return f"{first + 3 * place:04d}"


def _owners(stays: int, rng: Random) -> tuple[list[int], int]:
    """Return the patient of each stay, shuffled, and how many patients there are."""
    special = {FREQUENT_PATIENT: _STAYS_OF_FREQUENT, CANARY_PATIENT: _STAYS_OF_CANARY}
    owners: list[int] = []
    number = 0
    while len(owners) < stays:
        number += 1
        if number in special:
            owners += [number] * special[number]
        elif not survivor(number):
            owners += [number] * rng.choice(_STAY_COUNTS)
    del owners[stays:]
    rng.shuffle(owners)
    return owners, number


class _Stays:
    """Generates stays and their movements, in the order in which they were entered."""

    def __init__(
        self, rng: Random, units: Mapping[int, Sequence[dict[str, Any]]]
    ) -> None:
        self._rng = rng
        self._units = units
        self._visits: Counter[int] = Counter()
        self._movements = 0

    def rows(self, owners: Sequence[int]) -> Iterator[Row]:
        """Yield each stay with its movements; `owners` has the patient of each."""
        step = _YEARS / len(owners)
        for number, patient in enumerate(owners, 1):
            plan = _SPECIAL.get(number)
            if plan is None:
                plan = self._usual_plan(_BEGIN + step * number, patient)
            yield from self._stay(number, patient, plan)

    def _stay(self, number: int, patient: int, plan: Plan) -> Iterator[Row]:
        house = CHU if self._rng.random() < 0.65 else CHB
        unit = self._unit(house, plan.kind)
        stay = {
            "sejour_id": number,
            "etab_id": house,
            "num_venue": self._visit_number(number, house, plan),
            "patient_id": patient,
            "etat": plan.state,
            "type_sejour": plan.kind,
            "date_prevue": plan.planned,
            "date_entree": plan.start,
            "date_sortie": plan.end,
            "uf_courante": unit["code"] if unit else nothing(number),
            "uf_libelle": unit["libelle"] if unit else nothing(number),
            "maj_utc": self._changed(number, plan.start),
        }
        yield SEJOUR, stay
        yield from self._movements_of(number, house, unit, plan)

    def _usual_plan(self, day: datetime, patient: int) -> Plan:
        rng = self._rng
        lot = rng.random()
        if lot < 0.03:
            return self._planned(lot)
        kind = "DIA" if patient == FREQUENT_PATIENT else _one_of(rng, _KINDS)
        start = _on_the_clock(day + timedelta(minutes=int(rng.random() * 1440)))
        minutes = int(_HOURS.get(kind or "", 1) * 60 * (0.2 + 1.6 * rng.random()))
        end = _on_the_clock(start + timedelta(minutes=minutes))
        if lot < 0.08:
            states = ("A", "AN") if lot < 0.07 else ("X", "SUP")
            return Plan(_one_of(rng, states), kind, start, end)
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
        """Return the next number of the house; a planned stay may have none."""
        if plan.planned and plan.start is None:
            return nothing(number)
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

    def _unit(self, house: int, kind: str | None) -> dict[str, Any] | None:
        units = self._units[house]
        if kind == "URG":
            return units[0]
        place = int(self._rng.random() * len(units) * 1.01)
        return units[place] if place < len(units) else None

    def _movements_of(
        self, number: int, house: int, unit: dict[str, Any] | None, plan: Plan
    ) -> Iterator[Row]:
        """Yield one to three movements, the last of them in `unit`."""
        lot = self._rng.random()
        count = 1 if plan.start is None or lot < 0.6 else 2 if lot < 0.88 else 3
        times = _movement_times(plan, count)
        for i in range(count):
            here = unit if i == count - 1 else self._unit(house, None)
            self._movements += 1
            movement = {
                "mouvement_id": self._movements,
                "sejour_id": number,
                "rang": i + 1,
                "nature": "MUT" if i else "ADM",
                "uf_id": here["uf_id"] if here else None,
                "date_debut": times[i],
                "date_fin": times[i + 1],
            }
            yield MOUVEMENT, movement


def _movement_times(plan: Plan, count: int) -> list[datetime | None]:
    start, end = plan.start, plan.end
    if start is None or count == 1:
        return [start, end]
    part = timedelta(minutes=30)
    if end is not None and end != STILL_HERE:
        part = (end - start) // count
    return [start, *(_on_the_clock(start + part * i) for i in range(1, count)), end]


def _on_the_clock(local: datetime) -> datetime:
    """Return a local time to the minute, without the hour that spring leaves out."""
    local = local.replace(second=0, microsecond=0)
    if local.hour == 2 and local.month == 3 and local.day > 24:
        return local + timedelta(hours=local.isoweekday() == 7)
    return local


def _one_of(rng: Random, values: Sequence[T]) -> T:
    """Return one of the values; a third of what Random.choice costs."""
    return values[int(rng.random() * len(values))]


class NotEmptyError(Exception):
    """The database already has tables of the demo hospital; nothing was changed."""


def fill(url: str, stays: int = 2000, seed: int = 1) -> Mapping[str, int]:
    """Create the hospital in an empty database and return the row count of each table.

    All or nothing, except in MySQL and MariaDB. Raises NotEmptyError, and ValueError for
    fewer than LEAST_STAYS stays.
    """
    return load(url, generate(stays, seed))


def load(url: str, rows: Iterable[Row]) -> Mapping[str, int]:
    """Create tables, rows, indexes and views in one transaction. Raises NotEmptyError."""
    engine = connect_to(make_url(url))
    try:
        with engine.begin() as connection:
            existing = set(sa.inspect(connection).get_table_names())
            if taken := sorted(existing & {table.name for table in TABLES}):
                raise NotEmptyError(f"the database already has {', '.join(taken)}")
            for table in TABLES:
                connection.execute(sa.schema.CreateTable(table))
            counts = _insert(connection, rows)
            # After the rows, which is much faster.
            for index in INDEXES:
                index.create(connection)
            for view in VIEWS:
                connection.exec_driver_sql(view)
        _analyze(engine)
    finally:
        engine.dispose()
    return counts


def connect_to(url: URL) -> sa.Engine:
    """Return an engine for a database of the demo."""
    if url.get_backend_name() == "postgresql":
        return sa.create_engine(url.set(drivername="postgresql+psycopg"))
    engine = sa.create_engine(url)
    if engine.dialect.name == "sqlite":
        # Python's driver does not include CREATE TABLE in its transactions:
        # SQLAlchemy's documentation says to begin them ourselves.
        @sa.event.listens_for(engine, "connect")
        def leave_transactions(connection: Any, _: Any) -> None:
            connection.isolation_level = None
            connection.execute("PRAGMA synchronous = OFF")

        @sa.event.listens_for(engine, "begin")
        def begin(connection: sa.Connection) -> None:
            connection.exec_driver_sql("BEGIN")

    return engine


def _insert(connection: sa.Connection, rows: Iterable[Row]) -> Mapping[str, int]:
    insert = _copy if connection.dialect.name == "postgresql" else _execute
    counts: Counter[str] = Counter()
    waiting: defaultdict[sa.Table, list[dict[str, Any]]] = defaultdict(list)
    for table, row in rows:
        waiting[table].append(row)
        counts[table.name] += 1
        if len(waiting[table]) == BATCH:
            insert(connection, table, waiting.pop(table))
    for table, batch in waiting.items():
        insert(connection, table, batch)
    return counts


def _copy(
    connection: sa.Connection, table: sa.Table, rows: list[dict[str, Any]]
) -> None:
    driver: Any = connection.connection.driver_connection
    columns = list(rows[0])
    statement = f"COPY {table.name} ({', '.join(columns)}) FROM STDIN"
    with driver.cursor() as cursor, cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row([row[column] for column in columns])


def _execute(
    connection: sa.Connection, table: sa.Table, rows: list[dict[str, Any]]
) -> None:
    connection.execute(table.insert(), rows)


def _analyze(engine: sa.Engine) -> None:
    """Update the statistics of the database."""
    names = ", ".join(table.name for table in TABLES)
    statements = {
        "postgresql": f"VACUUM (ANALYZE) {names}",
        "sqlite": "ANALYZE",
        "mysql": f"ANALYZE TABLE {names}",
        "mariadb": f"ANALYZE TABLE {names}",
    }
    if statement := statements.get(engine.dialect.name):
        autocommit = engine.execution_options(isolation_level="AUTOCOMMIT")
        with autocommit.begin() as connection:
            connection.exec_driver_sql(statement)
