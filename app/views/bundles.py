"""A page of a search as a Bundle (spec 2.5 and 4.3)."""

import logging
import secrets
from collections.abc import Iterator, Sequence
from uuid import NAMESPACE_URL, uuid5

import orjson

from adapters.contract import RowFault
from app.errors import IssueCode
from app.operations.audit import note_page
from app.operations.metrics import count_row_fault
from app.operations.phases import Phase, phase
from app.schemas.bundle import Link, outcome_entry, searchset
from app.schemas.outcome import Issue
from app.service import Service
from app.stored import Direction
from app.walks import ResultPage

_RELATIONS = {Direction.BEFORE: "previous", Direction.AFTER: "next"}
_PARAMETERS = {Direction.BEFORE: "_searchBefore", Direction.AFTER: "_searchAfter"}

_log = logging.getLogger(__name__)


def present(
    service: Service, result: ResultPage, left_out: Sequence[str] = ()
) -> bytes:
    """Write the Bundle of a page: its links, its resources, what a client should know.

    `left_out` are parameters of this request that were ignored, besides those of the search.
    """
    note_page(result.page.rows, result.id)
    with phase(Phase.MAP):
        entries = _entries(service, result, left_out)
    with phase(Phase.WRITE):
        links = _links(service.settings.base_url, result)
        return searchset(result.id, result.total, links, entries)


def _entries(
    service: Service, result: ResultPage, left_out: Sequence[str]
) -> Sequence[bytes]:
    resource_type = result.search.query.resource_type
    records = [row for row in result.page.rows if not isinstance(row, RowFault)]
    shown = result.search.presentation
    written = service.entries[resource_type].written
    entries = written(records, shown.summary, shown.elements)
    issues = tuple(_issues(result, left_out))
    if not issues:
        return entries
    # Of the page's own id, so that its self link answers the same page.
    outcome = outcome_entry(uuid5(NAMESPACE_URL, result.id), issues)
    return [*entries, orjson.dumps(outcome)]


def _links(base_url: str, result: ResultPage) -> list[Link]:
    address = f"{base_url}/Bundle?_id={result.id}"
    links = [Link("self", address)]
    links += [
        Link(
            _RELATIONS[link.direction],
            f"{address}&_index={link.index}&{_PARAMETERS[link.direction]}={link.cursor}",
        )
        for link in result.links
    ]
    return links


def _issues(result: ResultPage, left_out: Sequence[str]) -> Iterator[Issue]:
    """Yield what a client should know of this page: none of it is an error (decision 2)."""
    for name in dict.fromkeys((*result.search.ignored, *left_out)):
        yield Issue(
            "warning",
            IssueCode.NOT_SUPPORTED,
            f"Parameter '{name}' is not supported here and was ignored.",
            (f"http.{name}",),
        )
    if result.search.capped:
        size = result.search.query.count
        text = f"Parameter '_count' was lowered to {size}, the most there is."
        yield Issue("warning", IssueCode.VALUE, text, ("http._count",))
    for row in result.page.rows:
        if isinstance(row, RowFault):
            count_row_fault(result.search.query.resource_type, row)
            yield _missing(row)
    if result.cut_short:
        yield Issue(
            "information",
            IssueCode.INCOMPLETE,
            "More matched than is returned here, and this deployment has no further "
            "pages: narrow the search.",
        )


def _missing(fault: RowFault) -> Issue:
    """Tell of a row that could not be mapped, and log which rule it breaks (decision 16)."""
    reference = secrets.token_hex(6)
    _log.warning(
        "row cannot be mapped",
        extra={"data": {"reference": reference, **fault._asdict()}},
    )
    return Issue(
        "warning",
        IssueCode.EXCEPTION,
        f"One match cannot be shown. The operator finds why by reference {reference}.",
    )
