"""The one place that knows how the service is made."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING
from unittest.mock import patch

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
