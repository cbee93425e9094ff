"""A search of a test → the rows that it finds, the request that it sends, or its refusal."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from adapters import open_adapter
from adapters.contract import (
    Adapter,
    NotAskableError,
    Page,
    RowFault,
    SearchQuery,
    TokenCriterion,
)
from adapters.mapping.model import FieldMapping, ResourceMapping, SourceMapping
from adapters.mapping.nodes import Scalar
from adapters.mapping.parameters import COMPARED
from adapters.mapping.profile import profile_of
from adapters.mapping.slots import UNSERVED
from app.capabilities import compute_offer
from app.errors import ServiceError
from app.outcomes import outcome_for
from app.parameters import context_of
from app.search import parse_search
from app.tools.given import Cells
from app.tools.report import Finding
from app.tools.sections import MappingFile, NoSectionError
from app.tools.testing.cases import Case
from app.tools.testing.coverage import Coverage
from app.tools.testing.requests import check_request, sent_question
from app.tools.testing.rows import told
from app.tools.testing.searched import Searched
from app.tools.testing.standin import OffsetError, stand_in

BASE_URL = "https://encounters.example/fhir/v3"
"""The base of a deployment, for searches that name a patient by its whole address."""


def run_search(
    file: MappingFile, case: Case, searched: Searched, coverage: Coverage
) -> Iterator[Finding]:
    """Yield how the search of a case differs from what is expected of it."""
    search = _Search(file, case, searched, coverage)
    try:
        yield from search.sent() if _is_sent(file, case) else search.found()
    except (ServiceError, NotAskableError) as error:
        yield from search.refused(error)
    except NoSectionError as error:
        yield Finding.of(case.problem("source", str(error)))
    except OffsetError as error:
        text = f"a time with an offset cannot be searched here: '{error}'"
        yield Finding.of(case.problem("given", text))


def _is_sent(file: MappingFile, case: Case) -> bool:
    """Whether the search is tried as far as its request."""
    if "expect_request" in case.parts:
        return True
    if "expect_found" in case.parts:
        return False
    sections = file.sections(case.kind)
    if case.source:
        sections = (file.section(case.kind, case.source),)
    return any(section.http is not None for section in sections)


@dataclass(frozen=True, slots=True)
class _Search:
    """One search of one mapping file."""

    file: MappingFile
    case: Case
    searched: Searched
    coverage: Coverage

    def sent(self) -> Iterator[Finding]:
        """Yield how the request differs."""
        section = self.file.section(self.case.kind, self.case.source)
        if section.http is None:
            text = "a database is sent no request: say expect_found"
            yield Finding.of(self.case.problem("expect_request", text))
            return
        mapping = self.file.source_of(section)
        with closing(open_adapter(mapping)) as adapter:
            query = self._query(mapping, adapter)
            question = sent_question(mapping, query)
        self._count(query, (section,))
        if "expect_refused" in self.case.parts:
            yield self._not_refused()
        else:
            yield from check_request(self.case, question, query)

    def found(self) -> Iterator[Finding]:
        """Yield how the rows that are found differ."""
        if not all(s.rows for s in self.file.sections(self.case.kind)):
            text = "only the rows of a database can be searched in a test"
            yield Finding.of(self.case.problem("search", text))
            return
        with TemporaryDirectory() as folder:
            rows, file = self.searched.rows, Path(folder) / "rows.sqlite"
            mapping = stand_in(self.file.mapping, rows, file)
            with closing(open_adapter(mapping)) as adapter:
                query = self._query(mapping, adapter)
                page = adapter.search(query)
        self._count(query, tuple(s for s, rows in self.searched.sections if rows))
        if "expect_refused" in self.case.parts:
            yield self._not_refused()
        else:
            yield from self._compared(page)

    def _query(self, mapping: SourceMapping, adapter: Adapter) -> SearchQuery:
        """Read the search as the service would; raises ServiceError."""
        profile = profile_of(mapping)
        offer = compute_offer(profile, adapter.capabilities)
        if self.case.kind not in offer.resources:
            text = f"the profile {profile.name} does not offer it"
            raise NoSectionError(text)
        context = context_of(BASE_URL, mapping.constants, mapping.time_zone)
        search = parse_search(
            self.searched.pairs, offer.resources[self.case.kind], context
        )
        if "_count" in self.searched.names:
            return search.query
        rows = sum(len(rows) for _, rows in self.searched.sections)
        return replace(search.query, count=max(search.query.count, rows))

    def refused(self, error: Exception) -> Iterator[Finding]:
        """Yield how a refusal differs from the one that is expected."""
        said = outcome_for(error).issues[0].diagnostics or ""
        wanted = self.case.text("expect_refused")
        if not wanted:
            yield Finding.of(self.case.problem("search", f"it is refused: {said}"))
        elif wanted not in said:
            text = f"expected the refusal '{wanted}', and it is '{said}'"
            yield Finding.of(self.case.problem("expect_refused", text))

    def _not_refused(self) -> Finding:
        text = "expected a refusal, and the search is answered"
        return Finding.of(self.case.problem("expect_refused", text))

    def _compared(self, page: Page) -> Iterator[Finding]:
        expected = self.case.texts("expect_found")
        ids = [row.id for row in page.rows if not isinstance(row, RowFault)]
        wanted = [scalar.text for scalar in expected]
        for row in page.rows:
            if isinstance(row, RowFault):
                text = f"a row that is found is a fault: {told(self.case.kind, row)}"
                yield Finding.of(self.case.problem("given", text))
        for scalar in (scalar for scalar in expected if scalar.text not in ids):
            yield _at(scalar, f"'{scalar.text}' is not found{_others(ids, wanted)}")
        for id in (id for id in ids if id not in wanted):
            text = f"'{id}' is found, and is not expected"
            yield Finding.of(self.case.problem("expect_found", text))
        same = sorted(ids) == sorted(wanted)
        if same and "_sort" in self.searched.names and ids != wanted:
            text = f"the order is {', '.join(ids)}"
            yield Finding.of(self.case.problem("expect_found", text))

    def _count(self, query: SearchQuery, sections: tuple[ResourceMapping, ...]) -> None:
        """Count what the search has touched."""
        parameters = {criterion.parameter for criterion in query.criteria}
        for section in sections:
            for name in parameters:
                self.coverage.parameter(section, name)
            if "_sort" in self.searched.names:
                self.coverage.sort(section, query.sort.key)
        for section, rows in self.searched.sections:
            compared = COMPARED[section.resource_type]
            asked = {compared[name] for name in parameters}
            if _names_system(query):
                asked.add("visit_number_system")
            for slot, field in section.fields.items():
                if field.codes and field.columns:
                    self._count_codes(field, rows, slot in asked)

    def _count_codes(
        self, field: FieldMapping, rows: tuple[Cells, ...], is_asked: bool
    ) -> None:
        assert field.codes is not None, "asked for coded fields alone"
        for row in rows:
            cell = row.get(field.columns[0])
            if is_asked or field.codes.table.get(str(cell)) in UNSERVED:
                self.coverage.code(field, cell)


def _names_system(query: SearchQuery) -> bool:
    """Whether a search is by a number of one system, and not by the number alone."""
    tokens = (c.values for c in query.criteria if isinstance(c, TokenCriterion))
    # Codes come without a system.
    return any(token.system for values in tokens for token in values)


def _at(scalar: Scalar, text: str) -> Finding:
    mark = scalar.mark
    return Finding(mark.file, mark.line, mark.column, text)


def _others(ids: list[str], wanted: list[str]) -> str:
    others = [id for id in ids if id not in wanted]
    return f"; found are {', '.join(ids) or 'none'}" if not others else ""
