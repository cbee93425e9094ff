"""Pages kept in Redis, sealed: the one place that speaks to Redis about searches.

A page is one hash: `page` holds its question and start, and each link of the page has a
field named by a digest of where it leads, with its cursor and, sealed, its target. The
digest makes a link that is written twice the same link. Redis itself forgets a page
when its life is over (decision 11).
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeVar

import redis

from adapters.outward import Kind, outward
from app import page_commands as commands
from app.errors import GonePageError, UnavailableError, UnknownResourceError
from app.operations.metrics import STORE_ERRORS, store_seconds
from app.operations.phases import Phase, phase
from app.page_commands import CURSOR_LENGTH, PAGE, Command
from app.seals import BrokenSealError, Seals
from app.stamps import Stamps, derived_key
from app.stored import (
    READ,
    WRITTEN,
    Direction,
    FormatError,
    Start,
    StoredSearch,
    pack_page,
    pack_place,
    pack_target,
    unpack_page,
    unpack_target,
)
from app.timed_redis import ask

Kept = TypeVar("Kept")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PageLink:
    """A link to another page; `direction` says on which side of the cursor it lies."""

    direction: Direction
    index: int
    cursor: str


@dataclass(frozen=True, slots=True)
class KeptPage:
    """A page as it was kept."""

    id: str
    search: StoredSearch
    start: Start


class PageStore:
    """Keeps pages and their links. Times are in seconds; `version` is the format written."""

    def __init__(
        self,
        client: redis.Redis,
        seal_keys: Sequence[str],
        *,
        idle: int,
        life: int,
        clock: Callable[[], float] = time.time,
        version: int = WRITTEN,
    ) -> None:
        self._redis = client
        self._version = version
        self._seals = Seals(seal_keys)
        self._place_key = derived_key(seal_keys[0], b"place")
        self._stamps = Stamps(seal_keys, clock)
        self._idle = idle
        self._life = life
        self._clock = clock

    def new_id(self, client: str) -> str:
        """Return the id of a page that `client` may ask for."""
        return self._stamps.issue("page", client)

    def now(self) -> int:
        """Return the time, in seconds since 1970."""
        return int(self._clock())

    def keep(self, page: KeptPage, targets: Sequence[Start]) -> tuple[PageLink, ...]:
        """Keep a page and write its links; a link that it has already stays as it is.

        Raises UnavailableError when Redis is away, GonePageError when the life of the
        search is over.
        """
        life = self._life_left(page.search)
        packed = pack_page(page.search, page.start, self._version)
        sealed = self._seals.seal(page.id, PAGE, packed)
        links = [self._written(page, target) for target in targets]
        (written,) = self._run("keep", commands.keep(page.id, sealed, life, links))
        if not commands.are_links(written, len(targets)):
            raise _away()
        return tuple(
            PageLink(target.direction, target.index, raw[:CURSOR_LENGTH].decode())
            for target, raw in zip(targets, written, strict=True)
        )

    def load(self, page_id: str, client: str) -> KeptPage:
        """Return a page that was kept for `client`, and count it as used.

        Raises UnknownResourceError for an id that was not issued to this client,
        GonePageError for one that is no longer kept, UnavailableError.
        """
        return self._load(page_id, client)[0]

    def follow(self, page_id: str, client: str, link: PageLink) -> KeptPage:
        """Return the page that a link of the page `page_id` leads to.

        Raises as `load` does; a link that this page never had is unknown too.
        """
        if not self._stamps.is_genuine(
            link.cursor, client, page_id, link.direction, str(link.index)
        ):
            raise unknown_page()
        page, fields = self._load(page_id, client)
        cursor = link.cursor.encode()
        for place, raw in fields.items():
            if raw.startswith(cursor):
                sealed = raw[CURSOR_LENGTH:]
                target_id, start = self._read(unpack_target, page_id, place, sealed)
                if (start.direction, start.index) != (link.direction, link.index):
                    # Of the two links of a page somebody has made each the other.
                    raise gone_page()
                return KeptPage(target_id, page.search, start)
        raise gone_page()

    def _load(self, page_id: str, client: str) -> tuple[KeptPage, dict[bytes, bytes]]:
        if not self._stamps.is_genuine(page_id, "page", client):
            raise unknown_page()
        asked = commands.load(page_id), commands.end(page_id, self._idle)
        found, _ = self._run("load", *asked)
        if not commands.is_page(found):
            raise _away()
        fields: dict[bytes, bytes] = dict(zip(found[::2], found[1::2], strict=True))
        sealed = fields.pop(PAGE, None)
        if sealed is None:
            raise gone_page()
        search, start = self._read(unpack_page, page_id, PAGE, sealed)
        self._end_in_time(page_id, search)
        return KeptPage(page_id, search, start), fields

    def _end_in_time(self, page_id: str, search: StoredSearch) -> None:
        """Have Redis forget a page that was used when its whole life is over."""
        left = search.born + self._life - self.now()
        if left < self._idle:
            self._run("load", commands.end(page_id, left))
        self._life_left(search)

    def _life_left(self, search: StoredSearch) -> int:
        left = min(self._idle, search.born + self._life - self.now())
        if left <= 0:
            raise gone_page()
        return left

    def _written(self, page: KeptPage, target: Start) -> tuple[bytes, bytes]:
        client, place = page.search.client, self._place(target)
        cursor = self._stamps.issue(
            client, page.id, target.direction, str(target.index)
        )
        packed = pack_target(self.new_id(client), target, self._version)
        return place, cursor.encode() + self._seals.seal(page.id, place, packed)

    def _place(self, target: Start) -> bytes:
        return blake2b(pack_place(target), key=self._place_key, digest_size=16).digest()

    def _read(
        self,
        unpack: Callable[[bytes], Kept],
        page_id: str,
        field: bytes,
        sealed: bytes,
    ) -> Kept:
        try:
            return unpack(self._seals.open(page_id, field, sealed))
        except BrokenSealError as error:
            raise gone_page() from error
        except FormatError as error:
            data = {"format": error.version, "reads": sorted(READ)}
            _log.warning("page of another format", extra={"data": data})
            raise GonePageError(
                "This page was kept by another version of the service: search again."
            ) from error

    def _run(self, step: str, *asked: Command) -> list[Any]:
        try:
            with (
                store_seconds(step).time(),
                phase(Phase.REDIS),
                outward(Kind.STORE, "redis", step),
            ):
                return ask(self._redis, *asked)
        except redis.RedisError as error:
            STORE_ERRORS.labels(step).inc()
            raise _away() from error


def unknown_page() -> UnknownResourceError:
    """Return the one answer to ids and cursors that are not this client's (decision 14)."""
    return UnknownResourceError("There is no such page of a search.")


def gone_page() -> GonePageError:
    """Return the answer to pages that are no longer kept (decision 14)."""
    return GonePageError("This page is no longer kept: search again.")


def _away() -> UnavailableError:
    return UnavailableError("The pages of searches cannot be reached at present.")
