"""Who is told of calls to sources."""

from typing import Protocol


class Listener(Protocol):
    """Who is told of calls to sources, each by its name in the mapping."""

    def under_way(self, source: str, change: int) -> None:
        """Take in that so many more calls are under way, or fewer."""

    def asked(self, source: str, call: str, seconds: float, *, answered: bool) -> None:
        """Take in how long a call took, and whether the source answered."""

    def held_back(self, source: str, *, held: bool) -> None:
        """Take in that a source is left alone from now on, or asked again."""


class Deaf:
    """Nobody listens."""

    def under_way(self, source: str, change: int) -> None:
        """Let it be."""

    def asked(self, source: str, call: str, seconds: float, *, answered: bool) -> None:
        """Let it be."""

    def held_back(self, source: str, *, held: bool) -> None:
        """Let it be."""
