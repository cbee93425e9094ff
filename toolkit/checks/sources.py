"""The checks of a mapping's sources: which adapter is checked how.

Each source is opened as the service opens it, without a breaker: a check that fails must not
keep the next one from asking.
"""

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
from adapters.mapping.model import Mark, SourceMapping, is_own
from adapters.registry import open_source
from toolkit.checks.engine import Check, Finding, Result, Severity


@dataclass(frozen=True, slots=True)
class OpenSource:
    """A source that is open; `name` is what findings call it, "" for the only one.

    `kinds` are the resource types that are read from it by this mapping.
    """

    name: str
    title: str
    mapping: SourceMapping
    adapter: Adapter
    kinds: tuple[ResourceType, ...]

    def checks(self) -> Iterator[Check]:
        """Yield the checks of this source; each is run before the next is requested."""
        for check in _checks_of(self.adapter, self.mapping, self.kinds):
            subject = (
                f"source {self.title}: {check.subject}" if self.title else check.subject
            )
            yield Check(subject, partial(self._named, check))

    def _named(self, check: Check) -> Iterator[Result]:
        try:
            for result in check.run():
                yield replace(result, part=self.name)
        except (SourceUnavailableError, SourceDataError) as error:
            if self.title:
                error.args = (f"source {self.title}: {error}",)
            raise


@contextmanager
def open_sources(mapping: SourceMapping) -> Iterator[tuple[OpenSource, ...]]:
    """Open every source of a mapping; tables of one source share its connections.

    Raises MappingError, SourceDataError.
    """
    with ExitStack() as stack:
        if not mapping.parts:
            adapter = stack.enter_context(closing(open_source(mapping)))
            kinds = tuple(adapter.capabilities)
            yield (OpenSource("", "", mapping, adapter, kinds),)
            return
        first: dict[Mark, Adapter] = {}
        sources = []
        for part in mapping.parts:
            mark = part.mapping.source.mark
            adapter = open_source(part.mapping, first.get(mark))
            if mark not in first:
                first[mark] = stack.enter_context(closing(adapter))
            name = part.section.fields["id"].prefix.rstrip("-") or part.name
            sources.append(
                OpenSource(name, part.name, part.mapping, adapter, (part.kind,))
            )
        yield tuple(sources)


def _checks_of(
    adapter: Adapter, mapping: SourceMapping, kinds: tuple[ResourceType, ...]
) -> Iterator[Check]:
    # Imported here, so that a database needs no HTTP library, and the other way round.
    if is_own(mapping.source.kind):
        yield Check("all", partial(_problems, adapter, str(mapping.file)))
    elif mapping.source.kind == "http":
        from adapters.http.adapter import HttpAdapter
        from toolkit.checks import http

        assert isinstance(adapter, HttpAdapter), "the registry opens one for this kind"
        yield from http.checks(adapter, kinds)
    else:
        from adapters.sql.adapter import SqlAdapter
        from toolkit.checks import sql

        assert isinstance(adapter, SqlAdapter), "the registry opens one for this kind"
        yield from sql.checks(adapter, kinds)


def _problems(adapter: Adapter, file: str) -> Iterator[Finding]:
    """Yield what a start of the service would report. Raises SourceUnavailableError."""
    for problem in adapter.check():
        if problem.outage:
            raise SourceUnavailableError(problem.text)
        severity = Severity.ERROR if problem.serious else Severity.WARNING
        yield Finding(file, 0, 0, problem.text, severity=severity)
