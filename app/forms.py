"""Request forms and query strings as pairs of text (decisions 1 and 2)."""

from collections.abc import Sequence
from typing import TypeAlias
from urllib.parse import parse_qsl

from app.errors import BadRequestError, BadValueError, IssueCode

Pairs: TypeAlias = Sequence[tuple[str, str]]

MOST_PARAMETERS = 50


def decode_form(raw: bytes) -> Pairs:
    """Read a query string or form body as pairs, empty values included.

    Raises BadRequestError for what is not UTF-8 and BadValueError for too many pairs.
    """
    if not raw:
        return []
    try:
        text = raw.decode()
        return parse_qsl(
            text,
            keep_blank_values=True,
            errors="strict",
            max_num_fields=2 * MOST_PARAMETERS,
        )
    except UnicodeDecodeError as error:
        raise BadRequestError(
            "The parameters are not UTF-8.", code=IssueCode.STRUCTURE
        ) from error
    except ValueError as error:
        raise too_many_parameters() from error


def refuse_token(pairs: Pairs) -> None:
    """Refuse a token outside its header (decision 2; RFC 6750, 5.3)."""
    if any(name == "access_token" for name, _ in pairs):
        raise BadRequestError(
            "A token is taken from the Authorization header only.", "http.access_token"
        )


def too_many_parameters() -> BadValueError:
    """Return the error for a request of more than `MOST_PARAMETERS` (decision 3)."""
    return BadValueError(
        f"A request takes at most {MOST_PARAMETERS} parameters.",
        code=IssueCode.TOO_COSTLY,
    )
