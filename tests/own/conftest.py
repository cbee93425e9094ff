"""A package with an adapter of its own, installed once for all tests."""

import pytest

from tests.own.package import Installed, install

collect_ignore = ["kestrel"]
"""Its tests run as its author runs them, where it is installed."""


@pytest.fixture(scope="session")
def kestrel(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Return the package, installed."""
    return install(tmp_path_factory.mktemp("own"))
