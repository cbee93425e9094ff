"""Pages of the source's own: by offset, page number, next link or token.

No position holds while rows come and go: such a source makes no promise of decision 12.
A position of OFFSET and PAGE is the number of a row, of NEXT and TOKEN what leads on.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from adapters.contract import (
    Bound,
    Group,
    Key,
    Page,
    Position,
    SearchQuery,
    SourceDataError,
)
from adapters.mapping.http_model import Paging, PagingKind

Row: TypeAlias = Mapping[str, Any]
Pairs: TypeAlias = tuple[tuple[str, str], ...]


class Listed(NamedTuple):
    """What one request brought; `total` is None where the list does not tell it."""

    rows: tuple[Row, ...]
    total: int | None
    onward: str = ""


class Window(NamedTuple):
    """The rows of a page, and where it stands; `total` where the source told it."""

    rows: tuple[Row, ...]
    more: bool = False
    first: Position | None = None
    last: Position | None = None
    total: int | None = None

    def page(self, records: Any) -> Page:
        """Return the page that holds these records in place of the rows."""
        return Page(records, self.more, self.first, self.last)


Ask = Callable[[Pairs, int, str], Listed]
"""Asks for up to so many rows with more parameters, or by a link in place of them."""


def one_page(ask: Ask, query: SearchQuery, *, tells_total: bool) -> Window:
    """Return the first rows of a source that cannot page."""
    listed = ask((), query.count + (not tells_total), "")
    kept, total = listed.rows[: query.count], listed.total
    if total is None:
        return _numbered(kept, 0, more=len(listed.rows) > query.count)
    _refuse_shorter(kept, min(total, query.count))
    return _numbered(kept, 0, more=total > len(kept))


def by_number(
    ask: Ask, paging: Paging, query: SearchQuery, end: int, *, tells_total: bool
) -> Window:
    """Return a page of a source that goes by offset or by page number, both ways.

    `end` is the number of all rows, needed only when the page is the last one.
    """
    fetch = _by_offset if paging.kind is PagingKind.OFFSET else _by_page
    if not query.backwards:
        start = _number(query.after) + 1 if query.after else 0
        # Without a total, only a row beyond the page shows that there are more.
        wanted = query.count + (not tells_total)
        rows, total = fetch(ask, paging, query.count, start, wanted)
        kept = rows[: query.count]
        beyond = len(rows) if total is None else total - start
        return _numbered(kept, start, more=beyond > len(kept))
    end = _number(query.before) if query.before else end
    start = max(0, end - query.count)
    if start == end:
        return Window(())
    rows, _ = fetch(ask, paging, query.count, start, end - start)
    return _numbered(rows[: end - start], start, more=start > 0)


def by_onward(ask: Ask, paging: Paging, query: SearchQuery) -> Window:
    """Return a page of a source whose answers say what leads on; there is no way back."""
    onward = str(_key(query.after)) if query.after else ""
    if query.backwards or (query.after and not onward):
        return Window(())
    is_link = paging.kind is PagingKind.NEXT
    pairs = ((paging.send, onward),) if onward and not is_link else ()
    listed = ask(pairs, query.count, onward if is_link else "")
    if listed.onward and listed.onward == onward:
        raise SourceDataError("the next page is the same page")
    if not query.after and not listed.onward:
        _refuse_shorter(listed.rows, listed.total or 0)
    if not listed.rows:
        if listed.onward:
            raise SourceDataError("an empty page leads on")
        return Window(())
    first = Position(Group.KEYED, None, None)
    last = Position(Group.KEYED, listed.onward, None)
    return Window(listed.rows, bool(listed.onward), first, last, listed.total)


def whole_page(ask: Ask, paging: Paging, query: SearchQuery) -> Window:
    """Return the first page of a source that goes onward, whole although it gives less at once."""
    window = by_onward(ask, paging, query)
    rows, total = window.rows, window.total or 0
    while window.more and len(rows) < query.count:
        window = by_onward(ask, paging, replace(query, after=window.last))
        rows += window.rows
    if not window.more:
        _refuse_shorter(rows, total)
    more = window.more or len(rows) > query.count
    return window._replace(rows=rows[: query.count], more=more)


def _refuse_shorter(rows: tuple[Row, ...], due: int) -> None:
    if len(rows) < due:
        raise SourceDataError("the list is shorter than its total says")


def _key(position: Position | Bound) -> Key:
    assert isinstance(position, Position), "an HTTP source stands alone"
    return position.key


def _number(position: Position | Bound) -> int:
    key = _key(position)
    assert isinstance(key, int), "positions of this source are numbers"
    return key


def _numbered(rows: tuple[Row, ...], start: int, *, more: bool) -> Window:
    if not rows:
        return Window(())
    first = Position(Group.KEYED, start, None)
    last = Position(Group.KEYED, start + len(rows) - 1, None)
    return Window(rows, more, first, last)


def _by_offset(
    ask: Ask, paging: Paging, _: int, start: int, wanted: int
) -> tuple[tuple[Row, ...], int | None]:
    """Return up to `wanted` rows; a source that gives fewer at once is asked again."""
    found: tuple[Row, ...] = ()
    while True:
        offset = start + len(found)
        listed = ask(((paging.send, str(offset)),), wanted - len(found), "")
        found += listed.rows
        total = listed.total
        if not listed.rows and total is not None and total > offset:
            raise SourceDataError("the list is shorter than its total says")
        ended = total is not None and start + len(found) >= total
        if ended or not listed.rows or len(found) >= wanted:
            return found, total


def _by_page(
    ask: Ask, paging: Paging, size: int, start: int, wanted: int
) -> tuple[tuple[Row, ...], int | None]:
    """Return at least `wanted` rows, from the pages of `size` rows that hold them."""
    found: tuple[Row, ...] = ()
    page, skipped = divmod(start, size)
    while True:
        number = ((paging.send, str(page + paging.first)),)
        listed = ask(number, size, "")
        found += listed.rows
        total = listed.total
        due = 0 if total is None else min(size, max(0, total - page * size))
        _refuse_shorter(listed.rows, due)
        page += 1
        if len(listed.rows) < size or len(found) >= skipped + wanted:
            return found[skipped:], total
