"""The source's own pages: by offset, page number, next link or token.

A source that pages like this does not keep decision 12's promise: its pages shift as rows
come and go. A cursor of OFFSET and PAGE is the number of a row, of NEXT and TOKEN the link
or token of the next page.
"""

from collections.abc import Callable, Mapping
from itertools import takewhile
from typing import Any, NamedTuple, TypeAlias

from adapters.contract import Bound, Group, Key, Position, SearchQuery
from adapters.http.query import Pairs
from adapters.mapping.model import Paging, PagingKind
from adapters.mapping.paths import unreadable

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

_SHORT = "the list is shorter than its total"


def single_page(fetch: Fetch, query: SearchQuery, *, has_total: bool) -> Window:
    """Return the first rows of a source that cannot page: nothing continues after them."""
    answer = fetch((), query.count + (not has_total), "")
    rows, total = answer.rows[: query.count], answer.total
    more = len(answer.rows) > query.count if total is None else total > len(rows)
    _check_length(rows, min(total or 0, query.count))
    return _numbered(rows, 0, more=more, total=total)._replace(last=None)


class Lists(NamedTuple):
    """What is read as one list: the rows of `first`, then those of `second`, if any.

    With `belongs` the second one ends with the rows of the first, which do not count again:
    it decides whether a row is one of the others.
    """

    first: Fetch
    second: Fetch | None = None
    belongs: Callable[[Row], bool] | None = None


def numbered_page(
    lists: Lists,
    paging: Paging,
    query: SearchQuery,
    end: int,
    *,
    has_total: bool,
) -> Window:
    """Return a page of a source that pages by offset or page number, in both directions.

    `end` is the number of all rows; only the last page of a search needs it.
    """
    if query.backwards:
        end = _number(query.before) if query.before else end
        start = max(0, end - query.count)
        if start == end:
            return Window(())
        rows, _ = _rows(lists, paging, query.count, start, end - start)
        return _numbered(rows[: end - start], start, more=start > 0)
    start = _number(query.after) + 1 if query.after else 0
    # Without a total, only a row after the page shows that there are more.
    wanted = query.count + (not has_total or lists.second is not None)
    rows, total = _rows(lists, paging, query.count, start, wanted)
    available = len(rows) if total is None else total - start
    rows = rows[: query.count]
    return _numbered(rows, start, more=available > len(rows), total=total)


def _rows(
    lists: Lists, paging: Paging, size: int, start: int, wanted: int
) -> tuple[Rows, int | None]:
    """Return up to `wanted` rows and the number of all, None if it is not known."""
    fetch_rows = _by_offset if paging.kind is PagingKind.OFFSET else _by_page
    rows, total = fetch_rows(lists.first, paging, size, start, wanted)
    if lists.second is None:
        return rows[:wanted], total
    if len(rows) >= wanted:
        return rows[:wanted], None
    assert total is not None, "the rules require a total for lists that are read as one"
    begin, missing = max(0, start - total), wanted - len(rows)
    more, size_of_second = fetch_rows(lists.second, paging, size, begin, missing)
    assert size_of_second is not None, "it comes with the same answer"
    if lists.belongs is None:
        return rows + more[:missing], total + size_of_second
    rest = size_of_second - total
    others = tuple(takewhile(lists.belongs, more[:missing]))
    if len(others) != min(len(more[:missing]), max(0, rest - begin)):
        raise unreadable("rows without the sort key are not in their place")
    return rows + others, total + rest


def linked_page(fetch: Fetch, paging: Paging, query: SearchQuery) -> Window:
    """Return a page of a source whose answers lead to the next page only."""
    here = str(_key(query.after)) if query.after else ""
    if query.backwards or (query.after and not here):
        return Window(())
    is_link = paging.kind is PagingKind.NEXT
    pairs = ((paging.send, here),) if here and not is_link else ()
    answer = fetch(pairs, query.count, here if is_link else "")
    if answer.next and answer.next == here:
        raise unreadable("the next page is the same page")
    if not query.after and not answer.next:
        _check_length(answer.rows, answer.total or 0)
    if not answer.rows:
        if answer.next:
            raise unreadable("an empty page leads on")
        return Window(())
    first = Position(Group.KEYED, None, None)
    last = Position(Group.KEYED, answer.next, None)
    return Window(answer.rows, bool(answer.next), first, last, answer.total)


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
            raise unreadable(_SHORT)
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
        raise unreadable(_SHORT)


def _key(position: Position | Bound) -> Key:
    assert isinstance(position, Position), "an HTTP source is never merged with others"
    return position.key


def _number(position: Position | Bound) -> int:
    key = _key(position)
    assert isinstance(key, int), "cursors of this source are numbers"
    return key


def _numbered(
    rows: Rows, start: int, *, more: bool, total: int | None = None
) -> Window:
    if not rows:
        return Window((), total=total)
    first = Position(Group.KEYED, start, None)
    last = Position(Group.KEYED, start + len(rows) - 1, None)
    return Window(rows, more, first, last, total)
