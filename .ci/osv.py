"""Known weaknesses of locked packages, from an export of the OSV database in a file.

    .venv/bin/python .ci/osv.py DATABASE ANSWER LOCK…

`DATABASE` is a zip file of records in JSON (https://ossf.github.io/osv-schema/): what OSV exports
for the ecosystem PyPI. ANSWER gets what weaknesses.py reads. Exit status: 0 the database is recent;
3 it is older than 30 days, or holds no record of PyPI.
"""

import json
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

DAYS = 30
"""An older database says too little of what is known today."""

_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Weakness:
    """A record, for one of the packages that it is about."""

    id: str
    affected: Mapping[str, Any]

    def concerns(self, version: str) -> bool:
        """Return whether a version is affected; so it is if a range cannot be read."""
        if version in self.affected.get("versions", ()):
            return True
        ranges = self.affected.get("ranges", ())
        return any(
            _within(Version(version), each["events"])
            for each in ranges
            if each.get("type") in {"ECOSYSTEM", "SEMVER"}
        )

    def fixes(self) -> list[str]:
        """Return the versions that are no longer affected."""
        events = (e for each in self.affected.get("ranges", ()) for e in each["events"])
        return [event["fixed"] for event in events if "fixed" in event]


def _within(version: Version, events: Sequence[Mapping[str, str]]) -> bool:
    affected = False
    try:
        steps = sorted((Version(v), kind) for e in events for kind, v in e.items())
    except InvalidVersion:
        return True
    for at, kind in steps:
        if kind == "introduced" and version >= at:
            affected = True
        elif (kind == "fixed" and version >= at) or (
            kind == "last_affected" and version > at
        ):
            affected = False
    return affected


class Database:
    """The records of an export, by the names of packages, and when the newest was changed."""

    def __init__(self, file: Path) -> None:
        """Read an export. Raises OSError and BadZipFile where there is none."""
        self.weaknesses: dict[str, list[Weakness]] = {}
        self.records = 0
        self.newest = datetime.min.replace(tzinfo=UTC)
        for record in _records(file):
            self._add(record)

    def _add(self, record: Mapping[str, Any]) -> None:
        concerned = [
            each
            for each in record.get("affected", ())
            if each.get("package", {}).get("ecosystem") == "PyPI"
        ]
        if not concerned:
            return
        self.records += 1
        self.newest = max(self.newest, datetime.fromisoformat(record["modified"]))
        if "withdrawn" not in record:
            for each in concerned:
                name = canonicalize_name(each["package"]["name"])
                known = self.weaknesses.setdefault(name, [])
                known.append(Weakness(record["id"], each))

    def of(self, name: str, version: str) -> list[dict[str, Any]]:
        """Return what is known of a version, as pip-audit says it."""
        return [
            {"id": each.id, "fix_versions": each.fixes()}
            for each in self.weaknesses.get(canonicalize_name(name), ())
            if each.concerns(version)
        ]


def _records(file: Path) -> Iterator[Mapping[str, Any]]:
    with zipfile.ZipFile(file) as export:
        for name in export.namelist():
            if name.endswith(".json"):
                yield json.loads(export.read(name))


def main(file: Path, answer: Path, locks: Sequence[Path]) -> int:
    """Write the answer, print the age of the database, and return the exit status."""
    try:
        database = Database(file)
    except (OSError, zipfile.BadZipFile) as error:
        print(f"{file} is no export of the OSV database: {error}")
        return 3
    pinned = {p for lock in locks for p in _PINNED.findall(lock.read_text("utf-8"))}
    packages = [
        {"name": name, "version": version, "vulns": database.of(name, version)}
        for name, version in sorted(pinned)
    ]
    if not database.records:
        print(f"{file} holds no record of PyPI: take the export of that ecosystem.")
        return 3
    answer.write_text(json.dumps({"dependencies": packages}), "utf-8")
    days = (datetime.now(UTC) - database.newest).days
    print(
        f"Database: {database.records} records, the newest of "
        f"{database.newest:%Y-%m-%d}, {days} days old."
    )
    if days > DAYS:
        print(f"UNKNOWN: it is older than {DAYS} days; take a newer export.")
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), [*map(Path, sys.argv[3:])]))
