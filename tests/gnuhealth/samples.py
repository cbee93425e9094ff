"""The tables of GNU Health 5.0 in SQLite and in PostgreSQL, as two installations left them.

`sample.sqlite.xz` and `sample.sql.xz` are 28 of the tables of an installation each, cut
out whole (`pg_dump` for the latter) and packed by xz. The program itself filled both, with
people who do not exist.

`python -m tests.gnuhealth.samples` writes the rows that are served to `served.json.xz`, and
prints the lines that differ: read them.
"""

import difflib
import json
import lzma
import re
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy.engine import make_url

from adapters import open_adapter
from adapters.contract import Adapter, ResourceType, RowFault
from adapters.mapping.load import load_mapping
from tests.databases import postgresql
from tests.gnuhealth.odd import ODD
from toolkit.contract.harness import ask

HERE = Path(__file__).parent
MAPPING = HERE.parents[1] / "mappings" / "gnuhealth" / "gnuhealth-5.0.yaml"
SERVED = HERE / "served.json.xz"
EVERY = 2000
"""More than there are rows of any kind."""

READER = "gnuhealth_reader"
_GRANTS = f"""
DO $$ BEGIN CREATE ROLE {READER} LOGIN;
EXCEPTION WHEN duplicate_object THEN NULL; END $$;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO {READER};
"""


def unpacked(name: str) -> bytes:
    """Return the content of a file of this directory."""
    return lzma.decompress((HERE / name).read_bytes())


class Sample:
    """A database with the tables: `url` is for the service, which only reads."""

    def __init__(self, place: Path | str) -> None:
        """`place` is a directory for SQLite, or the address of an empty PostgreSQL."""
        self.name = "SQLite" if isinstance(place, Path) else "PostgreSQL"
        if isinstance(place, Path):
            self._file = place / "gh.sqlite"
            self._file.write_bytes(unpacked("sample.sqlite.xz"))
            self.url = f"sqlite:///{self._file}"
            return
        owner = make_url(place).set(drivername="postgresql")
        self._address = owner.render_as_string(hide_password=False)
        reader = owner.set(drivername="postgresql+psycopg", username=READER)
        self.url = reader.render_as_string(hide_password=False)
        with psycopg.connect(self._address, autocommit=True) as connection:
            # Statements, and COPY with its rows up to a line of `\.`.
            dump = unpacked("sample.sql.xz").decode()
            for part in re.split(r"(?m)^(?=COPY )|^\\\.\n", dump):
                if part.startswith("COPY "):
                    command, _, lines = part.partition("\n")
                    with connection.cursor().copy(command.encode()) as copy:
                        copy.write(lines)
                else:
                    connection.execute(part.encode())
            connection.execute(_GRANTS.encode())

    def run(self, script: str) -> None:
        """Execute any number of statements."""
        if self.name == "SQLite":
            with closing(sqlite3.connect(self._file)) as connection:
                connection.executescript(script)
            return
        with psycopg.connect(self._address, autocommit=True) as connection:
            connection.execute(script.encode())

    def open(self, mapping: Path = MAPPING) -> Adapter:
        """Return the adapter of a mapping over this database."""
        return open_adapter(load_mapping(mapping, {"PAS_URL": self.url}))


def served_rows(sample: Sample) -> list[str]:
    """Return each row that is served as a line, without rows that cannot be mapped."""
    with closing(sample.open()) as adapter:
        queries = [ask(of=kind, count=EVERY) for kind in ResourceType]
        rows = [row for query in queries for row in adapter.search(query).rows]
    return sorted(repr(row) for row in rows if not isinstance(row, RowFault))


def record() -> None:
    """Write the file."""
    before, lines = json.loads(unpacked(SERVED.name)), dict[str, Any]()
    with tempfile.TemporaryDirectory() as directory, postgresql() as server:
        for place in (Path(directory), server.get_uri(driver="psycopg")):
            sample = Sample(place)
            lines[f"{sample.name}, as installed"] = served_rows(sample)
            sample.run(ODD)
            lines[f"{sample.name}, with odd rows"] = served_rows(sample)
    for name in before:
        changes = difflib.unified_diff(before[name], lines[name], lineterm="", n=0)
        print(*changes, sep="\n")
    SERVED.write_bytes(lzma.compress(json.dumps(lines, indent=1).encode()))


if __name__ == "__main__":
    record()
