"""Resources as the rows of a table: which columns each type has, and as what."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from operator import attrgetter
from typing import Any

from encounters_client.resources import Encounter, Organization, Patient, Resource

TEXT, TIME, DAY = "text", "time", "day"


@dataclass(frozen=True)
class Column:
    """A column: its name, what it holds, and its value of a resource."""

    name: str
    kind: str
    value: Callable[[Any], Any]

    def of(self, resource: Resource) -> Any:
        """Return the value of a resource; a time in UTC, None for an empty text."""
        value = self.value(resource)
        if isinstance(value, datetime):
            return value.astimezone(timezone.utc)
        return None if value == "" else value


def _attribute(name: str, kind: str = TEXT) -> Column:
    return Column(name, kind, value=attrgetter(name))


def _number(resource: Resource) -> str:
    return resource.identifiers[0].value if resource.identifiers else ""


def _number_system(resource: Resource) -> str:
    return resource.identifiers[0].system if resource.identifiers else ""


def _given_names(patient: Patient) -> str:
    return " ".join(patient.given)


_IDENTIFIER = (
    Column("identifier", TEXT, value=_number),
    Column("identifier_system", TEXT, value=_number_system),
)
COLUMNS: Mapping[type[Resource], tuple[Column, ...]] = {
    Encounter: (
        _attribute("id"),
        _attribute("status"),
        _attribute("class_code"),
        _attribute("start", TIME),
        _attribute("end", TIME),
        _attribute("patient_id"),
        _attribute("organization_id"),
        _attribute("functional_unit"),
        _attribute("ward"),
        *_IDENTIFIER,
        _attribute("last_updated", TIME),
    ),
    Patient: (
        _attribute("id"),
        _attribute("family"),
        Column("given", TEXT, value=_given_names),
        _attribute("gender"),
        _attribute("birth_date", DAY),
        _attribute("replaced_by"),
        *_IDENTIFIER,
        _attribute("last_updated", TIME),
    ),
    Organization: (
        _attribute("id"),
        _attribute("name"),
        *_IDENTIFIER,
        _attribute("last_updated", TIME),
    ),
}


def columns_of(
    kind: type[Resource], resources: Iterable[Resource]
) -> dict[str, list[Any]]:
    """Return a list of values for each column."""
    columns: dict[str, list[Any]] = {column.name: [] for column in COLUMNS[kind]}
    for resource in resources:
        for column in COLUMNS[kind]:
            columns[column.name].append(column.of(resource))
    return columns


def arrow_schema(kind: type[Resource]) -> Any:
    """Return the pyarrow.Schema of a type."""
    import pyarrow

    types = {
        TEXT: pyarrow.string(),
        TIME: pyarrow.timestamp("us", tz="UTC"),
        DAY: pyarrow.date32(),
    }
    return pyarrow.schema(
        [(column.name, types[column.kind]) for column in COLUMNS[kind]]
    )


def to_arrow(kind: type[Resource], resources: Iterable[Resource]) -> Any:
    """Return a pyarrow.Table."""
    import pyarrow

    return pyarrow.table(columns_of(kind, resources), schema=arrow_schema(kind))


def to_polars(kind: type[Resource], resources: Iterable[Resource]) -> Any:
    """Return a polars.DataFrame."""
    import polars

    types: dict[str, Any] = {
        TEXT: polars.String(),
        TIME: polars.Datetime("us", "UTC"),
        DAY: polars.Date(),
    }
    schema = {column.name: types[column.kind] for column in COLUMNS[kind]}
    return polars.DataFrame(columns_of(kind, resources), schema=schema)


def to_pandas(kind: type[Resource], resources: Iterable[Resource]) -> Any:
    """Return a pandas.DataFrame; days are texts or datetime.date, as pandas has no days."""
    import pandas

    frame = pandas.DataFrame(columns_of(kind, resources))
    for column in COLUMNS[kind]:
        if column.kind == TIME:
            frame[column.name] = pandas.to_datetime(frame[column.name], utc=True)
    return frame
