"""The clients of a drill: they follow pages and repeat by docs/call/packages.md."""

import http.client
import json
import random
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Thread
from typing import Any
from urllib.parse import urlencode

from urllib3.util import wait_for_read

from tests.drill.ledger import LOST, Ledger
from tests.serving import ids

REPEAT = frozenset({429, 503, 504})
"""After `Retry-After` seconds, a few times; an answer that was lost, after one second."""

TRIES = 12
SEARCHES = 6
"""How often a walk is begun again because its pages are no longer kept (410)."""

PATIENCE = 90.0
TOKEN_REQUESTS = 15
"""After so many a token counts as ended, and a new one is fetched."""


WALKS: Sequence[Mapping[str, str]] = (
    {"_sort": "date", "_count": "4"},
    {"_sort": "-date", "_count": "5"},
    {"_sort": "-_lastUpdated", "_count": "5"},
    {"patient": "5", "_count": "2"},
    {"status": "finished", "_sort": "date", "_count": "3"},
)


@dataclass(frozen=True)
class Search:
    """What a walk asks for, and the stays that it must find."""

    params: Mapping[str, str]
    expected: frozenset[str]


@dataclass(frozen=True)
class Work:
    """What clients do at random: read a stay, search for one page, walk through pages."""

    reads: Sequence[str]
    pages: Sequence[Search]
    walks: Sequence[Search]


def work_of(client: "Client") -> Work:
    """Return searches with what a client is returned while nothing is broken."""
    patients = ({"patient": str(id), "_count": "50"} for id in range(1, 10))
    walks, pages = (
        [Search(params, frozenset(client.walk(params))) for params in searches]
        for searches in (WALKS, patients)
    )
    client.close()
    return Work(sorted(walks[0].expected), pages, walks)


class GivesUpError(Exception):
    """All that the client was told to do has been done, and it did not help."""


class GoneError(Exception):
    """The pages of the walk are no longer kept: search again."""


class Client:
    """One client: a token, a connection, one walk after the other until it is told to end."""

    def __init__(
        self,
        number: int,
        port: int,
        trusted: ssl.SSLContext,
        sign: Callable[[str], str],
        ledger: Ledger,
        tries: int = TRIES,
    ) -> None:
        self._name = f"client-{number}"
        self._tries = tries
        self._connection = http.client.HTTPSConnection(
            "127.0.0.1", port, timeout=PATIENCE, context=trusted
        )
        self._sign = sign
        self._ledger = ledger
        self._random = random.Random(number)
        self._token, self._left = sign(self._name), TOKEN_REQUESTS

    def walk_until(
        self, ending: Event, searches: Sequence[Search], pause: float
    ) -> None:
        """Walk; between two pages about `pause` seconds pass."""
        ending.wait(self._random.uniform(0, 2 * pause))
        while not ending.is_set():
            search = self._random.choice(searches)
            self._ledger.set_out()
            try:
                found = self._walk(ending, search, pause)
            except GivesUpError as error:
                self._ledger.gave_up(str(error))
            else:
                self._ledger.arrived(found, search.expected)
        self.close()

    def work_until(self, ending: Event, work: Work) -> None:
        """Do one thing after the other, without a pause."""
        while not ending.is_set():
            self._ledger.set_out()
            try:
                found, expected = self._done(work)
            except (GivesUpError, GoneError) as error:
                self._ledger.gave_up(str(error) or "410")
            else:
                self._ledger.arrived(found, expected)
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def probe(self, work: Work) -> None:
        """Read a stay, and search for two pages. Raises GivesUpError, GoneError."""
        self._asked("GET", f"/fhir/v3/Encounter/{self._random.choice(work.reads)}")
        bundle = self._asked("POST", "/fhir/v3/Encounter/_search", "_count=2")
        self._asked("GET", _next(bundle) or "")

    def _done(self, work: Work) -> tuple[list[str], frozenset[str]]:
        match self._random.randrange(5):
            case 0 | 1:
                id = self._random.choice(work.reads)
                stay = self._asked("GET", f"/fhir/v3/Encounter/{id}")
                return [stay["id"]], frozenset({id})
            case 2:
                search = self._random.choice(work.pages)
                query = urlencode(search.params)
                bundle = self._asked("GET", f"/fhir/v3/Encounter?{query}")
                return ids(bundle), search.expected
            case 3:
                search = self._random.choice(work.pages)
            case _:
                search = self._random.choice(work.walks)
        return self.walk(search.params), search.expected

    def walk(self, params: Mapping[str, str]) -> list[str]:
        """Return the ids of all pages, without a pause. Raises GivesUpError, GoneError."""
        return self._walked(Event(), params, 0)

    def _walk(self, ending: Event, search: Search, pause: float) -> list[str]:
        for _ in range(SEARCHES):
            try:
                return self._walked(ending, search.params, pause)
            except GoneError:
                continue
        raise GivesUpError(f"a walk was begun {SEARCHES} times")

    def _walked(
        self, ending: Event, params: Mapping[str, str], pause: float
    ) -> list[str]:
        form = urlencode(params)
        bundle = self._asked("POST", "/fhir/v3/Encounter/_search", form)
        found = ids(bundle)
        while link := _next(bundle):
            # Once all is to end, quicker, and not so quick that it were another drill.
            seconds = pause / 3 if ending.is_set() else pause
            time.sleep(self._random.uniform(0.5, 1.5) * seconds)
            bundle = self._asked("GET", link)
            found += ids(bundle)
        return found

    def _asked(self, method: str, address: str, form: str | None = None) -> Any:
        """Ask until there is an answer, as often as the rules allow."""
        renewed = False
        for _ in range(self._tries):
            begun = time.monotonic()
            status, headers, body = self._ask(method, address, form)
            self._ledger.answered(status, time.monotonic() - begun)
            match status:
                case 200:
                    return json.loads(body)
                case 410:
                    raise GoneError
                case 401 if not renewed:
                    renewed = True
                    self._renew()
                case _ if status in REPEAT and self._tries > 1:
                    time.sleep(int(headers["Retry-After"]))
                case 0 if self._tries > 1:
                    time.sleep(1)
                case _:
                    raise GivesUpError(f"{status} {body[:200]!r}")
        raise GivesUpError(f"no answer after {self._tries} tries, the last {status}")

    def _ask(
        self, method: str, address: str, form: str | None
    ) -> tuple[int, Mapping[str, str], bytes]:
        if not self._left:
            self._renew()
        self._left -= 1
        headers = {"Authorization": f"Bearer {self._token}"}
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        # As HTTP libraries do: what the proxy has closed meanwhile is not used again.
        if self._connection.sock and wait_for_read(self._connection.sock, 0):
            self._connection.close()
        try:
            self._connection.request(method, address, form, headers)
            answer = self._connection.getresponse()
            return answer.status, dict(answer.headers), answer.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            return LOST, {}, b""

    def _renew(self) -> None:
        self._token, self._left = self._sign(self._name), TOKEN_REQUESTS


@contextmanager
def running(each: Sequence[Callable[[Event], None]]) -> Iterator[None]:
    """Run clients, each in a thread of its own, and end them."""
    ending = Event()
    threads = [Thread(target=run, args=(ending,)) for run in each]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ending.set()
        for thread in threads:
            thread.join()


def _next(bundle: Any) -> str | None:
    links = [each["url"] for each in bundle["link"] if each["relation"] == "next"]
    return links[0] if links else None
