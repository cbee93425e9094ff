"""What there is to look at behind an HTTP API: one page of rows, each filter and order once.

An API tells neither its types nor its indexes; what is not looked at is said.
"""

from collections.abc import Callable, Iterator

from adapters.contract import SourceDataError
from adapters.http.inspection.filters import filters_tried, read_tried
from adapters.http.inspection.looked import Looked
from adapters.http.inspection.orders import orders_tried
from adapters.http.inspection.pages import paging_tried, rest_tried
from adapters.http.inspection.rows import rows_seen
from adapters.inspection import Look, Observation, Weight

__all__ = ["Looked", "looks"]


def looks(looked: Looked) -> Iterator[Look]:
    """Yield what there is to look at in one section."""
    kind = looked.kind
    if looked.section.http.list is None:
        text = "it has no list: nothing of it is looked at"
        note = looked.seen(text, Weight.NOTE)
        yield Look(f"{kind}: rows", lambda: [note])
        return
    for subject, ask in (
        ("rows", rows_seen),
        ("paging", paging_tried),
        ("all rows", rest_tried),
        ("filters", filters_tried),
        ("orders", orders_tried),
        ("read", read_tried),
    ):
        yield Look(f"{kind}: {subject}", _refusals_told(looked, subject, ask))


def _refusals_told(
    looked: Looked, subject: str, ask: Callable[[Looked], Iterator[Observation]]
) -> Callable[[], Iterator[Observation]]:
    def asked() -> Iterator[Observation]:
        if looked.is_refused:
            return
        try:
            yield from ask(looked)
        except SourceDataError as error:
            looked.is_refused = subject == "rows"
            if _shows_nobody(looked, error):
                yield _nobody(looked)
            elif error.refused:
                raise
            else:
                yield _refused(looked, subject, error)

    return asked


def _shows_nobody(looked: Looked, error: SourceDataError) -> bool:
    """Tell whether the source wants to know who asks, and the file does not say."""
    http = looked.source.http
    shows = http is not None and bool(http.headers or http.auth)
    return (error.refused or error.code == _FORBIDDEN) and not shows


def _nobody(looked: Looked) -> Observation:
    text = (
        "the source refuses who asks, and the file sends neither headers nor auth: how is"
        " the API shown who asks?"
    )
    return Observation(looked.source.mark, "source", "", text)


def _refused(looked: Looked, subject: str, error: SourceDataError) -> Observation:
    """Return what the source refused, at the line that says how it was asked."""
    listed, read = looked.section.http.list, looked.section.http.read
    name, mark, column, asked = "list", listed and listed.mark, "", ""
    if subject == "read":
        name, mark = "read", read.mark
    elif subject == "filters":
        name, mark = "search", None
    elif listed and error.code in _UNKNOWN:
        name, mark, column = "list.count", listed.count_mark, listed.count
        asked = f": does the API know the parameter '{column}'?"
    at = mark or looked.section.mapping.mark
    return Observation(at, f"{looked.kind}.{name}", column, f"{error}{asked}")


_FORBIDDEN = 403
_UNKNOWN = (400, 422)
"""What an API answers that refuses a parameter."""
