"""A request as editors and httpyac read it, for `encounters kit`."""

from collections.abc import Sequence
from urllib.parse import quote

Pairs = Sequence[tuple[str, str]]

FORM = "application/x-www-form-urlencoded"
SIGNED = ("Authorization", "Bearer {{token}}")
"""The header of a request with a token, which is a variable."""


def http_request(method: str, url: str, headers: Pairs, form: Pairs | None) -> str:
    """Return a request; a variable stays as it is."""
    lines = [f"{method} {url}", *(f"{name}: {text}" for name, text in headers)]
    if form is not None:
        body = "&".join(f"{name}={_quoted(text)}" for name, text in form)
        lines += [f"Content-Type: {FORM}", "", body]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return text if "{{" in text else quote(text, safe="")
