"""The identity provider: requests to it, and its key set.

A key set is fresh for a while; then the next request fetches it again. A token that names
an unknown key makes its request fetch too, but only so often: forged key names cost the
provider nothing. While the provider is away the key set is used until its lifetime ends.
"""

import logging
import math
import time
from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import TypeAlias

import orjson
import requests
from authlib.oidc.discovery import get_well_known_url
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import GuestProtocol, JWKRegistry, Key, KeySet
from joserfc.util import base64_to_int
from requests.auth import AuthBase
from urllib3.exceptions import HTTPError

from adapters.http.session import ThreadSessions
from adapters.instrumentation import CallKind, observe
from adapters.lifetime import LIFETIME_SECONDS
from app.config import Settings
from app.errors import UnavailableError

MAX_RESPONSE_BYTES = 262144

MIN_RSA_BITS = 2048

USABLE_SECONDS = 3600
"""How long past its freshness a key set may be used, while it cannot be fetched.

A key that was withdrawn in a quiet night must not verify the first token of the morning.
"""

_CHUNK_BYTES = 16384

_log = logging.getLogger(__name__)


class IdentityError(Exception):
    """The provider did not respond, or not as it should; the text names no host."""


Address: TypeAlias = str | Callable[[], str]
"""A URL, or what returns it and raises IdentityError as long as it is not known."""


class ProviderEndpoint:
    """One address of the identity provider. Safe to share between threads."""

    def __init__(
        self, address: Address, timeout: float, lifetime: float = LIFETIME_SECONDS
    ) -> None:
        self._address = address
        self._timeout = timeout
        # A compressed response could grow beyond the limit.
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        self._sessions = ThreadSessions(headers, lifetime)

    def fetch(
        self, form: dict[str, str] | None = None, auth: AuthBase | None = None
    ) -> dict[str, object]:
        """Return the object at the address, or the response to a form.

        Raises IdentityError.
        """
        method = "POST" if form else "GET"
        url = self._address if isinstance(self._address, str) else self._address()
        deadline = time.monotonic() + self._timeout
        try:
            with (
                observe(CallKind.HTTP, "identity provider", method) as call,
                self._sessions.get().request(
                    method,
                    url,
                    data=form,
                    auth=auth,
                    timeout=(self._timeout, self._timeout),
                    allow_redirects=False,
                    stream=True,
                ) as response,
            ):
                call.set_attribute("http.response.status_code", response.status_code)
                if response.status_code != requests.codes.ok:
                    raise IdentityError(f"status {response.status_code}")
                return _object(_body(response, deadline))
        except (requests.RequestException, HTTPError, OSError) as error:
            raise IdentityError(type(error).__name__) from error


def _body(response: requests.Response, deadline: float) -> bytes:
    body = bytearray()
    # What has arrived, not whole chunks: each byte of a slow provider starts its own
    # timeout anew.
    while chunk := response.raw.read1(_CHUNK_BYTES, decode_content=False):
        body += chunk
        if len(body) > MAX_RESPONSE_BYTES:
            raise IdentityError("response too long")
        if time.monotonic() > deadline:
            raise IdentityError("response too slow")
    return bytes(body)


def _object(body: bytes) -> dict[str, object]:
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise IdentityError("response is not JSON") from error
    if not isinstance(content, dict):
        raise IdentityError("response is not an object")
    return content


def provider_at(address: Address, settings: Settings) -> ProviderEndpoint:
    """Return an address of the provider, with the time limits of the settings."""
    lifetime = settings.connection_lifetime_seconds
    return ProviderEndpoint(address, settings.identity_timeout_seconds, lifetime)


class Metadata:
    """What the issuer publishes about itself: its addresses. Safe to share between threads.

    `clock` is monotonic. Addresses that were read once are used while the issuer is away.
    Source: OpenID Connect Discovery 1.0 section 4.
    """

    def __init__(
        self, settings: Settings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        url = get_well_known_url(settings.issuer, external=True)
        self._provider = provider_at(url, settings)
        self._settings = settings
        self._clock = clock
        self._content: dict[str, object] = {}
        self._next_at = -math.inf
        self._lock = Lock()

    def address(self, name: str) -> str:
        """Return the address of that name ("jwks_uri"). Raises IdentityError."""
        with self._lock:
            if self._clock() >= self._next_at:
                self._read()
            url = self._content.get(name)
        if not isinstance(url, str):
            raise IdentityError(f"the metadata were not read or have no {name}")
        if not self._settings.allows_provider(url):
            raise IdentityError(f"{name} of the metadata is not an https address")
        return url

    def _read(self) -> None:
        pause = self._settings.key_set_seconds
        try:
            content = self._provider.fetch()
            if content.get("issuer") != self._settings.issuer:
                raise IdentityError("metadata of another issuer")
            self._content = content
        except IdentityError as error:
            _log.warning("metadata not read", extra={"data": {"reason": str(error)}})
            pause = self._settings.key_set_retry_seconds
        self._next_at = self._clock() + pause


def provider_addresses(
    settings: Settings, clock: Callable[[], float] = time.monotonic
) -> tuple[Address | None, Address | None]:
    """Return where the keys are, and where tokens are introspected; None for nowhere.

    A setting wins. Else the metadata of the issuer names it, once it is needed.
    """
    key_set = settings.key_set_url
    introspection = settings.introspection_url
    introspects = settings.introspection_client_id is not None
    if introspection or (key_set and not introspects):
        return key_set, introspection
    address = Metadata(settings, clock).address
    endpoint = partial(address, "introspection_endpoint") if introspects else None
    return key_set or partial(address, "jwks_uri"), endpoint


class KeySource:
    """The key set at one address. Safe to share between threads.

    `clock` is monotonic.
    """

    def __init__(
        self,
        settings: Settings,
        address: Address,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._provider = provider_at(address, settings)
        self._fresh_seconds = settings.key_set_seconds
        self._retry_seconds = settings.key_set_retry_seconds
        self._clock = clock
        self._keys: KeySet | None = None
        self._fetched_at = -math.inf
        self._next_at = -math.inf
        self._is_away = False
        self._lock = Lock()

    def current(self) -> KeySet | None:
        """Return the keys that may be used now, None if there are none.

        Keys that are no longer fresh are fetched again. The result is the same object as
        long as the provider publishes the same keys.
        """
        lifetime = self._fresh_seconds + USABLE_SECONDS
        fetched_at = self._fetched_at
        age = self._clock() - fetched_at
        if age >= self._fresh_seconds:
            # One request fetches; the others use the keys at hand, if they may.
            self._fetch(fetched_at, wait=age >= lifetime)
        return self._keys if self._clock() - self._fetched_at < lifetime else None

    def for_token(self, token: GuestProtocol) -> KeySet:
        """Return the keys for a token, as `joserfc.jwt.decode` calls it.

        Unless they have the key that the token names, they are fetched again. Raises
        UnavailableError if the provider is away and might have it.
        """
        kid = token.headers().get("kid")
        fetched_at = self._fetched_at
        keys = self.current()
        if not _has(keys, kid) and self._fetched_at == fetched_at:
            self._fetch(fetched_at, wait=True, for_unknown_key=True)
            keys = self.current()
        if self._is_away and not _has(keys, kid):
            raise UnavailableError(
                "The token cannot be checked at the moment. Try again later.",
                retry_after=max(1, math.ceil(self._next_at - self._clock())),
            )
        if keys is None:
            raise InvalidKeyIdError("no keys")
        return keys

    def _fetch(
        self, fetched_at: float, *, wait: bool, for_unknown_key: bool = False
    ) -> None:
        """Fetch the key set, unless another thread has done so since `fetched_at`."""
        if self._clock() < self._next_at or not self._lock.acquire(blocking=wait):
            return
        try:
            if self._fetched_at > fetched_at or self._clock() < self._next_at:
                return
            self._replace_keys()
            # After a fetch for freshness alone there is no pause: the first token with a
            # new key is checked at once.
            if for_unknown_key or self._is_away:
                self._next_at = self._clock() + self._retry_seconds
        finally:
            self._lock.release()

    def _replace_keys(self) -> None:
        try:
            keys = KeySet(usable_keys(self._provider.fetch()))
        except IdentityError as error:
            self._is_away = True
            _log.warning("key set not fetched", extra={"data": {"reason": str(error)}})
            return
        self._is_away = False
        if keys != self._keys:
            self._keys = keys
        self._fetched_at = self._clock()


def _has(keys: KeySet | None, kid: str | None) -> bool:
    """Return whether a token that names a key, or none, can be checked with a key set."""
    return keys is not None and (kid is None or any(key.kid == kid for key in keys))


def usable_keys(key_set: dict[str, object]) -> list[Key]:
    """Return the keys of a key set that can check signatures (RFC 7517 section 5).

    Keys of other kinds, for other uses, or too short, are ignored. Raises IdentityError if
    none is left: then something is wrong with the provider.
    """
    listed = key_set.get("keys")
    entries = listed if isinstance(listed, list) else []
    keys = [key for entry in entries if (key := _usable(entry)) is not None]
    if not keys:
        raise IdentityError("response has no usable key")
    return keys


def _usable(entry: object) -> Key | None:
    """Return the key of an entry of a key set, None if it cannot check signatures."""
    if not isinstance(entry, dict) or entry.get("use", "sig") != "sig":
        return None
    try:
        match entry.get("kty"):
            case "RSA":
                # Before it is imported: joserfc imports a short key, with a warning.
                is_strong = base64_to_int(entry["n"]).bit_length() >= MIN_RSA_BITS
            case "OKP":
                is_strong = entry["crv"] == "Ed25519"
            case "EC":
                is_strong = True
            case _:
                is_strong = False
        if not is_strong:
            return None
        key = JWKRegistry.import_key(entry)
        key.check_key_op("verify")
    except (JoseError, LookupError, ValueError, TypeError):
        return None
    return key
