"""Rules about where an HTTP source is, and how it is shown who asks."""

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from adapters.mapping.document import Document
from adapters.mapping.nodes import KeyPath
from adapters.mapping.problems import MappingProblem
from adapters.mapping.secrets import named, resolved

_SENDABLE = re.compile(r"([!-~\xa1-\xff][\t -~\xa0-\xff]*)?")
_SECRET = re.compile(r"auth|pass|pwd|secret|key|token|motdepasse|mdp", re.IGNORECASE)


def _is_address(url: str) -> bool:
    if not re.fullmatch(r"https?://[^\s/?#]+[^\s?#]*", url):
        return False
    try:
        whole = urlsplit(url)
        # The port is read when it is asked for.
        return bool(whole.hostname) and whole.port != 0
    except ValueError:
        return False


def addresses_are_http(doc: Document) -> Iterator[MappingProblem]:
    """Refuse an address that is none of HTTP; never quote it."""
    for path, source in doc.http_sources().items():
        oauth2 = source.get("auth", {}).get("oauth2", {})
        for below, value in (
            (("url",), source.get("url", "")),
            (("auth", "oauth2", "token_url"), oauth2.get("token_url", "")),
        ):
            url = resolved(value, doc.environ)
            if url and not _is_address(url):
                text = "not an address like https://host/path"
                text += ", nor {env: NAME}" if isinstance(value, str) else ""
                yield doc.problem((*path, *below), text)


def keys_can_be_sent(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a variable with a sign that no header can carry; never quote it."""
    for path, source in doc.http_sources().items():
        for header, value in source.get("headers", {}).items():
            for _, name in named(value):
                if not _SENDABLE.fullmatch(resolved(value, doc.environ)):
                    text = f"the environment variable {name} holds a sign that no header can carry"
                    yield doc.problem((*path, "headers", header), text)


def keys_are_not_written(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a password, key or token in clear, of an HTTP API or a class."""
    for path, source in doc.sources().items():
        for below, key in _written(source):
            text = "put it into the environment and write {env: NAME}"
            yield doc.problem((*path, *below, key), text)


def _written(source: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    """Yield what stands in clear under a key that speaks of a secret."""
    auth = source.get("auth", {})
    login = auth.get("session", {})
    for path, values in (
        (("headers",), source.get("headers", {})),
        (("options",), source.get("options", {})),
        (("auth", "basic"), auth.get("basic", {})),
        (("auth", "oauth2"), auth.get("oauth2", {})),
        (("auth", "session", "body"), login.get("body", {})),
        (("auth", "session", "form"), login.get("form", {})),
    ):
        for key, value in values.items():
            bare = re.sub(r"[\W_]", "", key)
            if isinstance(value, str) and _SECRET.search(bare) and key != "token_url":
                yield path, key


def one_way_to_show_who_asks(doc: Document) -> Iterator[MappingProblem]:
    """Refuse no way or several under `auth`, and a login without its values."""
    for source, data in doc.http_sources().items():
        auth, path = data.get("auth"), (*source, "auth")
        if auth is None or doc.is_refused(path):
            continue
        if len(auth) != 1:
            yield doc.problem(path, "give one of basic, oauth2, session")
        login = auth.get("session")
        if login is not None:
            path = (*path, "session")
            if len({"body", "form"} & set(login)) != 1:
                yield doc.problem(path, "give body (sent as JSON) or form, not both")
            if "{token}" not in login.get("format", "{token}"):
                yield doc.problem((*path, "format"), "must hold {token}")


RULES = (
    addresses_are_http,
    keys_can_be_sent,
    keys_are_not_written,
    one_way_to_show_who_asks,
)
