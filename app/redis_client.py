"""The client of Redis: one server, a socket, TLS, or a master behind Sentinel.

    redis://, rediss://, unix://      as redis-py documents them
    redis+sentinel://[[user]:password@]host:port[,host:port…]/master[/number]

`rediss+sentinel://` is the same over TLS. The account is that of Redis and its sentinels; after
`?`, `sentinel_username` and `sentinel_password` are those of the sentinels, empty for none.
"""

import time
from dataclasses import dataclass, field
from typing import Any, NoReturn, Self
from urllib.parse import parse_qsl, unquote, urlsplit
from weakref import WeakSet

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel

from adapters.lifetime import end_of_life
from adapters.transport import is_loopback

SCHEMES = ("redis+sentinel", "rediss+sentinel")
_SENTINEL_OPTIONS = frozenset({"sentinel_username", "sentinel_password"})
REDIS_SECONDS = 0.25
"""How long a call to Redis may take; the library's own defaults are several seconds."""

REDIS_ERRORS = (redis.RedisError, ValueError, TypeError, RecursionError)
"""What a client raises: Redis is away, or its response makes no sense to redis-py."""

_USUAL_PORT = 26379

_clients: WeakSet[redis.Redis] = WeakSet()
"""Those of this process, whose connections end with their lifetime."""


@dataclass(frozen=True, slots=True)
class SentinelAddress:
    """Where the sentinels are, and the name by which they know the master."""

    hosts: tuple[tuple[str, int], ...]
    master: str
    number: int
    secure: bool
    user: str | None
    password: str | None = field(repr=False)
    sentinel_user: str | None
    sentinel_password: str | None = field(repr=False)

    @classmethod
    def read(cls, url: str) -> Self:
        """Read the URL of sentinels. Raises ValueError for any other text."""
        parts = urlsplit(url)
        credentials, _, hosts = parts.netloc.rpartition("@")
        user, _, password = credentials.partition(":")
        master, _, number = parts.path.strip("/").partition("/")
        if parts.scheme not in SCHEMES or not master or parts.fragment:
            raise ValueError
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        if (parts.query and not options) or options.keys() - _SENTINEL_OPTIONS:
            raise ValueError
        sentinel_user = unquote(user)
        sentinel_password = unquote(password)
        if options:
            # They replace the account as a whole: what is not in them is empty.
            sentinel_user = options.get("sentinel_username", "")
            sentinel_password = options.get("sentinel_password", "")
        if number and not (number.isascii() and number.isdigit()):
            raise ValueError
        return cls(
            hosts=tuple(_host(text) for text in hosts.split(",")),
            master=unquote(master),
            number=int(number or 0),
            secure=parts.scheme == "rediss+sentinel",
            user=unquote(user) or None,
            password=unquote(password) or None,
            sentinel_user=sentinel_user or None,
            sentinel_password=sentinel_password or None,
        )

    def client(self, **options: Any) -> redis.Redis:
        """Return a client of the present master; `options` are its connections'."""
        account = {"username": self.user, "password": self.password}
        sentinel = self.sentinel(**options, **account)
        master: redis.Redis = sentinel.master_for(  # type: ignore[no-untyped-call]
            self.master, db=self.number
        )
        return master

    def sentinel(self, **options: Any) -> Sentinel:
        """Return the sentinels, each with a client of its own."""
        account = {"username": self.sentinel_user, "password": self.sentinel_password}
        options |= {"ssl": self.secure}
        sentinel = Sentinel(  # type: ignore[no-untyped-call]
            self.hosts, sentinel_kwargs=options | account, **options
        )
        _clients.update(sentinel.sentinels)
        return sentinel


def is_sentinel(url: str) -> bool:
    """Return whether an address is that of sentinels."""
    return url.partition("://")[0] in SCHEMES


def is_exposed(url: str) -> bool:
    """Return whether an address leads to another machine without TLS.

    With TLS the client checks the certificate and the name of the host.
    """
    if is_sentinel(url):
        address = SentinelAddress.read(url)
        hosts: tuple[str | None, ...] = tuple(host for host, _ in address.hosts)
        return not address.secure and not all(map(is_loopback, hosts))
    parts = urlsplit(url)
    return parts.scheme == "redis" and not is_loopback(parts.hostname)


OPTIONS: dict[str, Any] = {
    "socket_timeout": REDIS_SECONDS,
    "socket_connect_timeout": REDIS_SECONDS,
    "retry": Retry(NoBackoff(), 0),
    "health_check_interval": 30,
    "protocol": 2,
}
"""Of every connection: it never waits long, and nothing is repeated."""


def connect(url: str) -> redis.Redis:
    """Return a client of the Redis at `url` that never waits long and never repeats."""
    if is_sentinel(url):
        client = SentinelAddress.read(url).client(**OPTIONS)
    else:
        client = redis.Redis.from_url(url, **OPTIONS)
    _clients.add(client)
    return client


def end_connections(lifetime: float) -> NoReturn:
    """Close idle connections again and again, so that none lives longer (seconds).

    One that is in use at that moment, which is a matter of milliseconds, lives once more.
    """
    while True:
        time.sleep(end_of_life(lifetime) - time.monotonic())
        close_idle_connections()


def close_idle_connections() -> None:
    """Close the idle connections of all clients of this process."""
    for client in tuple(_clients):
        client.connection_pool.disconnect(inuse_connections=False)


def _host(text: str) -> tuple[str, int]:
    parts = urlsplit(f"//{text}")
    if not parts.hostname or parts.port == 0 or parts.netloc != text:
        raise ValueError
    return parts.hostname, parts.port or _USUAL_PORT
