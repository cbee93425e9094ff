"""Write what is served of the samples to `served.json.xz`; print the lines that differ."""

import difflib
import json
import lzma
import tempfile
from pathlib import Path

from adapters.contract import Adapter
from tests.databases import postgresql
from tests.gnuhealth.odd import ODD
from tests.gnuhealth.samples import (
    SERVED,
    Sample,
    postgresql_sample,
    recorded,
    served_rows,
    sqlite_sample,
)


def rows_of(sample: Sample) -> list[str]:
    """Return the lines of a sample."""
    adapter: Adapter = sample.open()
    try:
        return served_rows(adapter)
    finally:
        adapter.close()


def record() -> None:
    """Write the file."""
    lines: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as directory, postgresql() as server:
        url = server.get_uri(driver="psycopg")
        samples = (
            sqlite_sample(Path(directory)),
            postgresql_sample(lambda _locale: url),
        )
        for sample in samples:
            lines[f"{sample.name}, as installed"] = rows_of(sample)
            sample.run(ODD)
            lines[f"{sample.name}, with odd rows"] = rows_of(sample)
    if SERVED.exists():
        for name, before in recorded().items():
            print(
                *difflib.unified_diff(before, lines[name], lineterm="", n=0), sep="\n"
            )
    SERVED.write_bytes(lzma.compress(json.dumps(lines, indent=1).encode()))


if __name__ == "__main__":
    record()
