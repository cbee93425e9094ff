"""The behaviour table of clients/README.md, as faults and what every client does then."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from tests.clients.fault_server import (
    Answer,
    Expiry,
    Fault,
    FaultServer,
    Gone,
    Lost,
    Page,
)

COMPLETE, REFUSED, USAGE, INCOMPLETE, UNAVAILABLE = range(5)
STAYS, PAGE_SIZE = 25, 10


@dataclass(frozen=True)
class Case:
    """A row of the table: the faults, the exit code, and the ids that are missing then.

    `behaviour` is the row's first cell. The hospital has stays 1 to 25, on three pages: an
    undisturbed client sends three requests.
    """

    name: str
    behaviour: str
    faults: Mapping[int, Fault]
    code: int = COMPLETE
    missing: Set[str] = frozenset()
    invalid: Set[str] = frozenset()
    requests: int | None = None
    tokens: int = 1
    server: Mapping[str, Any] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)


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


def _always(fault: Fault, begin: int = 2) -> Mapping[int, Fault]:
    return dict.fromkeys(range(begin, begin + 40), fault)


RETRY = "408, 429, 503, 504"
WAIT = "Retry-After"
LOST = "no answer, or half of one"
TOKEN = "401"
RENEW = "token ends soon"
REFUSAL = "any other status"
GONE = "410 on next"
AWAY = "next leads to another host"
TOTAL = "rows and total"
INVALID = "outcome entries"

CASES = (
    Case("undisturbed", TOTAL, {}, requests=3),
    Case("429", RETRY, {2: Answer(429, "1", "throttled")}, requests=4),
    Case("503", RETRY, {1: Answer(503, "0"), 3: Answer(503, "0")}, requests=5),
    Case("504", RETRY, {2: Answer(504)}, requests=4),
    Case("408", RETRY, {1: Answer(408)}, requests=4),
    Case("503-always", RETRY, _always(Answer(503, "0")), UNAVAILABLE, requests=6),
    Case("too-long-a-wait", WAIT, {2: Answer(503, "3600")}, UNAVAILABLE, requests=2),
    Case(
        "retry-after-is-a-date", WAIT, {2: Answer(503, "Sat, 30 Mar 2024 08:00:00 GMT")}
    ),
    Case("dropped", LOST, {2: Lost("before")}, requests=4),
    Case("half-a-page", LOST, {2: Lost("within")}, requests=4),
    Case("slow", LOST, {2: Lost("slow")}, requests=4, environ={"TIMEOUT_SECONDS": "2"}),
    Case("token-expires", TOKEN, {2: Expiry()}, requests=4, tokens=2),
    Case("401-twice", TOKEN, _always(Answer(401)), REFUSED, requests=3, tokens=2),
    Case("token-ends-soon", RENEW, {}, requests=3, tokens=3, server={"expires_in": 0}),
    Case("403", REFUSAL, {1: Answer(403)}, REFUSED, requests=1),
    Case("404-on-next", REFUSAL, {2: Answer(404)}, REFUSED, requests=2),
    Case("302", REFUSAL, {2: Answer(302)}, REFUSED, requests=2),
    Case("500", REFUSAL, {2: Answer(500)}, REFUSED, requests=2),
    Case("502", REFUSAL, {2: Answer(502)}, REFUSED, requests=2),
    Case("no-bundle", REFUSAL, {2: Page(_empty)}, REFUSED, requests=2),
    Case("410", GONE, {3: Gone()}, requests=6),
    Case("410-always", GONE, _always(Gone()), UNAVAILABLE, requests=8),
    Case("another-host", AWAY, {1: Page(_lead_away)}, REFUSED, requests=1),
    Case("duplicate", TOTAL, {2: Page(_repeat_row)}),
    Case("duplicate-for-another", TOTAL, {1: Page(_replace_row)}, INCOMPLETE, {"2"}),
    Case("missing", TOTAL, {1: Page(_drop_row)}, INCOMPLETE, {"2"}),
    Case("no-total", TOTAL, {}, server={"counting": False}),
    Case(
        "no-further-pages",
        TOTAL,
        {},
        INCOMPLETE,
        frozenset(str(id) for id in range(PAGE_SIZE + 1, STAYS + 1)),
        server={"paging": False},
    ),
    Case("invalid-row", INVALID, {}, COMPLETE, {"7"}, {"7"}),
)
