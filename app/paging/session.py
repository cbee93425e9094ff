"""A search session: a search, its total, and its pages linked by cursors (spec 4.3).

Links depend on the rows of a page, not on numbers (decision 10).
"""

from dataclasses import dataclass, replace

from adapters.contract import Adapter, Page, SearchQuery
from app.errors import (
    BadRequestError,
    BadValueError,
    BusinessRuleError,
    UnavailableError,
)
from app.fhir.summary import Summary
from app.offer import Offer, ResourceOffer
from app.paging.store import (
    Direction,
    PageLink,
    PageStore,
    Start,
    StoredPage,
    StoredSearch,
    gone_page,
)
from app.search.parser import Context, Parameters, Search, parse_search
from app.stages import Stage, stage


@dataclass(frozen=True, slots=True)
class ResultPage:
    """One page of a search, ready to be written as a Bundle.

    `total` is None for a search without a count; `cut_short` says that more matched than a
    deployment without paging returns.
    """

    id: str
    total: int | None
    links: tuple[PageLink, ...]
    page: Page
    search: Search
    cut_short: bool


@dataclass(frozen=True, slots=True)
class SearchSessions:
    """Begins searches and returns their pages. Safe to share between threads."""

    adapter: Adapter
    offer: Offer
    store: PageStore
    context: Context

    def begin(
        self, search: Search, parameters: Parameters, client: str, *, lenient: bool
    ) -> ResultPage:
        """Run a new search and store it, so that its self and next links work.

        Raises UnavailableError when it has a next page and Redis is away (decision 25),
        and whatever the adapter raises.
        """
        page = self._rows(search, search.query)
        stored = StoredSearch(
            client,
            search.query.resource_type,
            parameters,
            lenient,
            self._total(search, page),
            self.adapter.fingerprint,
            self.store.now(),
        )
        first = StoredPage(self.store.new_id(client), stored, Start())
        return self._result(first, search, page, is_new=True)

    def find(self, page_id: str, client: str, link: PageLink | None) -> StoredPage:
        """Return the page `page_id` of this client, or the one that its link leads to.

        Raises UnknownResourceError, GonePageError, UnavailableError.
        """
        if link is None:
            return self.store.load(page_id, client)
        return self.store.follow(page_id, client, link)

    def run(self, stored: StoredPage) -> ResultPage:
        """Query the source for a stored page.

        Raises GonePageError when the mapping or the offer has changed since, and whatever
        the adapter raises.
        """
        search = self._parse_again(stored.search)
        page = self._rows(search, _starting_at(search.query, stored.start))
        return self._result(stored, search, page, is_new=False)

    def _parse_again(self, stored: StoredSearch) -> Search:
        offer = self.offer.resources.get(stored.resource_type)
        if offer is None or stored.fingerprint != self.adapter.fingerprint:
            raise gone_page()
        try:
            return parse_search(
                stored.parameters, offer, self.context, lenient=stored.lenient
            )
        except (BadRequestError, BadValueError, BusinessRuleError) as error:
            # It was valid once: the deployment has come to offer less.
            raise gone_page() from error

    def _rows(self, search: Search, query: SearchQuery) -> Page:
        if search.presentation.summary is Summary.COUNT:
            return Page(())
        with stage(Stage.SOURCE):
            return self.adapter.search(query)

    def _total(self, search: Search, page: Page) -> int | None:
        """Count, unless the first page shows that it is all (decision 13)."""
        if not search.counted:
            return None
        if not page.more and search.presentation.summary is not Summary.COUNT:
            return len(page.rows)
        if page.total is not None and search.presentation.summary is not Summary.COUNT:
            return page.total
        with stage(Stage.SOURCE):
            total = self.adapter.count(search.query)
        # Rows that were deleted between page and count were still returned.
        return max(total, len(page.rows))

    def _result(
        self, stored: StoredPage, search: Search, page: Page, *, is_new: bool
    ) -> ResultPage:
        offer = self.offer.resources[search.query.resource_type]
        targets = _targets(stored.start, page, offer) if self.offer.paging else ()
        try:
            links = self.store.save(stored, targets)
        except UnavailableError:
            if targets or not is_new:
                raise
            links = ()
        can_continue = self.offer.paging and page.last is not None
        cut_short = page.more and not can_continue
        total = stored.search.total
        if total is not None:
            # Rows that were added after the count are on the page all the same.
            total = max(total, len(page.rows))
        return ResultPage(stored.id, total, links, page, search, cut_short)


def _starting_at(query: SearchQuery, start: Start) -> SearchQuery:
    if start.direction is Direction.AFTER:
        return replace(query, after=start.position)
    if start.position is None:
        return replace(query, from_end=True)
    return replace(query, before=start.position)


def _targets(start: Start, page: Page, offer: ResourceOffer) -> tuple[Start, ...]:
    """Return where the links of a page lead: `previous` first, where there is one."""
    previous = _previous(start, page) if offer.backwards else None
    targets = (previous, _next(start, page))
    return tuple(target for target in targets if target is not None)


def _previous(start: Start, page: Page) -> Start | None:
    came_from_before = start.direction is Direction.AFTER and start.position is not None
    cannot_go_back = page.rows and page.first is None
    goes_back = start.direction is Direction.BEFORE and page.more
    if cannot_go_back or not (came_from_before or goes_back):
        return None
    # A page that has lost its rows leads back to the end of what is left.
    return Start(max(1, start.index - 1), Direction.BEFORE, page.first)


def _next(start: Start, page: Page) -> Start | None:
    came_from_after = start.direction is Direction.BEFORE and start.position is not None
    goes_on = page.more and page.last is not None
    if not (came_from_after or (start.direction is Direction.AFTER and goes_on)):
        return None
    # A page that has lost its rows leads on to the first rows that are left.
    return Start(start.index + 1 if page.last else 1, Direction.AFTER, page.last)
