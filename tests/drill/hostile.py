"""Hostile requests through the proxy: none may be answered with 5xx, none may tell anything.

Searches are those of tests/attacks, made up once; each client draws from them with a seed of its
own. Before, between and after them it reads the canaries: that they stand nowhere else says
something about all of the requests.
"""

import argparse
import http.client
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote, urlencode

from hypothesis import given
from hypothesis import strategies as st

from adapters.parameters import SEARCH_PARAMETERS
from tests.app import provider
from tests.attacks.made_up import SQL, pairs, tried
from tests.canaries import canaries_in
from tests.drill.deployment import Deployment, deployed
from tests.live import HOST
from tests.redis_server import RedisServer
from tests.serving import FORM
from toolkit.contract.hospital import CANARIES

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


def drill(directory: Path, options: argparse.Namespace) -> Iterator[str]:
    """Send them; yield each 5xx, each lost response, and where a canary stands."""
    searches = made_up_searches()
    with deployed(directory) as (deployment, redis):
        attackers = [
            Attacker(number, deployment, searches) for number in range(options.workers)
        ]
        share = -(-options.requests // options.workers)
        with ThreadPoolExecutor(options.workers) as threads:
            list(threads.map(lambda each: each.attack(share), attackers))
        statuses = sum((each.statuses for each in attackers), Counter[str]())
        print("| Answer | Requests |\n|---|---|")
        for status, count in sorted(statuses.items()):
            print(f"| {status} | {count} |")
        print(f"| all | {statuses.total()} |")
        yield from (fault for each in attackers for fault in each.faults)
        places = _places(deployment, redis)
        print(f"\nCanaries were looked for in errors, {', '.join(places)}.")
        for name, text in places.items():
            if canaries := canaries_in(text):
                yield f"{len(set(canaries))} canaries in {name}"


def made_up_searches() -> list[tuple[str, str]]:
    """Return resource types, each with the form of a search."""
    searches: list[tuple[str, str]] = []
    for kind in map(str, SEARCH_PARAMETERS):

        @tried(500)
        @given(st.tuples(st.just(kind), pairs(kind)))
        def keep(search: tuple[str, list[tuple[str, str]]]) -> None:
            searches.append((search[0], urlencode(search[1], errors="replace")))

        keep()
    return searches


def _places(deployment: Deployment, redis: RedisServer) -> dict[str, str]:
    """Return what operators see, by its name."""
    files = (deployment.audit, *deployment.directory.glob("*.log"))
    places = {each.name: each.read_text("utf-8", "replace") for each in files}
    for each in deployment.instances:
        for path in ("/metrics", "/ready"):
            places[f"{path} of {each.name}"] = each.operations(path).body.decode()
    with redis.client() as client:
        dump = b"".join(client.dump(key) or b"" for key in client.scan_iter())
        keys = b" ".join(client.scan_iter())
    places["Redis"] = (keys + dump).decode("latin-1")
    return places


class Attacker:
    """One client that sends whatever comes to its mind."""

    def __init__(
        self,
        number: int,
        deployment: Deployment,
        searches: Sequence[tuple[str, str]],
    ) -> None:
        self._random = random.Random(number)
        self._searches = searches
        self._good = provider.bearer(deployment.keys.token(f"attacker-{number}"))
        self._links = ["/fhir/v3/Encounter?_id=1"]
        self._connection = http.client.HTTPSConnection(
            HOST, deployment.port, timeout=60, context=deployment.trusted
        )
        self.statuses = Counter[str]()
        self.faults: list[str] = []

    def attack(self, requests: int) -> None:
        """Send so many requests; read the canaries before, between and after them."""
        for sent in range(requests):
            if sent % CONTROL_EVERY == 0:
                self._read_canaries()
            self._send_made_up()
        self._read_canaries()
        self._connection.close()

    def _read_canaries(self) -> None:
        """Search the patient who is a canary, and her stays; a fault if any is missing."""
        headers = {"Authorization": self._good}
        bodies = "".join(
            self._send("GET", f"/fhir/v3/{search}", headers)[1]
            for search in CONTROL_READS
        )
        if missing := SERVED_CANARIES.difference(canaries_in(bodies)):
            self.faults.append(f"control: {len(missing)} canaries were not served")

    def _send(
        self, method: str, path: str, headers: dict[str, str], body: bytes | None = None
    ) -> tuple[str, str]:
        """Send a request; return the status of its response, "lost" for none, and the body."""
        try:
            self._connection.request(method, path, body, headers)
            response = self._connection.getresponse()
            status, text = response.status, response.read().decode("utf-8", "replace")
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            self.faults.append(f"lost ({type(error).__name__}): {method}")
            return "lost", ""
        self._links += NEXT.findall(text)
        if status >= 500:
            self.faults.append(f"{status}: {method} {path[:200]} {text[:200]}")
        if status >= 400 and canaries_in(text):
            self.faults.append(f"{status} with a canary: {method} {path[:200]}")
        return str(status), text

    def _send_made_up(self) -> None:
        chance = self._random
        method = chance.choice(METHODS)
        kind, form = chance.choice(self._searches)
        kind = chance.choice((kind, kind, kind, kind, "Observation", ""))
        headers = {"Authorization": self._token(), "Accept": chance.choice(ACCEPTS)}
        path, body = f"/fhir/v3/{kind}?{form}"[:7000], None
        match chance.randrange(5):
            case 0:
                path = f"/fhir/v3/{kind}/{quote(chance.choice(SQL)[:900], safe='')}"
            case 1:
                path = self._bent_link()
        if method in {"POST", "PUT", "PATCH"}:
            path = f"/fhir/v3/{kind}/_search" if method == "POST" else path
            body = chance.choice((form.encode(), chance.randbytes(40), b""))
            headers["Content-Type"] = chance.choice(TYPES)
        self.statuses[self._send(method, path, headers, body)[0]] += 1

    def _bent_link(self) -> str:
        """Return the link of a page with a few signs changed, or as it was."""
        link = list(self._random.choice(self._links))
        for _ in range(self._random.randrange(3)):
            place = self._random.randrange(len("/fhir/v3/"), len(link))
            link[place] = quote(self._random.choice("".join(SQL[:90])), safe="/?&=")
        return "".join(link)

    def _token(self) -> str:
        chance = self._random
        if chance.random() < 0.8:
            return self._good
        head, claims, signature = self._good.removeprefix("Bearer ").split(".")
        return chance.choice(
            (
                f"Bearer {head}.{claims}.{signature[::-1]}",
                f"Bearer {head}.{claims}.",
                f"Bearer eyJhbGciOiJub25lIn0.{claims}.",
                f"Basic {head}",
                "Bearer " + quote(chance.choice(SQL)[:200]),
                "",
            )
        )
