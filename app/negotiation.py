"""In which format a client wants its answer: JSON is what there is.

`_format` wins over the Accept header (FHIR STU3 http, "content types").
"""

from collections.abc import Iterable

from app.errors import NotAcceptableError

_JSON = frozenset(
    {"application/fhir+json", "application/json", "application/json+fhir", "text/json"}
)
_RANGES = frozenset({"*/*", "application/*", "text/*"})
# A + that was not escaped arrives as a blank.
_FORMATS = _JSON | {"json", "application/fhir json", "application/json fhir"}


def check_format(format: str | None, accept: str | None) -> None:
    """Raise NotAcceptableError unless the client takes JSON."""
    if format is not None:
        if format.partition(";")[0].strip().lower() not in _FORMATS:
            raise NotAcceptableError(
                "Answers are application/fhir+json.", "http._format"
            )
    elif accept and not (_JSON | _RANGES).intersection(_accepted(accept)):
        raise NotAcceptableError("Answers are application/fhir+json.", "http.Accept")


def _accepted(accept: str) -> Iterable[str]:
    """Yield the media types of an Accept header that are not refused by `q=0`."""
    for part in accept.split(","):
        kind, *parameters = (piece.strip().lower() for piece in part.split(";"))
        weights = [p[2:] for p in parameters if p.startswith("q=")]
        if not any(weight.strip("0.") == "" for weight in weights):
            yield kind
