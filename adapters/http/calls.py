"""A question as the requests that put it."""

from dataclasses import dataclass
from typing import Self
from urllib.parse import quote

from adapters.contract import SearchQuery
from adapters.http.client import Call
from adapters.http.section import Section
from adapters.mapping.http_model import ListCall, ReadCall

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Question:
    """What a search sends besides where its page starts."""

    section: Section
    list: ListCall
    asked: Pairs = ()
    order: Pairs = ()

    @classmethod
    def of(cls, section: Section, query: SearchQuery) -> Self | None:
        """Return the question of a search, None when nothing can match it."""
        listed = section.http.list
        assert listed is not None, "what cannot be searched is not offered"
        asked = section.filters.of_query(query)
        if asked is None:
            return None
        return cls(section, listed, asked, _order(section, query))

    def call(self, pairs: Pairs, size: int, link: str = "") -> Call:
        """Return the request of a page: by more parameters, or by a link as it stands."""
        if link:
            return Call("GET", link)
        fixed = tuple(self.list.fixed.items())
        count = ((self.list.count, str(size)),)
        values = (*fixed, *self.asked, *self.order, *count, *pairs)
        return Call(self.list.method.upper(), self.list.path, values)

    def counted(self) -> Call:
        """Return the request of the call that counts."""
        assert self.list.counting is not None
        values = (*self.list.fixed.items(), *self.asked)
        return Call(self.list.method.upper(), self.list.counting.path, values)

    def explained(self, size: int, *, hidden: bool = True) -> str:
        """Return the request in words; values of the search are not shown while `hidden`."""
        known = {*self.list.fixed.items(), *self.order}
        values = self.call((), size).values
        shown = [
            f"{n}={'?' if hidden and (n, v) not in known else v}" for n, v in values
        ]
        return f"{self.list.method.upper()} {self.list.path} {' '.join(shown)}"


def read_call(read: ReadCall, id: str) -> Call:
    """Return the request of one resource."""
    return Call("GET", read.path.replace("{id}", quote(id, safe="")))


def _order(section: Section, query: SearchQuery) -> Pairs:
    sort = section.http.sort
    word = f"{'-' * query.sort.descending}{query.sort.key}"
    # A source without this order serves its own: the Offer says so.
    return ((sort.send, sort.by[word]),) if sort and word in sort.by else ()
