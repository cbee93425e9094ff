"""What a bare `gunicorn` in this directory reads: the configuration of the service."""

from app.operations.server import *  # noqa: F403

wsgi_app = "wsgi:application"
