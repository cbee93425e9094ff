"""Who is logged in to the explorer: sessions in Redis, and what belongs to one.

The browser holds an opaque id in a cookie; Redis holds, under a digest of it, what the id
alone decrypts together with the keys of the deployment. A session is dropped after its last
use, and at the latest when its access token expires.

The results of its searches are stored beside it, so that a person looks at one as often as
they like for a single search. They are dropped with the session, and after a quarter of an
hour.
"""

import base64
import hmac
import secrets
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from typing import Any

import orjson
import redis
from flask import request
from werkzeug.wrappers import Response

from app.config import Settings
from app.crypto import DecryptionError, Encryption
from app.redis_client import REDIS_ERRORS
from explorer.failures import PageError
from explorer.language import mark as _

LOGIN_SECONDS = 600
"""How long a login may take, and how long a form waits for it."""

RESULT_SECONDS = 900
"""How long the result of a search is stored at most."""

FormPairs = Sequence[tuple[str, str]]


@dataclass(slots=True)
class Session:
    """A browser that logs in (`login` is its state, nonce and verifier) or has a `token`.

    `person` is the subject of the login, `name` is shown. `expires` is in seconds since 1970.
    `waiting` is the resource type and the form that the login interrupted.

    It remembers recent searches, the names of wards by code, and the resources that come
    with stays (None before the first search).
    """

    id: str
    expires: float
    token: str = ""
    scope: str = ""
    person: str = ""
    name: str = ""
    reason: str = ""
    login: dict[str, str] = field(default_factory=dict)
    waiting: tuple[str, FormPairs] | None = None
    recent: list[dict[str, Any]] = field(default_factory=list)
    wards: dict[str, str] = field(default_factory=dict)
    includes: list[str] | None = None

    @property
    def csrf(self) -> str:
        """The secret that each form of the session carries."""
        return blake2b(self.id.encode(), person=b"csrf", digest_size=18).hexdigest()

    def accepts(self, token: str) -> bool:
        """Return whether a form was sent by a page of this session."""
        return hmac.compare_digest(self.csrf.encode(), token.encode())


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found: its form, its criteria, and the service's Bundle at a time.

    `form` is the search form as it was sent, `criteria` the parameters that it became.
    `first` is the place of its first row in the whole, `at` in seconds since 1970,
    `read_as` how the search box was read.
    """

    kind: str
    criteria: FormPairs
    bundle: Any
    form: FormPairs = ()
    first: int = 1
    at: float = field(default_factory=time.time)
    read_as: str = ""


class Sessions:
    """Stores sessions and their results, encrypted for their ids."""

    def __init__(
        self, client: redis.Redis, settings: Settings, *, secure: bool
    ) -> None:
        self._redis = client
        self._encryption = Encryption(settings.seal_keys)
        self._idle = 60 * settings.explorer_idle_minutes
        self._secure = secure
        # The prefix makes a browser refuse a cookie that another host has set.
        self._cookie = "__Host-explorer" if secure else "explorer"

    def begin(self, response: Response, **values: Any) -> Session:
        """Store a new session and put its cookie into a response.

        Its id is new each time: one that was planted in the browser is worth nothing.
        """
        values = {"expires": time.time() + LOGIN_SECONDS, **values}
        session = Session(id=secrets.token_urlsafe(32), **values)
        self.save(session, is_new=True)
        response.set_cookie(
            self._cookie,
            session.id,
            secure=self._secure,
            httponly=True,
            # Not Strict: the provider sends the browser back after the login.
            samesite="Lax",
        )
        return session

    def save(self, session: Session, *, is_new: bool = False) -> None:
        """Store a session as it is now, unless it has ended. Raises PageError."""
        content = orjson.dumps(asdict(session))
        encrypted = self._encryption.encrypt(session.id, b"session", content)
        seconds = self._seconds(session)
        with _calling_redis():
            self._redis.set(_key(session.id), encrypted, ex=seconds, xx=not is_new)

    def current(self) -> Session | None:
        """Return the session of the request and count it as used. Raises PageError."""
        id = self.cookie()
        if not id:
            return None
        raw = self._read(_key(id), id, b"session")
        if not raw:
            return None
        session = Session(**orjson.loads(raw))
        if session.expires <= time.time():
            return None
        with _calling_redis():
            self._redis.expire(_key(id), self._seconds(session))
        return session

    def cookie(self) -> str:
        """Return the id of the session that the browser has or had, "" for none."""
        return request.cookies.get(self._cookie, "")

    def end(self, session: Session, response: Response) -> None:
        """Drop a session and what belongs to it."""
        with _calling_redis():
            keys = self._redis.smembers(_results_key(session.id))
            self._redis.delete(_key(session.id), _results_key(session.id), *keys)
        response.delete_cookie(self._cookie, secure=self._secure, httponly=True)

    def _seconds(self, session: Session) -> int:
        return max(1, min(self._idle, int(session.expires - time.time())))

    def store(self, session_id: str, id: str, result: SearchResult) -> None:
        """Store a result under an id that is of use to this session alone."""
        raw = zlib.compress(orjson.dumps(result), 1)
        encrypted = self._encryption.encrypt(session_id, id.encode(), raw)
        key, results = _key(session_id + id), _results_key(session_id)
        with _calling_redis(), self._redis.pipeline(transaction=False) as pipeline:
            pipeline.set(key, encrypted, ex=RESULT_SECONDS)
            pipeline.sadd(results, key)
            pipeline.expire(results, RESULT_SECONDS)
            pipeline.execute()

    def stored(self, session_id: str, id: str) -> SearchResult | None:
        """Return a result, None where none of that id is stored."""
        raw = self._read(_key(session_id + id), session_id, id.encode())
        return SearchResult(**orjson.loads(zlib.decompress(raw))) if raw else None

    def _read(self, key: str, session_id: str, field: bytes) -> bytes | None:
        with _calling_redis():
            content = self._redis.get(key)
        if not isinstance(content, bytes):
            return None
        try:
            return self._encryption.decrypt(session_id, field, content)
        except DecryptionError:
            return None

    def seal(self, session_id: str, text: str) -> str:
        """Return a text for addresses that this session alone can read."""
        raw = self._encryption.encrypt(session_id, b"address", text.encode())
        return base64.urlsafe_b64encode(raw).decode()

    def unseal(self, session_id: str, sealed: str) -> str | None:
        """Return the content of such a text, None for one of another session."""
        try:
            raw = base64.urlsafe_b64decode(sealed)
            return self._encryption.decrypt(session_id, b"address", raw).decode()
        except ValueError:
            return None


def _key(id: str) -> str:
    digest = blake2b(id.encode(), digest_size=18, person=b"explorer").hexdigest()
    return f"explorer:{digest}"


def _results_key(id: str) -> str:
    return f"{_key(id)}:results"


@contextmanager
def _calling_redis() -> Iterator[None]:
    try:
        yield
    except REDIS_ERRORS as error:
        text = _("Logins cannot be checked at the moment.")
        raise PageError(503, text) from error
