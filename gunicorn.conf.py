"""What a bare `gunicorn` in this directory reads: the configuration of the service."""

from app.server.config import *  # noqa: F403
