"""The cases of behaviour.yaml, as faults and what a client does then."""

from collections.abc import Callable, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from tests.clients.fault_server import (
    Answer,
    Expiry,
    Fault,
    FaultServer,
    Gone,
    Lost,
    Page,
)
from tests.clients.hospital import State, filled

COMPLETE, REFUSED, USAGE, INCOMPLETE, UNAVAILABLE = range(5)
ERRORS: Mapping[int, str] = MappingProxyType(
    {REFUSED: "Refused", UNAVAILABLE: "Unavailable"}
)
STAYS, PAGE_SIZE = 25, 10
_MANY = 40
"""Requests that no client sends."""


@dataclass(frozen=True)
class Case:
    """A case: its faults, and what `copy` and an iterator do."""

    name: str
    rule: str
    faults: Mapping[int, Fault]
    exit: int
    error: str | None
    missing: Set[str]
    invalid: Set[str]
    requests: int | None
    iterator_requests: int | None
    tokens: int
    server: Mapping[str, Any]
    timeout: float

    @property
    def ids(self) -> list[str]:
        """The ids that a client has in the end."""
        return sorted({str(id) for id in range(1, STAYS + 1)} - self.missing)

    def service(self) -> FaultServer:
        """Return the service of the case."""
        hospital = filled(STAYS)
        for id in self.invalid:
            hospital.change("Encounter", id, state=State.INVALID)
        return FaultServer(hospital, self.faults, PAGE_SIZE, **self.server)


def _lead_away(page: dict[str, Any], service: FaultServer) -> None:
    (link,) = [link for link in page["link"] if link["relation"] == "next"]
    link["url"] = link["url"].replace("127.0.0.1", "127.0.0.2")


def _repeat_row(page: dict[str, Any], service: FaultServer) -> None:
    page["entry"].append(page["entry"][0])


def _replace_row(page: dict[str, Any], service: FaultServer) -> None:
    page["entry"][1] = page["entry"][0]


def _drop_row(page: dict[str, Any], service: FaultServer) -> None:
    del page["entry"][1]


def _empty(page: dict[str, Any], service: FaultServer) -> None:
    page.clear()
    page["resourceType"] = "Patient"


_PAGES: Mapping[str, Page] = MappingProxyType(
    {
        "next-leads-away": Page(_lead_away),
        "repeats-a-row": Page(_repeat_row),
        "replaces-a-row": Page(_replace_row),
        "drops-a-row": Page(_drop_row),
        "is-a-patient": Page(_empty),
    }
)


def _fault(row: Mapping[str, Any]) -> Fault:
    if "status" in row:
        return Answer(row["status"], row.get("retry_after"))
    if "lost" in row:
        return Lost(row["lost"])
    if "page" in row:
        return _PAGES[row["page"]]
    return Expiry() if "token" in row else Gone()


def _case(row: Mapping[str, Any]) -> Case:
    faults: dict[int, Fault] = {}
    for fault in row.get("faults", ()):
        begin = fault.get("from") or fault["at"]
        end = begin + _MANY if "from" in fault else begin + 1
        faults |= dict.fromkeys(range(begin, end), _fault(fault))
    code, iterator = row.get("exit", COMPLETE), row.get("iterator", {})
    requests = row.get("requests")
    return Case(
        name=row["name"],
        rule=row["rule"],
        faults=faults,
        exit=code,
        error=iterator.get("error", ERRORS.get(code)),
        missing=frozenset(row.get("missing", ())),
        invalid=frozenset(row.get("invalid", ())),
        requests=requests,
        iterator_requests=iterator.get("requests", requests),
        tokens=row.get("tokens", 1),
        server=row.get("server", {}),
        timeout=row.get("timeout", 60),
    )


CASES = tuple(
    _case(row)
    for row in yaml.safe_load(
        (Path(__file__).parent / "behaviour.yaml").read_text("utf-8")
    )
)


SERVED_CASES = tuple(
    case
    for case in CASES
    if not case.server
    and all(isinstance(f, Answer | Expiry | Gone) for f in case.faults.values())
)
"""The cases that need no answer but those of the service itself, and errors in between."""


def each_case(run_case: Callable[[Case], None]) -> None:
    """Run all cases, a few at a time; fail with the first that fails."""
    with ThreadPoolExecutor(8) as threads:
        for _ in threads.map(run_case, CASES):
            pass
