"""A service on a hospital that changes while pages are walked."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cryptography.fernet import Fernet

from tests.hospital_sql import Tables
from tests.redis_server import RedisServer
from tests.serving import Served, serve
from toolkit.contract.hospital import Hospital, StayRow

SEAL_KEYS = tuple(Fernet.generate_key().decode() for _ in range(2))
"""A key to seal pages with, and the one that follows it."""

DATED = 25
"""Stays 1 to 25 start hour by hour, 26 to 30 never; odd ones know their last change."""


def stay(id: int, began: str | None = None, **changed: str | int) -> StayRow:
    """Return a stay: those up to `DATED` start an hour apart, others at `began` or never."""
    if began is None and id <= DATED:
        began = f"2024-05-{2 + id // 24:02} {id % 24:02}:00:00"
    known = f"2024-06-01 {id % 24:02}:30:00" if id % 2 and id <= DATED else None
    return StayRow(id, began=began, changed=known)._replace(**changed)


STAYS = tuple(stay(id) for id in range(1, DATED + 6))
NEWEST_FIRST = [*range(DATED, 0, -1), *range(DATED + 5, DATED, -1)]
"""Their ids in the default order."""


@dataclass(frozen=True, slots=True)
class Changing:
    """A service, and the tables behind it."""

    served: Served
    tables: Tables

    def put(self, id: int, began: str | None = None, **changed: str | int) -> None:
        """Insert a stay or change one."""
        self.tables.put_stay(stay(id, began, **changed))

    def delete(self, *ids: int) -> None:
        """Delete stays."""
        for id in ids:
            self.tables.delete_stay(id)


@contextmanager
def changing(
    directory: Path, redis: RedisServer, profile: str = "full", **settings: str
) -> Iterator[Changing]:
    """Serve `STAYS` for as long as the test wants to change them."""
    hospital = Hospital(STAYS)
    served = serve(hospital, directory, redis.url, profile=profile, **settings)
    tables = Tables(f"sqlite:///{directory / 'pas.db'}", hospital)
    yield Changing(served, tables)
    tables.close()
