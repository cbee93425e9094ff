"""Copy all pages of a search into a file of JSON lines.

    python walk.py stays.ndjson Encounter date=ge2024-01-01 _count=100

Needs Python 3.11 and the package requests. ../README.md has the settings, the behaviour
and the exit codes.
"""

import json
import os
import sqlite3
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import requests
from requests.exceptions import ChunkedEncodingError

COMPLETE, REFUSED, USAGE, INCOMPLETE, UNAVAILABLE = range(5)
TRIES, RESTARTS, LONGEST_WAIT_SECONDS = 5, 3, 60
RETRIED = frozenset({408, 429, 503, 504})
REQUIRED = ("BASE", "TOKEN_URL", "CLIENT_ID", "CLIENT_SECRET")
LOST = (requests.ConnectionError, requests.Timeout, ChunkedEncodingError)
Answer = requests.Response
Form = Sequence[tuple[str, str]]


class WalkError(Exception):
    """The walk cannot go on: the exit code, and why."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class GonePageError(Exception):
    """The pages of this search are no longer stored: search again."""


class Service:
    """Sends requests with a valid token; waits, repeats and renews as the README says."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.base = environ["BASE"].rstrip("/")
        self._environ = environ
        self._timeout = float(environ.get("TIMEOUT_SECONDS") or 60)
        self._http = requests.Session()
        # Or requests would send a password of ~/.netrc in place of the token.
        self._http.auth = lambda request: request
        self._token, self._renew_at = "", 0.0

    def send(self, method: str, url: str, form: Any = None, **headers: str) -> Answer:
        """Return the answer to a request; 401 is repeated once, with a new token."""
        answer = self._repeat(method, url, data=form, headers=headers | self._bearer())
        if answer.status_code == 401:
            self._token = ""
            headers |= self._bearer()
            answer = self._repeat(method, url, data=form, headers=headers)
        return answer

    def pages(self, resource_type: str, form: Form) -> Iterator[tuple[Any, Answer]]:
        """Yield each page, and its answer. Raises GonePageError, WalkError."""
        answer = self.send("POST", f"{self.base}/{resource_type}/_search", form)
        while True:
            page = json_of(answer, "Bundle")
            yield page, answer
            links = {link["relation"]: link["url"] for link in page["link"]}
            if "next" not in links:
                return
            if not links["next"].startswith(f"{self.base}/"):
                raise WalkError(REFUSED, "The next link leads to another host.")
            answer = self.send("GET", links["next"])
            if answer.status_code == 410:
                raise GonePageError

    def _repeat(self, method: str, url: str, **sent: Any) -> Answer:
        """Send a request, again while that may help. Raises WalkError."""
        sent |= {"timeout": self._timeout, "allow_redirects": False}
        for attempt in range(TRIES):
            named = ""
            try:
                answer = self._http.request(method, url, **sent)
            except LOST as error:
                reason = f"no answer ({type(error).__name__})"
            else:
                if answer.status_code not in RETRIED:
                    return answer
                named = answer.headers.get("Retry-After", "")
                reason = f"status {answer.status_code}, Retry-After '{named}'"
            wait = int(named) if named.isdigit() else 2**attempt
            if wait > LONGEST_WAIT_SECONDS:
                break
            if attempt + 1 < TRIES:
                time.sleep(wait)
        raise WalkError(UNAVAILABLE, f"{reason}, try {attempt + 1}")

    def _bearer(self) -> dict[str, str]:
        """Return the header with a valid token. Raises WalkError."""
        if not self._token or time.monotonic() >= self._renew_at:
            form = {"grant_type": "client_credentials"}
            for name in ("CLIENT_ID", "CLIENT_SECRET", "AUDIENCE", "SCOPE"):
                if self._environ.get(name):
                    form[name.lower()] = self._environ[name]
            url = self._environ["TOKEN_URL"]
            body = json_of(self._repeat("POST", url, data=form))
            self._token = body["access_token"]
            # Before it ends: an expired token costs a request.
            self._renew_at = time.monotonic() + 0.9 * body.get("expires_in", 3600)
        return {"Authorization": f"Bearer {self._token}"}


def json_of(answer: Answer, resource_type: str | None = None) -> Any:
    """Return the body of a 200, a resource of this type. Raises WalkError."""
    if answer.status_code != 200:
        raise WalkError(REFUSED, f"status {answer.status_code}: {answer.text[:500]}")
    try:
        body = answer.json()
    except requests.JSONDecodeError:
        body = None
    if not isinstance(body, dict) or body.get("resourceType") != resource_type:
        raise WalkError(REFUSED, f"The answer is not a {resource_type or 'token'}.")
    return body


class Tally:
    """What the pages of a search had: rows, their ids, invalid rows, and `total`."""

    def __init__(self) -> None:
        self.rows, self.invalid, self.total = 0, 0, None
        # On disk: the memory that this needs does not grow with the search.
        self._ids = sqlite3.connect("")
        self._ids.execute("CREATE TABLE id (id TEXT PRIMARY KEY) WITHOUT ROWID")

    def count(self, page: Any) -> list[Any]:
        """Count a page, report its messages, and return its resources."""
        self.total = page.get("total")
        entries = page.get("entry", ())
        matches = [e["resource"] for e in entries if e["search"]["mode"] == "match"]
        self.rows += len(matches)
        ids = [(resource["id"],) for resource in matches]
        self._ids.executemany("INSERT OR IGNORE INTO id VALUES (?)", ids)
        for entry in entries:
            if entry["search"]["mode"] == "outcome":
                for issue in entry["resource"]["issue"]:
                    self.invalid += issue["code"] == "exception"
                    print(issue["severity"], issue.get("diagnostics"), file=sys.stderr)
        return matches

    def result(self) -> int:
        """Report the numbers and return the exit code. The last call."""
        (ids,) = self._ids.execute("SELECT COUNT(*) FROM id").fetchone()
        self._ids.close()
        numbers = f"{self.rows} rows, {ids} ids, {self.invalid} invalid"
        total = "unknown" if self.total is None else self.total
        print(f"{numbers}, total {total}", file=sys.stderr)
        return COMPLETE if self.total in (None, ids + self.invalid) else INCOMPLETE


def walk(service: Service, file: TextIO, resource_type: str, form: Form) -> int:
    """Write the matches of a search to a file, and return the exit code."""
    for _ in range(RESTARTS + 1):
        file.truncate(file.seek(0))
        tally = Tally()
        try:
            for page, _ in service.pages(resource_type, form):
                for resource in tally.count(page):
                    file.write(json.dumps(resource) + "\n")
        except GonePageError:
            continue
        return tally.result()
    raise WalkError(UNAVAILABLE, f"The pages were gone {RESTARTS + 1} times.")


def main(arguments: Sequence[str]) -> int:
    """Run the program and return the exit code."""
    missing = [name for name in REQUIRED if not os.environ.get(name)]
    if len(arguments) < 2 or missing:
        lines = [f"not set: {' '.join(missing)}"] if missing else []
        usage = "usage: walk.py OUT TYPE [NAME=VALUE ...]"
        print(usage, *lines, sep="\n", file=sys.stderr)
        return USAGE
    out, resource_type, *parameters = arguments
    form = [(name, value) for name, _, value in (p.partition("=") for p in parameters)]
    part = Path(f"{out}.part")
    try:
        with part.open("w", encoding="utf-8") as file:
            code = walk(Service(os.environ), file, resource_type, form)
        part.replace(out)
    except (WalkError, OSError) as error:
        print(error, file=sys.stderr)
        part.unlink(missing_ok=True)
        return error.code if isinstance(error, WalkError) else REFUSED
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
