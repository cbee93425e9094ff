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
"""Requests up to so many rows, with more parameters or by a link in place of them."""

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
        link = [_mark(f"link {answer.next}")] if answer.next else []
        ends = [id_of(row) for row in (*answer.rows[:1], *answer.rows[-1:])]
        rows = [_mark(f"row {id}") for id in ends if id]
        # If the total is another one, rows have come or gone, and moved the others.
        compared = [*link, *rows[:1]] if self.total in (None, answer.total) else link
        if not {*compared}.isdisjoint(self.marks):
            raise unreadable("the list repeats: a page was returned before")
        half, visited = _MOST_MARKS // 2, (*self.marks, *dict.fromkeys(link + rows))
        if len(visited) > _MOST_MARKS:
            visited = (*visited[:half], *visited[-half:])
        trail = replace(self, seen=self.seen + len(answer.rows), marks=visited)
        if answer.total is None:
            return trail
        return replace(
            trail,
            total=answer.total,
            least=min(answer.total, answer.total if self.least is None else self.least),
            most=max(answer.total, self.most or 0),
        )


def _mark(text: str) -> str:
    return b64encode(hashlib.sha256(text.encode()).digest()[:6]).decode()


class Lists(NamedTuple):
    """What is read as one list: the rows of `first`, then those of `second`, if any.

    With `belongs` the second one ends with the rows of the first, which do not count again:
    it decides whether a row is one of the others.
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

    A source without `paging` has its first page alone. `end` is the number of all rows;
    only the last page of a search needs it.
    """
    if query.backwards:
        end = _number(query.before) if query.before else end
        start = max(0, end - query.count)
        if start == end:
            return Window(())
        rows, _ = _rows(lists, paging, query.count, start, end - start)
        return _numbered(rows[: end - start], start, more=start > 0)
    trail = PageTrail.at(query.after)
    start = _number(query.after) + 1 if query.after else 0
    # Without a total, only a row after the page shows that there are more.
    is_counted = has_total and lists.second is None
    wanted = query.count if is_counted else query.count + 1
    rows, total = _rows(lists, paging, query.count, start, wanted)
    available = len(rows) if total is None else total - start
    rows = rows[: query.count]
    trail = trail.after(ListAnswer(rows, total), id_of)
    more = available > len(rows)
    window = _numbered(rows, start, more=more, total=total, trail=trail)
    is_short = more and len(rows) < query.count
    if paging is None:
        return window._replace(last=None, incomplete=is_short)
    # A page that is short of the total is the last one.
    return window._replace(more=more and not is_short, incomplete=is_short)


def _rows(
    lists: Lists, paging: Paging | None, size: int, start: int, wanted: int
) -> tuple[JsonRows, int | None]:
    """Return up to `wanted` rows and the number of all, None if it is not known."""
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
    begin, missing = max(0, start - total), wanted - len(rows)
    more, size_of_second = fetch_rows(lists.second, paging, size, begin, missing)
    assert size_of_second is not None, "it comes with the same answer"
    more = more[:missing]
    if lists.belongs is None:
        return rows + more, total + size_of_second

    # The second list ends with the rows of the first.
    size_of_rest = size_of_second - total
    others = tuple(takewhile(lists.belongs, more))
    if len(others) != min(len(more), max(0, size_of_rest - begin)):
        text = "rows without the sort key are not where sort.nulls expects them"
        raise SourceChangedError(text, reason=text)
    return rows + others, size_of_second


def linked_page(
    fetch: FetchList,
    paging: Paging,
    query: SearchQuery,
    id_of: Callable[[JsonRow], str],
) -> Window:
    """Return a page of a source whose answers lead to the next page only."""
    here = str(_key(query.after)) if query.after else ""
    if query.backwards or (query.after and not here):
        return Window(())
    is_link = paging.kind is PagingKind.NEXT
    pairs: QueryPairs = ()
    if here and not is_link:
        pairs = _filled(paging, here)
    answer = fetch(pairs, query.count, here if is_link else "")
    trail = PageTrail.at(query.after).after(answer, id_of)
    is_short = trail.seen < (trail.least or 0)
    if not answer.rows:
        if answer.total is not None and is_short:
            raise unreadable(_SHORT)
        # Some servers lead on from the last page to an empty one; others have no end.
        if answer.next and trail.least is None:
            raise unreadable("an empty page has a next page")
        return Window((), total=answer.total, incomplete=is_short)
    slack = 2 * query.count if answer.total is None else 0
    if trail.most is not None and trail.seen > trail.most + slack:
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
    assert paging.query is not None, "only NEXT has none"
    pairs = paging.query.several([{"value": value}], ValueRule(), "", trusted=True)
    if pairs is None:
        raise unreadable("the token of the next page cannot be sent")
    return pairs


def _by_offset(
    fetch: FetchList, paging: Paging, _: int, start: int, wanted: int
) -> tuple[JsonRows, int | None]:
    """Return up to `wanted` rows, in several requests if the source limits its pages."""
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
    """Return at least `wanted` rows, from the pages of `size` rows that hold them."""
    rows: JsonRows = ()
    page, skipped = divmod(start, size)
    while True:
        answer = fetch(_filled(paging, str(page + paging.first)), size, "")
        rows += answer.rows
        total = answer.total
        due = 0 if total is None else min(size, max(0, total - page * size))
        is_last = total is not None and total <= (page + 1) * size
        # A short page before the last one would move all rows after it.
        if len(answer.rows) < due and not (answer.rows and is_last):
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
    if not rows:
        return Window((), total=total)
    first = Position(Group.KEYED, start, id=None)
    text = trail.text() if trail else None
    last = Position(Group.KEYED, start + len(rows) - 1, text)
    return Window(rows, more, first=first, last=last, total=total)
