"""A section of an HTTP source and the rows of it that are looked at."""

from collections.abc import Callable, Sequence
from functools import cached_property

from adapters.contract import (
    Adapter,
    AdapterError,
    Record,
    RowFault,
    SourceDataError,
)
from adapters.http.section import JsonRow, Section
from adapters.inspection import Observation, Weight
from adapters.mapping.model import SourceConfig

MOST_ROWS = 2000
"""How many rows are asked for at once, of the list as it comes."""

FEW_ROWS = 100
"""How many are asked for where the API does not give so many."""


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
        self.asked = MOST_ROWS
        self._listed = listed

    @cached_property
    def rows(self) -> Sequence[JsonRow]:
        """The first rows of the list."""
        try:
            return self._listed(MOST_ROWS)
        except AdapterError as error:
            if isinstance(error, SourceDataError) and error.refused:
                raise
            # It may have a limit of its own, or take too long for so many.
            self.asked = FEW_ROWS
            return self.few()

    def few(self) -> Sequence[JsonRow]:
        """Return as many rows as the largest page of a client has."""
        return self._listed(FEW_ROWS)

    @cached_property
    def records(self) -> tuple[Record | RowFault, ...]:
        """Those rows as records."""
        return tuple(map(self.section.record, self.rows))

    def seen(self, text: str, weight: Weight) -> Observation:
        """Return an observation of the section as a whole."""
        mark = self.section.mapping.mark
        return Observation(mark, str(self.kind), "", text, weight)
