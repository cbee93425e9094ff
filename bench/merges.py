"""GNU Health with 200,000 stays and merged patients: what a search by patient costs.

    python -m bench.merges sqlite|postgresql|mariadb [--mapping FILE] [--suggested]

It fills a database of its own with copies of the sample's rows: 40,000 patients, of whom each
tenth was merged into the one before, in chains of up to four. `--suggested` creates first what
`mapping check --live` suggests. It prints the median of 40 searches, by merged patients, by the
survivors of chains and by patients without a merge; then what else issue reports ask for.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from adapters.contract import Adapter, SearchQuery
from adapters.mapping.load import load_mapping
from adapters.mapping.model import SourceMapping
from tests.databases import LOCALES, NewDatabase, postgresql
from tests.gnuhealth.samples import (
    MAPPING,
    Sample,
    mariadb_sample,
    postgresql_sample,
    sqlite_sample,
)
from tests.mariadb_server import started_mariadb
from toolkit.checks.runner import open_sources, timed
from toolkit.contract.harness import ask, ids_of, patient
from toolkit.findings import findings_in

PATIENTS, STAYS, SEARCHES = 40_000, 200_000, 40
FIRST = 100_001
"""The first of the ids that are added."""

SHARES = {
    "gnuhealth_inpatient_registration": 100_000,
    "gnuhealth_appointment": 60_000,
    "gnuhealth_patient_evaluation": 40_000,
}
"""How many stays each table gets."""

OWN = {
    "gnuhealth_inpatient_registration": {
        "state": "'finished'",
        "admission_type": "'routine'",
    },
    "gnuhealth_appointment": {
        "state": "'confirmed'",
        "inpatient_registration_code": "NULL",
    },
    "gnuhealth_patient_evaluation": {
        "state": "'signed'",
        "inpatient_registration_code": "NULL",
        "appointment": "NULL",
    },
}
TIMES = {
    "hospitalization_date",
    "discharge_date",
    "appointment_date",
    "evaluation_start",
    "evaluation_endtime",
}


def merged_into(number: int) -> int | None:
    """Return the patient that a patient was merged into: chains of up to four in each ten."""
    return number - 1 if number % 10 in (7, 8, 9) else None


def fill(sample: Sample) -> None:
    """Add patients, merges and stays."""
    numbers = "numbers"
    digits = " UNION ALL ".join(f"SELECT {digit} AS d" for digit in range(10))
    tens = [f"(SELECT d * {10**n} AS d FROM ({digits}) x{n}) t{n}" for n in range(5)]
    total = " + ".join(f"t{n}.d" for n in range(5))
    sample.run(f"CREATE TABLE {numbers} (n INTEGER PRIMARY KEY);")
    sample.run(f"INSERT INTO {numbers} SELECT {total} FROM {', '.join(tens)};")
    limit = f"FROM {numbers} WHERE n < {PATIENTS}"
    code = "CONCAT('N', n)" if sample.name == "MariaDB" else "'N' || n"
    sample.run(
        "INSERT INTO party_party (id, code, name, lastname, replaced_by, active)"
        f" SELECT {FIRST} + n, {code}, 'Anne', 'Petit',"
        f" CASE WHEN n % 10 IN (7, 8, 9) THEN {FIRST} + n - 1 END, TRUE {limit};"
    )
    sample.run(
        "INSERT INTO gnuhealth_patient (id, party, active)"
        f" SELECT {FIRST} + n, {FIRST} + n, TRUE {limit};"
    )
    for table, share in SHARES.items():
        sample.run(_copies(sample, table, share))
    if sample.name == "MariaDB":
        sample.run("".join(f"ANALYZE TABLE {t};\n" for t in (*SHARES, "party_party")))
    else:
        sample.run("ANALYZE;")


def _copies(sample: Sample, table: str, share: int) -> str:
    """Return the statement that adds stays, each a minute after the one before."""
    later = {
        "SQLite": "datetime('2015-01-01', '+' || n || ' minutes')",
        "PostgreSQL": "TIMESTAMP '2015-01-01' + n * INTERVAL '1 minute'",
        "MariaDB": "TIMESTAMPADD(MINUTE, n, '2015-01-01')",
    }[sample.name]
    patient_of = f"{FIRST} + (n * 7919) % {PATIENTS}"
    columns = {"id": f"{FIRST} + n", "patient": patient_of, **OWN[table]}
    columns |= {"create_date": later, "institution": "1"}
    kinds = {
        "gnuhealth_inpatient_registration": ("hospitalization_date", "discharge_date"),
        "gnuhealth_appointment": ("appointment_date",),
        "gnuhealth_patient_evaluation": ("evaluation_start", "evaluation_endtime"),
    }[table]
    columns |= dict.fromkeys(kinds, later)
    if table == "gnuhealth_patient_evaluation":
        columns["discharge_reason"] = "'home'"
    names, values = ", ".join(columns), ", ".join(columns.values())
    return (
        f"INSERT INTO {table} ({names}) SELECT {values} FROM numbers WHERE n < {share};"
    )


@contextmanager
def opened(database: str) -> Iterator[Sample]:
    """Yield an empty sample of a database."""
    with tempfile.TemporaryDirectory() as directory:
        if database == "sqlite":
            yield sqlite_sample(Path(directory))
        elif database == "mariadb":
            with started_mariadb() as server:
                yield mariadb_sample(server.new_database(), Path(directory))
        else:
            with new_postgresql() as new:
                yield postgresql_sample(new)


@contextmanager
def new_postgresql() -> Iterator[NewDatabase]:
    """Yield what makes databases on a server of its own."""
    import psycopg

    numbers = count(1)
    with postgresql() as server:

        def make(locale: str) -> str:
            name = f"large_{next(numbers)}"
            command = f"CREATE DATABASE {name} TEMPLATE template0 {LOCALES[locale]}"
            with psycopg.connect(server.get_uri(), autocommit=True) as connection:
                connection.execute(command.encode())
            return server.get_uri(name, "psycopg")

        yield make


def suggested(mapping: SourceMapping) -> list[str]:
    """Return the indexes that the check suggests."""
    with open_sources(mapping) as sources:
        checks = [check for source in sources for check in source.checks()]
        results = [result for check in checks for result in check.run()]
    return sorted({one.remedy for one in findings_in(results) if one.is_index})


def measured(adapter: Adapter, queries: list[SearchQuery]) -> float:
    """Return the median milliseconds of searches."""
    for query in queries[:3]:
        adapter.search(query)
    return statistics.median(timed(lambda q=q: adapter.search(q))[1] for q in queries)


def main() -> int:
    """Fill a database and print what searches cost."""
    parser = argparse.ArgumentParser()
    parser.add_argument("database", choices=["sqlite", "postgresql", "mariadb"])
    parser.add_argument("--mapping", type=Path, default=MAPPING)
    parser.add_argument("--suggested", action="store_true")
    options = parser.parse_args()
    with opened(options.database) as sample:
        fill(sample)
        adapter = sample.open(options.mapping)
        if options.suggested:
            for statement in suggested(
                load_mapping(options.mapping, {"PAS_URL": sample.url})
            ):
                print(statement)
                sample.run(f"{statement}\n")
        for name, last in (("merged", 9), ("survivor", 6), ("not merged", 3)):
            ids = [str(FIRST + 10 * n + last) for n in range(SEARCHES)]
            queries = [ask(patient(id), count=20) for id in ids]
            rows = len(ids_of(adapter.search(queries[0])))
            milliseconds = measured(adapter, queries)
            print(f"patient= {name}: {rows} stays, {milliseconds:.1f} ms")
        adapter.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
