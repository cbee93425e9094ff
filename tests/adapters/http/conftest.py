"""What answers in place of a source, and what no error may quote."""

import pytest
import responses


@pytest.fixture
def source():
    """Return the source: mocked answers, each of which has to be asked for."""
    with responses.RequestsMock() as mock:
        yield mock
