"""Who is logged in to the explorer: sessions in Redis, and what belongs to one.

The browser holds an opaque id in a cookie; Redis holds, under a digest of it, what the id
alone decrypts together with the keys of the deployment. A session is dropped after its last
use, and at the latest when its access token expires.
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
from werkzeug.wrappers import Response

from app.crypto import DecryptionError, Encryption
from app.errors import UnavailableError
from app.redis_client import REDIS_ERRORS

LOGIN_SECONDS = 600
"""How long a login may take."""

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
    is_integrator: bool = False
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
        """Store a session as it is now. Raises UnavailableError."""
        content = orjson.dumps(asdict(session))
        encrypted = self._encryption.encrypt(session.id, _FIELD, content)
        with _calling_redis():
            self._redis.set(_key(session.id), encrypted, ex=self._seconds(session))

    def current(self) -> Session | None:
        """Return the session of the request and count it as used. Raises UnavailableError."""
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
        """Drop a session."""
        with _calling_redis():
            self._redis.delete(_key(session.id))
        response.delete_cookie(self._cookie, secure=self._secure, httponly=True)

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


@contextmanager
def _calling_redis() -> Iterator[None]:
    try:
        yield
    except REDIS_ERRORS as error:
        raise UnavailableError("Logins cannot be checked at present.") from error
