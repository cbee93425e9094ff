"""The checks of a mapping's sources: which there are, and how they are run.

A `Check` yields its results, `Finding`s and `Measurement`s. No result quotes a value of a
person: counts, codes, columns and rules only. Each source is opened as the service opens it,
without a breaker: a check that fails must not keep the next one from being run.
"""

import math
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial

from adapters.contract import (
    Adapter,
    ResourceType,
    SourceDataError,
    SourceUnavailableError,
)
from adapters.http.adapter import HttpAdapter
from adapters.mapping.model import Mark, ResourceMapping, SourceMapping, is_own
from adapters.mapping.slots import Place
from adapters.registry import open_source
from adapters.sql.adapter import SqlAdapter
from app.console import CannotRunError
from toolkit.checks import http, sql
from toolkit.checks.http import HttpInspection
from toolkit.checks.rows import CodeCounts
from toolkit.checks.sql_inspection import SqlInspection
from toolkit.findings import Check, Finding, Result, Severity
from toolkit.source_rows import RowReader


@dataclass(frozen=True, slots=True)
class OpenSource:
    """An open source.

    `name` is what findings call it and `title` what errors call it, both "" for the only one.
    `kinds` are the resource types that the mapping reads from it.
    """

    name: str
    title: str
    mapping: SourceMapping
    adapter: Adapter
    kinds: tuple[ResourceType, ...]

    def checks(self, deadline: float) -> Iterator[Check]:
        """Yield the checks of this source; a check must be run before the next is taken."""
        for check in self._checks(deadline):
            title = f"source {self.title}: " if self.title else ""
            run = partial(self._named, check)
            yield replace(check, subject=f"{title}{check.subject}", run=run)

    def _checks(self, deadline: float) -> Iterator[Check]:
        """Yield the checks without the name of the source."""
        if is_own(self.mapping.source.kind):
            yield Check("all", self._problems)
        elif isinstance(self.adapter, HttpAdapter):
            yield from http.checks(self.adapter, self.kinds)
        else:
            assert isinstance(self.adapter, SqlAdapter), "there is no other kind"
            yield from sql.checks(self.adapter, self.kinds, deadline)

    def _problems(self) -> Iterator[Finding]:
        """Yield the problems that a custom adapter reports. Raises SourceUnavailableError."""
        for problem in self.adapter.check():
            if problem.outage:
                raise SourceUnavailableError(problem.text)
            severity = Severity.ERROR if problem.serious else Severity.WARNING
            file = str(self.mapping.file)
            yield Finding.of_file(file, problem.text, severity)

    def _named(self, check: Check) -> Iterator[Result]:
        """Run a check; name the source in its results and in its error."""
        try:
            for result in check.run():
                yield replace(result, part=self.name)
        except (SourceUnavailableError, SourceDataError) as error:
            if self.title:
                error.args = (f"source {self.title}: {error}",)
            raise


@contextmanager
def open_sources(mapping: SourceMapping) -> Iterator[tuple[OpenSource, ...]]:
    """Open every source of a mapping; parts with the same `source` share its connections.

    Raises MappingError, SourceDataError.
    """
    with ExitStack() as stack:
        if not mapping.parts:
            adapter = stack.enter_context(closing(open_source(mapping)))
            kinds = tuple(adapter.capabilities)
            yield (OpenSource("", "", mapping=mapping, adapter=adapter, kinds=kinds),)
            return
        # By `source` of the file, the adapter whose connections the others share.
        first: dict[Mark, Adapter] = {}
        sources = []
        for part in mapping.parts:
            mark = part.mapping.source.mark
            adapter = open_source(part.mapping, first.get(mark))
            if mark not in first:
                first[mark] = stack.enter_context(closing(adapter))
            name = part.section.fields["id"].prefix.rstrip("-") or part.name
            source = OpenSource(
                name,
                part.name,
                mapping=part.mapping,
                adapter=adapter,
                kinds=(part.kind,),
            )
            sources.append(source)
        yield tuple(sources)


def count_codes(
    adapter: RowReader, section: ResourceMapping, place: Place
) -> CodeCounts:
    """Return the codes of a field: in all rows of a database, in the first ones of an API.

    Raises AdapterError, and CannotRunError for an API without a list.
    """
    if isinstance(adapter, SqlAdapter):
        inspection = SqlInspection(adapter, section.resource_type, math.inf)
        return CodeCounts.of(inspection, place)
    if section.http is None or section.http.list is None:
        raise CannotRunError("The API has no list of such rows: no codes are counted.")
    return CodeCounts.of(HttpInspection(adapter, section.resource_type), place)
