"""The cases of behaviour.yaml, as faults and what a client does then."""

from collections.abc import Mapping
from pathlib import Path
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
ERRORS = {REFUSED: "Refused", UNAVAILABLE: "Unavailable"}
STAYS = 25
PARAMETERS = {"_count": "10", "_sort": "date"}
"""Of the search of a case: by id, as no stay has a start."""
_MANY = 40
"""Requests that no client sends."""


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


_PAGES = {
    "next-leads-away": _lead_away,
    "repeats-a-row": _repeat_row,
    "replaces-a-row": _replace_row,
    "drops-a-row": _drop_row,
    "without-a-total": _drop_total,
    "ends": _end,
    "is-a-patient": _empty,
}


def _fault(row: Mapping[str, Any]) -> Fault:
    if "status" in row:
        return Answer(row["status"], row.get("retry_after"))
    if "lost" in row:
        return Lost(row["lost"])
    if "page" in row:
        return Page(_PAGES[row["page"]])
    return Expiry() if "token" in row else Gone()


class Case:
    """A case: its faults, and what `copy` and an iterator do."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        iterator = row.get("iterator", {})
        self.name, self.rule = str(row["name"]), str(row["rule"])
        self.exit = int(row.get("exit", COMPLETE))
        self.error: str | None = iterator.get("error", ERRORS.get(self.exit))
        self.missing = frozenset[str](row.get("missing", ()))
        self.invalid = frozenset[str](row.get("invalid", ()))
        self.requests: int | None = row.get("requests")
        self.iterator_requests = iterator.get("requests", self.requests)
        self.tokens = int(row.get("tokens", 1))
        self.total: int | None = row.get("total", STAYS)
        self.expires_in = int(row.get("expires_in", 3600))
        self.timeout = float(row.get("timeout", 60))
        self._faults: dict[int, Fault] = {}
        for fault in row.get("faults", ()):
            begin = fault.get("from") or fault["at"]
            end = begin + _MANY if "from" in fault else begin + 1
            self._faults |= dict.fromkeys(range(begin, end), _fault(fault))

    @property
    def ids(self) -> list[str]:
        """The ids that a client has in the end."""
        return sorted({str(id) for id in range(1, STAYS + 1)} - self.missing)

    def begin(self, service: Service, before: int = 0) -> None:
        """Give a service the stays and the faults, after requests that have none."""
        service.open(STAYS)
        for id in self.invalid:
            service.hospital.change("Encounter", id, state=State.INVALID)
        service.expires_in = self.expires_in
        service.faults = {at + before: fault for at, fault in self._faults.items()}


_FILE = Path(__file__).parent / "behaviour.yaml"
CASES = [Case(row) for row in yaml.safe_load(_FILE.read_text("utf-8"))]
