"""A search and its pages: asked of the source, counted once, kept, linked (spec 4.3).

Links depend on the rows that were found, not on numbers (decision 10).
"""

from dataclasses import dataclass, replace

from adapters.contract import Adapter, Page, SearchQuery
from app.capabilities import Offer, ResourceOffer
from app.criteria import Context
from app.errors import (
    BadRequestError,
    BadValueError,
    BusinessRuleError,
    UnavailableError,
)
from app.forms import Pairs
from app.operations.phases import Phase, phase
from app.paging import KeptPage, PageLink, PageStore, gone_page
from app.schemas.summary import Summary
from app.search import Search, parse_search
from app.stored import Direction, Start, StoredSearch


@dataclass(frozen=True, slots=True)
class ResultPage:
    """One page of a search, ready to be presented.

    `cut_short` says that more matched than a deployment without paging returns.
    """

    id: str
    total: int
    links: tuple[PageLink, ...]
    page: Page
    search: Search
    cut_short: bool


@dataclass(frozen=True, slots=True)
class Walks:
    """Begins searches and goes through their pages. Safe to share between threads."""

    adapter: Adapter
    offer: Offer
    store: PageStore
    context: Context

    def begin(
        self, search: Search, pairs: Pairs, client: str, *, lenient: bool
    ) -> ResultPage:
        """Run a new search; it is kept so that its self link and its next page answer.

        Raises UnavailableError when it has a next page and Redis is away (decision 25),
        and whatever the adapter raises.
        """
        page = self._rows(search, search.query)
        stored = StoredSearch(
            client,
            search.query.resource_type,
            pairs,
            lenient,
            self._total(search, page),
            self.adapter.fingerprint,
            self.store.now(),
        )
        kept = KeptPage(self.store.new_id(client), stored, Start())
        return self._linked(kept, search, page, optional=True)

    def find(self, page_id: str, client: str, link: PageLink | None) -> KeptPage:
        """Return the page `page_id` of this client, or the one that its link leads to.

        Raises UnknownResourceError, GonePageError, UnavailableError.
        """
        if link is None:
            return self.store.load(page_id, client)
        return self.store.follow(page_id, client, link)

    def show(self, kept: KeptPage) -> ResultPage:
        """Ask the source for a page that was kept.

        Raises GonePageError when the mapping has changed what the search walks on or
        asks, and whatever the adapter raises.
        """
        stored = kept.search
        offer = self.offer.resources.get(stored.resource_type)
        if offer is None or stored.fingerprint != self.adapter.fingerprint:
            raise gone_page()
        search = self._again(stored, offer)
        page = self._rows(search, _starting(search.query, kept.start))
        return self._linked(kept, search, page, optional=False)

    def _again(self, stored: StoredSearch, offer: ResourceOffer) -> Search:
        try:
            return parse_search(
                stored.pairs, offer, self.context, lenient=stored.lenient
            )
        except (BadRequestError, BadValueError, BusinessRuleError) as error:
            # It was taken once: since then the deployment has come to offer less.
            raise gone_page() from error

    def _rows(self, search: Search, query: SearchQuery) -> Page:
        if search.presentation.summary is Summary.COUNT:
            return Page(())
        with phase(Phase.SOURCE):
            return self.adapter.search(query)

    def _total(self, search: Search, page: Page) -> int:
        """Count, unless the first page shows that it is all (decision 13)."""
        if page.more or search.presentation.summary is Summary.COUNT:
            with phase(Phase.SOURCE):
                counted = self.adapter.count(search.query)
            # Rows that went between the page and the count were still returned.
            return max(counted, len(page.rows))
        return len(page.rows)

    def _linked(
        self, kept: KeptPage, search: Search, page: Page, *, optional: bool
    ) -> ResultPage:
        offer = self.offer.resources[search.query.resource_type]
        targets = _targets(kept.start, page, offer) if self.offer.paging else ()
        try:
            links = self.store.keep(kept, targets)
        except UnavailableError:
            if targets or not optional:
                raise
            links = ()
        cut_short = page.more and not self.offer.paging
        # Rows that came since they were counted stand on the page all the same.
        total = max(kept.search.total, len(page.rows))
        return ResultPage(kept.id, total, links, page, search, cut_short)


def _starting(query: SearchQuery, start: Start) -> SearchQuery:
    if start.direction is Direction.AFTER:
        return replace(query, after=start.position)
    if start.position is None:
        return replace(query, from_end=True)
    return replace(query, before=start.position)


def _targets(start: Start, page: Page, offer: ResourceOffer) -> tuple[Start, ...]:
    """Return where the links of a page lead: `previous` first, where there is one."""
    previous = _previous(start, page) if offer.backwards else None
    found = (previous, _next(start, page))
    return tuple(target for target in found if target is not None)


def _previous(start: Start, page: Page) -> Start | None:
    came_from_before = start.direction is Direction.AFTER and start.position is not None
    exists = came_from_before or (start.direction is Direction.BEFORE and page.more)
    # A page that has lost its rows leads back to the end of what is left.
    index = max(1, start.index - 1)
    return Start(index, Direction.BEFORE, page.first) if exists else None


def _next(start: Start, page: Page) -> Start | None:
    came_from_behind = (
        start.direction is Direction.BEFORE and start.position is not None
    )
    if not (came_from_behind or (start.direction is Direction.AFTER and page.more)):
        return None
    # A page that has lost its rows, on the way back, leads on to the first that are left.
    index = start.index + 1 if page.last else 1
    return Start(index, Direction.AFTER, page.last)
