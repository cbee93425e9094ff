"""Requests that were recorded are sent again; answers are written so that they can be compared.

Ids of pages, cursors and of requests become placeholders, prose is kept as present alone.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from typing import Any

from flask import Flask
from werkzeug.test import Client, TestResponse

from tests.app import provider
from tests.serving import BASE_URL, FORM

_HOST, _BASE_PATH = BASE_URL.removesuffix("/fhir/v3"), "/fhir/v3"
_PAGE = re.compile(r"(?<=Bundle\?)[^\s\"]*")
_UUID = "urn:uuid:"
_RANDOM = re.compile(r"[A-Za-z0-9.-]{16,64}")
_KINDS = {"_id": "page", "_searchAfter": "cursor", "_searchBefore": "cursor"}
_EDITS: Mapping[str, tuple[str, str]] = {
    "cursor flipped in the middle": (r"(_searchAfter=.{16})[^&]", r"\1_"),
    "id made up": ("([?&]_id=)[^&]*", r"\1" + "a" * 32),
    "index zero": ("(&_index=)[^&]*", r"\g<1>0"),
    "both cursors": ("_searchAfter=([^&]*)", r"_searchAfter=\1&_searchBefore=\1"),
}
"""What is done to a link before it is followed: a pattern and its replacement."""

_CLAIMS: Mapping[str, Mapping[str, Any]] = {
    "expired": {"exp": 1_000_000_000},
    "no-scope": {"scope": None},
}


@cache
def _token(client: str) -> str:
    """Return the token of a client, or of one whose token has other claims."""
    return provider.sign(**_CLAIMS.get(client, {"client_id": client}))


@dataclass(frozen=True, slots=True)
class Ask:
    """One request; `follow` is a link of the earlier answer `of`, `edit` what is done to it.

    A header may say `{ETag}`: the value of that header of the answer `of`.
    """

    method: str = "GET"
    target: str = ""
    form: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    client: str = "client-1"
    base: str = ""
    follow: str = ""
    of: int = -1
    edit: str = ""


@dataclass
class Placeholders:
    """Names for what is random, the same for the same, in the order of a case."""

    _names: dict[tuple[str, str], str] = field(default_factory=dict)

    def of(self, kind: str, text: str) -> str:
        """Return the placeholder of an id or cursor."""
        if not _RANDOM.fullmatch(text):
            return text
        count = sum(known == kind for known, _ in self._names)
        return self._names.setdefault((kind, text), f"<{kind}-{count + 1}>")

    def link(self, url: str) -> str:
        """Return an address with placeholders for what it says of a page."""

        def replaced(found: re.Match[str]) -> str:
            return "&".join(self._pair(pair) for pair in found[0].split("&"))

        if url.startswith(_UUID):
            return _UUID + self.of("uuid", url.removeprefix(_UUID))
        return _PAGE.sub(replaced, url)

    def _pair(self, pair: str) -> str:
        name, equals, text = pair.partition("=")
        shown = self.of(_KINDS[name], text) if name in _KINDS else text
        return f"{name}{equals}{shown}"


def replayed(application: Flask, asks: Iterable[Any]) -> list[Any]:
    """Send requests one after the other, and return what was answered to each."""
    sending = _Sending(application)
    return [{"ask": ask, **sending.answer(Ask(**ask))} for ask in asks]


class _Sending:
    def __init__(self, application: Flask) -> None:
        self._client = Client(application, use_cookies=False)
        self._placeholders = Placeholders()
        self._answers: list[TestResponse] = []

    def answer(self, ask: Ask) -> Any:
        """Send one request and return its answer."""
        target = ask.target
        if ask.follow:
            links = self._answers[ask.of].get_json(force=True)["link"]
            (link,) = (x["url"] for x in links if x["relation"] == ask.follow)
            target = link.removeprefix(f"{BASE_URL}/")
            if ask.edit:
                target = re.sub(*_EDITS[ask.edit], target)
            # Its placeholders come before those of the answer.
            self._placeholders.link(target)
        headers = [(name, self._header(t, ask.of)) for name, t in ask.headers.items()]
        response = self._send(ask, target, headers)
        self._answers.append(response)
        text = response.get_data(as_text=True)
        body = self._shown(json.loads(text)) if text else None
        shown = self._headers(ask, response, body)
        return {"status": response.status_code, "headers": shown, "body": body}

    def _header(self, text: str, of: int) -> str:
        if not (named := re.search(r"{([\w-]+)}", text)):
            return text
        value = self._answers[of].headers.get(named[1], "none")
        return text.replace(named[0], value)

    def _send(
        self, ask: Ask, target: str, headers: list[tuple[str, str]]
    ) -> TestResponse:
        if token := (_token(ask.client) if ask.client else ""):
            headers.append(("Authorization", f"Bearer {token}"))
        is_form = ask.form is not None and "Content-Type" not in dict(headers)
        return self._client.open(
            f"{_BASE_PATH}/{target}" if not target.startswith("/") else target,
            method=ask.method,
            headers=headers,
            data=ask.form,
            content_type=FORM if is_form else None,
            base_url=ask.base or _HOST,
        )

    def _headers(self, ask: Ask, response: TestResponse, body: Any) -> list[str]:
        is_page = body is not None and body.get("resourceType") == "Bundle"
        shown = []
        for name, text in sorted((n.lower(), t) for n, t in response.headers.items()):
            if name == "x-request-id" and text not in ask.headers.values():
                text = "<request>"
            elif name == "content-length":
                is_right = ask.method == "HEAD" or int(text) == len(response.data)
                text = "<right>" if is_right else "<wrong>"
            elif name == "etag" and (is_page or ask.method == "HEAD"):
                text = re.sub('".*"', '"<digest>"', text)
            elif name == "allow":
                text = ", ".join(sorted(text.split(", ")))
            if name != "date":
                shown.append(f"{name}: {text}")
        return shown

    def _shown(self, part: Any, key: str = "", parent: str = "") -> Any:
        """Return a part of a body with placeholders in it."""
        if isinstance(part, dict):
            kind = part.get("resourceType", "") or key
            return {name: self._shown(x, name, kind) for name, x in part.items()}
        if isinstance(part, list):
            return [self._shown(x, key, parent) for x in part]
        if key == "diagnostics" or (key == "text" and parent == "details"):
            return "<text>" if str(part).strip() else part
        if key == "version" and parent == "software":
            return "<version>" if part == version("encounters") else part
        if key == "date" and parent == "CapabilityStatement":
            return "<date>"
        if key == "id" and parent == "Bundle":
            return self._placeholders.of("page", part)
        if key in ("url", "fullUrl") and isinstance(part, str):
            return self._placeholders.link(part)
        return part
