"""Fixtures for tokens: an authenticator and the provider that it asks."""

import pytest
import responses

from app.auth import Authenticator
from tests.app import provider
from tests.app.provider import Clock, ec, okp, rsa


@pytest.fixture
def mapping_file(tmp_path):
    path = tmp_path / "mapping.yaml"
    path.write_text("mapping: 1\n")
    return path


@pytest.fixture
def key_set():
    """The provider's answers; it publishes one key of each kind."""
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        provider.publish(mock, rsa(), ec(), okp())
        yield mock


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def monotonic():
    return Clock()


@pytest.fixture
def auth(mapping_file, key_set, clock, monotonic):
    settings = provider.settings(mapping_file)
    return Authenticator.from_settings(settings, clock=clock, monotonic=monotonic)
