"""The contract suite, over every adapter of ours that `conftest.py` opens."""

from toolkit.contract.suite import *  # noqa: F403
