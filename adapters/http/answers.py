"""What stands in an answer of the source: rows, totals, links, errors.

An answer that makes no sense raises SourceDataError; no text of it is ever quoted.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from adapters.contract import SourceDataError
from adapters.mapping.http_model import ErrorRule, Path
from adapters.mapping.values import as_text

_MOST_ROWS = 2**31 - 1
"""What FHIR's unsignedInt holds."""

_NUMBER = re.compile("[0-9]{1,20}", re.ASCII)


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
    code = plain_text(found)
    for texts, said in (
        (rule.fine, Verdict.FINE),
        (rule.not_found, Verdict.NOT_FOUND),
        (rule.unavailable, Verdict.UNAVAILABLE),
        (rule.expired, Verdict.EXPIRED),
    ):
        if code in texts:
            return said
    return Verdict.ERROR


def plain_text(value: Any) -> str:
    """Return a text or number of an answer as text, "" for anything else."""
    try:
        return as_text(value) if isinstance(value, (str, int, float)) else ""
    except ValueError:
        return ""


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
    if isinstance(total, str) and _NUMBER.fullmatch(total):
        total = int(total)
    if not isinstance(total, int) or isinstance(total, bool):
        raise SourceDataError("the total is not a number of rows")
    if not 0 <= total <= _MOST_ROWS:
        raise SourceDataError("the total is not a number of rows")
    return total


def text_at(answer: Any, path: Path) -> str:
    """Return a link or a token, "" when there is none: null, false or the number 0."""
    found = at(answer, path)
    if found in (None, False):
        return ""
    if not isinstance(found, (str, int)):
        raise SourceDataError("what leads to the next page is no text")
    return str(found)
