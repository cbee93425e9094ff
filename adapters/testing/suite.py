"""All tests of the contract, for one module of tests to take in.

    from adapters.testing.suite import *

The module, or the conftest.py beside it, has the fixture `open_hospital`: a function
`Open` that fills the hospital system under test and opens the adapter on it.
"""

import pytest

from adapters.testing.dates import *  # noqa: F403
from adapters.testing.hospital import Ids
from adapters.testing.opened import Open, Opened
from adapters.testing.pages import *  # noqa: F403
from adapters.testing.searches import *  # noqa: F403
from adapters.testing.stays import EDGES


@pytest.fixture(scope="module", params=Ids)
def edges(request: pytest.FixtureRequest, open_hospital: Open) -> Opened:
    """Return the hospital of edge cases, with ids of both kinds; tests do not change it."""
    return open_hospital(EDGES.with_ids(request.param))


# The tests and what they stand on, and no name beside that could hide one of the module's.
__all__ = ["edges", "nights", "table"]  # noqa: F405
__all__ += [name for name in globals() if name.startswith("test_")]
