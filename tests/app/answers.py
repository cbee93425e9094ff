"""Helpers for responses: the one issue of an error, the pages of a search, raw requests."""

from collections.abc import Iterator
from typing import Any

from werkzeug.test import TestResponse

from tests.serving import Served, issues, relations

MOST_PAGES = 200


def read_from(served: Served, peer: str, forwarded: str | None = None) -> TestResponse:
    """Read a stay from an address, by proxies that report others."""
    headers = {} if forwarded is None else {"X-Forwarded-For": forwarded}
    environ = {"REMOTE_ADDR": peer}
    return served.send("GET", "Encounter/1", headers=headers, environ_overrides=environ)


def body(response: TestResponse, status: int = 200) -> Any:
    """Return the body of an answer of this status."""
    assert response.status_code == status, response.text
    return response.get_json(force=True)


def refused(
    response: TestResponse, status: int, code: str, name: str | None = None
) -> str:
    """Check the status, the one issue and the location of an error; return its text."""
    (issue,) = body(response, status)["issue"]
    assert issue["severity"] == "error"
    assert issue["code"] == code, issue
    assert issue.get("location") == (None if name is None else [f"http.{name}"])
    return str(issue["diagnostics"])


def messages(bundle: Any) -> list[tuple[str, str, str | None]]:
    """Return severity, code and location of the messages in a Bundle."""
    return [
        (each["severity"], each["code"], each.get("location", [None])[0])
        for each in issues(bundle)
    ]


def pages(served: Served, bundle: Any, relation: str = "next") -> Iterator[Any]:
    """Yield a page and all that its links of one relation lead to."""
    yield bundle
    for _ in range(MOST_PAGES):
        if relation not in relations(bundle):
            return
        bundle = served.follow(bundle, relation)
        yield bundle
    raise AssertionError("the links go in circles")


def parameters(url: str) -> dict[str, str]:
    """Return the parameters of a link in their order."""
    return dict(pair.split("=") for pair in url.partition("?")[2].split("&"))
