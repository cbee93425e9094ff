"""Who is logged in to the explorer: sessions in Redis, and what belongs to one.

The browser holds an opaque id in a cookie; Redis holds, under a digest of it, what the id
alone decrypts together with the keys of the deployment. A session is dropped after its last
use, and at the latest when its access token expires.

The results of its searches are stored beside it, so that a person looks at one as often as
they like for a single search, and the parts of files that they export. They are dropped with
the session, and after a quarter of an hour.
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
from werkzeug.exceptions import TooManyRequests
from werkzeug.wrappers import Response

from app.crypto import DecryptionError, Encryption, derived_key
from app.redis_client import REDIS_ERRORS
from explorer.failures import AwayError
from explorer.language import mark as _

LOGIN_SECONDS = 600
"""How long a login may take."""

LOGINS_PER_MINUTE = 30
"""How many logins an address may begin in a minute."""

RESULT_SECONDS = 900
"""How long the result of a search is stored at most."""

CLAIM_SECONDS = 60
"""How long a request goes on with a file at most: the time of a call, and some."""

Pairs = Sequence[tuple[str, str]]

_FIELD = b"session"
_REFERENCE = b"reference"
_PARKED = b"parked"
_TRAIL = b"trail"

MOST_PARKED = 8192
"""The size of a form that waits for a login, at most."""


@dataclass(frozen=True, slots=True)
class Session:
    """A browser that logs in (`state`, `nonce`, `verifier`) or has logged in (`token`).

    `person` is the subject of the login, "" where an access token was pasted: then the
    client of the token is who looks. `expires` is in seconds since 1970, `name` is shown.
    `parked` is the form that waits for the end of the login, encrypted (`Sessions.park`).
    """

    id: str
    expires: float
    token: str = ""
    scope: str = ""
    person: str = ""
    name: str = ""
    reason: str = ""
    state: str = ""
    nonce: str = ""
    verifier: str = ""
    parked: str = ""

    @property
    def csrf(self) -> str:
        """The secret that each form of the session carries."""
        return blake2b(self.id.encode(), person=b"csrf", digest_size=18).hexdigest()

    def accepts(self, token: str) -> bool:
        """Return whether a form was sent by a page of this session."""
        return hmac.compare_digest(self.csrf.encode(), token.encode())


@dataclass(frozen=True, slots=True)
class Result:
    """What a search found: its form, its criteria, and the service's Bundle at a time.

    `form` is the search form as it was sent, `criteria` the parameters that it became.
    `first` is the place of its first row in the whole, `at` in seconds since 1970,
    `read_as` how the search box was read.
    """

    kind: str
    form: Pairs
    criteria: Pairs
    bundle: Any
    first: int = 1
    at: float = field(default_factory=time.time)
    read_as: str = ""


@dataclass(slots=True)
class Export:
    """A file in the making: what is still to read (`next`), and what there is of it.

    `next` is None before the first page, [] after the last one. `result` is the id of the page
    that it was begun on, `fault` why it ended early, `total` None where nobody counted.
    """

    id: str
    result: str
    kind: str
    criteria: Pairs
    format: str
    name: str
    fault: str = ""
    total: int | None = None
    rows: int = 0
    size: int = 0
    parts: int = 0
    next: Pairs | None = None


@dataclass(slots=True)
class Trail:
    """What a session remembers: its recent searches, wards by code, includes, files.

    `includes` are the resources that come with stays, None before the first search.
    """

    recent: list[dict[str, Any]] = field(default_factory=list)
    wards: dict[str, str] = field(default_factory=dict)
    includes: list[str] | None = None
    exports: list[str] = field(default_factory=list)


class Sessions:
    """Stores sessions; `idle` is in seconds, `secure`: whether pages come over HTTPS."""

    def __init__(
        self, client: redis.Redis, keys: Sequence[str], *, idle: int, secure: bool
    ) -> None:
        self._redis = client
        self._encryption = Encryption(keys)
        self._address_key = derived_key(keys[0], b"login")
        self._idle = idle
        self._secure = secure
        # The prefix makes a browser refuse a cookie that another host has set.
        self._cookie = "__Host-explorer" if secure else "explorer"

    def begin(self, response: Response, **values: Any) -> Session:
        """Store a new session and put its cookie into a response.

        Its id is new each time: one that was planted in the browser is worth nothing.
        """
        values = {"expires": time.time() + LOGIN_SECONDS, **values}
        session = Session(id=secrets.token_urlsafe(32), **values)
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
        id = self.cookie()
        raw = self._read(_key(id), id, _FIELD) if id else None
        if raw is None:
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

    def save_result(self, session: Session, result: Result, id: str = "") -> str:
        """Store a result; return its id, which is of use to this session alone."""
        id = id or secrets.token_urlsafe(16)
        self._put(session, id, b"bundle:", orjson.dumps(result))
        return id

    def result(self, session: Session, id: str) -> Result | None:
        """Return a result of the session, None where none of that id is stored."""
        raw = self._get(session, id, b"bundle:")
        if raw is None:
            return None
        stored = orjson.loads(raw)
        stored["form"] = _pairs(stored["form"])
        stored["criteria"] = _pairs(stored["criteria"])
        return Result(**stored)

    def trail(self, session: Session) -> Trail:
        """Return what the session remembers."""
        raw = self._get(session, "", _TRAIL)
        return Trail(**orjson.loads(raw)) if raw else Trail()

    def save_trail(self, session: Session, trail: Trail) -> None:
        """Store what the session remembers, as long as the session itself."""
        self._put(session, "", _TRAIL, orjson.dumps(trail), self._seconds(session))

    def export(self, session: Session, id: str) -> Export | None:
        """Return a file in the making, None where none of that id is stored."""
        raw = self._get(session, id, b"export:")
        if raw is None:
            return None
        stored = orjson.loads(raw)
        stored["criteria"] = _pairs(stored["criteria"])
        stored["next"] = stored["next"] and _pairs(stored["next"])
        return Export(**stored)

    def save_export(self, session: Session, export: Export, part: bytes = b"") -> None:
        """Store a file in the making, and a further part of its content."""
        if part:
            name = f"{export.id}-{export.parts}"
            self._put(session, name, b"part:", zlib.compress(part))
            export.parts += 1
        self._put(session, export.id, b"export:", orjson.dumps(export))

    def parts(self, session: Session, export: Export) -> Iterator[bytes]:
        """Yield the content of a file, part by part."""
        for number in range(export.parts):
            raw = self._get(session, f"{export.id}-{number}", b"part:")
            if raw is None:
                raise AwayError(_("The file is no longer stored."))
            yield zlib.decompress(raw)

    def claim(self, session: Session, id: str) -> bool:
        """Return whether this request alone may go on with a file until it is released."""
        key = _key(f"{session.id}{id}:claim")
        with _calling_redis():
            return bool(self._redis.set(key, b"", nx=True, ex=CLAIM_SECONDS))

    def release(self, session: Session, id: str) -> None:
        """Let another request go on with a file."""
        with _calling_redis():
            self._redis.delete(_key(f"{session.id}{id}:claim"))

    def _put(
        self,
        session: Session,
        id: str,
        field: bytes,
        raw: bytes,
        seconds: int = RESULT_SECONDS,
    ) -> None:
        """Store a content among those that the end of the session drops."""
        encrypted = self._encryption.encrypt(session.id, field + id.encode(), raw)
        key, results = _content_key(session, id), _results_key(session.id)
        with _calling_redis(), self._redis.pipeline(transaction=False) as pipeline:
            pipeline.set(key, encrypted, ex=seconds)
            pipeline.sadd(results, key)
            pipeline.expire(results, max(seconds, RESULT_SECONDS))
            pipeline.execute()

    def _get(self, session: Session, id: str, field: bytes) -> bytes | None:
        key = _content_key(session, id)
        return self._read(key, session.id, field + id.encode())

    def _read(self, key: str, session_id: str, field: bytes) -> bytes | None:
        with _calling_redis():
            content = self._redis.get(key)
        if not isinstance(content, bytes):
            return None
        try:
            return self._encryption.decrypt(session_id, field, content)
        except DecryptionError:
            return None

    def park(self, path: str, form: Pairs) -> str:
        """Return a form that a login interrupts as a text that its page carries."""
        content = orjson.dumps({"at": time.time(), "path": path, "form": form})
        if len(content) > MOST_PARKED:
            return ""
        raw = self._encryption.encrypt("", _PARKED, content)
        return base64.urlsafe_b64encode(raw).decode()

    def unpark(self, text: str) -> tuple[str, Pairs] | None:
        """Return path and form of such a text, None where it waited for too long."""
        if not 0 < len(text) <= 2 * MOST_PARKED:
            return None
        try:
            raw = base64.urlsafe_b64decode(text)
            content = orjson.loads(self._encryption.decrypt("", _PARKED, raw))
        except (ValueError, DecryptionError):
            return None
        if content["at"] + LOGIN_SECONDS < time.time():
            return None
        return content["path"], _pairs(content["form"])

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


def _content_key(session: Session, id: str) -> str:
    # The trail has no id: the session's own key is the session's.
    return _key(session.id + id) if id else f"{_key(session.id)}:trail"


def _pairs(stored: Sequence[Sequence[str]]) -> Pairs:
    return [(name, text) for name, text in stored]


@contextmanager
def _calling_redis() -> Iterator[None]:
    try:
        yield
    except REDIS_ERRORS as error:
        raise AwayError(_("Logins cannot be checked at present.")) from error
