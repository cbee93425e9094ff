"""The provider's key set: kept, refreshed, and never asked for too often.

A key set is fresh for a while. Past that it is fetched again, in the background: what is
asked meanwhile is answered from the keys at hand. A token that names a key which they do
not hold makes its request wait for a fetch; but after such a fetch, and after one that
failed, there is a pause, so that forged key names cost the provider nothing. While the
provider is away the keys that we have go on being served.
"""

import logging
import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock, Thread
from typing import Any

from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import JWKRegistry, Key
from joserfc.jws import JWSRegistry
from joserfc.util import base64_to_int

from app.errors import UnavailableError
from app.identity import IdentityError, Provider
from app.kept_keys import KeptKeys

MIN_RSA_BITS = 2048

USABLE_SECONDS = 3600
"""How long past its freshness a key set is used without asking first.

Requests keep a key set fresh; only after a time without any is it older. A key that was
withdrawn in a quiet night is not to let in the first token of the morning.
"""

REFRESHING = "key set refresh"
"""The name of the thread that fetches a key set in the background."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The usable keys of one fetch; `version` changes when the keys do."""

    keys: tuple[Key, ...]
    read_at: float
    version: int


class KeySource:
    """The keys behind one URL. Safe to share between threads.

    `fresh` and `retry` are in seconds, `clock` is monotonic. What other processes of the
    service have fetched is `kept`.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        fresh: float,
        retry: float,
        clock: Callable[[], float] = time.monotonic,
        kept: KeptKeys | None = None,
    ) -> None:
        self._provider = provider
        self._kept = kept
        self._fresh = fresh
        self._retry = retry
        self._clock = clock
        self._ring: KeyRing | None = None
        self._paused_at: float | None = None
        self._away = False
        self._lock = Lock()

    def freshen(self) -> int:
        """Return the version of the key set, 0 as long as none has been had.

        One that is no longer fresh is fetched in the background; only who has none, or
        one that nobody has refreshed for an hour, waits for it.
        """
        ring = self._ring
        age = math.inf if ring is None else self._clock() - ring.read_at
        if age >= self._fresh + USABLE_SECONDS and not (ring and self._away):
            self._refresh(ring)
        elif age >= self._fresh:
            self._refresh_behind(ring)
        return self._ring.version if self._ring else 0

    def find(self, kid: str | None, algorithm: str) -> Key:
        """Return the key that a token names.

        A token that names none is taken only where exactly one key fits its algorithm.
        Raises InvalidKeyIdError when there is no such key, UnavailableError when the
        provider could not be asked whether there is.
        """
        before = self._ring
        self.freshen()
        ring = self._current()
        key = _pick(ring.keys, kid, algorithm)
        if key is None and ring is before:
            self._refresh(ring, unknown=True)
            key = _pick(self._current().keys, kid, algorithm)
        if key is None and self._away:
            raise self._unavailable()
        if key is None:
            raise InvalidKeyIdError("no such key")
        return key

    def _current(self) -> KeyRing:
        if self._ring is None:
            raise self._unavailable()
        return self._ring

    def _unavailable(self) -> UnavailableError:
        return UnavailableError(
            "The token cannot be checked at the moment. Try again later.",
            retry_after=max(1, math.ceil(self._pause())),
        )

    def _pause(self) -> float:
        if self._paused_at is None:
            return 0.0
        return self._paused_at + self._retry - self._clock()

    def _refresh(self, seen: KeyRing | None, *, unknown: bool = False) -> None:
        with self._lock:
            # One thread fetches; those that waited for it find that it has been done.
            if self._ring is seen and self._pause() <= 0:
                try:
                    self._fetch()
                finally:
                    # A good fetch for freshness alone makes no pause: an outage that
                    # begins after it is noticed by the first token of a new key.
                    if unknown or self._ring is seen:
                        self._paused_at = self._clock()

    def _refresh_behind(self, seen: KeyRing | None) -> None:
        if self._pause() <= 0 and not self._lock.locked():
            refresh = Thread(target=self._refresh, args=(seen,), name=REFRESHING)
            refresh.daemon = True
            # Where no thread can be had at present, the next request may have one.
            with suppress(RuntimeError):
                refresh.start()

    def _fetch(self) -> None:
        try:
            keys = usable_keys(self._provider.get())
        except IdentityError as error:
            self._away = True
            _log.warning("key set not fetched", extra={"data": {"reason": str(error)}})
            if self._ring is None:
                self._ring = self._inherited()
        else:
            self._away = False
            self._ring = self._renewed(keys)
            if self._kept:
                self._kept.keep(keys)

    def _inherited(self) -> KeyRing | None:
        """Return what others have fetched; it is not fresh, so it is soon asked for."""
        with suppress(IdentityError):
            if self._kept:
                keys = usable_keys(self._kept.kept())
                return KeyRing(keys, self._clock() - self._fresh, 1)
        return None

    def _renewed(self, keys: tuple[Key, ...]) -> KeyRing:
        old = self._ring
        if old is None:
            return KeyRing(keys, self._clock(), 1)
        changed = keys != old.keys
        return KeyRing(keys, self._clock(), old.version + changed)


def usable_keys(key_set: dict[str, object]) -> tuple[Key, ...]:
    """Return the keys of a key set that can check signatures (RFC 7517 section 5).

    Keys of other kinds, for other uses, or too short, are passed over. Raises
    IdentityError when none is left: the answer of a provider that is not in order.
    """
    listed = key_set.get("keys")
    entries = listed if isinstance(listed, list) else []
    keys = tuple(key for entry in entries if (key := _usable(entry)) is not None)
    if not keys:
        raise IdentityError("answer holds no usable key")
    return keys


def _usable(entry: object) -> Key | None:
    if not isinstance(entry, dict) or entry.get("use", "sig") != "sig":
        return None
    try:
        if not _strong(entry):
            return None
        key = JWKRegistry.import_key(entry)
        key.check_key_op("verify")
    except (JoseError, LookupError, ValueError, TypeError):
        return None
    return key


def _strong(entry: dict[str, Any]) -> bool:
    match entry.get("kty"):
        case "RSA":
            # Before it is imported: joserfc imports a short key, with a warning.
            return base64_to_int(entry["n"]).bit_length() >= MIN_RSA_BITS
        case "OKP":
            return bool(entry["crv"] == "Ed25519")
        case kind:
            return bool(kind == "EC")


def _pick(keys: tuple[Key, ...], kid: str | None, algorithm: str) -> Key | None:
    """Return the key, None for an unknown `kid`; InvalidKeyIdError if none fits."""
    named = [key for key in keys if kid is None or key.kid == kid]
    fitting = [key for key in named if _fits(key, algorithm)]
    if kid is not None and not named:
        return None
    if not fitting or (kid is None and len(fitting) > 1):
        raise InvalidKeyIdError("no key fits")
    return fitting[0]


def _fits(key: Key, algorithm: str) -> bool:
    try:
        JWSRegistry.algorithms[algorithm].check_key(key)
    except JoseError:
        return False
    return True
