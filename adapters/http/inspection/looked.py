"""A section of an HTTP source and the rows of it that are looked at."""

from collections.abc import Callable, Sequence
from functools import cached_property

from adapters.contract import Adapter, Record, RowFault
from adapters.http.section import JsonRow, Section
from adapters.inspection import Observation, Weight
from adapters.mapping.model import SourceConfig

ROWS = 100
"""How many rows are asked for, of the list as it comes."""


class Looked:
    """A section, how to ask it, and what was read of it already."""

    def __init__(
        self,
        section: Section,
        adapter: Adapter,
        listed: Callable[[int], Sequence[JsonRow]],
        source: SourceConfig,
    ) -> None:
        self.section = section
        self.adapter = adapter
        self.kind = section.mapping.resource_type
        self.source = source
        self.is_refused = False
        """Whether the list was asked for and no row could be had."""
        self._listed = listed

    @cached_property
    def rows(self) -> Sequence[JsonRow]:
        """The first rows of the list."""
        return self._listed(ROWS)

    @cached_property
    def records(self) -> tuple[Record | RowFault, ...]:
        """Those rows as records."""
        return tuple(map(self.section.record, self.rows))

    def seen(self, text: str, weight: Weight) -> Observation:
        """Return an observation of the section as a whole."""
        mark = self.section.mapping.mark
        return Observation(mark, str(self.kind), "", text, weight)
