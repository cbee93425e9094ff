"""What stands in an answer of the source: rows, totals, links, errors.

An answer that makes no sense raises SourceDataError; no text of it is ever quoted.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from adapters.contract import SourceDataError
from adapters.mapping.http_model import ErrorRule, Path
from adapters.mapping.values import as_text


class Verdict(StrEnum):
    """What an answer with status 200 says by the source's own rule."""

    FINE = "fine"
    NOT_FOUND = "not found"
    UNAVAILABLE = "unavailable"
    EXPIRED = "expired"
    ERROR = "error"


def at(answer: Any, path: Path) -> Any:
    """Return what stands at a path; None where it, or what should hold it, is absent.

    Raises SourceDataError when a step leads into a text, a number or a list.
    """
    for key in path:
        if answer is None:
            return None
        if not isinstance(answer, Mapping):
            raise SourceDataError(f"no keys and values around '{key}'")
        answer = answer.get(key)
    return answer


def verdict(answer: Any, rule: ErrorRule | None) -> Verdict:
    """Return what the source's error rule says of an answer."""
    if rule is None or not isinstance(answer, Mapping):
        return Verdict.FINE
    found = at(answer, rule.path)
    if found in (None, False, "", [], {}):
        return Verdict.FINE
    code = as_text(found) if isinstance(found, (str, int, float)) else ""
    for texts, said in (
        (rule.fine, Verdict.FINE),
        (rule.not_found, Verdict.NOT_FOUND),
        (rule.unavailable, Verdict.UNAVAILABLE),
        (rule.expired, Verdict.EXPIRED),
    ):
        if code in texts:
            return said
    return Verdict.ERROR


def rows_at(answer: Any, path: Path) -> tuple[Mapping[str, Any], ...]:
    """Return the rows of a list."""
    rows = at(answer, path)
    if not isinstance(rows, list):
        raise SourceDataError("there is no list where the rows should be")
    if not all(isinstance(row, dict) for row in rows):
        raise SourceDataError("a row is not keys and values")
    return tuple(rows)


def total_at(answer: Any, path: Path) -> int:
    """Return how many rows match; a number written as text is one too."""
    total = at(answer, path)
    if isinstance(total, str) and total.isascii() and total.isdecimal():
        total = int(total)
    if not isinstance(total, int) or isinstance(total, bool) or total < 0:
        raise SourceDataError("the total is not a number of rows")
    return total


def text_at(answer: Any, path: Path) -> str:
    """Return a link or a token, "" when there is none."""
    found = at(answer, path)
    if found is None or found is False:
        return ""
    if not isinstance(found, (str, int)):
        raise SourceDataError("what leads to the next page is no text")
    return str(found)
