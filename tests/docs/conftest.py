"""Fixtures for the pages: the demo, running as they describe it."""

from collections.abc import Iterator

import pytest

from tests.docs.running import Demo, running_demo


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """Run the demo for the session."""
    with running_demo(tmp_path_factory.mktemp("demo")) as running:
        yield running
