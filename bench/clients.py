"""Clients of a soak: what each kind of them does, over and over, and what it may be told."""

import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import requests

from adapters import open_adapter
from adapters.contract import GoneError, NotFoundError, ResourceType, SourceDataError
from adapters.mapping.load import load_mapping

SECONDS = 30.0
"""How long a client waits for an answer."""

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
SQL = "' OR 1=1 --"
JSON = {"Content-Type": "application/json"}
NO_ANSWER = 0
REFUSED = 503
REPEATS = 3
"""How often a client that is told to come again does so."""

PAGES = 6
"""How far a walk goes before it turns back."""


@dataclass
class Tally:
    """What all clients were told, by kind of client and status, and what was wrong."""

    answers: Counter[tuple[str, int]] = field(default_factory=Counter)
    refused: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, kind: str, status: int, *, fits: bool) -> None:
        """Count an answer."""
        with self.lock:
            self.answers[kind, status] += 1
            if status == REFUSED and fits:
                self.refused += 1
            if not fits:
                self.wrong[f"{kind} was told {status}"] += 1

    def fault(self, kind: str, what: str) -> None:
        """Count what went wrong otherwise."""
        with self.lock:
            self.wrong[f"{kind}: {what}"] += 1


@dataclass
class Client:
    """One client: it has a kind, a token, and dice of its own.

    `faulty` are the paths of rows that cannot be mapped, which are 500 (decision 16).
    """

    kind: str
    base_url: str
    token: str
    tally: Tally
    dice: random.Random
    stays: int
    faulty: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.session = requests.Session()
        self.session.trust_env = False

    def ask(
        self,
        path: str,
        fits: Sequence[int] = (200,),
        method: str = "GET",
        form: str | bytes | None = None,
        **headers: str,
    ) -> requests.Response:
        """Send a request; an answer that has another status than those is wrong.

        Told to come again (503 with Retry-After), a client does.
        """
        for _ in range(REPEATS):
            answer = self._send(path, fits, method, form, headers)
            if answer.status_code != REFUSED:
                break
            time.sleep(float(answer.headers.get("Retry-After", 1)))
        return answer

    def _send(
        self,
        path: str,
        fits: Sequence[int],
        method: str,
        form: str | bytes | None,
        headers: Mapping[str, str],
    ) -> requests.Response:
        sent = {"Authorization": f"Bearer {self.token}", **headers}
        if form is not None:
            sent = {**FORM, **sent}
        address = path if path.startswith("http") else f"{self.base_url}/{path}"
        answer = self.session.request(
            method, address, headers=sent, data=form, timeout=SECONDS
        )
        again = answer.status_code == REFUSED and "Retry-After" in answer.headers
        fitting = again or answer.status_code in fits
        self.tally.count(self.kind, answer.status_code, fits=fitting)
        return answer

    def id(self) -> int:
        """Return the id of a stay or of a patient that may be there."""
        return self.dice.randint(1, self.stays)


def faulty_paths(mapping: Path, url: str, stays: int) -> frozenset[str]:
    """Return the paths of the rows that the hospital has, and that cannot be mapped."""
    adapter = open_adapter(load_mapping(mapping, {"PAS_URL": url}))
    found = set()
    for kind in (ResourceType.ENCOUNTER, ResourceType.PATIENT):
        for id in range(1, stays + 1):
            try:
                adapter.read(kind, str(id))
            except SourceDataError:
                found.add(f"{kind}/{id}")
            except (NotFoundError, GoneError):
                continue
    adapter.close()
    return frozenset(found)


def read(client: Client) -> None:
    """Read resources, some of which are not there, and some of which are known."""
    kind = client.dice.choice(("Encounter", "Encounter", "Patient", "Organization"))
    path = f"{kind}/{client.id() if kind != 'Organization' else 2}"
    found = client.ask(path, (500,) if path in client.faulty else (200, 404, 410))
    if found.status_code == 200:
        tag = {"If-None-Match": found.headers["ETag"]}
        client.ask(path, (304,), **tag)


def search(client: Client) -> None:
    """Search by this and that, in both forms."""
    form = client.dice.choice(
        (
            f"patient=Patient/{client.id()}",
            "status=finished&_count=5",
            "class=EMER&_sort=date&_count=5",
            f"date=ge201{client.dice.randint(0, 9)}-01-01&_count=5",
            f"_id={client.id()},{client.id()}",
        )
    )
    client.ask("Encounter/_search", method="POST", form=form)
    client.ask(f"Encounter?{form}&_summary=true")
    client.ask(f"Patient?family={client.dice.choice('abcdlmr')}&_count=3")
    client.ask("metadata")


def walk(client: Client) -> None:
    """Walk some pages forward, and all of them back."""
    page = client.ask("Encounter?_count=10").json()
    for relation in ("next", "previous"):
        for _ in range(PAGES):
            links = {each["relation"]: each["url"] for each in page["link"]}
            if relation not in links:
                break
            page = client.ask(links[relation]).json()
    client.ask(next(x["url"] for x in page["link"] if x["relation"] == "self"))


def blunder(client: Client) -> None:
    """Send what is no good request."""
    bad = (400, 404, 405, 406, 410, 412, 413, 414, 415, 422)
    long = "&".join(f"_id={n}" for n in range(300))
    for path in (
        "Encounter?date=yesterday",
        "Encounter?no-such=1",
        f"Encounter/{'9' * 40}",
        f"Encounter?_id={quote(chr(0))}",
        "Patient?name=%ff%fe",
        f"Encounter?{long}",
        f"Bundle?_id={'a' * 32}",
        f"Bundle?_id={client.dice.randbytes(8).hex()}",
        f"Patient?name={quote(SQL)}&_count=-1",
    ):
        client.ask(path, bad)
    client.ask("Encounter/1", bad, method="DELETE")
    client.ask("Encounter/_search", bad, method="POST", form=b"{}", **JSON)
    try:
        client.ask("Encounter/_search", bad, method="POST", form="date=" + "x" * 70_000)
    except requests.ConnectionError:
        # The answer comes before the body is read, and then the connection ends: it may be lost.
        client.tally.count(client.kind, NO_ANSWER, fits=True)
    garble(client)


def garble(client: Client) -> None:
    """Send what is no HTTP, and half of what is; the answer may be none at all."""
    host, _, port = client.base_url.split("/")[2].partition(":")
    for raw in (b"\x16\x03\x01\x02\x00", b"GET / HTTP/9.9\r\n\r\n", b"GET /fhir/v3/"):
        with socket.create_connection((host, int(port)), SECONDS) as connection:
            connection.sendall(raw)
            connection.shutdown(socket.SHUT_WR)
            said = connection.recv(4096)
        if said:
            status = int(said.split()[1])
            client.tally.count(client.kind, status, fits=400 <= status < 600)


def intrude(client: Client) -> None:
    """Come with tokens that are none, forged, or another's."""
    head, body, signature = client.token.split(".")
    for token in (
        "opaque",
        f"{head}.{body}.{signature[::-1]}",
        f"{head}.{client.dice.randbytes(30).hex()}.{signature}",
        f"{client.dice.randbytes(60).hex()}.{body}.{signature}",
    ):
        bearer = {"Authorization": f"Bearer {token}"}
        client.ask(f"Encounter/{client.id()}", (401,), **bearer)
    basic = {"Authorization": "Basic Og=="}
    client.ask("Encounter?patient=1", (401,), **basic)


def run(
    client: Client, do: Callable[[Client], None], pause: float, until: float
) -> None:
    """Do it again and again; an answer that does not come is counted, not raised."""
    while time.monotonic() < until:
        try:
            do(client)
        except (requests.RequestException, OSError, KeyError) as error:
            client.tally.fault(client.kind, type(error).__name__)
        time.sleep(pause * client.dice.uniform(0.5, 1.5))


KINDS: Mapping[str, Callable[[Client], None]] = {
    "reads": read,
    "searches": search,
    "walks": walk,
    "blunders": blunder,
    "intrudes": intrude,
}
"""What each kind of client does."""
