"""How many requests a minute one client may make, or one address without a known token.

Counted in Redis, so for all workers and instances together, each request once. A process
takes its requests in portions: most of them cost no round trip to Redis, none more than
one. The minutes are those of the clock: when one ends is known without asking. While
Redis is away each process counts for itself (decision 25).
"""

import logging
import time
from collections.abc import Callable
from hashlib import blake2b
from threading import Lock

import redis
from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage, RedisStorage
from limits.strategies import FixedWindowRateLimiter
from werkzeug.exceptions import TooManyRequests

from adapters.outward import Kind, outward
from app.operations.metrics import THROTTLED

WINDOW_SECONDS = 60

PORTIONS = 1000
"""A limit is taken in so many portions at most: it is kept to within a thousandth."""

AWAY_SECONDS = 5.0
"""How long a Redis that failed is not asked again: a time-out costs each request."""

_KEY_PREFIX = "throttle"
_REFUSED = -1

_log = logging.getLogger(__name__)


class Throttle:
    """Counts requests against what a minute allows. Safe to share between threads.

    `clients` and `addresses` are requests a minute, None for no limit; `clock` gives
    seconds since 1970.
    """

    def __init__(
        self,
        client: redis.Redis,
        *,
        clients: int | None,
        addresses: int | None,
        key: bytes,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clients = _item(clients)
        self._addresses = _item(addresses)
        self._counts = _Counts(client, key, monotonic)
        self._clock = clock
        self._minute = 0
        self._left: dict[tuple[str, str], int] = {}
        self._lock = Lock()

    def count_client(self, id: str) -> None:
        """Count a request of a client; raises TooManyRequests."""
        self._count(self._clients, "client", id)

    def count_address(self, address: str) -> None:
        """Count a request whose token was never verified; raises TooManyRequests."""
        self._count(self._addresses, "address", address)

    def _count(self, item: RateLimitItemPerMinute | None, kind: str, who: str) -> None:
        if item is None:
            return
        minute, gone = divmod(int(self._clock()), WINDOW_SECONDS)
        left = self._use(minute, (kind, who))
        if not left:
            portion = max(1, item.amount // PORTIONS)
            taken = self._counts.take(item, portion, kind, who, minute)
            left = portion if taken else _REFUSED
            self._keep(minute, (kind, who), left)
        if left == _REFUSED:
            THROTTLED.labels(kind).inc()
            raise TooManyRequests(retry_after=WINDOW_SECONDS - gone)

    def _use(self, minute: int, name: tuple[str, str]) -> int:
        """Use one of what is left to a name; return what there was."""
        with self._lock:
            if minute != self._minute:
                self._minute = minute
                self._left.clear()
            left = self._left.get(name, 0)
            if left > 0:
                self._left[name] = left - 1
            return left

    def _keep(self, minute: int, name: tuple[str, str], left: int) -> None:
        with self._lock:
            if minute == self._minute:
                more = self._left.get(name, 0) + left - 1
                self._left[name] = _REFUSED if left == _REFUSED else more


class _Counts:
    """The counts of all processes, in Redis; while that is away, of this one.

    Names are kept as digests under `key`.
    """

    def __init__(
        self, client: redis.Redis, key: bytes, monotonic: Callable[[], float]
    ) -> None:
        storage = RedisStorage(
            "redis://", connection_pool=client.connection_pool, key_prefix=_KEY_PREFIX
        )
        self._shared = FixedWindowRateLimiter(storage)
        self._own = FixedWindowRateLimiter(MemoryStorage())
        self._key = key
        self._monotonic = monotonic
        self._ask_again_at: float | None = None

    def take(
        self, item: RateLimitItemPerMinute, cost: int, kind: str, who: str, minute: int
    ) -> bool:
        """Return whether there was as much left in this minute; if so it is taken."""
        name = blake2b(who.encode(), key=self._key, digest_size=12).hexdigest()
        names = (kind, name, str(minute))
        if self._ask_again_at is None or self._monotonic() >= self._ask_again_at:
            try:
                with outward(Kind.STORE, "redis", "throttle"):
                    taken = self._shared.hit(item, *names, cost=cost)
            except (redis.RedisError, TypeError, ValueError) as error:
                # The last two: its answer is no number.
                self._lost(error)
            else:
                self._found()
                return taken
        return self._own.hit(item, *names, cost=cost)

    def _lost(self, error: Exception) -> None:
        if self._ask_again_at is None:
            data = {"reason": type(error).__name__}
            _log.warning("requests are counted in the process", extra={"data": data})
        self._ask_again_at = self._monotonic() + AWAY_SECONDS

    def _found(self) -> None:
        if self._ask_again_at is not None:
            self._ask_again_at = None
            _log.warning("requests are counted in Redis again")


def _item(limit: int | None) -> RateLimitItemPerMinute | None:
    return None if limit is None else RateLimitItemPerMinute(limit)
