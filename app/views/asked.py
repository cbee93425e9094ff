"""What a request asks: its parameters, from address and form, and how it wants them read."""

import re

from flask import Request
from werkzeug.exceptions import RequestEntityTooLarge

from app.current import current_request, sent
from app.errors import BadRequestError, UnsupportedMediaTypeError
from app.forms import Pairs, decode_form
from app.operations.audit import note_pairs

_FORM = "application/x-www-form-urlencoded"


def request_pairs() -> Pairs:
    """Return the parameters of the query string and, for a POST, of the form after them.

    Raises UnsupportedMediaTypeError for a body that is not a form, BadRequestError for
    one of a GET: a filter in it would be left out.
    """
    asked = current_request()
    pairs = decode_form(asked.query_string)
    note_pairs(pairs)
    if asked.method != "POST":
        has_length = (sent("CONTENT_LENGTH") or "").strip("0")
        if has_length or sent("HTTP_TRANSFER_ENCODING") is not None:
            raise BadRequestError(
                "A GET has no body: its parameters are in the address."
            )
        return pairs
    body = _body(asked)
    if body or asked.mimetype:
        _check_form(asked)
    pairs = [*pairs, *decode_form(body)]
    note_pairs(pairs)
    return pairs


def _body(asked: Request) -> bytes:
    body = asked.get_data(cache=False)
    # Of a body without a length the framework reads as much as may be, and is silent of
    # the rest: filters would be left out.
    if len(body) == asked.max_content_length and asked.environ["wsgi.input"].read(1):
        raise RequestEntityTooLarge
    return body


def _check_form(asked: Request) -> None:
    if sent("CONTENT_TYPE") != _FORM and not _is_form(asked):
        raise UnsupportedMediaTypeError(
            f"A search is posted as {_FORM} in UTF-8.", "http.Content-Type"
        )
    if (sent("HTTP_CONTENT_ENCODING") or "identity").lower() != "identity":
        raise UnsupportedMediaTypeError(
            "A search is posted as it is, without a Content-Encoding.",
            "http.Content-Encoding",
        )


def _is_form(asked: Request) -> bool:
    charset = asked.mimetype_params.get("charset", "utf-8").lower()
    return (asked.mimetype, charset) == (_FORM, "utf-8")


def is_lenient() -> bool:
    """Whether the client wants unknown parameters ignored (decision 2)."""
    given = sent("HTTP_PREFER")
    if given is None:
        return False
    preferences = re.sub('[ "]', "", given).lower()
    told = [each for each in re.split("[,;]", preferences) if each[:9] == "handling="]
    # The first one counts (RFC 7240, 2).
    return told[:1] == ["handling=lenient"]
