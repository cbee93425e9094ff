"""A hospital's HTTP API as an adapter: search, count and read by requests.

SearchQuery → filters.py → parameters → source.py → client.py → rows → records
"""

from collections.abc import Collection, Iterable, Iterator
from functools import partial
from typing import Any

from adapters.contract import (
    AdapterError,
    Capabilities,
    GoneError,
    NotFoundError,
    Page,
    ParameterCapability,
    Problem,
    Record,
    ResourceCapabilities,
    ResourceType,
    SearchQuery,
    SourceDataError,
    SourceUnavailableError,
    StringMatch,
    TooCostlyError,
)
from adapters.errors import SourceTimedOutError
from adapters.http.answers import rows_at, text_at, total_at
from adapters.http.calls import Question
from adapters.http.client import Deadline
from adapters.http.dates import askable_prefixes, finest
from adapters.http.paging import (
    Listed,
    Pairs,
    Window,
    by_number,
    by_onward,
    one_page,
    whole_page,
)
from adapters.http.places import placed
from adapters.http.rows import ask_row
from adapters.http.section import JsonRow, Section, open_section
from adapters.http.source import Source
from adapters.inspection import Look
from adapters.mapping.apply import served
from adapters.mapping.http_model import HttpSection, PagingKind, SearchCall
from adapters.mapping.model import ResourceMapping, SourceMapping

_OWN_ORDER = "as the source gives them"
_BOTH_WAYS = (PagingKind.OFFSET, PagingKind.PAGE)


class HttpAdapter:
    """A hospital's HTTP API behind one mapping. Nothing is asked of it before the first call."""

    def __init__(
        self, mapping: SourceMapping, beside: "HttpAdapter | None" = None
    ) -> None:
        """Take the connections and the login of another adapter, `beside`, on the same API."""
        self._config = mapping.source
        self._source: Source = beside._source if beside else Source(mapping.source)
        self._fingerprint = mapping.fingerprint
        self._sections = {
            kind: open_section(mapping, kind) for kind in mapping.resources
        }
        self._capabilities = {
            kind: _capabilities(section.mapping, section.http)
            for kind, section in self._sections.items()
        }

    @property
    def capabilities(self) -> Capabilities:
        """What can be asked of each resource type that the mapping has."""
        return self._capabilities

    @property
    def fingerprint(self) -> str:
        """A digest of source, calls and order."""
        return self._fingerprint

    def search(self, query: SearchQuery) -> Page:
        """Return up to `query.count` rows from where the query starts."""
        section = self._sections[query.resource_type]
        question = Question.of(section, query)
        if question is None:
            return Page(())
        window = self._window(question, query)
        # Again, of a page that came in parts: not every API heeds where one begins.
        section.refuse_twins(window.rows)
        records = section.records(window.rows, query.criteria)
        page = window.page(records)
        return placed(section, query, window.rows, page) if query.placed else page

    def count(self, query: SearchQuery) -> int:
        """Return how many rows match."""
        question = Question.of(self._sections[query.resource_type], query)
        if question is None:
            return 0
        counting, seconds = question.list.counting, self._config.count_timeout_seconds
        try:
            if counting is not None:
                answer = self._list(question.counted(), seconds)
                return total_at(answer, counting.total)
            listed = self._listed(question, (), 1, "", seconds)
        except SourceTimedOutError as error:
            raise TooCostlyError("the count took too long") from error
        assert listed.total is not None, "the loader wants a total or a call for it"
        return listed.total

    def read(self, resource_type: ResourceType, id: str) -> Record:
        """Return one resource."""
        section = self._sections[resource_type]
        row = ask_row(self._source, section, id, self._config.timeout_seconds)
        return served(section.record(row))

    def explain(self, query: SearchQuery) -> str:
        """Return the request of a page, its values as placeholders."""
        question = Question.of(self._sections[query.resource_type], query)
        if question is None:
            return "nothing is asked: nothing can match"
        return question.explained(query.count)

    def explain_values(self, query: SearchQuery) -> str:
        """Return the request of a page with its values."""
        question = Question.of(self._sections[query.resource_type], query)
        if question is None:
            return "nothing is asked: nothing can match"
        return question.explained(query.count, hidden=False)

    def check(self) -> Iterable[Problem]:
        """Tell whether the source answers, and whether its rows are where the mapping says."""
        for kind, section in self._sections.items():
            if section.http.list is None:
                continue
            try:
                question = Question(section, section.http.list)
                seconds = self._config.timeout_seconds
                rows = self._listed(question, (), 1, "", seconds).rows
            except AdapterError as error:
                text = f"{section.mapping.mark}: {kind}: {error}"
                away = isinstance(error, SourceUnavailableError)
                yield Problem(text, outage=away)
            else:
                if any(not section.id_text(row) for row in rows):
                    place = section.mapping.fields["id"].mark
                    yield Problem(f"{place}: {kind}.id: no row holds it there")

    def looks(self, kinds: Collection[ResourceType]) -> Iterator[Look]:
        """Yield what there is to look at, section by section."""
        # Here: no service looks.
        from adapters.http.inspection import Looked, looks

        for kind, section in self._sections.items():
            if kind in kinds:
                first = partial(self._first, section)
                yield from looks(Looked(section, self, first, self._config))

    def _first(self, section: Section, size: int) -> tuple[JsonRow, ...]:
        assert section.http.list is not None, "what has no list is not looked at"
        question = Question(section, section.http.list)
        return self._listed(question, (), size, "", self._config.timeout_seconds).rows

    def close(self) -> None:
        """Close the connections."""
        self._source.close()

    def _window(self, question: Question, query: SearchQuery) -> Window:
        paging = question.list.paging
        numbered = paging is not None and paging.kind in _BOTH_WAYS
        end = self.count(query) if numbered and query.from_end else 0
        # For a page as a whole: some sources give it in parts.
        until = Deadline(self._config.timeout_seconds)

        def ask(pairs: Pairs, size: int, link: str) -> Listed:
            return self._listed(question, pairs, size, link, until.left())

        tells_total = question.list.total is not None
        if paging is None:
            return one_page(ask, query, tells_total=tells_total)
        if numbered:
            return by_number(ask, paging, query, end, tells_total=tells_total)
        if query.placed:
            return whole_page(ask, paging, query)
        return by_onward(ask, paging, query)

    def _listed(
        self, question: Question, pairs: Pairs, size: int, link: str, seconds: float
    ) -> Listed:
        """Ask once for rows; `link` is asked as it stands."""
        asked = question.list
        call = question.call(pairs, size, link)
        answer = self._list(call, seconds)
        rows = rows_at(answer, asked.rows)
        if len(rows) > size:
            raise SourceDataError("there are more rows than were asked for")
        question.section.refuse_twins(rows)
        total = None if asked.total is None else total_at(answer, asked.total)
        if total is not None and total < len(rows):
            raise SourceDataError("there are more rows than the total says")
        paging = asked.paging
        onward = text_at(answer, paging.path) if paging and paging.path else ""
        if onward and paging and paging.kind is PagingKind.NEXT:
            onward = self._source.linked(onward, call.path)
        return Listed(rows, total, onward)

    def _list(self, call: Any, seconds: float) -> Any:
        try:
            return self._source.ask(call, seconds)
        except (NotFoundError, GoneError) as error:
            raise SourceDataError("the source has no such list") from error


def _capabilities(section: ResourceMapping, http: HttpSection) -> ResourceCapabilities:
    last_updated = section.fields.get("last_updated")
    paging = http.list.paging if http.list else None
    return ResourceCapabilities(
        parameters={name: _parameter(call) for name, call in http.search.items()},
        sorts=section.sorts,
        dated=last_updated is not None and last_updated.covers_all,
        paging=paging is not None,
        backwards=paging is not None and paging.kind in _BOTH_WAYS,
        order="" if section.sorts or not http.list else http.order or _OWN_ORDER,
    )


def _parameter(call: SearchCall) -> ParameterCapability:
    if not call.send:
        return ParameterCapability(prefixes=askable_prefixes(call), finest=finest(call))
    ways = {
        StringMatch.STARTS_WITH: call.send,
        StringMatch.CONTAINS: call.contains,
        StringMatch.EXACT: call.exact,
    }
    return ParameterCapability(matches=frozenset(w for w, name in ways.items() if name))
