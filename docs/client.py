"""Walk all pages of a search: `python client.py Encounter date=ge2024-01-01 _count=50`.

Prints one resource a line. Needs Python 3.11, the package requests, and in the
environment BASE_URL, TOKEN_URL, AUDIENCE, CLIENT_ID and CLIENT_SECRET. Exit status: 0 all
is there, 1 the service refused, 2 it was called otherwise, 3 not all is there: the hospital
changed during the walk (search again), or has no further pages (narrow the search).
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import requests

TRIES, LONGEST_WAIT_SECONDS, TIMEOUT_SECONDS = 5, 60, 30
HTTP = requests.Session()
VARIABLES = ("BASE_URL", "TOKEN_URL", "AUDIENCE", "CLIENT_ID", "CLIENT_SECRET")


class WalkError(Exception):
    """The walk came to no good end: the exit status, and why."""


def send(method: str, url: str, form: Any, token: str = "") -> requests.Response:
    """Send a request, and again while the service says when to come back."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    options: Any = {"timeout": TIMEOUT_SECONDS, "allow_redirects": False}
    for tries_left in reversed(range(TRIES)):
        answer = HTTP.request(method, url, data=form, headers=headers, **options)
        told = answer.headers.get("Retry-After", "")
        wait = int(told) if told.isdigit() else 5
        again = answer.status_code in (429, 503) and wait <= LONGEST_WAIT_SECONDS
        if not (again and tries_left):
            break
        time.sleep(wait)
    return answer


def body(answer: requests.Response) -> Any:
    """Return the body of a good answer."""
    if answer.status_code != 200:
        raise WalkError(1, f"status {answer.status_code}: {answer.text[:500]}")
    return answer.json()


def new_token() -> str:
    """Get a token by client credentials."""
    form = {"grant_type": "client_credentials"}
    for name in ("audience", "client_id", "client_secret"):
        form[name] = os.environ[name.upper()]
    return str(body(send("POST", os.environ["TOKEN_URL"], form))["access_token"])


def pages(resource_type: str, form: list[tuple[str, str]]) -> Iterator[Any]:
    """Yield page after page; an error on the way is never the end."""
    base_url, token = os.environ["BASE_URL"], new_token()
    request: tuple[str, str, Any] = (
        "POST",
        f"{base_url}/{resource_type}/_search",
        form,
    )
    while True:
        answer = send(*request, token)
        if answer.status_code == 401:  # it expired on the way: once more with a new one
            token = new_token()
            answer = send(*request, token)
        page = body(answer)
        yield page
        links = {link["relation"]: link["url"] for link in page["link"]}
        if "next" not in links:
            return
        if not links["next"].startswith(f"{base_url}/"):
            raise WalkError(1, "The next link leads elsewhere: no token goes there.")
        request = ("GET", links["next"], None)


def walk(resource_type: str, form: list[tuple[str, str]]) -> Iterator[Any]:
    """Yield what matches, and compare it with `total` in the end."""
    ids, unshown, total = [], 0, 0
    for page in pages(resource_type, form):
        total = page["total"]
        for entry in page.get("entry", ()):
            resource = entry["resource"]
            if entry["search"]["mode"] == "match":
                ids.append(resource["id"])
                yield resource
                continue
            for issue in resource["issue"]:
                print(f"{issue['severity']}: {issue['diagnostics']}", file=sys.stderr)
                unshown += issue["code"] == "exception"
    if len(ids) != len(set(ids)) or len(ids) + unshown != total:
        found = f"{len(ids)} found, {len(set(ids))} different, {unshown} not shown"
        raise WalkError(3, f"total is {total}, but: {found}")
    print(f"{total} in all, {unshown} not shown", file=sys.stderr)


def check_call() -> None:
    """End with how to call this, where something is missing."""
    missing = [name for name in VARIABLES if name not in os.environ]
    if len(sys.argv) < 2 or missing:
        print("usage: python client.py TYPE [NAME=VALUE ...]", file=sys.stderr)
        if missing:
            print(f"not in the environment: {', '.join(missing)}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    check_call()
    parameters = [
        (name, value) for name, _, value in (p.partition("=") for p in sys.argv[2:])
    ]
    try:
        for found in walk(sys.argv[1], parameters):
            print(json.dumps(found))
    except WalkError as error:
        print(error.args[1], file=sys.stderr)
        sys.exit(error.args[0])
    except requests.RequestException as error:
        print(error, file=sys.stderr)
        sys.exit(1)
