"""Fixtures for attacks: the service of the web side's own tests, and its provider."""

from tests.app.conftest import deployed, keys, served

__all__ = ["deployed", "keys", "served"]
