"""The service as a WSGI application, for gunicorn: `wsgi:application`."""

import os

from app import create_app
from app.config import Settings
from app.server.health import Worker
from app.ui.explorer import create_explorer

_settings = Settings.from_environ(os.environ)
_app = create_app(_settings)
_explorer = create_explorer(_app) if _settings.explorer_bind else None
application = Worker(_app, _settings, _explorer)
