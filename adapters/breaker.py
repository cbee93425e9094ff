"""The state of a breaker, apart from the library's own notion of time."""

import time
from datetime import UTC, datetime, timedelta

import pybreaker


class State(pybreaker.CircuitMemoryStorage):
    """The state of a breaker, whose pauses are as long when somebody sets the clock."""

    _opened = 0.0

    @property
    def opened_at(self) -> datetime:
        """When it opened, as far from now as it was, whatever the clock says by now."""
        return datetime.now(UTC) - timedelta(seconds=time.monotonic() - self._opened)

    @opened_at.setter
    def opened_at(self, _moment: datetime) -> None:
        self._opened = time.monotonic()
