"""A hospital's HTTP API as an adapter: search, count and read by requests.

SearchQuery → query.py → parameters → paging.py → client.py → rows → records
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote

from adapters.contract import (
    AdapterError,
    Capabilities,
    Criterion,
    EncounterRecord,
    GoneError,
    NotFoundError,
    Page,
    Problem,
    Record,
    ResourceCapabilities,
    ResourceType,
    RowFault,
    SearchQuery,
    SortKey,
    SourceChangedError,
    SourceDataError,
    SourcePage,
    SourceTimedOutError,
    SourceUnavailableError,
    StringCriterion,
    TooCostlyError,
)
from adapters.http.client import Content, Deadline, HttpCall, Source, plain_text
from adapters.http.paging import (
    JsonRow,
    ListAnswer,
    Lists,
    Window,
    linked_page,
    numbered_page,
)
from adapters.http.query import (
    can_split,
    capability_of,
    keyed,
    parameters_of,
    split,
)
from adapters.mapping.model import (
    HttpSection,
    ItemMapping,
    ListCall,
    PagingKind,
    ResourceMapping,
    SourceMapping,
)
from adapters.mapping.paths import Path, at, path_of, unreadable
from adapters.mapping.row_mapper import (
    Cell,
    CellError,
    Reader,
    RowMapper,
    compile_cell,
    item_columns,
    own_columns,
    refuse_unserved,
)
from adapters.mapping.slots import FHIR_ID, UNSERVED, SlotKind, places_of
from adapters.mapping.template import QueryPairs, TextTemplate, ValueRule
from adapters.matching import Matcher, values_of
from adapters.parameters import SEARCH_PARAMETERS, SORTS

_DEFAULT_ORDER = "as the source gives them"


class HttpAdapter:
    """A hospital's HTTP API behind one mapping. It connects at the first call."""

    def __init__(
        self, mapping: SourceMapping, beside: "HttpAdapter | None" = None
    ) -> None:
        """Share the connections and the login of `beside`, an adapter of the same API."""
        self.mapping = mapping
        self._config = mapping.source
        self._source: Source = beside._source if beside else Source(mapping.source)
        self._sections = {
            kind: open_section(mapping, kind) for kind in mapping.resources
        }
        self.fingerprint = mapping.fingerprint
        self.capabilities: Capabilities = {
            kind: _capabilities(section.mapping, section.http)
            for kind, section in self._sections.items()
        }

    def search(self, query: SearchQuery) -> Page:
        """Return up to `query.count` rows from where the query starts."""
        return self._search(query)[0]

    def search_rows(self, query: SearchQuery) -> SourcePage:
        """Return a page of a search and the cells of its rows."""
        section = self._sections[query.resource_type]
        page, rows = self._search(query)
        columns = own_columns(section.mapping)
        return SourcePage(page, columns, [section.cells(row)[0] for row in rows])

    def _search(self, query: SearchQuery) -> tuple[Page, Sequence[JsonRow]]:
        """Return a page of a search, and its rows as the source returned them."""
        section = self._sections[query.resource_type]
        questions = questions_of(section, query)
        if not questions:
            return Page((), total=0), ()
        deadline = Deadline(self._config.timeout_seconds)
        try:
            return self._page(questions, query, deadline)
        except SourceDataError as error:
            if error.refused or len(questions) == 1:
                raise
            # Rows may have changed between the requests of the page.
            return self._page(questions, query, deadline)

    def _page(
        self, questions: Sequence["Question"], query: SearchQuery, deadline: Deadline
    ) -> tuple[Page, Sequence[JsonRow]]:
        """Return a page, and its rows as the source returned them. Raises SourceDataError."""
        section = questions[0].section
        window = self._window(questions, query, deadline)
        ids = list(filter(None, map(section.id_text, window.rows)))
        if len({*ids}) < len(ids):
            text = "the list contains a row twice"
            raise SourceChangedError(text, reason=text)
        rows = window.rows[: query.count]
        records = section.records(rows, query.criteria)
        more = window.more or len(window.rows) > len(rows)
        page = Page(
            records,
            more,
            first=window.first,
            last=window.last,
            total=window.total,
            incomplete=window.incomplete,
        )
        return page, rows

    def count(self, query: SearchQuery) -> int:
        """Return how many rows match."""
        section = self._sections[query.resource_type]
        questions = _questions(section, split(section.mapping, query))
        deadline = Deadline(self._config.count_timeout_seconds)
        try:
            return sum(self._count(question, deadline) for question in questions)
        except SourceTimedOutError as error:
            raise TooCostlyError("the count took too long") from error

    def _count(self, question: "Question", deadline: Deadline) -> int:
        """Return how many rows match one of the requests of a search."""
        listed = question.list
        if listed.counting is not None:
            values = combined(listed, (*listed.fixed, *question.criteria))
            call = HttpCall(listed.method.upper(), listed.counting.path, values)
            return self._list_answer(call, deadline).total_at(listed.counting.total)
        total = self._fetch(question, deadline, (), 1).total
        assert total is not None, "the loader requires a total or a call for it"
        return total

    def read(self, resource_type: ResourceType, id: str) -> Record:
        """Return one resource."""
        section = self._sections[resource_type]
        return refuse_unserved(section.record(self.read_row(resource_type, id)))

    def read_row(self, resource_type: ResourceType, id: str) -> JsonRow:
        """Return the row of one resource, hidden and removed ones too.

        Raises NotFoundError, GoneError, SourceUnavailableError, SourceDataError.
        """
        deadline = Deadline(self._config.timeout_seconds)
        return _read_row(self._source, self._sections[resource_type], id, deadline)

    def explain(self, query: SearchQuery) -> str:
        """Return the request of a page, its values as placeholders."""
        questions = questions_of(self._sections[query.resource_type], query)
        texts = (question.explained(query.count) for question in questions)
        return "\n".join(texts) or "no request is sent: nothing can match"

    def check(self) -> Iterable[Problem]:
        """Yield why the source does not answer, or where its rows lack their id."""
        for kind, section in self._sections.items():
            if section.http.list is None:
                continue
            try:
                rows = self.first_rows(kind, 1)
            except AdapterError as error:
                text = f"{section.mapping.mark}: {kind}: {error}"
                outage = isinstance(error, SourceUnavailableError)
                yield Problem(text, outage=outage)
            else:
                if not all(map(section.id_text, rows)):
                    mark = section.mapping.fields["id"].mark
                    yield Problem(f"{mark}: {kind}.id: no row has a value at this path")

    def close(self) -> None:
        """Close the connections."""
        self._source.client.close()

    def section(self, kind: ResourceType) -> "OpenHttpSection":
        """Return the section of a resource type that the mapping has."""
        return self._sections[kind]

    def first_rows(self, kind: ResourceType, size: int) -> tuple[JsonRow, ...]:
        """Return the first rows of a list. Raises AdapterError."""
        section = self._sections[kind]
        assert section.http.list is not None, "only sections with a list are inspected"
        question = Question(section, section.http.list)
        deadline = Deadline(self._config.timeout_seconds)
        return self._fetch(question, deadline, (), size).rows

    def keys_beside_rows(self, kind: ResourceType) -> tuple[str, ...]:
        """Return the keys of the answer that holds a list. Raises AdapterError."""
        section = self._sections[kind]
        assert section.http.list is not None, "only sections with a list are inspected"
        call = Question(section, section.http.list).call((), 1)
        body = self._list_answer(call, Deadline(self._config.timeout_seconds)).body
        return tuple(body) if isinstance(body, dict) else ()

    def _window(
        self, questions: Sequence["Question"], query: SearchQuery, deadline: Deadline
    ) -> Window:
        """Return the rows of a page; one deadline holds for all of its requests."""
        section = questions[0].section
        listed = questions[0].list
        fetches = [partial(self._fetch, question, deadline) for question in questions]
        if listed.paging is not None and not listed.paging.is_numbered:
            return linked_page(fetches[0], listed.paging, query, section.id_text)
        end = self.count(query) if query.from_end else 0
        second = fetches[1] if len(fetches) > 1 else None
        belongs = None
        if keyed(section.mapping, query) is not None:
            # The second list is of all rows, also those of the first, which have the key.
            belongs = partial(section.lacks_key, query.sort.key)
        return numbered_page(
            Lists(fetches[0], second, belongs),
            listed.paging,
            query,
            end,
            id_of=section.id_text,
            has_total=listed.total is not None,
        )

    def _fetch(
        self,
        question: "Question",
        deadline: Deadline,
        pairs: QueryPairs,
        size: int,
        link: str = "",
    ) -> ListAnswer:
        """Return the answer to one request of a list.

        `pairs` are the parameters of the page, `size` the most rows that it may have; with
        `link` this address is requested in their place. Raises SourceDataError.
        """
        listed = question.list
        paging = listed.paging
        call = question.call(pairs, size, link)
        answer = self._list_answer(call, deadline)
        rows = answer.rows_at(listed.rows)
        if len(rows) > size:
            raise unreadable("the API returned more rows than requested")
        total = None
        place = listed.total
        # A server may send the total on the first page only.
        if place is not None and not (link and answer.at(place) is None):
            total = answer.total_at(place)
            if total < len(rows):
                raise unreadable("the API returned more rows than its total")
        next_page = ""
        if paging and not paging.is_numbered:
            next_page = answer.text_at(paging.path)
            if next_page and paging.kind is PagingKind.NEXT:
                next_page = self._source.client.resolve(next_page, call.path)
        return ListAnswer(rows, total, next_page)

    def _list_answer(self, call: HttpCall, deadline: Deadline) -> Content:
        try:
            return self._source.send(call, deadline, is_list=True)
        except (NotFoundError, GoneError) as error:
            raise unreadable("the source has no such list") from error


def _capabilities(section: ResourceMapping, http: HttpSection) -> ResourceCapabilities:
    """Return what one resource type of an HTTP source can do."""
    last_updated = section.fields.get("last_updated")
    paging = http.list.paging if http.list else None
    return ResourceCapabilities(
        parameters={
            name: capability_of(
                call, splits=name in section.sorts and can_split(section)
            )
            for name, call in http.search.items()
        },
        sorts=section.sorts,
        dated=last_updated is not None and last_updated.covers_all,
        paging=paging is not None,
        backwards=paging is not None and paging.is_numbered,
        listed=http.list is not None,
        order="" if section.sorts or not http.list else http.order or _DEFAULT_ORDER,
    )


@dataclass(frozen=True, slots=True)
class OpenHttpSection:
    """One resource type, compiled for requests; `paths` are its columns in order."""

    mapping: ResourceMapping
    http: HttpSection
    paths: tuple[Path, ...]
    items: tuple[tuple[ItemMapping, Path, tuple[Path, ...]], ...]
    mapper: RowMapper
    matcher: Matcher
    keys: Mapping[SortKey, Reader]
    rule: ValueRule

    def record(self, row: JsonRow) -> Record | RowFault:
        """Map one row of an answer."""
        return self.mapper(*self.cells(row))

    def cells(
        self, row: JsonRow
    ) -> tuple[tuple[Any, ...], Mapping[ItemMapping, Sequence[Any]]]:
        """Return the values at the paths of a row, and the rows of its own lists."""
        cells = tuple(at(row, path) for path in self.paths)
        items = {
            item: _item_rows(row, path, columns) for item, path, columns in self.items
        }
        return cells, items

    def records(
        self, rows: Sequence[JsonRow], criteria: tuple[Criterion, ...]
    ) -> tuple[Record | RowFault, ...]:
        """Map the rows of a list.

        An API ignores parameters that it does not know, and returns everybody's rows:
        raises SourceDataError for a row that does not match the search.
        """
        records = tuple(self._compared(self.record(row), criteria) for row in rows)
        mapped = [record for record in records if not isinstance(record, RowFault)]
        # The stays of merged patients are those of one patient for each that is named.
        patients = {r.patient_id for r in mapped if isinstance(r, EncounterRecord)}
        for criterion in filter(self._follows_merges, criteria):
            if len(patients) > len(criterion.values):
                raise unreadable(_NO_MATCH)
        return records

    def _compared(
        self, record: Record | RowFault, criteria: tuple[Criterion, ...]
    ) -> Record | RowFault:
        """Return a record, or the fault of one whose compared value `absent` leaves out.

        Raises SourceDataError for one that does not match, or is not to be served.
        """
        if isinstance(record, RowFault):
            return record
        if isinstance(record, EncounterRecord) and record.status in UNSERVED:
            raise unreadable("the list contains a hidden or removed row")
        first_fault: RowFault | None = None
        for criterion in criteria:
            fault = self._absence(record, criterion)
            if not fault and not self._can_match(record, criterion):
                raise unreadable(_NO_MATCH)
            first_fault = first_fault or fault
        return first_fault or record

    def _absence(self, record: Record, criterion: Criterion) -> RowFault | None:
        """Return the fault of a row that lacks the compared value because of `absent`."""
        parameter = SEARCH_PARAMETERS[self.mapping.resource_type][criterion.parameter]
        if next(values_of(record, parameter), None) is not None:
            return None
        for place in places_of(self.mapping):
            if place.slot in parameter.slots and place.field.absent:
                columns = ", ".join(place.field.columns)
                rule = "the search found this row by a value that `absent` lists"
                return RowFault(place.slot, columns, rule, id=record.id)
        return None

    def id_text(self, row: JsonRow) -> str:
        """Return the source's id of a row, "" without one."""
        return plain_text(at(row, path_of(self.mapping.fields["id"].columns[0])))

    def lacks_key(self, key: SortKey, row: JsonRow) -> bool:
        """Whether a row has no sort key, or an unreadable one."""
        try:
            return self.keys[key]([at(row, path) for path in self.paths]) is None
        except CellError:
            return True

    def _can_match(self, record: Record, criterion: Criterion) -> bool:
        """Whether a record meets a criterion; True where only the source can decide it."""
        if isinstance(criterion, StringCriterion):
            return True  # every source compares texts in its own way
        if self._follows_merges(criterion):
            return True
        return self.matcher.matches(record, criterion)

    def _follows_merges(self, criterion: Criterion) -> bool:
        """Whether the source also finds the stays of patients merged with those named."""
        return self.http.search[criterion.parameter].merged


_NO_MATCH = "the list contains a row that does not match the request"


def open_section(
    mapping: SourceMapping, resource_type: ResourceType
) -> OpenHttpSection:
    """Compile a section."""
    section = mapping.resources[resource_type]
    assert section.http is not None, "the loader gives every section of HTTP one"
    columns = own_columns(section)
    positions = {column: index for index, column in enumerate(columns)}
    slots = {key: SORTS[resource_type].get(key, "") for key in section.sorts}
    return OpenHttpSection(
        mapping=section,
        http=section.http,
        paths=tuple(map(path_of, columns)),
        items=tuple(
            (item, path_of(item.rows), tuple(map(path_of, item_columns(item))))
            for items in section.items.values()
            for item in items
            if item.rows is not None
        ),
        mapper=RowMapper(section, columns),
        matcher=Matcher(mapping.time_zone, mapping.date_reading),
        keys={
            key: compile_cell(
                Cell(section.fields[slot], slot, positions), SlotKind.TIME
            )
            for key, slot in slots.items()
            if key is not SortKey.ID
        },
        rule=mapping.source.http.values if mapping.source.http else ValueRule(),
    )


def _item_rows(row: JsonRow, path: Path, columns: tuple[Path, ...]) -> Sequence[Any]:
    """Return the values at the columns of each item in a row."""
    rows = at(row, path)
    if rows is None:
        return ()
    if not isinstance(rows, list):
        raise unreadable("a row has no list at the path of its items")
    return [[at(row, column) for column in columns] for row in rows]


@dataclass(frozen=True, slots=True)
class Question:
    """What a search sends on every page."""

    section: OpenHttpSection
    list: ListCall
    criteria: QueryPairs = ()
    order: QueryPairs = ()

    def call(self, pairs: QueryPairs, size: int, link: str = "") -> HttpCall:
        """Return the request of a page: by more parameters, or by a link as it is."""
        if link:
            return HttpCall("GET", link)
        listed = self.list
        values = {"value": str(size)}
        count = listed.count.one(values, ValueRule(), trusted=True) or ()
        sent = (*listed.fixed, *self.criteria, *self.order, *count, *pairs)
        return HttpCall(listed.method.upper(), listed.path, combined(listed, sent))

    def explained(self, size: int) -> str:
        """Return the request as text, with `?` for the values of the search."""
        public = {*self.list.fixed, *self.order}
        values = self.call((), size).values
        shown = [f"{n}={v if (n, v) in public else '?'}" for n, v in values]
        return f"{self.list.method.upper()} {self.list.path} {' '.join(shown)}"


def combined(listed: ListCall, pairs: QueryPairs) -> QueryPairs:
    """Return the pairs, those of a parameter that several templates fill as one."""
    for combined_name, separator in listed.combine.items():
        texts = [text for name, text in pairs if name == combined_name]
        if len(texts) > 1:
            whole = separator.join(f"({text})" for text in texts)
            others = [pair for pair in pairs if pair[0] != combined_name]
            pairs = (*others, (combined_name, whole))
    return pairs


def questions_of(section: OpenHttpSection, query: SearchQuery) -> tuple[Question, ...]:
    """Return what a search sends: nothing if nothing can match, or up to two lists."""
    first = keyed(section.mapping, query)
    searches = (first, query) if first else split(section.mapping, query)
    return _questions(section, searches)


def _questions(
    section: OpenHttpSection, searches: Iterable[SearchQuery]
) -> tuple[Question, ...]:
    """Return the requests for searches, without those that nothing can match."""
    listed = section.http.list
    sort = section.http.sort
    assert listed is not None, "a section without a list offers no search"
    questions = []
    for query in searches:
        parameters = parameters_of(section.mapping, query, section.rule)
        if parameters is not None:
            # A source without this order returns its own, which the Offer names.
            order = sort.by.get(str(query.sort), ()) if sort else ()
            questions.append(
                Question(section, listed, criteria=parameters, order=order)
            )
    return tuple(questions)


def _path(path: TextTemplate, id: str, rule: ValueRule) -> str | None:
    """Return the path with an id in its place, None if it does not fit."""
    (place,) = path.places
    fitted = place.fitted(id, rule, trusted=False)
    return None if fitted is None else path.filled({"id": quote(fitted, safe="")})


def _read_row(
    source: Source, section: OpenHttpSection, id: str, deadline: Deadline
) -> JsonRow:
    """Return the row of one resource; `id` is as clients see it.

    Raises NotFoundError, GoneError, SourceUnavailableError, SourceDataError.
    """
    kind = section.mapping.resource_type
    read = section.http.read
    source_id = "".join(section.mapping.fields["id"].source_ids([id]))
    # Dots alone would lead to another address of the server.
    if not FHIR_ID.fullmatch(id) or not source_id.strip("."):
        raise NotFoundError(kind)
    path = _path(read.path, source_id, section.rule)
    if path is None:
        raise NotFoundError(kind)
    call = HttpCall("GET", path)
    row = source.send(call, deadline).at(read.row)
    if row is None:
        raise NotFoundError(kind)
    if not isinstance(row, dict):
        raise unreadable("the row is not an object")
    row_id = section.id_text(row)
    if not row_id:
        raise unreadable("the answer is not a row: it has no id")
    if row_id != source_id:
        raise NotFoundError(kind)
    return row
