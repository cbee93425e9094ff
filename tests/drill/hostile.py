"""Hostile requests through the proxy: none may be answered with 5xx, none may tell anything.

What is sent is drawn from the texts of tests/attacks, with a seed of its own for each client.
Before, between and after them each client reads the canaries: that they stand nowhere else says
something about all of the requests.
"""

import argparse
import http.client
import random
import re
import ssl
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlencode

from adapters.parameters import SEARCH_PARAMETERS
from tests.app import provider
from tests.attacks.made_up import PLAUSIBLE, SQL
from tests.canaries import canaries_in
from tests.drill.deployment import Deployment, deployed
from tests.live import HOST
from tests.redis_server import RedisServer
from tests.serving import FORM
from toolkit.contract.hospital import CANARIES, EDGES

MODIFIERS = [""] * 9 + [":exact", ":contains", ":missing", ":not", ":x", ":", ".x", "["]
CONTROLS = ("_count", "_sort", "_summary", "_elements", "_format", "_include", "_has")
NEXT = re.compile('"relation":"next","url":"https://[^/"]*([^"]*)"')
METHODS = ("GET",) * 6 + ("POST",) * 5 + ("HEAD", "PUT", "PATCH", "DELETE", "OPTIONS")
TYPES = (FORM, FORM, FORM, f"{FORM};charset=latin-1", "text/plain", "application/json")
ACCEPTS = (
    "",
    "application/fhir+json",
    "*/*",
    "text/html",
    "a/b;q=x",
    ",,;",
    "a" * 5000,
)


CONTROL_EVERY = 250
"""After how many hostile requests a client reads the canaries again."""

CONTROL_READS = (
    "Patient?family=Serincanari",
    "Encounter?identifier=CANARI-V-1,CANARI-V-2",
)
"""Searches with canaries in the address, and in the responses together those below."""

SERVED_CANARIES = frozenset(each.lower() for each in CANARIES) - {"canari-v-2"}
"""That one is in a row that cannot be mapped: it is read, and never part of a response."""


class Hostile(NamedTuple):
    """A request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes | None


def drill(directory: Path, options: argparse.Namespace) -> Iterator[str]:
    """Send them; yield each 5xx, each lost response, and where a canary stands."""
    with deployed(directory, EDGES) as (deployment, redis):
        attackers = [Attacker(number, deployment) for number in range(options.workers)]
        share = -(-options.requests // options.workers)
        with ThreadPoolExecutor(options.workers) as threads:
            list(threads.map(lambda each: each.attack(share), attackers))
        statuses = sum((each.statuses for each in attackers), Counter[str]())
        print("| Answer | Requests |\n|---|---|")
        for status, count in sorted(statuses.items()):
            print(f"| {status} | {count} |")
        print(f"| all | {statuses.total()} |")
        reads = sum(each.controls for each in attackers)
        print(f"\nBetween them canaries were read {reads} times.")
        yield from (fault for each in attackers for fault in each.faults)
        places = _places(deployment, redis)
        print(f"\nCanaries were looked for in errors, {', '.join(places)}.")
        for name, text in places.items():
            if canaries := canaries_in(text):
                yield f"{len(set(canaries))} canaries in {name}"


def _places(deployment: Deployment, redis: RedisServer) -> dict[str, str]:
    """Return what operators see, by its name."""
    files = (
        deployment.audit,
        *(each.log for each in deployment.instances),
        *deployment.directory.glob("*.log"),
    )
    places = {each.name: each.read_text("utf-8", "replace") for each in files}
    for each in deployment.instances:
        for path in ("/metrics", "/ready"):
            places[f"{path} of {each.name}"] = each.status(path, each.port + 1)[
                1
            ].decode()
    with redis.client() as client:
        dump = b"".join(client.dump(key) or b"" for key in client.scan_iter())
        keys = b" ".join(client.scan_iter())
    places["Redis"] = (keys + dump).decode("latin-1")
    return places


class Attacker:
    """One client that sends whatever comes to its mind."""

    def __init__(self, number: int, deployment: Deployment) -> None:
        self._random = random.Random(number)
        self._deployment = deployment
        self._good = deployment.keys.token(f"attacker-{number}")
        self._links: list[str] = []
        self._connection = http.client.HTTPSConnection(
            HOST, deployment.port, timeout=60, context=deployment.trusted
        )
        self.statuses = Counter[str]()
        self.faults: list[str] = []
        self.controls = 0

    def attack(self, requests: int) -> None:
        """Send so many requests; read the canaries before, between and after them."""
        for sent in range(requests):
            if sent % CONTROL_EVERY == 0:
                self._read_canaries()
            self.statuses[self._send(self._made_up())[0]] += 1
        self._read_canaries()
        self._connection.close()

    def _read_canaries(self) -> None:
        """Search the patient who is a canary, and her stays; a fault if any is missing."""
        self.controls += 1
        good = {"Authorization": provider.bearer(self._good)}
        bodies = ""
        for search in CONTROL_READS:
            path = f"/fhir/v3/{search}"
            bodies += self._send(Hostile("GET", path, good, None))[1]
        if missing := SERVED_CANARIES.difference(canaries_in(bodies)):
            self.faults.append(f"control: {len(missing)} canaries were not served")

    def _send(self, sent: Hostile) -> tuple[str, str]:
        """Send a request; return the status of its response, "lost" for none, and the body."""
        try:
            self._connection.request(sent.method, sent.path, sent.body, sent.headers)
            response = self._connection.getresponse()
            status, body = response.status, response.read().decode("utf-8", "replace")
        except (OSError, http.client.HTTPException, ssl.SSLError) as error:
            self._connection.close()
            self.faults.append(f"lost ({type(error).__name__}): {sent.method}")
            return "lost", ""
        self._links += NEXT.findall(body)
        if status >= 500:
            self.faults.append(
                f"{status}: {sent.method} {sent.path[:200]} {body[:200]}"
            )
        if status >= 400 and canaries_in(body):
            self.faults.append(
                f"{status} with a canary: {sent.method} {sent.path[:200]}"
            )
        return str(status), body

    def _made_up(self) -> Hostile:
        chance = self._random
        method = chance.choice(METHODS)
        kind = chance.choice(
            [*SEARCH_PARAMETERS, *SEARCH_PARAMETERS, "Observation", ""]
        )
        form = urlencode(self._pairs(kind))
        headers = {
            "Authorization": self._token(),
            "Accept": chance.choice(ACCEPTS),
        }
        body = None
        match chance.randrange(5):
            case 0:
                path = f"/fhir/v3/{kind}/{quote(chance.choice(SQL)[:900], safe='')}"
            case 1:
                path = self._bent_link()
            case 2:
                path = f"/fhir/v3/{kind}/_search"
            case _:
                path = f"/fhir/v3/{kind}?{form}"
        if method in {"POST", "PUT", "PATCH"}:
            path = f"/fhir/v3/{kind}/_search" if method == "POST" else path
            body = chance.choice((form.encode(), chance.randbytes(40), b""))
            headers["Content-Type"] = chance.choice(TYPES)
        return Hostile(method, path, headers, body)

    def _bent_link(self) -> str:
        """Return the link of a page with a few signs changed, or as it was."""
        link = list(self._random.choice(self._links or ["/fhir/v3/Encounter?_id=1"]))
        for _ in range(self._random.randrange(3)):
            place = self._random.randrange(len("/fhir/v3/"), len(link))
            link[place] = quote(self._random.choice("".join(SQL[:90])), safe="/?&=")
        return "".join(link)

    def _pairs(self, kind: str) -> list[tuple[str, str]]:
        return [self._pair(kind) for _ in range(self._random.randrange(4))]

    def _pair(self, kind: str) -> tuple[str, str]:
        chance = self._random
        known = [str(name) for name in SEARCH_PARAMETERS.get(kind, ())]  # type: ignore[call-overload]
        name = chance.choice([*known, *known, *CONTROLS, chance.choice(SQL)[:50]])
        good = PLAUSIBLE.get(name, ("1",))
        value = chance.choice(chance.choice((good, SQL)))
        return name + chance.choice(MODIFIERS), value[:1500]

    def _token(self) -> str:
        chance = self._random
        if chance.random() < 0.8:
            return provider.bearer(self._good)
        head, _, rest = self._good.partition(".")
        claims, _, signature = rest.partition(".")
        forged = (
            f"Bearer {head}.{claims}.{signature[::-1]}",
            f"Bearer {head}.{claims}.",
            f"Bearer eyJhbGciOiJub25lIn0.{claims}.",
            f"Bearer {claims}.{head}.{signature}",
            f"Basic {self._good}",
            "Bearer " + quote(chance.choice(SQL)[:200]),
            "",
        )
        return chance.choice(forged)
