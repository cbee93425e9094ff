"""What every request of the pages passes: its id and access line, HTTPS, security headers.

The pages have in common with the service what is imported here.
"""

from flask import Flask

from app.config import Settings
from app.errors import SecurityError as PlainHttpError
from app.middleware import register_transport, requester
from app.observability import REQUEST_ID_HEADER, register_request_log, request_id
from app.pages import POLICY

__all__ = [
    "REQUEST_ID_HEADER",
    "PlainHttpError",
    "register",
    "request_id",
    "requester",
]

HEADERS = (
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("Content-Security-Policy", POLICY.format("")),
    ("Referrer-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
"""Headers of every page: it loads from this origin alone, and nobody frames it."""


def register(pages: Flask, settings: Settings) -> None:
    """Apply them to the pages; plain HTTP raises PlainHttpError."""
    register_request_log(pages)
    register_transport(pages, settings, HEADERS)
