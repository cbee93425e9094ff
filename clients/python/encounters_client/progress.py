"""How far a copy or a synchronization is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Progress:
    """So many rows of a type so far in this search, or of the patients that are read by id.

    `total` is None where the service did not count.
    """

    kind: str
    rows: int
    total: int | None


OnProgress: TypeAlias = Callable[[Progress], object]
"""Called after each page."""
