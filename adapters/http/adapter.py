"""A hospital's HTTP API as an adapter: search, count and read by requests.

SearchQuery → query.py → parameters → paging.py → client.py → rows → records
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import pairwise
from typing import Any, Self
from urllib.parse import quote

from adapters.contract import (
    AdapterError,
    Capabilities,
    Criterion,
    EncounterRecord,
    GoneError,
    Group,
    NotAskableError,
    NotFoundError,
    Page,
    Position,
    Problem,
    Record,
    ReferenceCriterion,
    ResourceCapabilities,
    ResourceType,
    RowFault,
    SearchQuery,
    SortKey,
    SourceDataError,
    SourceTimedOutError,
    SourceUnavailableError,
    StringCriterion,
    TooCostlyError,
)
from adapters.http.auth import credentials_of
from adapters.http.client import (
    Call,
    Client,
    Content,
    Deadline,
    plain_text,
    rows_at,
    text_at,
    total_at,
)
from adapters.http.paging import (
    Fetch,
    ListAnswer,
    Lists,
    Row,
    Window,
    filled_page,
    linked_page,
    numbered_page,
    single_page,
)
from adapters.http.query import Pairs as Pairs
from adapters.http.query import (
    can_split,
    capability_of,
    keyed,
    parameters_of,
    split,
    with_key,
)
from adapters.inspection import Check, SourcePage, SourceRow
from adapters.mapping.model import (
    ErrorRule,
    HttpSection,
    HttpSource,
    ItemMapping,
    ListCall,
    Paging,
    PagingKind,
    ReadCall,
    ResourceMapping,
    SourceConfig,
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
from adapters.mapping.slots import FHIR_ID, UNSERVED, Kind
from adapters.matching import Matcher
from adapters.parameters import SORTS

_DEFAULT_ORDER = "as the source gives them"


class HttpAdapter:
    """A hospital's HTTP API behind one mapping. It connects at the first call."""

    def __init__(
        self, mapping: SourceMapping, beside: "HttpAdapter | None" = None
    ) -> None:
        """Share the connections and the login of `beside`, an adapter of the same API."""
        self._config = mapping.source
        self._source: Source = beside._source if beside else Source(mapping.source)
        self._fingerprint = mapping.fingerprint
        self._sections = {
            kind: open_section(mapping, kind) for kind in mapping.resources
        }
        self._capabilities = {
            kind: _capabilities(section.mapping, section.http)
            for kind, section in self._sections.items()
        }

    @property
    def capabilities(self) -> Capabilities:
        """What each resource type of the mapping can do."""
        return self._capabilities

    @property
    def fingerprint(self) -> str:
        """A digest of source, calls and order."""
        return self._fingerprint

    def search(self, query: SearchQuery) -> Page:
        """Return up to `query.count` rows from where the query starts."""
        return self._search(query)[0]

    def search_rows(self, query: SearchQuery) -> SourcePage:
        """Return a page of a search and the cells of its rows."""
        section, (page, rows) = self._sections[query.resource_type], self._search(query)
        columns = own_columns(section.mapping)
        return SourcePage(page, columns, [section.cells(row)[0] for row in rows])

    def _search(self, query: SearchQuery) -> tuple[Page, Sequence[Row]]:
        section = self._sections[query.resource_type]
        questions = questions_of(section, query)
        if not questions:
            return Page((), total=0), ()
        deadline = Deadline(self._config.timeout_seconds)
        try:
            return self._page(questions, query, deadline)
        except SourceDataError as error:
            if error.refused or not (len(questions) > 1 or query.placed):
                raise
            # Rows may have changed between the requests of the page.
            return self._page(questions, query, deadline)

    def _page(
        self, questions: Sequence["Question"], query: SearchQuery, deadline: Deadline
    ) -> tuple[Page, Sequence[Row]]:
        section = questions[0].section
        window = self._window(questions, query, deadline)
        # Again, for a page of several requests: not every API heeds the offset.
        section.refuse_duplicates(window.rows)
        rows = window.rows[: query.count]
        records = section.records(rows, query.criteria)
        more, total = window.more or len(window.rows) > len(rows), window.total
        page = Page(records, more, window.first, window.last, total=total)
        if query.placed:
            positions = _positions(section, query, window.rows)
            page = replace(page, positions=positions[: len(rows)])
        return page, rows

    def count(self, query: SearchQuery) -> int:
        """Return how many rows match."""
        section = self._sections[query.resource_type]
        questions = _asked(section, split(section.mapping, query))
        deadline = Deadline(self._config.count_timeout_seconds)
        try:
            return sum(self._count(question, deadline) for question in questions)
        except SourceTimedOutError as error:
            raise TooCostlyError("the count took too long") from error

    def _count(self, question: "Question", deadline: Deadline) -> int:
        counting = question.list.counting
        if counting is not None:
            answer = self._list_answer(question.count_call(), deadline.left())
            return total_at(answer, counting.total)
        total = self._fetch(question, deadline, (), 1).total
        assert total is not None, "the loader requires a total or a call for it"
        return total

    def read(self, resource_type: ResourceType, id: str) -> Record:
        """Return one resource."""
        section = self._sections[resource_type]
        row = _read_row(self._source, section, id, self._config.timeout_seconds)
        return refuse_unserved(section.record(row))

    def explain(self, query: SearchQuery) -> str:
        """Return the request of a page, its values as placeholders."""
        return self._explained(query, hidden=True)

    def explain_values(self, query: SearchQuery) -> str:
        """Return the request of a page with its values."""
        return self._explained(query, hidden=False)

    def _explained(self, query: SearchQuery, *, hidden: bool) -> str:
        questions = questions_of(self._sections[query.resource_type], query)
        if not questions:
            return "no request is sent: nothing can match"
        texts = (q.explained(query.count, hidden=hidden) for q in questions)
        return "\n".join(texts)

    def check(self) -> Iterable[Problem]:
        """Yield why the source does not answer, or where its rows lack their id."""
        for kind, section in self._sections.items():
            if section.http.list is None:
                continue
            try:
                rows = self._first_rows(section, 1)
            except AdapterError as error:
                text = f"{section.mapping.mark}: {kind}: {error}"
                outage = isinstance(error, SourceUnavailableError)
                yield Problem(text, outage=outage)
            else:
                if not all(map(section.id_text, rows)):
                    mark = section.mapping.fields["id"].mark
                    yield Problem(f"{mark}: {kind}.id: no row holds it there")

    def checks(self, kinds: Collection[ResourceType]) -> Iterator[Check]:
        """Yield what `check --live` examines, section by section."""
        # Here, since the service itself never inspects a source.
        from adapters.http.inspect import Sample, checks

        for kind, section in self._sections.items():
            if kind in kinds:
                first_rows = partial(self._first_rows, section)
                yield from checks(Sample(section, self, first_rows, self._config))

    def close(self) -> None:
        """Close the connections."""
        self._source.close()

    def _first_rows(self, section: "Section", size: int) -> tuple[Row, ...]:
        assert section.http.list is not None, "only sections with a list are inspected"
        question = Question(section, section.http.list)
        deadline = Deadline(self._config.timeout_seconds)
        return self._fetch(question, deadline, (), size).rows

    def _window(
        self, questions: Sequence["Question"], query: SearchQuery, deadline: Deadline
    ) -> Window:
        """Return the rows of a page; one deadline holds for all of its requests.

        Where positions are wanted, further rows may follow those of the page: enough of
        them show where rows without the sort key are.
        """
        section, listed = questions[0].section, questions[0].list
        paging, has_total = listed.paging, listed.total is not None
        is_numbered = paging is not None and paging.is_numbered
        end = self.count(query) if is_numbered and query.from_end else 0
        fetch, *others = (partial(self._fetch, each, deadline) for each in questions)
        is_decided = partial(_shows_order, section, query)
        if paging is None:
            window = single_page(fetch, query, has_total=has_total)
        elif is_numbered:
            belongs = partial(_lacks_key, section, query)
            is_second = keyed(section.mapping, query) is not None
            second = others[0] if others else None
            lists = Lists(fetch, second, belongs if is_second else None)
            window = numbered_page(lists, paging, query, end, has_total=has_total)
        elif query.placed:
            return filled_page(fetch, paging, query, is_decided)
        else:
            return linked_page(fetch, paging, query)
        if query.placed and window.more and not is_decided(window.rows):
            if paging is None:
                self._refuse_with_key(section, query, deadline)
            else:
                last = self._last_row(fetch, paging, query)
                return window._replace(rows=window.rows + last)
        return window

    def _refuse_with_key(
        self, section: "Section", query: SearchQuery, deadline: Deadline
    ) -> None:
        """Raise SourceDataError if rows with the sort key follow those without it."""
        search = with_key(section.mapping, query)
        if search is None:
            raise unreadable(
                "no row of the first page has the sort key: whether those that have it"
                " come later cannot be seen without paging or a lower bound"
            )
        for question in _asked(section, (search,)):
            if self._fetch(question, deadline, (), 1).rows:
                raise unreadable("the list is not in the order of the search")

    def _last_row(
        self, fetch: Fetch, paging: Paging, query: SearchQuery
    ) -> tuple[Row, ...]:
        """Return the last row of a list."""
        last = replace(query, from_end=True, count=1)
        end = self.count(query)
        return numbered_page(Lists(fetch), paging, last, end, has_total=True).rows

    def _fetch(
        self,
        question: "Question",
        deadline: Deadline,
        pairs: Pairs,
        size: int,
        link: str = "",
    ) -> ListAnswer:
        """Return the answer to one request of a list."""
        listed = question.list
        call = question.call(pairs, size, link)
        answer = self._list_answer(call, deadline.left())
        rows = rows_at(answer, listed.rows)
        if len(rows) > size:
            raise unreadable("there are more rows than were requested")
        question.section.refuse_duplicates(rows)
        total = None
        # A server may tell it on the first page only.
        is_told = not link or (listed.total and answer.at(listed.total) is not None)
        if listed.total is not None and is_told:
            total = total_at(answer, listed.total)
        if total is not None and total < len(rows):
            raise unreadable("there are more rows than the total says")
        paging = listed.paging
        is_linked = paging is not None and not paging.is_numbered
        following = text_at(answer, paging.path) if paging and is_linked else ""
        if following and paging and paging.kind is PagingKind.NEXT:
            following = self._source.resolve(following, call.path)
        return ListAnswer(rows, total, following)

    def _list_answer(self, call: Call, seconds: float) -> Content:
        try:
            return self._source.send(call, seconds)
        except (NotFoundError, GoneError) as error:
            raise unreadable("the source has no such list") from error


def _capabilities(section: ResourceMapping, http: HttpSection) -> ResourceCapabilities:
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


class Source:
    """The hospital's API: adds the credentials, and names what an answer means."""

    def __init__(self, config: SourceConfig) -> None:
        self._http = config.http or HttpSource()
        self._client = Client(config.url)
        self._credentials = credentials_of(self._http, self._client.send)

    def send(self, call: Call, seconds: float) -> Content:
        """Send a request and return its answer; renews refused credentials once.

        Raises NotFoundError and GoneError if the source says so, NotAskableError if the
        address is too long for it, else SourceUnavailableError and SourceDataError.
        """
        deadline = Deadline(seconds)
        for _ in range(2):
            headers = self._credentials.headers(deadline)
            answer = self._client.send(
                call, {**self._http.headers, **headers}, deadline
            )
            if answer.status != 401:
                _raise_for_status(answer.status)
                body = answer.json()
                if not _raise_for_rule(body, self._http.error):
                    return Content(body, answer.headers)
            if not self._credentials.renew(headers):
                break
        raise unreadable("the source refuses who asks", refused=True)

    def resolve(self, link: str, base: str) -> str:
        """Return the absolute address of a link in the answer of `base`."""
        return self._client.resolve(link, base)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _raise_for_status(status: int) -> None:
    match status:
        case 404:
            raise NotFoundError("the source has no such row")
        case 410:
            raise GoneError("the source says that the row is gone")
        case 414:
            raise NotAskableError("the address is too long for the source")
        case _ if status == 429 or status >= 500:
            raise SourceUnavailableError(f"the source answered {status}")
        case _ if status // 100 != 2:
            raise unreadable(f"the source answered {status}", code=status)


def _raise_for_rule(answer: Any, rule: ErrorRule | None) -> bool:
    """Raise the error that an answer with status 2xx reports by the source's own rule.

    Returns whether it reports expired credentials.
    """
    if rule is None or not isinstance(answer, Mapping):
        return False
    value = at(answer, rule.path)
    code = plain_text(value)
    if value in (None, False, "", [], {}) or code in rule.fine:
        return False
    if code in rule.not_found:
        raise NotFoundError("the source has no such row")
    if code in rule.unavailable:
        raise SourceUnavailableError("the source says that it is unavailable")
    if code not in rule.expired:
        raise unreadable("the source answered an error")
    return True


@dataclass(frozen=True, slots=True)
class Section:
    """One resource type, compiled for requests; `paths` are its columns in order."""

    mapping: ResourceMapping
    http: HttpSection
    paths: tuple[Path, ...]
    items: tuple[tuple[ItemMapping, Path, tuple[Path, ...]], ...]
    mapper: RowMapper
    matcher: Matcher
    keys: Mapping[SortKey, Reader]

    def record(self, row: Row) -> Record | RowFault:
        """Map one row of an answer."""
        return self.mapper(*self.cells(row))

    def cells(
        self, row: Row
    ) -> tuple[tuple[Any, ...], Mapping[ItemMapping, Sequence[Any]]]:
        """Return the values at the paths of a row, and the rows of its own lists."""
        cells = tuple(at(row, path) for path in self.paths)
        items = {
            item: _item_rows(row, path, columns) for item, path, columns in self.items
        }
        return cells, items

    def records(
        self, rows: Sequence[Row], criteria: tuple[Criterion, ...]
    ) -> tuple[Record | RowFault, ...]:
        """Map the rows of a list.

        An API ignores parameters that it does not know, and returns everybody's rows:
        raises SourceDataError for a row that does not match the search.
        """
        records = tuple(self.record(row) for row in rows)
        checkable = [c for c in criteria if self._is_checkable(c)]
        for record in records:
            if isinstance(record, RowFault):
                continue
            if isinstance(record, EncounterRecord) and record.status in UNSERVED:
                raise unreadable("the list holds a row that is not to be served")
            if not all(self.matcher.matches(record, c) for c in checkable):
                raise unreadable(_NO_MATCH)
        references = (c for c in criteria if isinstance(c, ReferenceCriterion))
        for criterion in references:
            if criterion not in checkable and _too_many_patients(records, criterion):
                raise unreadable(_NO_MATCH)
        return records

    def id_text(self, row: Row) -> str:
        """Return the source's id of a row, "" without one."""
        return plain_text(at(row, path_of(self.mapping.fields["id"].columns[0])))

    def refuse_duplicates(self, rows: Sequence[Row]) -> None:
        """Raise SourceDataError if a row occurs twice."""
        ids = [id for id in map(self.id_text, rows) if id]
        if len(set(ids)) < len(ids):
            raise unreadable("the list holds a row twice")

    def _is_checkable(self, criterion: Criterion) -> bool:
        if isinstance(criterion, StringCriterion):
            return False  # every source compares texts in its own way
        merged = self.http.search[criterion.parameter].merged
        return not (merged and isinstance(criterion, ReferenceCriterion))


_NO_MATCH = "the list holds a row that was not asked for"


def _too_many_patients(
    records: Sequence[Record | RowFault], criterion: ReferenceCriterion
) -> bool:
    """Whether stays are of more patients than the search names, survivors included."""
    stays = (record for record in records if isinstance(record, EncounterRecord))
    return len({stay.patient_id for stay in stays}) > len(criterion.values)


def open_section(mapping: SourceMapping, resource_type: ResourceType) -> Section:
    """Compile a section."""
    section = mapping.resources[resource_type]
    assert section.http is not None, "the loader gives every section of HTTP one"
    columns = own_columns(section)
    return Section(
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
        keys=_key_readers(section, columns),
    )


def _key_readers(
    section: ResourceMapping, columns: Sequence[str]
) -> Mapping[SortKey, Reader]:
    """Return what reads the instant of each sort key from the cells of a row."""
    positions = {column: index for index, column in enumerate(columns)}
    slots = {key: SORTS[section.resource_type].get(key, "") for key in section.sorts}
    return {
        key: compile_cell(Cell(section.fields[slot], slot, positions), Kind.TIME)
        for key, slot in slots.items()
        if key is not SortKey.ID
    }


def _item_rows(row: Row, path: Path, columns: tuple[Path, ...]) -> Sequence[Any]:
    rows = at(row, path)
    if rows is None:
        return ()
    if not isinstance(rows, list):
        raise unreadable("there is no list where the items of a row should be")
    return [[at(each, column) for column in columns] for each in rows]


@dataclass(frozen=True, slots=True)
class Question:
    """What a search sends on every page."""

    section: Section
    list: ListCall
    criteria: Pairs = ()
    order: Pairs = ()

    @classmethod
    def of(cls, section: Section, query: SearchQuery) -> Self | None:
        """Return what a search sends, None if nothing can match it."""
        listed = section.http.list
        assert listed is not None, "a section without a list offers no search"
        parameters = parameters_of(section.mapping, query)
        if parameters is None:
            return None
        sort = section.http.sort
        key = f"{'-' * query.sort.descending}{query.sort.key}"
        # A source without this order returns its own, which the Offer names.
        order = sort.parameters(key) if sort else ()
        return cls(section, listed, parameters, order)

    @property
    def fixed(self) -> Pairs:
        """What is always sent."""
        return tuple(
            (name, each)
            for name, value in self.list.fixed.items()
            for each in ((value,) if isinstance(value, str) else value)
        )

    def call(self, pairs: Pairs, size: int, link: str = "") -> Call:
        """Return the request of a page: by more parameters, or by a link as it is."""
        if link:
            return Call("GET", link)
        count = ((self.list.count, str(size)),)
        values = (*self.fixed, *self.criteria, *self.order, *count, *pairs)
        return Call(self.list.method.upper(), self.list.path, values)

    def count_call(self) -> Call:
        """Return the request that counts the matches."""
        assert self.list.counting is not None
        values = (*self.fixed, *self.criteria)
        return Call(self.list.method.upper(), self.list.counting.path, values)

    def explained(self, size: int, *, hidden: bool) -> str:
        """Return the request as text; `hidden` replaces the values of the search by `?`."""
        public = {*self.fixed, *self.order}
        values = self.call((), size).values
        shown = [
            f"{n}={'?' if hidden and (n, v) not in public else v}" for n, v in values
        ]
        return f"{self.list.method.upper()} {self.list.path} {' '.join(shown)}"


def questions_of(section: Section, query: SearchQuery) -> tuple[Question, ...]:
    """Return what a search sends: nothing if nothing can match, or up to two lists."""
    first = keyed(section.mapping, query)
    if first:
        return _asked(section, (first, query))
    return _asked(section, split(section.mapping, query))


def _asked(section: Section, queries: Iterable[SearchQuery]) -> tuple[Question, ...]:
    questions = [Question.of(section, each) for each in queries]
    return tuple(question for question in questions if question)


def _lacks_key(section: Section, query: SearchQuery, row: Row) -> bool:
    position = _position(section, section.keys[query.sort.key], row)
    return position is None or position.moment is None


def _shows_order(section: Section, query: SearchQuery, rows: Sequence[Row]) -> bool:
    """Whether rows show that those without the sort key come last, or are all there are."""
    is_known = query.sort.key not in section.keys or query.after or query.backwards
    return bool(is_known) or not all(_lacks_key(section, query, row) for row in rows)


def _positions(
    section: Section, query: SearchQuery, rows: Sequence[Row]
) -> tuple[Position, ...]:
    """Return the position of every row by the instant of its sort key.

    Raises SourceDataError if the rows are not in the order of the search: merged with
    those of other sources, they would be in the wrong place.
    """
    if query.sort.key not in section.keys:
        return (Position(Group.KEYED, None, None),) * len(rows)
    reader = section.keys[query.sort.key]
    positions = [_position(section, reader, row) for row in rows]
    unkeyed = Position(Group.UNKEYED, None, None)
    here = next((position for position in positions if position), unkeyed)
    placed = []
    for position in positions:
        # A row with an unreadable key stays where the source put it.
        here = position or here
        placed.append(here)
    for one, other in pairwise(placed):
        if not _in_order(one, other, descending=query.sort.descending):
            raise unreadable("the list is not in the order of the search")
    return tuple(placed)


def _position(section: Section, reader: Reader, row: Row) -> Position | None:
    try:
        moment: datetime | None = reader([at(row, path) for path in section.paths])
    except CellError:
        return None
    group = Group.UNKEYED if moment is None else Group.KEYED
    return Position(group, moment, None, moment)


def _in_order(one: Position, other: Position, *, descending: bool) -> bool:
    if one.moment is None or other.moment is None:
        return other.moment is None
    if descending:
        return one.moment >= other.moment
    return one.moment <= other.moment


def _read_row(source: Source, section: Section, id: str, seconds: float) -> Row:
    """Return the row of one resource; `id` is as clients see it.

    Raises NotFoundError, GoneError, SourceUnavailableError, SourceDataError.
    """
    kind = section.mapping.resource_type
    if not FHIR_ID.fullmatch(id):
        raise NotFoundError(kind)
    own = "".join(section.mapping.fields["id"].own([id]))
    if not own.strip("."):
        # Dots alone would lead to another address of the server.
        raise NotFoundError(kind)
    call = _read_call(section.http.read, own)
    row = source.send(call, seconds).at(section.http.read.row)
    if row is None:
        raise NotFoundError(kind)
    if not isinstance(row, dict):
        raise unreadable("the row is not an object")
    row_id = section.id_text(row).rstrip()
    if not row_id:
        raise unreadable("the answer is not a row: it holds no id")
    if row_id != own:
        raise NotFoundError(kind)
    return row


def _read_call(read: ReadCall, id: str) -> Call:
    return Call("GET", read.path.replace("{id}", quote(id, safe="")))


def find_http_rows(
    mapping: SourceMapping, resource_type: ResourceType, ids: Sequence[str]
) -> list[SourceRow]:
    """Return the rows of resources, even hidden or removed ones, for previews."""
    section, source = open_section(mapping, resource_type), Source(mapping.source)
    seconds = mapping.source.timeout_seconds
    try:
        rows = [section.cells(_read_row(source, section, id, seconds)) for id in ids]
    finally:
        source.close()
    columns = own_columns(section.mapping)
    return [SourceRow(section.mapping, columns, *row) for row in rows]
