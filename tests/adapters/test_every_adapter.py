"""The contract suite, over every adapter of ours that `conftest.py` opens."""

from adapters.testing.suite import *  # noqa: F403
