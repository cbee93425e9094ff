"""The source's own pages: by offset, page number, next link or token.

A source that pages like this does not keep decision 12's promise: its pages shift as rows
come and go. A cursor of OFFSET and PAGE is the number of a row, of NEXT and TOKEN the link
or token of the next page. Beside it, a cursor has the trail of its search session, by which
a list that turns in a circle or ends early is noticed (decision 41).
"""

import hashlib
import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, NamedTuple, TypeAlias

from adapters.contract import (
    Bound,
    Group,
    Key,
    Position,
    SearchQuery,
    SourceChangedError,
)
from adapters.mapping.model import Paging, PagingKind
from adapters.mapping.paths import unreadable
from adapters.mapping.template import QueryPairs, ValueRule

JsonRow: TypeAlias = Mapping[str, Any]
JsonRows: TypeAlias = tuple[JsonRow, ...]


class ListAnswer(NamedTuple):
    """The answer to one request; `total` is None if the list does not hold it."""

    rows: JsonRows
    total: int | None
    next: str = ""


class Window(NamedTuple):
    """The rows of a page with its cursors; `total` if the source gave it.

    `incomplete` is whether the list ends here, before its total.
    """

    rows: JsonRows
    more: bool = False
    first: Position | None = None
    last: Position | None = None
    total: int | None = None
    incomplete: bool = False


FetchList = Callable[[QueryPairs, int, str], ListAnswer]
"""Requests a list: by parameters of the page, up to so many rows, or by a link if not ""."""

_SHORT = "the list is shorter than its total"
_MOST_MARKS = 200


@dataclass(frozen=True, slots=True)
class PageTrail:
    """What the pages of a search session have shown so far.

    `seen` is the number of their rows; `total`, `least` and `most` are the last, the
    smallest and the largest total of an answer. `marks` are digests of links and of the
    outer rows of pages: a page that begins with such a row has come before, or overlaps.
    Of more than 200 the first and the last are kept.
    """

    seen: int = 0
    total: int | None = None
    least: int | None = None
    most: int | None = None
    marks: tuple[str, ...] = ()

    @classmethod
    def at(cls, position: Position | Bound | None) -> "PageTrail":
        """Return the trail that a cursor has."""
        if not isinstance(position, Position) or not isinstance(position.id, str):
            return cls()
        seen, total, least, most, marks = json.loads(position.id)
        return cls(seen=seen, total=total, least=least, most=most, marks=tuple(marks))

    def text(self) -> str:
        """Return the trail as a cursor has it."""
        parts = [self.seen, self.total, self.least, self.most, self.marks]
        return json.dumps(parts, separators=(",", ":"))

    def after(self, answer: ListAnswer, id_of: Callable[[JsonRow], str]) -> "PageTrail":
        """Return the trail after a page. Raises SourceDataError for one that comes again."""
        link_marks = [_mark(f"link {answer.next}")] if answer.next else []
        outer_ids = [id_of(row) for row in (*answer.rows[:1], *answer.rows[-1:])]
        row_marks = [_mark(f"row {id}") for id in outer_ids if id]
        compared = [*link_marks]
        # If the total is another one, rows have come or gone, and moved the others.
        if self.total in (None, answer.total):
            compared += row_marks[:1]
        if not {*compared}.isdisjoint(self.marks):
            raise unreadable("the list repeats: a page was returned before")
        marks = (*self.marks, *dict.fromkeys(link_marks + row_marks))
        if len(marks) > _MOST_MARKS:
            half = _MOST_MARKS // 2
            marks = (*marks[:half], *marks[-half:])
        trail = replace(self, seen=self.seen + len(answer.rows), marks=marks)
        total = answer.total
        if total is None:
            return trail
        least = total if self.least is None else min(total, self.least)
        most = max(total, self.most or 0)
        return replace(trail, total=total, least=least, most=most)


def _mark(text: str) -> str:
    """Return a digest of a link or of the id of a row, in eight characters."""
    return b64encode(hashlib.sha256(text.encode()).digest()[:6]).decode()


class Lists(NamedTuple):
    """What is read as one list: the rows of `first`, then those of `second`, if any.

    With `belongs` the source's second list has the rows of the first once more, at its end:
    these are left out. `belongs` returns whether a row of it is not one of these.
    """

    first: FetchList
    second: FetchList | None = None
    belongs: Callable[[JsonRow], bool] | None = None


def numbered_page(
    lists: Lists,
    paging: Paging | None,
    query: SearchQuery,
    end: int,
    *,
    id_of: Callable[[JsonRow], str],
    has_total: bool,
) -> Window:
    """Return a page of a source that pages by offset or page number, in both directions.

    A source without `paging` has its first page alone. `end` is the number of all rows,
    which only a query with `from_end` needs. `has_total` is whether answers hold it.
    """
    if query.backwards:
        end = _number(query.before) if query.before else end
        start = max(0, end - query.count)
        size = end - start
        if size == 0:
            return Window(())
        rows, _ = _rows(lists, paging, query.count, start, size)
        return _numbered(rows[:size], start, more=start > 0)
    trail = PageTrail.at(query.after)
    start = _number(query.after) + 1 if query.after else 0
    # Without a total, only a row after the page shows that there are more.
    is_counted = has_total and lists.second is None
    wanted = query.count if is_counted else query.count + 1
    rows, total = _rows(lists, paging, query.count, start, wanted)
    rows_from_start = len(rows) if total is None else total - start
    rows = rows[: query.count]
    trail = trail.after(ListAnswer(rows, total), id_of)
    more = rows_from_start > len(rows)
    window = _numbered(rows, start, more=more, total=total, trail=trail)
    is_short = more and len(rows) < query.count
    if paging is None:
        return window._replace(last=None, incomplete=is_short)
    # A page that is short of the total is the last one.
    return window._replace(more=more and not is_short, incomplete=is_short)


def _rows(
    lists: Lists, paging: Paging | None, size: int, start: int, wanted: int
) -> tuple[JsonRows, int | None]:
    """Return up to `wanted` rows from row `start` on, and the number of all if it is known.

    `size` is the number of rows of a page.
    """
    if paging is None:
        answer = lists.first((), wanted, "")
        if answer.total and not answer.rows:
            raise unreadable(_SHORT)
        return answer.rows[:wanted], answer.total
    fetch_rows = _by_offset if paging.kind is PagingKind.OFFSET else _by_page
    rows, total = fetch_rows(lists.first, paging, size, start, wanted)
    if lists.second is None:
        return rows[:wanted], total
    if len(rows) >= wanted:
        return rows[:wanted], None

    # The page continues in the second list.
    assert total is not None, "the rules require a total for lists that are read as one"
    begin = max(0, start - total)
    missing = wanted - len(rows)
    second_rows, second_total = fetch_rows(lists.second, paging, size, begin, missing)
    assert second_total is not None, "it comes with the same answer"
    second_rows = second_rows[:missing]
    if lists.belongs is None:
        return rows + second_rows, total + second_total

    # The second list ends with the rows of the first.
    unkeyed_rows = tuple(takewhile(lists.belongs, second_rows))
    unkeyed_total = second_total - total
    expected = min(len(second_rows), max(0, unkeyed_total - begin))
    if len(unkeyed_rows) != expected:
        text = "rows without the sort key are not where sort.nulls expects them"
        raise SourceChangedError(text, reason=text)
    return rows + unkeyed_rows, second_total


def linked_page(
    fetch: FetchList,
    paging: Paging,
    query: SearchQuery,
    id_of: Callable[[JsonRow], str],
) -> Window:
    """Return a page of a source whose answers lead to the next page only, by link or token."""
    next_page = str(_key(query.after)) if query.after else ""
    if query.backwards or (query.after and not next_page):
        return Window(())
    if paging.kind is PagingKind.NEXT:
        answer = fetch((), query.count, next_page)
    else:
        pairs = _filled(paging, next_page) if next_page else ()
        answer = fetch(pairs, query.count, "")
    trail = PageTrail.at(query.after).after(answer, id_of)
    is_short = trail.seen < (trail.least or 0)
    if not answer.rows:
        if answer.total is not None and is_short:
            raise unreadable(_SHORT)
        # Some servers lead on from the last page to an empty one; others have no end.
        if answer.next and trail.least is None:
            raise unreadable("an empty page has a next page")
        return Window((), total=answer.total, incomplete=is_short)
    # A total that this answer does not repeat may be out of date.
    tolerance = 2 * query.count if answer.total is None else 0
    if trail.most is not None and trail.seen > trail.most + tolerance:
        raise unreadable("the list is longer than its total")
    first = Position(Group.KEYED, None, id=None)
    last = Position(Group.KEYED, answer.next, trail.text())
    more = bool(answer.next)
    incomplete = not more and is_short
    return Window(
        answer.rows,
        more,
        first=first,
        last=last,
        total=answer.total,
        incomplete=incomplete,
    )


def _filled(paging: Paging, value: str) -> QueryPairs:
    """Return the parameters that request a page by its offset, number or token."""
    assert paging.query is not None, "only NEXT has none"
    pairs = paging.query.several([{"value": value}], ValueRule(), "", trusted=True)
    if pairs is None:
        raise unreadable("the token of the next page cannot be sent")
    return pairs


def _by_offset(
    fetch: FetchList, paging: Paging, _size: int, start: int, wanted: int
) -> tuple[JsonRows, int | None]:
    """Return up to `wanted` rows from row `start` on, and the number of all if it is known.

    Sends several requests if the source limits its pages.
    """
    rows: JsonRows = ()
    while True:
        offset = start + len(rows)
        answer = fetch(_filled(paging, str(offset)), wanted - len(rows), "")
        rows += answer.rows
        total = answer.total
        if not answer.rows and total is not None and total > offset:
            raise unreadable(_SHORT)
        at_end = total is not None and start + len(rows) >= total
        if at_end or not answer.rows or len(rows) >= wanted:
            return rows, total


def _by_page(
    fetch: FetchList, paging: Paging, size: int, start: int, wanted: int
) -> tuple[JsonRows, int | None]:
    """Return the rows from row `start` on, and the number of all if it is known.

    They are those of whole pages of `size` rows: `wanted` rows or more, fewer at the end.
    """
    rows: JsonRows = ()
    page, skipped = divmod(start, size)
    while True:
        answer = fetch(_filled(paging, str(page + paging.first)), size, "")
        rows += answer.rows
        total = answer.total
        if total is not None:
            expected = min(size, max(0, total - page * size))
            is_last = total <= (page + 1) * size
            # A short page before the last one would move all rows after it.
            if len(answer.rows) < expected and not (answer.rows and is_last):
                raise unreadable(_SHORT)
        page += 1
        if len(answer.rows) < size or len(rows) >= skipped + wanted:
            return rows[skipped:], total


def _key(position: Position | Bound) -> Key:
    assert isinstance(position, Position), "an HTTP source is never merged with others"
    return position.key


def _number(position: Position | Bound) -> int:
    key = _key(position)
    assert isinstance(key, int), "cursors of this source are numbers"
    return key


def _numbered(
    rows: JsonRows,
    start: int,
    *,
    more: bool,
    total: int | None = None,
    trail: PageTrail | None = None,
) -> Window:
    """Return rows as a page whose cursors are the numbers of its first and last row."""
    if not rows:
        return Window((), total=total)
    first = Position(Group.KEYED, start, id=None)
    text = trail.text() if trail else None
    last = Position(Group.KEYED, start + len(rows) - 1, text)
    return Window(rows, more, first=first, last=last, total=total)
