"""Tables and views of a database: columns, keys, indexes, comments."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property


class Holds(StrEnum):
    """What a column is declared to hold, as far as all databases agree."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    FLAG = "true or false"
    DATE = "date"
    LOCAL_TIME = "time without zone"
    INSTANT = "time with zone"
    CLOCK = "time of day"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table or view.

    `written` is its name as a statement has to write it, `type` its type in the words of
    the database. `length` is None where a text may have any; `choices` are the values of
    an enumeration.
    """

    name: str
    written: str
    type: str
    holds: Holds
    nullable: bool = True
    length: int | None = None
    choices: tuple[str, ...] = ()
    comment: str = ""


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """Columns that hold the key of a row of another table."""

    columns: tuple[str, ...]
    table: str
    referred: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableIndex:
    """An index or unique constraint; what is not a column (an expression) is ""."""

    columns: tuple[str, ...]
    unique: bool


@dataclass(frozen=True)
class Table:
    """A table or view; `name` has its schema in front where that is not the default one."""

    name: str
    written: str
    bare: str
    schema: str | None
    columns: tuple[TableColumn, ...]
    is_view: bool = False
    primary_key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    indexes: tuple[TableIndex, ...] = ()

    @cached_property
    def by_name(self) -> Mapping[str, TableColumn]:
        """The columns by name."""
        return {column.name: column for column in self.columns}

    def is_unique(self, column: str) -> bool:
        """Tell whether the database itself keeps two rows from the same value."""
        keys = [self.primary_key, *(i.columns for i in self.indexes if i.unique)]
        return (column,) in keys


@dataclass(frozen=True)
class Catalogue:
    """The tables of a database in the order of their names.

    `dialect` is the kind of database; `schemas` are all that the account can see.
    """

    dialect: str
    tables: tuple[Table, ...]
    schemas: tuple[str, ...]

    @cached_property
    def by_name(self) -> Mapping[str, Table]:
        """The tables by name."""
        return {table.name: table for table in self.tables}
