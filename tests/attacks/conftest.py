"""Fixtures for attacks: the service of the web side's own tests, and its provider."""

from tests.app.conftest import edges, keys, served

__all__ = ["edges", "keys", "served"]
