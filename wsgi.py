"""The service as a WSGI application, for gunicorn: `wsgi:application`."""

import os

from app import create_app
from app.config import Settings
from app.server.health import Worker

_settings = Settings.from_environ(os.environ)
application = Worker(create_app(_settings), _settings).start()
