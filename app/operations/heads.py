"""What a head has to say of its request and gunicorn does not ask for (RFC 9112)."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from gunicorn.http.errors import InvalidHeader, InvalidRequestLine

# uri-host [ ":" port ] (RFC 9110, 7.2; RFC 3986, 3.2.2).
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]+]|[A-Za-z0-9._~!$&'()*+,;=%-]*)(?::[0-9]*)?")
_CLOSE = re.compile(r"(?:^|,)[ \t]*close[ \t]*(?:,|$)", re.I)


_OURS = (1, 1)
"""The highest version of HTTP that is spoken here."""


def check_head(request: Any) -> None:
    """Note the version of the answer, and whether an option says that it is the last (9.6).

    Raises InvalidRequestLine for a target with a fragment (3.2), InvalidHeader for a Host
    that is missing or none (3.2): two who read it differently on its way would not agree
    what it is for, and whom.
    """
    if "#" in request.uri:
        raise InvalidRequestLine("fragment")
    request.version = min(request.version, _OURS)
    head = dict(request.headers)
    if "CONNECTION" in head and _is_closing(request.headers):
        request.force_close()
    host = head.get("HOST")
    if host is None:
        if request.version == _OURS:
            raise InvalidHeader("HOST")
    elif not _is_host(host):
        raise InvalidHeader("HOST")


def _is_closing(headers: Iterable[tuple[str, str]]) -> bool:
    return any(_CLOSE.search(text) for name, text in headers if name == "CONNECTION")


@lru_cache
def _is_host(text: str) -> bool:
    """Tell whether it is a host: there are few."""
    return _HOST.fullmatch(text) is not None
