"""What there is to look at behind an HTTP API: one page of rows, and each filter once.

An API tells neither its types nor its indexes; what is not looked at is said.
"""

from collections.abc import Callable, Iterator

from adapters.contract import SourceDataError
from adapters.http.inspection.filters import filters_tried, read_tried
from adapters.http.inspection.looked import Looked
from adapters.http.inspection.pages import paging_tried
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
        ("filters", filters_tried),
        ("read", read_tried),
    ):
        yield Look(f"{kind}: {subject}", _refusals_told(looked, subject, ask))


def _refusals_told(
    looked: Looked, subject: str, ask: Callable[[Looked], Iterator[Observation]]
) -> Callable[[], Iterator[Observation]]:
    def asked() -> Iterator[Observation]:
        try:
            yield from ask(looked)
        except SourceDataError as error:
            if error.refused:
                raise
            yield looked.seen(f"{subject}: {error}", Weight.ERROR)

    return asked
