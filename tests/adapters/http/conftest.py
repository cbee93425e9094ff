"""What answers in place of a source, and what no error may quote."""

from collections.abc import Iterator

import pytest
import responses


@pytest.fixture
def source() -> Iterator[responses.RequestsMock]:
    """Return the source: mocked answers, each of which has to be asked for."""
    with responses.RequestsMock() as mock:
        yield mock
