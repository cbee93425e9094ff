"""A search: all its matches, page by page."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Generic, TypeVar

from encounters_client.copying import CopyReport, copy_search
from encounters_client.errors import Issue, ResultExpired, issues_of
from encounters_client.progress import OnProgress
from encounters_client.resources import Resource
from encounters_client.tables import columns_of, to_arrow, to_pandas, to_polars
from encounters_client.transport import Answer, Form, Transport

R = TypeVar("R", bound=Resource)
R_co = TypeVar("R_co", bound=Resource, covariant=True)


@dataclass(frozen=True)
class Page(Generic[R_co]):
    """A page: its matches, its messages, and what the service says about the whole search.

    `total` is None where the service did not count. `server_time` is the service's clock.
    """

    resources: tuple[R_co, ...]
    issues: tuple[Issue, ...]
    total: int | None
    next_link: str | None
    server_time: datetime | None

    @property
    def invalid_rows(self) -> int:
        """How many matches of this page cannot be shown; they count in `total`."""
        return sum(issue.code == "exception" for issue in self.issues)


class Search(Generic[R_co]):
    """The matches of a search: iterate over them, or over `pages()`.

    Nothing is sent before. Each iteration searches anew. `total`, `invalid_rows` and `issues`
    are those of the last iteration, as far as it went: `total` is None before it, and where
    the service did not count.
    """

    def __init__(self, transport: Transport, kind: type[R_co], form: Form) -> None:
        self.kind = kind
        self.form = form
        self.transport = transport
        self.total: int | None = None
        self.invalid_rows = 0
        self.issues: list[Issue] = []

    def __iter__(self) -> Iterator[R_co]:
        for page in self.pages():
            yield from page.resources

    def pages(self, *, resume: str | None = None) -> Iterator[Page[R_co]]:
        """Yield each page; `resume` is the `next_link` of a page to continue after.

        Raises ResultExpired if the service no longer stores the pages, Refused, Unavailable.
        """
        self.total, self.invalid_rows, self.issues = None, 0, []
        if resume is None:
            url = f"{self.transport.base}/{self.kind.__name__}/_search"
            page = self._page(self.transport.post(url, self.form))
        else:
            page = self._next(resume)
        while True:
            self.total = page.total
            self.invalid_rows += page.invalid_rows
            self.issues += page.issues
            yield page
            if page.next_link is None:
                return
            page = self._next(page.next_link)

    def is_complete(self, ids: int) -> bool:
        """Return whether so many different ids are all: with the invalid rows, the total."""
        return self.total in (None, ids + self.invalid_rows)

    def columns(self) -> dict[str, list[Any]]:
        """Return all matches as columns, one value for each match; times are in UTC."""
        return columns_of(self.kind, self)

    def to_polars(self) -> Any:
        """Return all matches as a polars.DataFrame (extra `polars`)."""
        return to_polars(self.kind, self)

    def to_pandas(self) -> Any:
        """Return all matches as a pandas.DataFrame (extra `pandas`)."""
        return to_pandas(self.kind, self)

    def to_arrow(self) -> Any:
        """Return all matches as a pyarrow.Table (extra `arrow`)."""
        return to_arrow(self.kind, self)

    def copy_to(
        self, path: str | Path, *, on_progress: OnProgress | None = None
    ) -> CopyReport:
        """Write all matches to a file: .parquet, .csv, .ndjson or .sqlite.

        Each id is written once. A copy that was interrupted continues; one whose pages have
        expired begins again. Raises ValueError for another suffix, Refused, Unavailable, OSError.
        """
        return copy_search(self, Path(path), on_progress=on_progress)

    def _next(self, link: str) -> Page[R_co]:
        answer = self.transport.follow(link)
        if answer.status == 410:
            raise ResultExpired(f"{answer.host}: the pages are no longer stored")
        return self._page(answer)

    def _page(self, answer: Answer) -> Page[R_co]:
        bundle = answer.resource("Bundle")
        return page_of(bundle, self.kind, answer.server_time())


def page_of(
    bundle: Mapping[str, Any], kind: Callable[[Any], R], server_time: datetime | None
) -> Page[R]:
    """Return a Bundle as a page."""
    resources: list[R] = []
    issues: list[Issue] = []
    for entry in bundle.get("entry", ()):
        mode = entry.get("search", {}).get("mode")
        if mode == "match":
            resources.append(kind(entry["resource"]))
        elif mode == "outcome":
            issues.extend(issues_of(entry["resource"]))
    links = {link["relation"]: link["url"] for link in bundle.get("link", ())}
    return Page(
        resources=tuple(resources),
        issues=tuple(issues),
        total=bundle.get("total"),
        next_link=links.get("next"),
        server_time=server_time,
    )
