"""The service as a WSGI application, for gunicorn: `wsgi:application`."""

import os
from importlib import import_module

from app import create_app
from app.config import Settings
from app.server import EXPLORER
from app.server.health import WorkerApplication
from app.server.reload import served

# Under gunicorn its master has read both; under another server they are read here.
_settings = served.settings or Settings.from_environ(os.environ)
_app = create_app(_settings, mapping=served.mapping)
_explorer = None
if _settings.explorer_bind:
    _explorer = import_module(EXPLORER).create_explorer(_app, _settings)
application = WorkerApplication(_app, _settings, _explorer, served.refused)
