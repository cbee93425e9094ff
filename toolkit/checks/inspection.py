"""A section of a mapping under inspection: what all checks know of it, whatever its source."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import TypeAlias

from adapters.contract import EncounterRecord, Record, RowFault
from adapters.mapping.model import ItemMapping, ResourceMapping
from adapters.mapping.row_mapper import Row
from adapters.mapping.slots import Place, places_of
from toolkit.findings import Finding, Severity

Findings: TypeAlias = Iterator[Finding]

SampledRows: TypeAlias = Sequence[tuple[Row, Mapping[ItemMapping, Sequence[Row]]]]
"""Rows, each with the rows of the items that have a SELECT or a list of their own."""

Counted: TypeAlias = Iterable[tuple[object, int]]
"""Values, each with its number of rows."""

UNEXAMINED = "types that are not fully examined"


class Inspection(ABC):
    """A section under inspection; subclasses read its rows, from a database or an API."""

    def __init__(self, section: ResourceMapping) -> None:
        self.section = section
        self.kind = section.resource_type
        self.places = places_of(section)
        self.reported: set[tuple[str, str]] = set()
        """Pairs of a column and the beginning of a rule whose faults a check has reported."""
        self.skipped: list[str] = []
        """What is not examined, and why."""

    @property
    @abstractmethod
    def sample(self) -> Sequence[Record | RowFault]:
        """Rows as the service reads them."""

    @abstractmethod
    def cells(self) -> tuple[Sequence[str], SampledRows]:
        """Return the columns of rows, and the cells of some rows."""

    @abstractmethod
    def values(self, place: Place) -> Sequence[object]:
        """Return values of a field as the source has them."""

    @abstractmethod
    def counted_codes(self, place: Place) -> Counted:
        """Return the codes of a field in the rows in which it counts."""

    @abstractmethod
    def counted_days(self, place: Place) -> Counted:
        """Return the values of a time; those of ordinary years may be missing."""

    @property
    def now(self) -> datetime:
        """The current time by the clock of the source, or of this machine."""
        return datetime.now(UTC)

    @cached_property
    def records(self) -> list[Record]:
        """The rows of the sample that can be served."""
        return [row for row in self.sample if not isinstance(row, RowFault)]

    @cached_property
    def stays(self) -> list[EncounterRecord]:
        """The stays of the sample."""
        return [
            record for record in self.records if isinstance(record, EncounterRecord)
        ]

    def name(self, column: str) -> str:
        """Return what a column of the section's own rows is called in the source."""
        return column

    def column(self, place: Place) -> str:
        """Return the columns that a field comes from, as the source names them."""
        return ", ".join(place.field.columns)

    def place(self, slot: str) -> Place:
        """Return the section's own field of a slot."""
        return next(p for p in self.places if p.slot == slot and not p.rows)

    def at(
        self,
        place: Place,
        text: str,
        severity: Severity,
        remedy: str = "",
        topic: str = "",
    ) -> Finding:
        """Return the finding of a field."""
        column = self.column(place)
        return Finding.of_field(place, column, text, severity, remedy, topic)

    def finding(self, text: str, severity: Severity, topic: str = "") -> Finding:
        """Return a finding of the section as a whole."""
        mark = self.section.mark
        return Finding.at(mark, text, str(self.kind), severity=severity, topic=topic)

    def skip(self, subject: str, reason: str) -> None:
        """Note what is not examined; `not_examined` reports all of it at once."""
        self.skipped.append(f"{subject} ({reason})")

    def not_examined(self) -> Findings:
        """Yield the one note about what was not examined."""
        if self.skipped:
            text = f"not examined: {', '.join(dict.fromkeys(self.skipped))}"
            yield self.finding(text, Severity.NOTE, UNEXAMINED)
