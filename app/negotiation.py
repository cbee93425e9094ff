"""In which format a client wants its answer: JSON is what there is.

`_format` wins over the Accept header (FHIR STU3 http, "content types").
"""

from collections.abc import Iterable
from functools import lru_cache

from app.errors import NotAcceptableError

_FHIR_JSON = "application/fhir+json"
_JSON = frozenset(
    {_FHIR_JSON, "application/json", "application/json+fhir", "text/json"}
)
_RANGES = ("application/*", "*/*")
"""Ranges that our type is in, the narrowest first."""
# A + that was not escaped arrives as a blank.
_FORMATS = _JSON | {"json", "application/fhir json", "application/json fhir"}


def check_format(format: str | None, accept: str | None) -> None:
    """Raise NotAcceptableError unless the client takes JSON."""
    if format is not None:
        if format.partition(";")[0].strip().lower() not in _FORMATS:
            raise NotAcceptableError(
                "Answers are application/fhir+json.", "http._format"
            )
    elif accept and accept not in _JSON and not _takes_json(accept):
        raise NotAcceptableError("Answers are application/fhir+json.", "http.Accept")


@lru_cache
def _takes_json(accept: str) -> bool:
    """Say whether our type is taken: the narrowest range decides (RFC 9110, 12.5.1).

    Other names of JSON, and `text/*`, which holds one, are taken for ours.
    """
    taken = dict(_weighed(accept))
    if _FHIR_JSON in taken:
        return taken[_FHIR_JSON]
    if any(taken.get(kind) for kind in (*_JSON, "text/*")):
        return True
    return next((taken[kind] for kind in _RANGES if kind in taken), False)


def _weighed(accept: str) -> Iterable[tuple[str, bool]]:
    """Yield the media ranges of an Accept header, and whether `q=0` refuses them."""
    for part in accept.split(","):
        kind, *parameters = (piece.strip().lower() for piece in part.split(";"))
        weights = [p[2:] for p in parameters if p.startswith("q=")]
        yield kind, not any(weight.strip("0.") == "" for weight in weights)
