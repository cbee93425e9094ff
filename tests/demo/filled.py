"""What the tests of the demo hospital ask of a database that holds it."""

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from adapters.contract import Adapter

STAYS = 2000


@dataclass(frozen=True, slots=True)
class Filled:
    """A database that holds the demo hospital, and the adapter that its mapping makes."""

    url: str
    summary: Mapping[str, int]
    engine: sa.Engine
    adapter: Adapter

    def number(self, statement: str) -> int:
        """Return the one number that a statement answers."""
        with self.engine.connect() as connection:
            return int(connection.exec_driver_sql(statement).scalar_one())

    def row(self, statement: str) -> list[str]:
        """Return the first row of what a statement answers, as texts."""
        with self.engine.connect() as connection:
            return [
                str(value)
                for value in connection.exec_driver_sql(statement).first() or ()
            ]

    def first(self, statement: str) -> str:
        """Return the first value of what a statement answers, as text."""
        return self.row(statement)[0]
