"""Requests that were recorded are sent again; answers are written so that they can be compared.

Ids of pages, cursors and of requests become placeholders, prose is kept as present alone.
"""

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, TypeAlias

from werkzeug.test import Client, TestResponse

from tests.replay import tokens
from tests.replay.deployments import BASE_PATH, HOST

Json: TypeAlias = Any
RESOURCES = ("Encounter", "Patient", "Organization")
_FORM = "application/x-www-form-urlencoded"
_PAGE = re.compile(r"(?<=Bundle\?)[^\s\"]*")
_COUNTED, _LATE = "limited-", 55
"""Clients whose requests are counted, within one minute of the clock."""
_MATCH = "match "
_UUID = "urn:uuid:"
_RANDOM = re.compile(r"[A-Za-z0-9.-]{16,64}")


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
    peer: str = ""
    follow: str = ""
    of: int = -1
    edit: str = ""


@dataclass
class Tables:
    """What stands once and is referred to: resources, sets of headers."""

    resources: dict[str, Json] = field(default_factory=dict)
    headers: dict[str, Json] = field(default_factory=dict)

    def resource(self, body: Json) -> str:
        """Keep a resource and return its name."""
        name = f"{body['resourceType']}/{body.get('id')}#{_digest(body)}"
        self.resources[name] = body
        return name

    def header_set(self, headers: Json) -> str:
        """Keep headers and return the name of their set."""
        name = f"headers#{_digest(headers)}"
        self.headers[name] = headers
        return name

    def used(self, exchanges: Json) -> "Tables":
        """Return what exchanges refer to, in the order of names."""
        names = {
            *re.findall(
                rf'"(?:{_MATCH})?([^"]*#[0-9a-f]{{10}})"', json.dumps(exchanges)
            )
        }
        tables = (self.resources, self.headers)
        return Tables(*({n: t[n] for n in sorted(names & {*t})} for t in tables))

    def whole(self, told: Json) -> Json:
        """Return what was told with all that it refers to put in."""
        if isinstance(told, dict):
            return {name: self.whole(each) for name, each in told.items()}
        if isinstance(told, list):
            return [self.whole(each) for each in told]
        if isinstance(told, str):
            name = told.removeprefix(_MATCH)
            known = self.resources.get(name, self.headers.get(name, told))
            return {told: known} if name != told else known
        return told


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
        kind = {"_id": "page", "_searchAfter": "cursor", "_searchBefore": "cursor"}
        return f"{name}{equals}{self.of(kind[name], text) if name in kind else text}"


def replayed(application: Any, asks: Iterable[Json], tables: Tables) -> list[Json]:
    """Send requests one after the other, and return what was told of each."""
    sending = _Sending(application, tables)
    return [{"ask": each, **sending.told(Ask(**each))} for each in asks]


class _Sending:
    def __init__(self, application: Any, tables: Tables) -> None:
        self._client = Client(application, use_cookies=False)
        self._tables = tables
        self._placeholders = Placeholders()
        self._answers: list[TestResponse | None] = []

    def told(self, ask: Ask) -> Json:
        """Send one request; nothing is told where there is no link to follow."""
        is_counted = ask.client.startswith(_COUNTED) and not self._answers
        if is_counted and time.time() % 60 > _LATE:
            # What is counted within one minute of the clock does not begin at its end.
            time.sleep(61 - time.time() % 60)
        target = ask.target
        if ask.follow:
            link = self._link(ask.follow, ask.of)
            if link is None:
                self._answers.append(None)
                return {}
            target = _EDITS[ask.edit](link).removeprefix(f"{HOST}{BASE_PATH}/")
            # Its placeholders come before those of the answer.
            self._placeholders.link(target)
        headers = [
            (name, self._header(text, ask.of)) for name, text in ask.headers.items()
        ]
        answer = self._send(ask, target, headers)
        self._answers.append(answer)
        return self._answer(ask, answer)

    def _link(self, relation: str, of: int) -> str | None:
        answer = self._answers[of]
        if answer is None or not answer.data:
            return None
        links = answer.get_json(force=True).get("link", ())
        urls = [str(each["url"]) for each in links if each["relation"] == relation]
        return urls[0] if urls else None

    def _header(self, text: str, of: int) -> str:
        if not (found := re.search(r"{([\w-]+)}", text)):
            return text
        answer = self._answers[of]
        assert answer is not None
        return text.replace(found[0], answer.headers.get(found[1], "none"))

    def _send(
        self, ask: Ask, target: str, headers: list[tuple[str, str]]
    ) -> TestResponse:
        if token := (tokens.token(ask.client) if ask.client else ""):
            headers.append(("Authorization", f"Bearer {token}"))
        is_form = ask.form is not None and "Content-Type" not in dict(headers)
        return self._client.open(
            f"{BASE_PATH}/{target}" if not target.startswith("/") else target,
            method=ask.method,
            headers=headers,
            data=ask.form,
            content_type=_FORM if is_form else None,
            base_url=ask.base or HOST,
            environ_overrides={"REMOTE_ADDR": ask.peer} if ask.peer else None,
        )

    def _answer(self, ask: Ask, answer: TestResponse) -> Json:
        text = answer.get_data(as_text=True)
        body: Json = json.loads(text) if text else None
        is_page = body is not None and body.get("resourceType") == "Bundle"
        told = {
            "status": answer.status_code,
            "headers": self._tables.header_set(self._headers(ask, answer, is_page)),
        }
        if body is not None:
            told["layout"] = _layout(text, body)
            told["body"] = self._shown(body)
        return told

    def _headers(self, ask: Ask, answer: TestResponse, is_page: bool) -> Json:
        told = []
        for name, text in sorted(
            (name.lower(), text) for name, text in answer.headers.items()
        ):
            if name == "date":
                continue
            if name == "x-request-id" and text not in ask.headers.values():
                text = "<request>"
            elif name == "content-length":
                is_right = ask.method == "HEAD" or int(text) == len(answer.data)
                text = "<right>" if is_right else "<wrong>"
            elif name == "etag" and (is_page or ask.method == "HEAD"):
                text = re.sub('".*"', '"<digest>"', text)
            elif name == "allow":
                text = ", ".join(sorted(text.split(", ")))
            elif name == "retry-after" and answer.status_code == 429:
                text = "<seconds>" if 1 <= int(text) <= 60 else text
            told.append(f"{name}: {text}")
        return told

    def _shown(self, told: Json, key: str = "", parent: str = "") -> Json:
        """Return a part of a body with placeholders and references in it."""
        if isinstance(told, dict):
            kind = told.get("resourceType", "")
            shown = {
                name: self._shown(each, name, kind or key)
                for name, each in told.items()
            }
            return self._tables.resource(shown) if kind in RESOURCES else _match(shown)
        if isinstance(told, list):
            return [self._shown(each, key, parent) for each in told]
        if key == "diagnostics" or (key == "text" and parent == "details"):
            return "<text>" if str(told).strip() else told
        if key == "version" and parent == "software":
            return "<version>" if told == version("encounters") else told
        if key == "id" and parent == "Bundle":
            return self._placeholders.of("page", told)
        if key in ("url", "fullUrl") and isinstance(told, str):
            return self._placeholders.link(told)
        return told


def _match(shown: Json) -> Json:
    """Return the usual entry of a match in short, anything else as it is."""
    match shown:
        case {"fullUrl": str(url), "resource": str(name), "search": {"mode": "match"}}:
            usual = {
                "fullUrl": f"{HOST}{BASE_PATH}/{name.partition('#')[0]}",
                "resource": name,
                "search": {"mode": "match"},
            }
            if url == usual["fullUrl"] and list(shown.items()) == list(usual.items()):
                return f"{_MATCH}{name}"
    return shown


def _layout(text: str, body: Json) -> str:
    for name, written in (
        ("compact", json.dumps(body, ensure_ascii=False, separators=(",", ":"))),
        ("indented", json.dumps(body, ensure_ascii=False, indent=2)),
    ):
        if text.rstrip("\n") == written:
            return name + (", line end" if text.endswith("\n") else "")
    return "other"


def _digest(body: Json) -> str:
    return hashlib.sha256(json.dumps(body).encode()).hexdigest()[:10]


# -------------------------------------------------------------------- changed links


def _changed(name: str, change: Callable[[str], str]) -> Callable[[str], str]:
    def edit(url: str) -> str:
        return re.sub(
            rf"([?&]{name}=)([^&]*)", lambda found: found[1] + change(found[2]), url
        )

    return edit


def _flip(at: int) -> Callable[[str], str]:
    def change(text: str) -> str:
        sign = "b" if text[at] == "a" else "a"
        place = at % len(text)
        return text[:place] + sign + text[place + 1 :]

    return change


_AFTER = "_search(?:After|Before)"
_EDITS: Mapping[str, Callable[[str], str]] = {
    "": lambda url: url,
    "cursor flipped at the start": _changed(_AFTER, _flip(0)),
    "cursor flipped in the middle": _changed(_AFTER, _flip(16)),
    "cursor truncated": _changed(_AFTER, lambda text: text[:-1]),
    "cursor lengthened": _changed(_AFTER, lambda text: text + "a"),
    "cursor in capitals": _changed(_AFTER, str.upper),
    "cursor of no alphabet": _changed(_AFTER, lambda text: "_" * len(text)),
    "cursor empty": _changed(_AFTER, lambda _: ""),
    "cursor made up": _changed(_AFTER, lambda text: "a" * len(text)),
    "id flipped at the start": _changed("_id", _flip(0)),
    "id truncated": _changed("_id", lambda text: text[:-1]),
    "id in capitals": _changed("_id", str.upper),
    "id empty": _changed("_id", lambda _: ""),
    "id made up": _changed("_id", lambda text: "a" * len(text)),
    "id gone": lambda url: re.sub(r"_id=[^&]*&?", "", url),
    "index of another page": _changed("_index", lambda _: "7"),
    "index zero": _changed("_index", lambda _: "0"),
    "index no number": _changed("_index", lambda _: "x"),
    "index gone": lambda url: re.sub(r"&_index=[^&]*", "", url),
    "index twice": lambda url: re.sub(r"(&_index=[^&]*)", r"\1\1", url),
    "cursor the other way": lambda url: url.replace("_searchAfter", "_searchBefore"),
    "both cursors": lambda url: re.sub(
        r"_searchAfter=([^&]*)", r"_searchAfter=\1&_searchBefore=\1", url
    ),
    "cursor twice": lambda url: re.sub(r"(&_searchAfter=[^&]*)", r"\1\1", url),
    "cursor without index": lambda url: re.sub(r"&_index=[^&]*", "", url),
    "cursor for id": lambda url: re.sub(
        r"_id=[^&]*(.*_searchAfter=)([^&]*)", r"_id=\2\1\2", url
    ),
    "another parameter": lambda url: f"{url}&status=finished",
    "count": lambda url: f"{url}&_count=3",
    "pretty": lambda url: f"{url}&_pretty=true",
    "format json": lambda url: f"{url}&_format=json",
    "format xml": lambda url: f"{url}&_format=xml",
    "summary": lambda url: f"{url}&_summary=true",
    "elements": lambda url: f"{url}&_elements=status",
    "token": lambda url: f"{url}&access_token=abc",
    "parameters swapped": lambda url: re.sub(
        r"\?(_id=[^&]*)&(_index=[^&]*)&(.*)", r"?\3&\2&\1", url
    ),
}
