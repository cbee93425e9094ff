"""The cases of behaviour.yaml, as faults and what a client does then."""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from tests.clients.service import (
    Answer,
    Expiry,
    Fault,
    Gone,
    Lost,
    Page,
    Service,
    State,
)

COMPLETE, REFUSED, USAGE, INCOMPLETE, UNAVAILABLE = range(5)
ERRORS: Mapping[int, str] = MappingProxyType(
    {REFUSED: "Refused", UNAVAILABLE: "Unavailable"}
)
STAYS = 25
PARAMETERS: Mapping[str, str] = MappingProxyType({"_count": "10", "_sort": "date"})
"""Of the search of a case: by id, as no stay has a start."""
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
    total: int | None
    expires_in: int
    timeout: float

    @property
    def ids(self) -> list[str]:
        """The ids that a client has in the end."""
        return sorted({str(id) for id in range(1, STAYS + 1)} - self.missing)

    def begin(self, service: Service) -> None:
        """Give a service the stays and the faults of the case."""
        service.open(STAYS)
        for id in self.invalid:
            service.hospital.change("Encounter", id, state=State.INVALID)
        service.faults, service.expires_in = self.faults, self.expires_in


def _lead_away(page: dict[str, Any]) -> None:
    (link,) = [link for link in page["link"] if link["relation"] == "next"]
    link["url"] = link["url"].replace("127.0.0.1", "127.0.0.2")


def _repeat_row(page: dict[str, Any]) -> None:
    page["entry"].append(page["entry"][0])


def _replace_row(page: dict[str, Any]) -> None:
    page["entry"][1] = page["entry"][0]


def _drop_row(page: dict[str, Any]) -> None:
    del page["entry"][1]


def _drop_total(page: dict[str, Any]) -> None:
    page.pop("total", None)


def _end(page: dict[str, Any]) -> None:
    if "link" in page:
        page["link"] = [each for each in page["link"] if each["relation"] != "next"]


def _empty(page: dict[str, Any]) -> None:
    page.clear()
    page["resourceType"] = "Patient"


_PAGES: Mapping[str, Page] = MappingProxyType(
    {
        "next-leads-away": Page(_lead_away),
        "repeats-a-row": Page(_repeat_row),
        "replaces-a-row": Page(_replace_row),
        "drops-a-row": Page(_drop_row),
        "without-a-total": Page(_drop_total),
        "ends": Page(_end),
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
        total=row.get("total", STAYS),
        expires_in=row.get("expires_in", 3600),
        timeout=row.get("timeout", 60),
    )


CASES = tuple(
    _case(row)
    for row in yaml.safe_load(
        (Path(__file__).parent / "behaviour.yaml").read_text("utf-8")
    )
)
