"""Kestrel keeps visits in one SQLite file, times as microseconds since 1970."""

import re
import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from adapters.contract import (
    Capabilities,
    Criterion,
    DateCriterion,
    DateValue,
    EncounterRecord,
    GoneError,
    Group,
    NotFoundError,
    Page,
    ParameterCapability,
    Position,
    Prefix,
    Problem,
    Record,
    ReferenceCriterion,
    ResourceCapabilities,
    ResourceType,
    RowFault,
    SearchQuery,
    SortKey,
    SourceDataError,
    SourceUnavailableError,
    TokenCriterion,
)
from adapters.mapping.model import SourceMapping

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
COLUMNS = "visit, person, phase, kind, arrived, departed, number, house, ward, touched"
PHASES = {"P": "planned", "E": "in-progress", "S": "finished", "C": "finished"}
KINDS = {"URG": "EMER", "HC": "IMP", "HP": "IMP", "EXT": "AMB", "SEA": "REC"}
HOUSES = {"H1": "urn:oid:1.2.250.1.999.1.1", "H2": "urn:oid:1.2.250.1.999.1.2"}
SURVIVOR = "SELECT coalesce(merged, person) FROM persons WHERE CAST(person AS TEXT) = ?"

Part = tuple[str, list[object]]
"""A condition of SQL, and its values: they are always bound."""


class KestrelAdapter:
    """A Kestrel file, seen as stays to search and read."""

    def __init__(self, mapping: SourceMapping) -> None:
        file = mapping.source.options.get("file")
        if not file:
            raise SourceDataError("options: {file: …} must name the file of Kestrel")
        self._mapping = mapping
        self._url = f"file:{file}?mode=ro"

    @property
    def capabilities(self) -> Capabilities:
        """Stays by id, patient, date and status, in the order of their start."""
        offered = ("_id", "patient", "date", "status")
        parameters = dict.fromkeys(offered, ParameterCapability())
        stays = ResourceCapabilities(parameters, (SortKey.DATE,), keyset=True)
        return {ResourceType.ENCOUNTER: stays}

    @property
    def fingerprint(self) -> str:
        """Change the number when the order or the meaning of a search changes."""
        return f"{self._mapping.fingerprint}-1"

    def search(self, query: SearchQuery) -> Page:
        """Return a page of visits."""
        sql, values = _statement(query)
        rows = self._rows(sql, [*values, query.count + 1])
        shown = rows[: query.count]
        if query.backwards:
            shown.reverse()
        if not shown:
            return Page(())
        records = tuple(self._record(row) for row in shown)
        return Page(
            records,
            more=len(rows) > query.count,
            first=_position(shown[0]),
            last=_position(shown[-1]),
        )

    def count(self, query: SearchQuery) -> int:
        """Return how many visits match."""
        where, values = _conditions(query)
        ((number,),) = self._rows(f"SELECT count(*) FROM visits WHERE {where}", values)
        return int(number)

    def read(self, resource_type: ResourceType, id: str) -> Record:
        """Return one visit."""
        sql = f"SELECT {COLUMNS} FROM visits WHERE CAST(visit AS TEXT) = ?"
        rows = self._rows(sql, [id]) if id.isprintable() else []
        if not rows or rows[0][2] == "A":
            raise NotFoundError("no such visit")
        if rows[0][2] == "X":
            raise GoneError("that visit was cancelled")
        record = self._record(rows[0])
        if isinstance(record, RowFault):
            raise SourceDataError("a visit cannot be read", record)
        return record

    def explain(self, query: SearchQuery) -> str:
        """Return the statement of a page."""
        return _statement(query)[0]

    def check(self) -> Iterable[Problem]:
        """Report whether the file is there."""
        try:
            self._rows("SELECT 1 FROM visits LIMIT 1", [])
        except SourceUnavailableError as error:
            yield Problem(str(error), outage=True)

    def close(self) -> None:
        """Each call opens the file anew."""

    def _rows(self, sql: str, values: list[object]) -> list[tuple[Any, ...]]:
        seconds = self._mapping.source.timeout_seconds
        try:
            connection = sqlite3.connect(self._url, uri=True, timeout=seconds)
            try:
                return connection.execute(sql, values).fetchall()
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise SourceUnavailableError("Kestrel's file cannot be read") from error

    def _record(self, row: tuple[Any, ...]) -> EncounterRecord | RowFault:
        """Return a visit as a record; a fault names the field, the column and the rule."""
        visit, person, phase, kind, arrived, departed, number, house, ward, touched = (
            row
        )
        if not re.fullmatch(r"[A-Za-z0-9.\-]{1,64}", str(visit)):
            return RowFault("id", "visit", "no id")
        if phase not in PHASES:
            return RowFault("status", "phase", "no entry")
        if person is None:
            return RowFault("patient_id", "person", "missing")
        if house and house not in HOUSES:
            return RowFault("visit_number_system", "house", "no entry")
        if None not in (arrived, departed) and departed < arrived:
            return RowFault("end", "departed", "before the start")
        return EncounterRecord(
            id=str(visit),
            status=PHASES[phase],
            patient_id=str(person),
            visit_number=number or None,
            visit_number_system=HOUSES[house] if house else None,
            class_code=KINDS.get(kind, "UNK"),
            start=self._instant(arrived),
            end=self._instant(departed),
            functional_unit=ward or None,
            organization_id=house or None,
            last_updated=self._instant(touched),
        )

    def _instant(self, micros: int | None) -> datetime | None:
        if micros is None:
            return None
        instant = EPOCH + timedelta(microseconds=micros)
        return instant.astimezone(self._mapping.time_zone)


def _statement(query: SearchQuery) -> Part:
    """Return the SELECT of a page; the number of its rows is still to be bound."""
    where, values = _conditions(query)
    falls = query.sort.descending is not query.backwards
    way, sign = ("DESC", "<") if falls else ("ASC", ">")
    unkeyed = "DESC" if query.backwards else "ASC"
    beyond, marks = "1", list[object]()
    mark = query.before if query.backwards else query.after
    if isinstance(mark, Position) and mark.group is Group.KEYED:
        seam = "0" if query.backwards else "arrived IS NULL"
        beyond = f"{seam} OR arrived {sign} ? OR (arrived = ? AND visit {sign} ?)"
        marks = [mark.key, mark.key, mark.id]
    elif isinstance(mark, Position):
        seam = "arrived IS NOT NULL OR" if query.backwards else "arrived IS NULL AND"
        beyond, marks = f"{seam} visit {sign} ?", [mark.id]
    sql = (
        f"SELECT {COLUMNS} FROM visits WHERE {where} AND ({beyond})"
        f" ORDER BY (arrived IS NULL) {unkeyed}, arrived {way}, visit {way} LIMIT ?"
    )
    return sql, [*values, *marks]


def _position(row: tuple[Any, ...]) -> Position:
    visit, arrived = row[0], row[4]
    return Position(Group.UNKEYED if arrived is None else Group.KEYED, arrived, visit)


def _conditions(query: SearchQuery) -> Part:
    """Return what holds for the visits that match."""
    where, values = "coalesce(phase, '') NOT IN ('A', 'X')", list[object]()
    for criterion in query.criteria:
        parts = _alternatives(criterion)
        where += f" AND ({' OR '.join(sql for sql, _ in parts) or '0'})"
        values += [value for _, bound in parts for value in bound]
    return where, values


def _alternatives(criterion: Criterion) -> list[Part]:
    if isinstance(criterion, DateCriterion):
        return [_date(value) for value in criterion.values]
    if isinstance(criterion, ReferenceCriterion):
        sql, ids = f"person IN ({SURVIVOR})", list(criterion.values)
    else:
        assert isinstance(criterion, TokenCriterion)
        sql, ids = "CAST(visit AS TEXT) = ?", [t.code or "" for t in criterion.values]
        if criterion.parameter == "status":
            sql, ids = "phase = ?", [code for code in PHASES if PHASES[code] in ids]
    return [(sql, [id]) for id in ids if id.isprintable()]


def _date(value: DateValue) -> Part:
    low = (value.low - EPOCH) // timedelta(microseconds=1)
    high = (value.high - EPOCH) // timedelta(microseconds=1)
    match value.prefix:
        case Prefix.EQ:
            return "arrived >= ? AND arrived < ?", [low, high]
        case Prefix.NE:
            return "arrived < ? OR arrived >= ?", [low, high]
        case Prefix.GT:
            return "arrived >= ?", [high]
        case Prefix.GE:
            return "arrived >= ?", [low]
        case Prefix.LT:
            return "arrived < ?", [low]
        case Prefix.LE:
            return "arrived < ?", [high]
