"""How long a connection lives, so that a host that moved by name is followed (decision 42)."""

import time
from random import SystemRandom

LIFETIME_SECONDS = 120
"""How long a connection lives at most, unless the setting says otherwise."""

_random = SystemRandom()


def end_of_life(seconds: float) -> float:
    """Return the moment of `time.monotonic` at which a connection made now ends.

    It is up to a fifth earlier than `seconds` from now, so that not all end at once.
    """
    return time.monotonic() + seconds * _random.uniform(0.8, 1)
