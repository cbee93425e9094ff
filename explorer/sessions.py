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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b

import orjson
import redis
from flask import request
from werkzeug.exceptions import TooManyRequests
from werkzeug.wrappers import Response

from app.crypto import DecryptionError, Encryption, derived_key
from app.redis_client import REDIS_ERRORS
from explorer.failures import AwayError

LOGIN_SECONDS = 600
"""How long a login may take."""

LOGINS_PER_MINUTE = 30
"""How many logins an address may begin in a minute."""

RESULT_SECONDS = 900
"""How long the result of a search is stored at most."""

Pairs = Sequence[tuple[str, str]]

_FIELD = b"session"
_REFERENCE = b"reference"


@dataclass(frozen=True, slots=True)
class Session:
    """A browser that logs in (`state`, `nonce`, `verifier`) or has logged in (`token`).

    `person` is the subject of the login, "" where an access token was pasted: then the
    client of the token is who looks. `expires` is in seconds since 1970, `name` is shown.
    """

    id: str
    expires: float
    token: str = ""
    person: str = ""
    name: str = ""
    reason: str = ""
    state: str = ""
    nonce: str = ""
    verifier: str = ""

    @property
    def csrf(self) -> str:
        """The secret that each form of the session carries."""
        return blake2b(self.id.encode(), person=b"csrf", digest_size=18).hexdigest()

    def accepts(self, token: str) -> bool:
        """Return whether a form was sent by a page of this session."""
        return hmac.compare_digest(self.csrf.encode(), token.encode())


@dataclass(frozen=True, slots=True)
class Result:
    """A page of what a search found: its criteria, and the service's answer.

    `form` is the search form as it was sent, `criteria` the parameters that it became,
    `body` the Bundle to the byte.
    """

    kind: str
    form: Pairs
    criteria: Pairs
    body: str
    milliseconds: float


class Sessions:
    """Stores sessions; `idle` is in seconds, `secure`: whether pages come over HTTPS."""

    def __init__(
        self,
        client: redis.Redis,
        keys: Sequence[str],
        *,
        idle: int,
        secure: bool,
    ) -> None:
        self._redis = client
        self._encryption = Encryption(keys)
        self._address_key = derived_key(keys[0], b"login")
        self._idle = idle
        self._secure = secure
        # The prefix makes a browser refuse a cookie that another host has set.
        self._cookie = "__Host-explorer" if secure else "explorer"

    def begin(self, response: Response, **values: object) -> Session:
        """Store a new session and put its cookie into a response.

        Its id is new each time: one that was planted in the browser is worth nothing.
        """
        session = Session(secrets.token_urlsafe(32), time.time() + LOGIN_SECONDS)
        session = replace(session, **values)  # type: ignore[arg-type]
        self.save(session)
        response.set_cookie(
            self._cookie,
            session.id,
            secure=self._secure,
            httponly=True,
            # Not Strict: the provider sends the browser back after the login.
            samesite="Lax",
        )
        return session

    def save(self, session: Session) -> None:
        """Store a session as it is now. Raises AwayError."""
        content = orjson.dumps(asdict(session))
        encrypted = self._encryption.encrypt(session.id, _FIELD, content)
        with _calling_redis():
            self._redis.set(_key(session.id), encrypted, ex=self._seconds(session))

    def current(self) -> Session | None:
        """Return the session of the request and count it as used. Raises AwayError."""
        id = request.cookies.get(self._cookie, "")
        with _calling_redis():
            content = self._redis.get(_key(id)) if id else None
        if not isinstance(content, bytes):
            return None
        try:
            raw = self._encryption.decrypt(id, _FIELD, content)
        except DecryptionError:
            return None
        session = Session(**orjson.loads(raw))
        if session.expires <= time.time():
            return None
        with _calling_redis():
            self._redis.expire(_key(id), self._seconds(session))
        return session

    def end(self, session: Session, response: Response) -> None:
        """Drop a session and its results."""
        with _calling_redis():
            keys = self._redis.smembers(_results_key(session.id))
            self._redis.delete(_key(session.id), _results_key(session.id), *keys)
        response.delete_cookie(self._cookie, secure=self._secure, httponly=True)

    def count_login(self, address: str) -> None:
        """Count a login that an address begins. Raises TooManyRequests, AwayError."""
        minute, seconds = divmod(int(time.time()), 60)
        digest = blake2b(address.encode(), key=self._address_key, digest_size=12)
        key = f"explorer:logins:{minute}:{digest.hexdigest()}"
        with _calling_redis(), self._redis.pipeline(transaction=False) as pipeline:
            pipeline.incr(key)
            pipeline.expire(key, 60)
            count, _ = pipeline.execute()
        if count > LOGINS_PER_MINUTE:
            raise TooManyRequests(retry_after=60 - seconds)

    def save_result(self, session: Session, result: Result) -> str:
        """Store a result; return its id, which is of use to this session alone."""
        id = secrets.token_urlsafe(16)
        content = orjson.dumps(result)
        encrypted = self._encryption.encrypt(session.id, _result_field(id), content)
        key, results = _key(session.id + id), _results_key(session.id)
        with _calling_redis(), self._redis.pipeline(transaction=False) as pipeline:
            pipeline.set(key, encrypted, ex=RESULT_SECONDS)
            pipeline.sadd(results, key)
            pipeline.expire(results, RESULT_SECONDS)
            pipeline.execute()
        return id

    def result(self, session: Session, id: str) -> Result | None:
        """Return a result of the session, None where none of that id is stored."""
        with _calling_redis():
            content = self._redis.get(_key(session.id + id))
        if not isinstance(content, bytes):
            return None
        try:
            raw = self._encryption.decrypt(session.id, _result_field(id), content)
        except DecryptionError:
            return None
        stored = orjson.loads(raw)
        for name in ("form", "criteria"):
            stored[name] = [(parameter, text) for parameter, text in stored[name]]
        return Result(**stored)

    def seal(self, session: Session, reference: str) -> str:
        """Return a reference as a text for addresses that this session alone can read."""
        raw = self._encryption.encrypt(session.id, _REFERENCE, reference.encode())
        return base64.urlsafe_b64encode(raw).decode().rstrip("=")

    def unseal(self, session: Session, text: str) -> str | None:
        """Return the reference of such a text, None for one of another session."""
        try:
            raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            return self._encryption.decrypt(session.id, _REFERENCE, raw).decode()
        except (ValueError, DecryptionError):
            return None

    def _seconds(self, session: Session) -> int:
        return max(1, min(self._idle, int(session.expires - time.time())))


def _key(id: str) -> str:
    digest = blake2b(id.encode(), digest_size=18, person=b"explorer").hexdigest()
    return f"explorer:{digest}"


def _results_key(id: str) -> str:
    return f"{_key(id)}:results"


def _result_field(id: str) -> bytes:
    return b"result:" + id.encode()


@contextmanager
def _calling_redis() -> Iterator[None]:
    try:
        yield
    except REDIS_ERRORS as error:
        raise AwayError("Logins cannot be checked at present.") from error
