"""The identity provider: requests to it, and its key set.

A key set is fresh for a while; then the next request fetches it again. A token that names
an unknown key makes its request fetch too, but only so often: forged key names cost the
provider nothing. While the provider is away the known keys go on being used.
"""

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from threading import Lock, local
from typing import TypeAlias
from urllib.parse import urlsplit

import orjson
import requests
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import JWKRegistry, Key
from joserfc.jws import JWSRegistry
from joserfc.util import base64_to_int
from requests.auth import AuthBase
from urllib3.exceptions import HTTPError

from adapters.http.session import isolated
from adapters.instrumentation import Kind, observe
from app.config import Settings
from app.errors import UnavailableError

MAX_RESPONSE_BYTES = 262144

MIN_RSA_BITS = 2048

USABLE_SECONDS = 3600
"""How long past its freshness a key set is used while others fetch it.

Requests keep a key set fresh; only after a time without any is it older. A key that was
withdrawn in a quiet night must not verify the first token of the morning.
"""

_CHUNK_BYTES = 16384

_log = logging.getLogger(__name__)


class IdentityError(Exception):
    """The provider did not respond, or not as it should; the text names no host."""


Address: TypeAlias = str | Callable[[], str]
"""A URL, or what returns it and raises IdentityError as long as it is not known."""


class Provider:
    """One address of the identity provider. Safe to share between threads."""

    def __init__(self, address: Address, timeout: float) -> None:
        self._address = address
        self._timeout = timeout
        self._threads = local()

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
                observe(Kind.HTTP, "identity provider", method) as call,
                self._session().request(
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

    def _session(self) -> requests.Session:
        session: requests.Session | None = getattr(self._threads, "session", None)
        if session is None:
            session = self._threads.session = isolated(requests.Session())
            session.headers["Accept"] = "application/json"
            # A compressed response could grow beyond the limit.
            session.headers["Accept-Encoding"] = "identity"
        return session


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


class Metadata:
    """What the issuer publishes about itself: its addresses. Safe to share between threads.

    `clock` is monotonic. Addresses that were read once are used while the issuer is away.
    Source: OpenID Connect Discovery 1.0 section 4, RFC 8414 section 3.
    """

    def __init__(
        self, settings: Settings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        urls = metadata_urls(settings.issuer)
        timeout = settings.identity_timeout_seconds
        self._providers = [Provider(url, timeout) for url in urls]
        self._settings = settings
        self._clock = clock
        self._content: dict[str, object] = {}
        self._next_at = -math.inf
        self._lock = Lock()

    def address(self, name: str) -> str:
        """Return the address of that name ("jwks_uri"). Raises IdentityError."""
        # One request reads it again; the others use the addresses at hand.
        if self._clock() >= self._next_at and self._lock.acquire(
            blocking=not self._content
        ):
            try:
                self._refresh()
            finally:
                self._lock.release()
        url = self._content.get(name)
        if not isinstance(url, str):
            raise IdentityError(f"no metadata that names {name}")
        if not self._settings.allows_provider(url):
            raise IdentityError(f"{name} of the metadata is not an https address")
        return url

    def _refresh(self) -> None:
        # Another thread may have read it while this one waited.
        if self._clock() < self._next_at:
            return
        for provider in self._providers:
            try:
                content = provider.fetch()
                if content.get("issuer") != self._settings.issuer:
                    raise IdentityError("metadata of another issuer")
            except IdentityError as error:
                _log.warning(
                    "metadata not read", extra={"data": {"reason": str(error)}}
                )
            else:
                self._content = content
                self._next_at = self._clock() + self._settings.key_set_seconds
                return
        self._next_at = self._clock() + self._settings.key_set_retry_seconds


def metadata_urls(issuer: str) -> tuple[str, str]:
    """Return where an issuer publishes its metadata: by OpenID Connect, by RFC 8414."""
    openid = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
    parts = urlsplit(issuer)
    path = f"/.well-known/oauth-authorization-server{parts.path.rstrip('/')}"
    return openid, parts._replace(path=path).geturl()


def provider_addresses(
    settings: Settings, clock: Callable[[], float] = time.monotonic
) -> tuple[Address | None, Address | None]:
    """Return where the keys are, and where tokens are introspected; None for nowhere.

    A setting wins. Else the metadata of the issuer names it, once it is needed.
    """
    key_set, introspection = settings.key_set_url, settings.introspection_url
    introspects = settings.introspection_client_id is not None
    if introspection or (key_set and not introspects):
        return key_set, introspection
    address = Metadata(settings, clock).address
    named = partial(address, "introspection_endpoint") if introspects else None
    return key_set or partial(address, "jwks_uri"), named


@dataclass(frozen=True, slots=True)
class KeySet:
    """The usable keys of one fetch; `version` changes when the keys do."""

    keys: tuple[Key, ...]
    fetched_at: float
    version: int


class KeySource:
    """The keys at one address. Safe to share between threads.

    `clock` is monotonic.
    """

    def __init__(
        self,
        settings: Settings,
        address: Address,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._provider = Provider(address, settings.identity_timeout_seconds)
        self._fresh = settings.key_set_seconds
        self._retry = settings.key_set_retry_seconds
        self._clock = clock
        self._keys: KeySet | None = None
        self._paused_at = -math.inf
        self._is_away = False
        self._lock = Lock()

    def freshen(self) -> int:
        """Fetch the key set if it is no longer fresh; return its version, 0 for none."""
        keys = self._keys
        age = math.inf if keys is None else self._clock() - keys.fetched_at
        if age >= self._fresh:
            # One request fetches; the others use the keys at hand, unless they are old.
            is_old = age >= self._fresh + USABLE_SECONDS and not (
                keys and self._is_away
            )
            self._refresh(keys, wait=is_old)
        return self._keys.version if self._keys else 0

    def find(self, kid: str | None, algorithm: str) -> Key:
        """Return the key that a token names.

        A token that names none is accepted only if exactly one key fits its algorithm.
        Raises InvalidKeyIdError if there is no such key, UnavailableError if the provider
        is away and might have it.
        """
        before = self._keys
        self.freshen()
        key = self._pick(kid, algorithm)
        if key is None and self._keys is before:
            self._refresh(before, wait=True, unknown=True)
            key = self._pick(kid, algorithm)
        if key is None and self._is_away:
            raise UnavailableError(
                "The token cannot be checked at the moment. Try again later.",
                retry_after=max(1, math.ceil(self._pause())),
            )
        if key is None:
            raise InvalidKeyIdError("no such key")
        return key

    def _pick(self, kid: str | None, algorithm: str) -> Key | None:
        """Return the key, None for an unknown `kid`; InvalidKeyIdError if none fits."""
        keys = self._keys.keys if self._keys else ()
        named = [key for key in keys if kid is None or key.kid == kid]
        if not named:
            return None
        is_fit = JWSRegistry.filter_algorithms
        fitting = [key for key in named if is_fit(key, [algorithm])]
        if not fitting or (kid is None and len(fitting) > 1):
            raise InvalidKeyIdError("no key fits")
        return fitting[0]

    def _pause(self) -> float:
        return max(0.0, self._paused_at + self._retry - self._clock())

    def _refresh(
        self, before: KeySet | None, *, wait: bool, unknown: bool = False
    ) -> None:
        if self._pause() or not self._lock.acquire(blocking=wait):
            return
        try:
            # Another thread may have fetched while this one waited.
            if self._keys is before and not self._pause():
                self._fetch()
                # After a success for freshness alone there is no pause: the first token
                # with a new key is checked at once.
                if unknown or self._keys is before or self._is_away:
                    self._paused_at = self._clock()
        finally:
            self._lock.release()

    def _fetch(self) -> None:
        try:
            keys = usable_keys(self._provider.fetch())
        except IdentityError as error:
            self._is_away = True
            _log.warning("key set not fetched", extra={"data": {"reason": str(error)}})
            return
        self._is_away = False
        version = 1
        if self._keys is not None:
            version = self._keys.version + (keys != self._keys.keys)
        self._keys = KeySet(keys, self._clock(), version)


def usable_keys(key_set: dict[str, object]) -> tuple[Key, ...]:
    """Return the keys of a key set that can check signatures (RFC 7517 section 5).

    Keys of other kinds, for other uses, or too short, are ignored. Raises IdentityError if
    none is left: then something is wrong with the provider.
    """
    listed = key_set.get("keys")
    entries = listed if isinstance(listed, list) else []
    keys = tuple(key for entry in entries if (key := _usable(entry)) is not None)
    if not keys:
        raise IdentityError("response holds no usable key")
    return keys


def _usable(entry: object) -> Key | None:
    if not isinstance(entry, dict) or entry.get("use", "sig") != "sig":
        return None
    try:
        match entry.get("kty"):
            case "RSA":
                # Before it is imported: joserfc imports a short key, with a warning.
                is_strong = base64_to_int(entry["n"]).bit_length() >= MIN_RSA_BITS
            case "OKP":
                is_strong = entry["crv"] == "Ed25519"
            case kind:
                is_strong = kind == "EC"
        if not is_strong:
            return None
        key = JWKRegistry.import_key(entry)
        key.check_key_op("verify")
    except (JoseError, LookupError, ValueError, TypeError):
        return None
    return key
