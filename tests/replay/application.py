"""The one place that knows how the service is made, and how it is ended."""

import gc
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING
from unittest.mock import patch

import psycopg

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

PREFIX = "ENCOUNTERS_"


def make_application(environ: Mapping[str, str]) -> "WSGIApplication":
    """Return the service as `wsgi:application` is made, from environment variables alone."""
    from app import create_app

    foreign = [name for name in os.environ if name.startswith(PREFIX)]
    with patch.dict(os.environ, environ):
        for name in foreign:
            if name not in environ:
                del os.environ[name]
        return create_app().wsgi_app


def close_connections(database: str) -> None:
    """Close what services hold open of a PostgreSQL database: they end with a process."""
    found = [each for each in gc.get_objects() if isinstance(each, psycopg.Connection)]
    for each in found:
        if not each.closed and each.info.dbname == database:
            each.close()
