"""Search sessions: a search, its total, and its pages linked by cursors (spec 4.3).

`SearchSessions` begins a search and continues it; links depend on the rows of a page, not
on numbers (decision 10). `PageStore` holds the pages in Redis: stored format, commands.

Redis holds the question and the positions, never an answer (decisions 11 and 12). The
question is stored as the client sent it and parsed again for each page; a position is
stored in the source's full precision.

A page is one hash. Its field `page` holds the search and where the page starts. Each link
is a field named by a digest of where it leads, which makes a link that is written twice the
same link; it holds the cursor and the encrypted target. Redis expires a page when its life
is over.

Everything stored is a JSON array that begins with the version of its format. While a
deployment is upgraded, workers of two releases share one Redis, so a release writes only
what the release before it can read (docs/change/paging.md).
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from hashlib import blake2b
from typing import Any
from uuid import UUID

import orjson
import redis

from adapters.contract import (
    Adapter,
    Group,
    Key,
    Page,
    Position,
    ResourceType,
    SourceBusyError,
    TooCostlyError,
)
from adapters.instrumentation import CallKind, observe
from app.call import Call, Stage
from app.crypto import (
    ID_LENGTH,
    DecryptionError,
    Encryption,
    Signatures,
    derived_key,
)
from app.errors import (
    BadRequestError,
    BadValueError,
    BusinessRuleError,
    GonePageError,
    UnavailableError,
    UnknownResourceError,
)
from app.fhir.summary import Summary
from app.offer import Offer, ResourceOffer
from app.redis_client import REDIS_ERRORS
from app.search.parser import Parameters, Search, Total, parse_search
from app.search.references import Included, included_in, linked
from app.search.types import Context

WRITTEN = 1
"""The format that this release writes."""

READ = frozenset({1})
"""The formats that it reads: a coming one is read before any release writes it."""

_PAGE = b"page"

# One script: a page is never stored without its expiry, nor a link without its page.
_STORE_PAGE = """
redis.call('HSET', KEYS[1], 'page', ARGV[1])
redis.call('EXPIRE', KEYS[1], ARGV[2])
local links = {}
for at = 3, #ARGV, 2 do
  redis.call('HSETNX', KEYS[1], ARGV[at], ARGV[at + 1])
  table.insert(links, redis.call('HGET', KEYS[1], ARGV[at]))
end
return links
"""

_log = logging.getLogger(__name__)


class Direction(StrEnum):
    """On which side of its position a page lies."""

    AFTER = "after"
    BEFORE = "before"


@dataclass(frozen=True, slots=True)
class Start:
    """Where a page starts: beside a position, or without one at an end of the result.

    `index` is the page's number, the first is 1.
    """

    index: int = 1
    direction: Direction = Direction.AFTER
    position: Position | None = None


@dataclass(frozen=True, slots=True)
class StoredSearch:
    """A search whose pages can be followed: whose it is, its question and its total, if any.

    `created` is in seconds since 1970.
    """

    client: str
    resource_type: ResourceType
    parameters: Parameters
    lenient: bool
    total: int | None
    fingerprint: str
    created: int


@dataclass(frozen=True, slots=True)
class StoredPage:
    """A page of a search, as Redis holds it."""

    id: str
    search: StoredSearch
    start: Start


@dataclass(frozen=True, slots=True)
class PageLink:
    """A link to another page; `direction`: on which side of the cursor it lies."""

    direction: Direction
    index: int
    cursor: str


class PageStore:
    """Stores pages and their links; `idle` and `life` are in seconds."""

    def __init__(
        self,
        client: redis.Redis,
        keys: Sequence[str],
        *,
        idle: int,
        life: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._redis = client
        self._store_page = client.register_script(_STORE_PAGE)
        self._encryption = Encryption(keys)
        self._signatures = Signatures(keys, clock)
        self._field_key = derived_key(keys[0], b"link")
        self._idle = idle
        self._life = life
        self._clock = clock

    def new_id(self, client: str) -> str:
        """Return the id of a page that only `client` may request."""
        return self._signatures.issue("page", client)

    def now(self) -> int:
        """Return the time, in seconds since 1970."""
        return int(self._clock())

    def save(self, page: StoredPage, targets: Sequence[Start]) -> tuple[PageLink, ...]:
        """Store a page with a link to each target; an existing link stays as it is.

        Raises UnavailableError when Redis is away, GonePageError when the life of the
        search is over.
        """
        life = self._remaining_life(page.search)
        content = self._encryption.encrypt(page.id, _PAGE, _pack_page(page))
        links = [part for target in targets for part in self._new_link(page, target)]
        with self._calling_redis("keep"):
            fields: list[bytes] = self._store_page(
                keys=(_key(page.id),), args=(content, life, *links)
            )
            if not isinstance(fields, list):
                raise redis.InvalidResponse
            cursors = [str(field[:ID_LENGTH], "ascii") for field in fields]
            return tuple(
                PageLink(target.direction, target.index, cursor)
                for target, cursor in zip(targets, cursors, strict=True)
            )

    def load(
        self, page_id: str, client: str, link: PageLink | None = None
    ) -> StoredPage:
        """Return a page of `client`, or the one that its link leads to; count it as used.

        Raises UnknownResourceError (404) for an id or a cursor that was not issued to this
        client, GonePageError (410) for one that is no longer stored, UnavailableError. The
        view has refused text of another form before (412).
        """
        is_issued = self._signatures.is_valid(page_id, "page", client)
        if is_issued and link:
            signed = client, page_id, link.direction, str(link.index)
            is_issued = self._signatures.is_valid(link.cursor, *signed)
        if not is_issued:
            raise UnknownResourceError("There is no such page.")
        with self._calling_redis("load"):
            pipeline = self._redis.pipeline(transaction=False)
            pipeline.hgetall(_key(page_id))
            pipeline.expire(_key(page_id), self._idle)
            fields: dict[bytes, bytes] = pipeline.execute()[0]
            if not isinstance(fields, dict):
                raise redis.InvalidResponse
        content = fields.pop(_PAGE, None)
        if content is None:
            raise GonePageError
        page = _unpack_page(page_id, self._decrypt(page_id, _PAGE, content))
        if (life := self._remaining_life(page.search)) < self._idle:
            with self._calling_redis("load"):
                self._redis.expire(_key(page_id), life)
        return self._target(page, fields, link) if link else page

    def _target(
        self, page: StoredPage, links: Mapping[bytes, bytes], link: PageLink
    ) -> StoredPage:
        """Return the page that a link leads to; raises GonePageError for one not stored."""
        for field, value in links.items():
            if value.startswith(link.cursor.encode()):
                values = self._decrypt(page.id, field, value[ID_LENGTH:])
                target_id = values[0]
                start = _unpack_start(values[1])
                # Else somebody has exchanged the links of a page in Redis.
                if (start.direction, start.index) == (link.direction, link.index):
                    return StoredPage(target_id, page.search, start)
        raise GonePageError

    def _remaining_life(self, search: StoredSearch) -> int:
        life = min(self._idle, search.created + self._life - self.now())
        if life <= 0:
            raise GonePageError
        return life

    def _new_link(self, page: StoredPage, target: Start) -> tuple[bytes, bytes]:
        """Return the field and the value of a link: its cursor, and the encrypted target."""
        client = page.search.client
        start = _pack_start(target)
        # The same in every format: links are recognised by it.
        place = orjson.dumps(["", start])
        field = blake2b(place, key=self._field_key, digest_size=16).digest()
        signed = client, page.id, target.direction, str(target.index)
        cursor = self._signatures.issue(*signed).encode()
        content = orjson.dumps([WRITTEN, self.new_id(client), start])
        return field, cursor + self._encryption.encrypt(page.id, field, content)

    def _decrypt(self, page_id: str, field: bytes, content: bytes) -> list[Any]:
        """Return what follows the version in a field."""
        try:
            raw = self._encryption.decrypt(page_id, field, content)
        except DecryptionError as error:
            raise GonePageError from error
        values: list[Any]
        version, *values = orjson.loads(raw)
        if version not in READ:
            data = {"format": version, "reads": sorted(READ)}
            _log.warning("page of another format", extra={"data": data})
            raise GonePageError(
                "This page was stored by another version of the service: search again."
            )
        return values

    @contextmanager
    def _calling_redis(self, step: str) -> Iterator[None]:
        try:
            with observe(CallKind.STORE, "redis", step):
                yield
        except REDIS_ERRORS as error:
            raise UnavailableError(
                "The stored pages of searches are not available. Try again later."
            ) from error


@dataclass(frozen=True, slots=True)
class ResultPage:
    """One page of a search, ready to be written as a Bundle.

    `included` are the resources beside the matches. `total` is None for a search without a
    count, `is_uncounted` means that counting took too long; `cut_short` that more matched
    than a deployment without paging returns.
    """

    id: str
    total: int | None
    links: tuple[PageLink, ...]
    page: Page
    included: Included
    search: Search
    cut_short: bool
    is_uncounted: bool


@dataclass(frozen=True, slots=True)
class SearchSessions:
    """Begins searches and returns their pages. Safe to share between threads.

    `fingerprint` is that of the adapter: pages of another mapping end with 410.
    """

    adapter: Adapter
    fingerprint: str
    offer: Offer
    store: PageStore
    context: Context

    def begin(
        self, call: Call, search: Search, parameters: Parameters, *, lenient: bool
    ) -> ResultPage:
        """Run a new search and store it, so that its self and next links work.

        Raises UnavailableError when it has a next page and Redis is away (decision 25),
        and whatever the adapter raises.
        """
        call.enter(Stage.SOURCE)
        search, call.patients = linked(search, self.adapter)
        page = self._rows(search, Start())
        client = call.client.id
        stored = StoredSearch(
            client,
            search.query.resource_type,
            parameters=parameters,
            lenient=lenient,
            total=self._total(search, page),
            fingerprint=self.fingerprint,
            created=self.store.now(),
        )
        first = StoredPage(self.store.new_id(client), stored, Start())
        return self._result(call, first, search, page)

    def resume(self, call: Call, stored: StoredPage, search: Search) -> ResultPage:
        """Query the source for a stored page; raises whatever the adapter raises."""
        call.enter(Stage.SOURCE)
        search, call.patients = linked(search, self.adapter)
        page = self._rows(search, stored.start)
        return self._result(call, stored, search, page)

    def parse(self, stored: StoredSearch) -> Search:
        """Parse a stored search again.

        Raises GonePageError when the mapping or the offer has changed since.
        """
        offer = self.offer.resources.get(stored.resource_type)
        if offer is None or stored.fingerprint != self.fingerprint:
            raise GonePageError
        try:
            return parse_search(
                stored.parameters, offer, self.context, lenient=stored.lenient
            )
        except (BadRequestError, BadValueError, BusinessRuleError) as error:
            # It was valid once: the deployment has come to offer less.
            raise GonePageError from error

    def _rows(self, search: Search, start: Start) -> Page:
        if search.presentation.summary is Summary.COUNT:
            return Page(())
        if start.direction is Direction.AFTER:
            query = replace(search.query, after=start.position)
        else:
            is_end = start.position is None
            query = replace(search.query, before=start.position, from_end=is_end)
        return self.adapter.search(query)

    def _total(self, search: Search, page: Page) -> int | None:
        """Return the number of matches, None where it is not known (decisions 13 and 34).

        The first page may show that it is all: then nothing is counted.
        """
        if search.total is Total.NONE:
            return None
        if search.presentation.summary is not Summary.COUNT:
            if not page.more:
                return len(page.rows)
            if page.total is not None:
                return page.total
        try:
            total = self.adapter.count(search.query)
        except (TooCostlyError, SourceBusyError):
            if search.total is Total.ACCURATE:
                raise
            return None
        # Rows that were deleted between page and count were still returned.
        return max(total, len(page.rows))

    def _result(
        self, call: Call, stored: StoredPage, search: Search, page: Page
    ) -> ResultPage:
        offer = self.offer.resources[search.query.resource_type]
        targets = (
            tuple(_targets(stored.start, page, offer)) if self.offer.paging else ()
        )
        included = included_in(page.rows, search.includes, self.adapter)
        call.enter(Stage.REDIS)
        try:
            links = self.store.save(stored, targets)
        except UnavailableError:
            if targets:
                raise
            links = ()
        can_continue = self.offer.paging and page.last is not None
        cut_short = page.more and not can_continue
        total = stored.search.total
        if total is not None:
            # Rows that were added after the count are on the page all the same.
            total = max(total, len(page.rows))
        return ResultPage(
            id=stored.id,
            total=total,
            links=links,
            page=page,
            included=included,
            search=search,
            cut_short=cut_short,
            is_uncounted=total is None and search.total is Total.IN_TIME,
        )


def _targets(start: Start, page: Page, offer: ResourceOffer) -> Iterator[Start]:
    """Yield where the links of a page lead: `previous` first, where there is one."""
    came_from_other_side = start.position is not None
    if start.direction is Direction.AFTER:
        has_previous = came_from_other_side
        has_next = page.more and page.last is not None
    else:
        has_previous = page.more
        has_next = came_from_other_side
    if offer.backwards and has_previous:
        # A page that has lost its rows leads back to the end of what is left.
        yield Start(max(1, start.index - 1), Direction.BEFORE, page.first)
    if has_next:
        # A page that has lost its rows leads on to the first rows that are left.
        yield Start(start.index + 1 if page.last else 1, Direction.AFTER, page.last)


def _key(page_id: str) -> str:
    return f"page:{page_id}"


def _pack_page(page: StoredPage) -> bytes:
    search = page.search
    return orjson.dumps(
        [
            WRITTEN,
            search.client,
            search.resource_type,
            search.parameters,
            search.lenient,
            search.total,
            search.fingerprint,
            search.created,
            _pack_start(page.start),
        ]
    )


def _unpack_page(page_id: str, values: list[Any]) -> StoredPage:
    client, kind, parameters, lenient, total, fingerprint, created, start = values
    search = StoredSearch(
        client,
        ResourceType(kind),
        parameters=tuple((name, text) for name, text in parameters),
        lenient=lenient,
        total=total,
        fingerprint=fingerprint,
        created=created,
    )
    return StoredPage(page_id, search, _unpack_start(start))


def _pack_start(start: Start) -> list[Any]:
    at = start.position
    if at is None:
        return [start.index, start.direction, None]
    keys = [_pack_key(key) for key in (at.key, at.id, at.moment)]
    return [start.index, start.direction, [at.group, *keys, at.source]]


def _unpack_start(values: list[Any]) -> Start:
    index, direction, position = values
    if position is None:
        return Start(index, Direction(direction))
    group, key, id, packed_moment, source = position
    moment = None
    if packed_moment:
        # The name of its type comes first.
        moment = datetime.fromisoformat(packed_moment[1])
    unpacked = Position(
        Group(group),
        _unpack_key(key),
        id=_unpack_key(id),
        moment=moment,
        source=source,
    )
    return Start(index, Direction(direction), unpacked)


# JSON has text, numbers and null; values of these types are stored with their type.
_KEY_TYPES: Mapping[str, Callable[[str], Key]] = {
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "Decimal": Decimal,
    "UUID": UUID,
    "bytes": bytes.fromhex,
}


def _pack_key(key: Key) -> Any:
    name = type(key).__name__
    if name not in _KEY_TYPES:
        return key
    if isinstance(key, date):
        return [name, key.isoformat()]
    return [name, key.hex() if isinstance(key, bytes) else str(key)]


def _unpack_key(packed: Any) -> Key:
    if isinstance(packed, list):
        name, text = packed
        return _KEY_TYPES[name](text)
    key: Key = packed
    return key
