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
from typing import Any, TypeVar

import orjson
import redis
from flask import request
from werkzeug.exceptions import NotFound, TooManyRequests
from werkzeug.wrappers import Response

from app.crypto import DecryptionError, Encryption, derived_key
from app.redis_client import REDIS_ERRORS
from explorer.failures import AwayError
from explorer.language import mark as _

LOGIN_SECONDS = 600
"""How long a login may take, and how long a form waits for it."""

LOGINS_PER_MINUTE = 30
"""How many logins an address may begin in a minute."""

RESULT_SECONDS = 900
"""How long the result of a search is stored at most."""

Pairs = Sequence[tuple[str, str]]

_PAIRS = ("form", "criteria", "next")
"""The fields of records that hold pairs, which JSON makes lists of."""


@dataclass(slots=True)
class Session:
    """A browser that logs in (`login` is its state, nonce and verifier) or has a `token`.

    `person` is the subject of the login, "" where an access token was pasted: then the
    client of the token is who looks. `expires` is in seconds since 1970, `name` is shown.
    `waiting` is the path and the form that the login interrupted.

    It remembers recent searches, the names of wards by code, the resources that come with
    stays (None before the first search) and the ids of files.
    """

    id: str
    expires: float
    token: str = ""
    scope: str = ""
    person: str = ""
    name: str = ""
    reason: str = ""
    login: dict[str, str] = field(default_factory=dict)
    waiting: tuple[str, Pairs] | None = None
    recent: list[dict[str, Any]] = field(default_factory=list)
    wards: dict[str, str] = field(default_factory=dict)
    includes: list[str] | None = None
    exports: list[str] = field(default_factory=list)

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
    criteria: Pairs
    bundle: Any
    form: Pairs = ()
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


StoredT = TypeVar("StoredT", SearchResult, Export)


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

    # --------------------------------------------------------------------- sessions

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
        """Store a session as it is now, unless it has ended. Raises AwayError."""
        content = orjson.dumps(asdict(session))
        encrypted = self._encryption.encrypt(session.id, b"session", content)
        seconds = self._seconds(session)
        with _calling_redis():
            self._redis.set(_key(session.id), encrypted, ex=seconds, xx=not is_new)

    def current(self) -> Session | None:
        """Return the session of the request and count it as used. Raises AwayError."""
        id = self.cookie()
        raw = self._read(_key(id), id, b"session") if id else None
        session = Session(**orjson.loads(raw)) if raw else None
        if session is None or session.expires <= time.time():
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
            keys = self._redis.smembers(_contents_key(session.id))
            self._redis.delete(_key(session.id), _contents_key(session.id), *keys)
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

    def _seconds(self, session: Session) -> int:
        return max(1, min(self._idle, int(session.expires - time.time())))

    # ------------------------------------------------------------- results and files

    def store(self, session: Session, id: str, record: SearchResult | Export) -> None:
        """Store a result or a file under an id that is of use to this session alone."""
        self._store(session, id, type(record).__name__, orjson.dumps(record))

    def stored(
        self, session: Session, id: str, record: type[StoredT]
    ) -> StoredT | None:
        """Return a result or a file, None where none of that id is stored."""
        raw = self._stored(session, id, record.__name__)
        if raw is None:
            return None
        values = orjson.loads(raw)
        for name in _PAIRS:
            if values.get(name):
                values[name] = [(key, text) for key, text in values[name]]
        return record(**values)

    def store_part(self, session: Session, export: Export, part: bytes) -> None:
        """Store a further part of a file, then the file."""
        self._store(session, f"{export.id}-{export.parts}", "part", part)
        export.parts += 1
        self.store(session, export.id, export)

    def parts(self, session: Session, export: Export) -> Iterator[bytes]:
        """Yield the content of a file, part by part."""
        for number in range(export.parts):
            part = self._stored(session, f"{export.id}-{number}", "part")
            if part is None:
                raise NotFound
            yield part

    def _store(self, session: Session, id: str, kind: str, raw: bytes) -> None:
        field = f"{kind}:{id}".encode()
        encrypted = self._encryption.encrypt(session.id, field, zlib.compress(raw, 1))
        key, contents = _key(session.id + id), _contents_key(session.id)
        with _calling_redis(), self._redis.pipeline(transaction=False) as pipeline:
            pipeline.set(key, encrypted, ex=RESULT_SECONDS)
            pipeline.sadd(contents, key)
            pipeline.expire(contents, RESULT_SECONDS)
            pipeline.execute()

    def _stored(self, session: Session, id: str, kind: str) -> bytes | None:
        field = f"{kind}:{id}".encode()
        raw = self._read(_key(session.id + id), session.id, field)
        return zlib.decompress(raw) if raw else None

    def _read(self, key: str, session_id: str, field: bytes) -> bytes | None:
        with _calling_redis():
            content = self._redis.get(key)
        if not isinstance(content, bytes):
            return None
        try:
            return self._encryption.decrypt(session_id, field, content)
        except DecryptionError:
            return None

    # ------------------------------------------------------------------ sealed texts

    def seal(self, session_id: str, purpose: bytes, content: Any) -> str:
        """Return JSON as a text for addresses and forms that this session alone can read.

        "" is no session's: the explorer alone reads it.
        """
        raw = self._encryption.encrypt(session_id, purpose, orjson.dumps(content))
        return base64.urlsafe_b64encode(raw).decode()

    def unseal(self, session_id: str, purpose: bytes, text: str) -> Any:
        """Return the content of such a text, None for one of another session or purpose."""
        try:
            raw = base64.urlsafe_b64decode(text)
            return orjson.loads(self._encryption.decrypt(session_id, purpose, raw))
        except (ValueError, DecryptionError):
            return None


def _key(id: str) -> str:
    digest = blake2b(id.encode(), digest_size=18, person=b"explorer").hexdigest()
    return f"explorer:{digest}"


def _contents_key(id: str) -> str:
    return f"{_key(id)}:results"


@contextmanager
def _calling_redis() -> Iterator[None]:
    try:
        yield
    except REDIS_ERRORS as error:
        raise AwayError(_("Logins cannot be checked at present.")) from error
