"""Public hospital schemas filled with invented rows, and answer keys for `mapping new`.

`openemr.sql` and `openmrs.sql` have the names, types and keys that these systems publish.
`keys.yaml` says by hand which column belongs into which slot; `score` compares a draft with
it, and `python -m tests.toolkit.hospitals` prints the score of each.
"""

import lzma
import re
from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import sqlalchemy as sa
import yaml

import demo.hospital
from tests.databases import writing

HERE = Path(__file__).parent
SAMPLE = HERE.parents[1] / "gnuhealth" / "sample.sqlite.xz"
KEYS: dict[str, Any] = yaml.safe_load((HERE / "keys.yaml").read_text("utf-8"))

PATIENTS, STAYS = 120, 400
_BEGIN = datetime(2024, 1, 1)  # noqa: DTZ001 - local times, as the hospital's

Rows = list[dict[str, object]]


def fill(name: str, url: str) -> None:
    """Make the tables of a schema in an empty database, and fill them: always the same."""
    if name == "gnuhealth":
        file = Path(url.removeprefix("sqlite:///"))
        file.write_bytes(lzma.decompress(SAMPLE.read_bytes()))
        return
    if name == "demo":
        demo.hospital.fill(url, 1000)
        return
    engine = writing(url)
    rows_by_table = {"openemr": _openemr, "openmrs": _openmrs}[name](Random(1))
    with engine.begin() as connection:
        for statement in (HERE / f"{name}.sql").read_text("utf-8").split(";\n"):
            if url.startswith("postgresql"):
                statement = statement.replace(" datetime", " timestamp")
                statement = statement.replace(" double", " double precision")
            if "CREATE" in statement:
                connection.execute(sa.text(statement))
        for table, rows in rows_by_table.items():
            columns = [sa.column(column) for column in rows[0]]
            values = _texts_of_times(rows) if url.startswith("sqlite") else rows
            connection.execute(sa.insert(sa.table(table, *columns)), values)
    engine.dispose()


def _texts_of_times(rows: Rows) -> Rows:
    """Return rows for SQLite, which has no times: Python 3.12 writes none by itself."""
    return [
        {name: str(v) if isinstance(v, date) else v for name, v in row.items()}
        for row in rows
    ]


def _openemr(chance: Random) -> dict[str, Rows]:
    patients: Rows = [
        {
            **{"id": n, "pid": n + 1000, "pubpid": f"P{n:05}", "fname": f"Given{n}"},
            **{"lname": f"Family{n}", "DOB": _BEGIN.date(), "status": "married"},
            **{"sex": chance.choice(["Male", "Female", "UNK"]), "last_updated": _BEGIN},
            **{"street": f"{n} Main Street", "city": f"City{n}", "postal_code": str(n)},
            **{
                "phone_home": f"01{n:06}",
                "phone_cell": f"06{n:06}",
                "email": f"p{n}@x.org",
            },
        }
        for n in range(1, PATIENTS + 1)
    ]
    stays: Rows = []
    for n in range(1, STAYS + 1):
        start = _BEGIN + timedelta(hours=chance.randrange(8000))
        stays.append(
            {
                **{"id": n, "encounter": 70000 + n, "date": start, "onset_date": None},
                **{"pid": 1000 + chance.randint(1, PATIENTS), "facility_id": 3},
                **{"facility": "North Clinic", "last_stmt_date": None, "pc_catid": 5},
                **{"class_code": chance.choice(["AMB", "AMB", "IMP", "EMER"])},
                **{"encounter_type_code": chance.choice(["185345009", "185349003"])},
                **{"date_end": None if n % 9 else start + timedelta(hours=5)},
                **{"last_update": start, "provider_id": chance.randint(1, 4)},
            }
        )
    facility = {
        "id": 3,
        "name": "North Clinic",
        "phone": "01",
        "city": "X",
        "inactive": 0,
    }
    return {"facility": [facility], "patient_data": patients, "form_encounter": stays}


def _openmrs(chance: Random) -> dict[str, Rows]:
    numbers = range(1, PATIENTS + 1)
    audit: dict[str, object] = {
        "creator": 1,
        "date_created": _BEGIN,
        "date_changed": None,
    }
    valid = {**audit, "voided": False, "voided_by": None}
    visits: Rows = []
    for n in range(1, STAYS + 1):
        start = _BEGIN + timedelta(hours=chance.randrange(8000))
        visits.append(
            {
                **{"visit_id": n, "patient_id": chance.choice(numbers), **valid},
                **{"visit_type_id": chance.randint(1, 3), "date_started": start},
                **{"date_stopped": start + timedelta(hours=9) if n % 7 else None},
                **{"location_id": chance.randint(2, 5), "uuid": f"v{n}"},
                "voided": n % 50 == 0,
            }
        )
    places = ["Hospital", "Ward A", "Ward B", "Clinic", "Emergency"]
    types = ["Facility Visit", "Inpatient", "Home Visit"]
    return {
        "users": [{"user_id": 1, "username": "admin", "uuid": "u1"}],
        "location": [
            {"location_id": n, "name": place, "uuid": f"l{n}", **audit}
            for n, place in enumerate(places, 1)
        ],
        "person": [
            {
                **{
                    "person_id": n,
                    "gender": chance.choice("MF"),
                    "birthdate": _BEGIN.date(),
                },
                **{"dead": n % 20 == 0, "uuid": f"p{n}", **valid},
            }
            for n in numbers
        ],
        "patient": [{"patient_id": n, **valid} for n in numbers],
        "person_name": [
            {
                **{
                    "person_name_id": n,
                    "person_id": n,
                    "given_name": f"Given{n}",
                    **valid,
                },
                **{"family_name": f"Family{n}", "uuid": f"n{n}", "preferred": True},
            }
            for n in numbers
        ],
        "person_address": [
            {
                **{
                    "person_address_id": n,
                    "person_id": n,
                    "address1": f"{n} Road",
                    **valid,
                },
                **{"city_village": "X", "postal_code": "1", "uuid": f"a{n}"},
            }
            for n in numbers
        ],
        "patient_identifier_type": [
            {
                "patient_identifier_type_id": 1,
                "name": "OpenMRS ID",
                "uuid": "t1",
                **audit,
            }
        ],
        "patient_identifier": [
            {
                **{
                    "patient_identifier_id": n,
                    "patient_id": n,
                    "identifier": f"100{n}",
                },
                **{"identifier_type": 1, "uuid": f"i{n}", **valid},
            }
            for n in numbers
        ],
        "visit_type": [
            {"visit_type_id": n, "name": name, "uuid": f"vt{n}", **audit}
            for n, name in enumerate(types, 1)
        ],
        "visit": visits,
    }


class Score(NamedTuple):
    """How the slots of a draft compare with a key.

    A slot is right with one of the columns of the key, marked if its line has a question, and open
    without a line of its own. `wrong` are the others: nothing says that they need an answer.
    """

    right: int
    marked: int
    open: int
    wrong: tuple[str, ...]

    def __str__(self) -> str:
        slots = self.right + self.marked + self.open + len(self.wrong)
        shares = {"right": self.right, "marked": self.marked, "open": self.open}
        shares["wrong without a mark"] = len(self.wrong)
        return ", ".join(f"{n / slots:.0%} {name}" for name, n in shares.items())


def score(draft: str, key: dict[str, Any]) -> Score:
    """Compare the slots of a draft with those of a key; one that the key lacks is wrong."""
    lines = draft.splitlines()
    filled = {name: (origin, line) for name, origin, line in _filled(draft)}
    expected = {
        f"{section}.{slot}": [columns] if isinstance(columns, str) else columns
        for section, slots in key.items()
        if section != "options"
        for slot, columns in slots.items()
    }
    counts: Counter[str] = Counter()
    wrong = []
    for name in sorted({*filled, *expected}):
        origin, line = filled.get(name, ("", 0))
        if not origin:
            counts["open"] += 1
        elif origin in expected.get(name, ()):
            counts["right"] += 1
        elif "# ? " in lines[line]:
            counts["marked"] += 1
        else:
            wrong.append(f"{name}: {origin}")
    return Score(counts["right"], counts["marked"], counts["open"], tuple(wrong))


def _filled(draft: str) -> Iterator[tuple[str, str, int]]:
    """Yield slot, table.column and line of each field of a draft."""
    root = dict(_entries(yaml.compose(draft)))
    for section in ("encounter", "patient", "organization"):
        if section not in root:
            continue
        sources = dict(_entries(root[section])).get("sources")
        parts = sources.value if sources else [root[section]]
        for number, part in enumerate(parts):
            keys = dict(_entries(part))
            name = f"{section}[{number}]" if len(parts) > 1 else section
            for slot, node in _entries(keys["fields"]):
                column = dict(_entries(node))["from"].value
                origin = _origin(column, keys["rows"].value)
                yield f"{name}.{slot}", origin, node.start_mark.line


def _entries(node: Any) -> Iterator[tuple[str, Any]]:
    return ((key.value, value) for key, value in node.value)


def _origin(column: str, rows: str) -> str:
    """Return the table.column that a column of a SELECT comes from."""
    plain = rows.replace("`", "").replace('"', "")
    tables = {
        alias: name for name, alias in re.findall(r"(?:FROM|JOIN) (\w+) (\w+)", plain)
    }
    listed = re.findall(
        r"(\w+)\.(\w+)(?: AS VARCHAR\(36\)\))?(?: AS (\w+))?[,\n]", plain
    )
    for alias, name, renamed in listed:
        if column == (renamed or name):
            return f"{tables[alias]}.{name}"
    return f"{next(iter(tables.values()))}.{column}"
