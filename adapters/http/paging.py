"""The source's own pages: by offset, page number, next link or token.

A source that pages like this does not keep decision 12's promise: its pages shift as rows
come and go. A cursor of OFFSET and PAGE is the number of a row, of NEXT and TOKEN the link
or token of the next page.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from adapters.contract import Bound, Group, Key, Position, SearchQuery, SourceDataError
from adapters.http.query import Pairs
from adapters.mapping.model import Paging, PagingKind

Row: TypeAlias = Mapping[str, Any]
Rows: TypeAlias = tuple[Row, ...]


class ListAnswer(NamedTuple):
    """The answer to one request; `total` is None if the list does not hold it."""

    rows: Rows
    total: int | None
    next: str = ""


class Window(NamedTuple):
    """The rows of a page with its cursors; `total` if the source gave it."""

    rows: Rows
    more: bool = False
    first: Position | None = None
    last: Position | None = None
    total: int | None = None


Fetch = Callable[[Pairs, int, str], ListAnswer]
"""Requests up to so many rows, with more parameters or by a link in place of them."""

_SHORT = "the list is shorter than its total says"


def single_page(fetch: Fetch, query: SearchQuery, *, has_total: bool) -> Window:
    """Return the first rows of a source that cannot page."""
    answer = fetch((), query.count + (not has_total), "")
    rows, total = answer.rows[: query.count], answer.total
    if total is None:
        return _numbered(rows, 0, more=len(answer.rows) > query.count)
    _check_length(rows, min(total, query.count))
    return _numbered(rows, 0, more=total > len(rows))


def numbered_page(
    fetch: Fetch, paging: Paging, query: SearchQuery, end: int, *, has_total: bool
) -> Window:
    """Return a page of a source that pages by offset or page number, in both directions.

    `end` is the number of all rows; only the last page of a search needs it.
    """
    fetch_rows = _by_offset if paging.kind is PagingKind.OFFSET else _by_page
    if query.backwards:
        end = _number(query.before) if query.before else end
        start = max(0, end - query.count)
        if start == end:
            return Window(())
        rows, _ = fetch_rows(fetch, paging, query.count, start, end - start)
        return _numbered(rows[: end - start], start, more=start > 0)
    start = _number(query.after) + 1 if query.after else 0
    # Without a total, only a row after the page shows that there are more.
    wanted = query.count + (not has_total)
    rows, total = fetch_rows(fetch, paging, query.count, start, wanted)
    available = len(rows) if total is None else total - start
    rows = rows[: query.count]
    return _numbered(rows, start, more=available > len(rows))


def linked_page(fetch: Fetch, paging: Paging, query: SearchQuery) -> Window:
    """Return a page of a source whose answers lead to the next page only."""
    here = str(_key(query.after)) if query.after else ""
    if query.backwards or (query.after and not here):
        return Window(())
    is_link = paging.kind is PagingKind.NEXT
    pairs = ((paging.send, here),) if here and not is_link else ()
    answer = fetch(pairs, query.count, here if is_link else "")
    if answer.next and answer.next == here:
        raise SourceDataError("the next page is the same page")
    if not query.after and not answer.next:
        _check_length(answer.rows, answer.total or 0)
    if not answer.rows:
        if answer.next:
            raise SourceDataError("an empty page leads on")
        return Window(())
    first = Position(Group.KEYED, None, None)
    last = Position(Group.KEYED, answer.next, None)
    return Window(answer.rows, bool(answer.next), first, last, answer.total)


def filled_page(fetch: Fetch, paging: Paging, query: SearchQuery) -> Window:
    """Return a full first page of a source with links, although its pages may be smaller."""
    window = linked_page(fetch, paging, query)
    rows, total = window.rows, window.total or 0
    while window.more and len(rows) < query.count:
        window = linked_page(fetch, paging, replace(query, after=window.last))
        rows += window.rows
    if not window.more:
        _check_length(rows, total)
    more = window.more or len(rows) > query.count
    return window._replace(rows=rows[: query.count], more=more)


def _by_offset(
    fetch: Fetch, paging: Paging, _: int, start: int, wanted: int
) -> tuple[Rows, int | None]:
    """Return up to `wanted` rows, in several requests if the source limits its pages."""
    rows: Rows = ()
    while True:
        offset = start + len(rows)
        answer = fetch(((paging.send, str(offset)),), wanted - len(rows), "")
        rows += answer.rows
        total = answer.total
        if not answer.rows and total is not None and total > offset:
            raise SourceDataError(_SHORT)
        at_end = total is not None and start + len(rows) >= total
        if at_end or not answer.rows or len(rows) >= wanted:
            return rows, total


def _by_page(
    fetch: Fetch, paging: Paging, size: int, start: int, wanted: int
) -> tuple[Rows, int | None]:
    """Return at least `wanted` rows, from the pages of `size` rows that hold them."""
    rows: Rows = ()
    page, skipped = divmod(start, size)
    while True:
        answer = fetch(((paging.send, str(page + paging.first)),), size, "")
        rows += answer.rows
        total = answer.total
        due = 0 if total is None else min(size, max(0, total - page * size))
        _check_length(answer.rows, due)
        page += 1
        if len(answer.rows) < size or len(rows) >= skipped + wanted:
            return rows[skipped:], total


def _check_length(rows: Rows, due: int) -> None:
    if len(rows) < due:
        raise SourceDataError(_SHORT)


def _key(position: Position | Bound) -> Key:
    assert isinstance(position, Position), "an HTTP source is never merged by instants"
    return position.key


def _number(position: Position | Bound) -> int:
    key = _key(position)
    assert isinstance(key, int), "cursors of this source are numbers"
    return key


def _numbered(rows: Rows, start: int, *, more: bool) -> Window:
    if not rows:
        return Window(())
    first = Position(Group.KEYED, start, None)
    last = Position(Group.KEYED, start + len(rows) - 1, None)
    return Window(rows, more, first, last)
