"""What a head has to say of its request and gunicorn does not ask for (RFC 9112)."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from gunicorn.http.errors import InvalidHeader

# uri-host [ ":" port ] (RFC 9110, 7.2; RFC 3986, 3.2.2).
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]+]|[A-Za-z0-9._~!$&'()*+,;=%-]*)(?::[0-9]*)?")
_CLOSE = re.compile(r"(?:^|,)[ \t]*close[ \t]*(?:,|$)", re.I)


def check_head(request: Any) -> None:
    """Note that the connection is to be closed where one of its options says so (9.6).

    Raises InvalidHeader for a Host that is missing or none (3.2): two who read it
    differently on its way would not agree whom it is for.
    """
    head = dict(request.headers)
    if "CONNECTION" in head and _is_closing(request.headers):
        request.force_close()
    host = head.get("HOST")
    if host is None:
        if request.version >= (1, 1):
            raise InvalidHeader("HOST")
    elif not _is_host(host):
        raise InvalidHeader("HOST")


def _is_closing(headers: Iterable[tuple[str, str]]) -> bool:
    return any(_CLOSE.search(text) for name, text in headers if name == "CONNECTION")


@lru_cache
def _is_host(text: str) -> bool:
    """Tell whether it is a host: there are few."""
    return _HOST.fullmatch(text) is not None
