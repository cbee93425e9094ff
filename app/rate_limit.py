"""The rate limit: requests a minute of one client, or of one address without a token.

Counted in Redis, for all workers and instances together; while Redis is away each process
counts for itself (decision 25). Minutes are those of the clock, so that `Retry-After` is
the rest of the minute.

A process tells Redis of its requests once they are a hundredth of the limit, or would exceed
it: who keeps the limit is never refused, and each process lets a hundredth too many in at most.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from threading import Lock

import redis
from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage, RedisStorage
from limits.strategies import FixedWindowRateLimiter
from werkzeug.exceptions import TooManyRequests

from adapters.instrumentation import CallKind, observe
from app.observability import THROTTLED
from app.redis_client import REDIS_ERRORS

WINDOW_SECONDS = 60

AWAY_SECONDS = 5.0
"""How long a Redis that failed is not called again: a timeout delays each request."""

SHARE = 100
"""A process adds its requests in Redis once they are this part of the limit: 1/100."""

_KEY_PREFIX = "throttle"

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Count:
    """Requests of a minute: the last total of Redis, and those that it does not have yet."""

    total: int = 0
    unreported: int = 0


class Throttle:
    """Counts requests against the limits of a minute. Safe to share between threads.

    `clients` and `addresses` are requests a minute, None for no limit. Redis holds digests
    under `key` in place of names. `clock` gives seconds since 1970.
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
        self._clients, self._addresses = _item(clients), _item(addresses)
        pool = client.connection_pool
        self._shared = RedisStorage(
            "redis://", connection_pool=pool, key_prefix=_KEY_PREFIX
        )
        self._counts: dict[str, _Count] = {}
        self._minute = 0
        self._lock = Lock()
        self._in_process = FixedWindowRateLimiter(MemoryStorage())
        self._key = key
        self._clock, self._monotonic = clock, monotonic
        self._retry_at: float | None = None

    def count_client(self, id: str) -> None:
        """Count a request of a client; raises TooManyRequests."""
        self._count(self._clients, "client", id)

    def count_address(self, address: str) -> None:
        """Count a request without a verified token; raises TooManyRequests."""
        self._count(self._addresses, "address", address)

    def _count(self, item: RateLimitItemPerMinute | None, kind: str, who: str) -> None:
        if item is None:
            return
        minute, elapsed = divmod(int(self._clock()), WINDOW_SECONDS)
        with self._lock:
            if minute != self._minute:
                self._minute, self._counts = minute, {}
        digest = blake2b(who.encode(), key=self._key, digest_size=12).hexdigest()
        if not self._hit(item, kind, digest, str(minute)):
            THROTTLED.labels(kind).inc()
            raise TooManyRequests(retry_after=WINDOW_SECONDS - elapsed)

    def _hit(self, item: RateLimitItemPerMinute, *names: str) -> bool:
        """Count one request, in Redis if it answers; return whether it is allowed."""
        calls_redis = self._retry_at is None or self._monotonic() >= self._retry_at
        if calls_redis:
            try:
                is_allowed = self._hit_shared(item, item.key_for(*names))
            except REDIS_ERRORS as error:
                if self._retry_at is None:
                    data = {"reason": type(error).__name__}
                    _log.warning(
                        "limits are counted in the process", extra={"data": data}
                    )
                self._retry_at = self._monotonic() + AWAY_SECONDS
            else:
                if self._retry_at is not None:
                    _log.warning("limits are counted in Redis again")
                self._retry_at = None
                return is_allowed
        return self._in_process.hit(item, *names)

    def _hit_shared(self, item: RateLimitItemPerMinute, key: str) -> bool:
        """Count one request; return whether the total of all processes allows it.

        Redis is called once enough requests are unreported; it may raise REDIS_ERRORS.
        """
        with self._lock:
            count = self._counts.setdefault(key, _Count())
            count.unreported += 1
            is_within = count.total + count.unreported <= item.amount
            is_small = count.unreported * SHARE < item.amount
            # After a failure each request goes to Redis, to learn when it is back.
            if is_within and is_small and self._retry_at is None:
                return True
            added = count.unreported
            count.unreported = 0
        with observe(CallKind.STORE, "redis", "throttle"):
            total = self._shared.incr(key, item.get_expiry(), added)
        # Answers may come in another order than they were counted.
        with self._lock:
            count.total = max(count.total, total)
        return total <= item.amount


def _item(limit: int | None) -> RateLimitItemPerMinute | None:
    return None if limit is None else RateLimitItemPerMinute(limit)
