"""The service as a WSGI application, for gunicorn: `wsgi:application`."""

from app import create_app

application = create_app()
