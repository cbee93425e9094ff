"""A SELECT of rows that gives no more than a number of them."""

import re
from collections.abc import Iterator

from adapters.inspection import Observation, Weight
from adapters.sql.inspection.rows import Looked

_CUT = re.compile(
    r"\ASELECT\s+TOP\s+\(?\d|\b(LIMIT|FETCH\s+(FIRST|NEXT))\s+\d+(\s+OFFSET\s+\d+|\s+ROWS?\s+ONLY)?\s*\Z",
    re.IGNORECASE,
)


def cut_short(looked: Looked) -> Iterator[Observation]:
    """Tell a LIMIT that was left in, from when the statement was tried by hand."""
    if is_cut(looked.section.mapping.rows):
        text = "the SELECT of rows has a LIMIT: what is beyond it is never served"
        yield looked.seen(text, Weight.WARNING)


def is_cut(rows: str) -> bool:
    """Tell whether a SELECT as a whole gives no more than a number of rows."""
    return _CUT.search(rows.strip()) is not None
