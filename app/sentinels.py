"""Redis behind Sentinel: who is asked where the master is, and a client that follows it.

    redis+sentinel://[[user]:password@]host:port[,host:port…]/master[/number]

`rediss+sentinel://` is the same over TLS. The password is that of Redis and of its sentinels.
"""

from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import unquote, urlsplit

import redis
from redis.sentinel import Sentinel

SCHEMES = ("redis+sentinel", "rediss+sentinel")

_USUAL_PORT = 26379


@dataclass(frozen=True, slots=True)
class SentinelAddress:
    """Where the sentinels are, and the name by which they know the master."""

    hosts: tuple[tuple[str, int], ...]
    master: str
    number: int
    secure: bool
    user: str | None
    password: str | None = field(repr=False)

    @classmethod
    def read(cls, url: str) -> Self:
        """Read an address. Raises ValueError for one that is none."""
        parts = urlsplit(url)
        who, _, hosts = parts.netloc.rpartition("@")
        user, _, password = who.partition(":")
        master, _, number = parts.path.strip("/").partition("/")
        if parts.scheme not in SCHEMES or not master or parts.query or parts.fragment:
            raise ValueError
        return cls(
            hosts=tuple(_host(text) for text in hosts.split(",")),
            master=unquote(master),
            number=_number(number),
            secure=parts.scheme == "rediss+sentinel",
            user=unquote(user) or None,
            password=unquote(password) or None,
        )

    def client(self, **options: Any) -> redis.Redis:
        """Return a client of whichever Redis is the master; `options` are its connections'."""
        known = {
            "username": self.user,
            "password": self.password,
            "ssl": self.secure,
            **options,
        }
        sentinel = Sentinel(  # type: ignore[no-untyped-call]
            self.hosts, sentinel_kwargs=known, **known
        )
        master: redis.Redis = sentinel.master_for(  # type: ignore[no-untyped-call]
            self.master, db=self.number
        )
        return master


def is_sentinel(url: str) -> bool:
    """Tell whether an address is that of sentinels."""
    return url.partition("://")[0] in SCHEMES


def _number(text: str) -> int:
    if text and not (text.isascii() and text.isdigit()):
        raise ValueError
    return int(text or 0)


def _host(text: str) -> tuple[str, int]:
    parts = urlsplit(f"//{text}")
    if not parts.hostname or parts.port == 0 or parts.netloc != text:
        raise ValueError
    return parts.hostname, parts.port or _USUAL_PORT
