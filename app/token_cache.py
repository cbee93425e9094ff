"""Tokens that were found good, remembered by their digest until they expire."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable

from app.tokens import Client, Verified

MAX_CACHED_TOKENS = 4096


class TokenCache:
    """Bounded: the one longest unused goes first. Safe to share between threads.

    A token goes with the version of the keys that it was checked with: a key that the
    provider withdraws takes its tokens along. The token itself is not kept.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._entries: OrderedDict[bytes, tuple[Verified, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, token: str, version: int) -> Client | None:
        """Return the client of a token that is remembered and still good."""
        digest = _digest(token)
        with self._lock:
            entry = self._entries.get(digest)
            if entry is None:
                return None
            verified, made_with = entry
            if made_with != version or verified.until <= self._clock():
                del self._entries[digest]
                return None
            self._entries.move_to_end(digest)
            return verified.client

    def put(self, token: str, verified: Verified, version: int) -> None:
        """Remember a token that was verified."""
        with self._lock:
            self._entries[_digest(token)] = (verified, version)
            while len(self._entries) > MAX_CACHED_TOKENS:
                self._entries.popitem(last=False)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
