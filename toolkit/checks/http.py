"""What `check --live` examines behind an HTTP API: one page of rows, each filter and order.

An API reveals neither its types nor its indexes. Parameters that it does not know it
ignores, so every filter, order and page is requested once and compared with the rows.
"""

from collections import Counter
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple

from adapters.contract import (
    AdapterError,
    Criterion,
    DateCriterion,
    DateValue,
    EncounterRecord,
    GoneError,
    Group,
    NotAskableError,
    NotFoundError,
    Page,
    Position,
    Prefix,
    Record,
    ReferenceCriterion,
    ResourceType,
    RowFault,
    SearchQuery,
    Sort,
    SortKey,
    SourceDataError,
    SourceUnavailableError,
    StringCriterion,
    Token,
    TokenCriterion,
    TooCostlyError,
)
from adapters.http.adapter import HttpAdapter, OpenHttpSection
from adapters.http.paging import JsonRow
from adapters.mapping.model import PagingKind, SourceConfig
from adapters.mapping.paths import Expression, Path, at, path_of
from adapters.mapping.problems import did_you_mean
from adapters.mapping.row_mapper import own_columns
from adapters.mapping.slots import UNSERVED, Place, places_of
from adapters.matching import criterion_of
from adapters.parameters import SEARCH_PARAMETERS, SORTS
from toolkit.checks.rows import (
    RULES_OF_CODES,
    SMALL_SAMPLE,
    CodeCounts,
    Findings,
    Records,
    far_days,
    has_far_days,
    invalid_rows,
    never_filled,
    plain_text,
    unknown_zone,
)
from toolkit.findings import Check, Finding, Measurement, Result, Severity, timed

MAX_ROWS = 2000
"""How many rows are requested at once, of the list as it comes."""

_PAGE = 10
_CLOCK_CHANGE = timedelta(hours=1)
"""How far apart the times of an autumn night may be read from their order."""

_TOPIC = "types with something that is not examined"
_KNOWN = "does the API know the parameter?"
_FORBIDDEN = 403
_NO_CREDENTIALS = (
    "the source refuses access, and the file sends neither headers nor auth: how does the"
    " API authenticate its clients?"
)


@dataclass(eq=False)
class Sample:
    """A section and the first rows of its list.

    `refused` is whether the source refused to return the list, `size` how many rows were
    requested, `skipped` what is not examined, and why.
    """

    section: OpenHttpSection
    adapter: HttpAdapter
    first_rows: Callable[[int], Sequence[JsonRow]]
    source: SourceConfig
    refused: bool = False
    size: int = MAX_ROWS
    skipped: list[str] = field(default_factory=list)

    @property
    def kind(self) -> ResourceType:
        """The resource type of the section."""
        return self.section.mapping.resource_type

    @cached_property
    def rows(self) -> Sequence[JsonRow]:
        """The first rows of the list."""
        try:
            return self.first_rows(MAX_ROWS)
        except AdapterError as error:
            if isinstance(error, SourceDataError) and error.refused:
                raise
            # It may have a limit of its own, or take too long for so many.
            self.size = SMALL_SAMPLE
            return self.first_rows(SMALL_SAMPLE)

    @cached_property
    def mapped(self) -> tuple[Record | RowFault, ...]:
        """Those rows as records and faults."""
        return tuple(map(self.section.record, self.rows))

    @property
    def records(self) -> Iterator[Record]:
        """Those of the rows that can be mapped."""
        return _records(self.mapped)

    @property
    def has_pages(self) -> bool:
        """Whether the list has further pages."""
        listed = self.section.http.list
        return listed is not None and listed.paging is not None

    def criteria(self, parameter: str) -> Iterator[Criterion]:
        """Yield for each of the records the criterion that it meets, if it has a value."""
        criteria = (criterion_of(parameter, record) for record in self.records)
        return (criterion for criterion in criteria if criterion is not None)

    def query(
        self, *criteria: Any, sort: Sort | None = None, count: int
    ) -> SearchQuery:
        """Return a search of this section, by id unless `sort` says otherwise."""
        return SearchQuery(self.kind, criteria, sort or Sort(SortKey.ID), count)

    def search(self, query: SearchQuery) -> tuple[Page | None, str]:
        """Return the page, or why there is none, though the list was answered.

        Raises SourceDataError if the source refuses the credentials.
        """
        try:
            return self.adapter.search(query), ""
        except (SourceDataError, SourceUnavailableError, TooCostlyError) as error:
            if isinstance(error, SourceDataError) and error.refused:
                raise
            return None, str(error)

    def skip(self, subject: str, reason: str) -> None:
        """Note what is not examined, for the one finding about it."""
        self.skipped.append(f"{subject} ({reason})")

    def finding(self, text: str, severity: Severity) -> Finding:
        """Return a finding about the section as a whole."""
        mark = self.section.mapping.mark
        return Finding.at(mark, text, self.kind, severity=severity, topic=_TOPIC)


def checks(adapter: HttpAdapter, kinds: Collection[ResourceType]) -> Iterator[Check]:
    """Yield the checks of an API, section by section."""
    for kind in adapter.mapping.resources:
        if kind not in kinds:
            continue
        first_rows = partial(adapter.first_rows, kind)
        section, source = adapter.section(kind), adapter.mapping.source
        sample = Sample(section, adapter, first_rows=first_rows, source=source)
        if section.http.list is None:
            finding = sample.finding(
                "it has no list: it is not examined", Severity.NOTE
            )
            yield Check(f"{kind}: rows", partial(iter, [finding]))
            continue
        for subject, check in CHECKS:
            yield Check(f"{kind}: {subject}", partial(_run, sample, subject, check))
        yield Check(f"{kind}: what is not examined", partial(_not_examined, sample))


def _run(
    sample: Sample, subject: str, check: Callable[[Sample], Iterator[Result]]
) -> Iterator[Result]:
    """Run a check; what the source refuses is a finding, and refused rows end the others."""
    if sample.refused:
        return
    try:
        yield from check(sample)
    except SourceDataError as error:
        sample.refused = subject == "rows"
        http, section = sample.source.http, sample.section
        authenticates = http is not None and bool(http.headers or http.auth)
        if (error.refused or error.code == _FORBIDDEN) and not authenticates:
            yield Finding.at(sample.source.mark, _NO_CREDENTIALS, "source")
        elif error.refused:
            raise
        else:
            call = section.http.read if subject == "read" else section.http.list
            names = {"read": "read", "filters": "search"}
            at = (call.mark if call else None) or section.mapping.mark
            element = f"{sample.kind}.{names.get(subject, 'list')}"
            yield Finding.at(at, str(error), element)


def _not_examined(sample: Sample) -> Findings:
    if sample.refused:
        # The error about the list says so.
        return
    parts = ["types and indexes (no API reveals them)", *sample.skipped]
    if sample.kind is ResourceType.ENCOUNTER:
        parts.append("starts before births, references (no patient is read for a stay)")
    yield sample.finding(f"not examined: {', '.join(parts)}", Severity.NOTE)


def _check_rows(sample: Sample) -> Findings:
    """Report fields, codes, times and rules that do not fit the rows of the list."""
    section = sample.section.mapping
    if not sample.rows:
        yield _no_rows(sample)
        return
    rows = f"the first {len(sample.rows):,} rows alone are examined"
    text = f"{rows}, of {sample.size:,} that were requested at once"
    yield sample.finding(text, Severity.NOTE)
    missing = list(_missing_columns(sample))
    yield from missing
    if not missing:
        cells = [sample.section.cells(row) for row in sample.rows]
        yield from never_filled(section, own_columns(section), cells, {})
    places = places_of(section)
    coded = [p for p in places if p.field.codes and p.field.columns]
    for place in coded:
        yield from rows_of_codes(sample, place).findings(section.required)
    reported = [(p.field.columns[0], rule) for p in coded for rule in RULES_OF_CODES]
    yield from invalid_rows(section, sample.mapped, {}, reported)
    now = datetime.now(UTC)
    yield from Records(section, list(sample.records), columns={}, now=now).findings()
    for place, column in ((p, c) for p in places for c in p.field.columns[:1]):
        values = [_value(row, path_of(column)) for row in sample.rows]
        yield from unknown_zone(place, column, partial(list, values))
        if has_far_days(place):
            yield from far_days(place, column, [(value, 1) for value in values], now)
    hidden = [
        record
        for record in sample.records
        if isinstance(record, EncounterRecord) and record.status in UNSERVED
    ]
    if hidden:
        text = (
            f"{len(hidden)} rows of the list are hidden or removed, which searches"
            " refuse: keep them out with list.fixed"
        )
        yield sample.finding(text, Severity.ERROR)


def _no_rows(sample: Sample) -> Finding:
    """Return the finding for a list without a row: no hospital has one of stays."""
    keys = ", ".join(sample.adapter.keys_beside_rows(sample.kind)) or "none"
    text = (
        f"the list has no row; the keys of its answer are: {keys}. If one says that"
        " something failed, name it in source.error; else correct list.rows"
    )
    is_stay = sample.kind is ResourceType.ENCOUNTER
    return sample.finding(text, Severity.ERROR if is_stay else Severity.WARNING)


def _missing_columns(sample: Sample) -> Findings:
    for place in places_of(sample.section.mapping):
        rows = _rows_within(sample.rows, place)
        known = Counter(path for row in rows for path in _paths(row))
        for column in place.field.columns:
            if rows and not any(_has(row, path_of(column)) for row in rows):
                text = f"no row of the list has '{column}'{did_you_mean(column, known)}"
                yield Finding.of_field(place, column, text, Severity.ERROR)


def rows_of_codes(sample: Sample, place: Place) -> CodeCounts:
    """Return the codes of a field, in the rows in which it counts."""
    (column,) = place.field.columns
    rows = _rows_within(sample.rows, place)
    if place.only_if is not None:
        path, values = path_of(place.only_if.column), place.only_if.values
        rows = [row for row in rows if plain_text(_value(row, path)) in values]
    codes = [(_value(row, path_of(column)), 1) for row in rows]
    return CodeCounts.of(place, ", ".join(filter(None, (place.rows, column))), codes)


def _rows_within(rows: Sequence[JsonRow], place: Place) -> list[Any]:
    """Return the rows that hold a field: those of a list in each, for some items."""
    if not place.rows:
        return list(rows)
    return [item for row in rows for item in _value(row, path_of(place.rows)) or ()]


def _has(row: Any, path: Path) -> bool:
    if isinstance(path, Expression):
        return _value(row, path) is not None
    # The object around it may be absent itself, as in a row without a unit.
    holder = _value(row, path[:-1])
    return isinstance(holder, Mapping) and path[-1] in holder


def _value(row: Any, path: Path) -> Any:
    if isinstance(path, Expression):
        return at(row, path)
    for key in path:
        row = row.get(key) if isinstance(row, Mapping) else None
    return row


def _paths(row: Any, above: str = "") -> Iterator[str]:
    if isinstance(row, Mapping):
        for key, value in row.items():
            yield f"{above}{key}"
            yield from _paths(value, f"{above}{key}.")


def _check_paging(sample: Sample) -> Findings:
    """Request two pages of one row each: an API that ignores the parameter repeats it."""
    listed = sample.section.http.list
    paging = listed.paging if listed else None
    if paging is None or paging.mark is None:
        return
    query = sample.query(count=1)
    first = sample.adapter.search(query)
    if not first.more or first.last is None:
        sample.skip("paging", "the list has one row at most")
        return
    second, error = sample.search(replace(query, after=first.last))
    ids = [{r.id for r in _records(p.rows)} if p else set() for p in (first, second)]
    if error or ids[0] & ids[1]:
        reason = error or "the second page is the first one again"
        text = f"{reason}: {_KNOWN}"
        element = f"{sample.kind}.list.paging"
        sent = paging.query.source if paging.query else ""
        yield Finding.at(paging.mark, text, element, sent)


def _check_total(sample: Sample) -> Findings:
    """Compare the totals of two page sizes, and look for rows beyond the end."""
    listed = sample.section.http.list
    if listed is None or listed.mark is None or not sample.rows:
        return
    element = f"{sample.kind}.list.total"
    totals = [sample.search(sample.query(count=size)) for size in (1, SMALL_SAMPLE)]
    small, large = (page.total if page else None for page, _ in totals)
    if small is not None and large is not None and small != large:
        text = (
            f"the total is {small:,} with a page of 1 and {large:,} with one of"
            f" {SMALL_SAMPLE}: it does not count all matches"
        )
        yield Finding.at(listed.mark, text, element)
        return
    with suppress(TooCostlyError):
        total = sample.adapter.count(sample.query(count=1))
        yield from _beyond_the_end(sample, total)


def _beyond_the_end(sample: Sample, total: int) -> Findings:
    listed = sample.section.http.list
    assert listed is not None, "the caller has it"
    paging, query, text = listed.paging, sample.query(count=1), ""
    if paging is not None and paging.is_numbered:
        last = Position(Group.KEYED, total - 1, id=None)
        page, _ = sample.search(replace(query, after=last))
        if page is not None and page.rows:
            text = f"there are rows beyond the total of {total:,}: it is too small"
    elif paging is not None and total <= MAX_ROWS:
        records, text = _walk(sample, replace(query, count=SMALL_SAMPLE))
        if not text and len(records) > total:
            text = f"the pages have {len(records):,} rows, and the total is {total:,}"
    else:
        sample.skip("the end of the list", "it cannot be requested by a number")
    if text and listed.mark is not None:
        yield Finding.at(listed.mark, text, f"{sample.kind}.list.total")


def _check_steady(sample: Sample) -> Findings:
    """Send one request twice: pages of an order that changes lose rows and repeat others."""
    listed = sample.section.http.list
    sorts = [*sample.section.mapping.sorts, SortKey.ID]
    query = sample.query(sort=Sort(sorts[0], descending=True), count=SMALL_SAMPLE)
    first, second = (
        [record.id for record in _records(page.rows)] if page else []
        for page in (sample.search(query)[0], sample.search(query)[0])
    )
    # A stay that comes or goes in between is none of both.
    both = {*first} & {*second}
    is_same = [id for id in first if id in both] == [id for id in second if id in both]
    is_whole = len(both) >= max(len(first), len(second)) // 2
    if listed is not None and listed.mark is not None and not (is_same and is_whole):
        text = (
            "two equal requests return the rows in another order: pages repeat some and"
            " leave out others. Add the id to the order (sort.by, or list.fixed)"
        )
        yield Finding.at(listed.mark, text, f"{sample.kind}.list")


def _check_no_match(sample: Sample) -> Findings:
    """Search once for an id that no row has."""
    ids = [record.id for record in sample.records]
    if "_id" not in sample.section.mapping.parameters or not ids:
        return
    numbers = [int(id) for id in ids if id.isdecimal()]
    other = str(max(numbers) + 7 * 10**6) if numbers else f"{ids[0][:60]}x0"
    criterion = TokenCriterion("_id", (Token(None, other),))
    page, error = sample.search(sample.query(criterion, count=1))
    listed = sample.section.http.list
    if page is None and listed is not None and listed.mark is not None:
        text = f"a search without a match fails: {error}"
        yield Finding.at(listed.mark, text, f"{sample.kind}.list")


def _check_page_size(sample: Sample) -> Findings:
    """Compare the list with its total, where one request has to return a whole page."""
    listed = sample.section.http.list
    if listed is None or listed.mark is None:
        return
    if listed.paging is not None and listed.paging.kind is not PagingKind.PAGE:
        return
    rows, severity = len(sample.first_rows(SMALL_SAMPLE)), Severity.WARNING
    try:
        total = sample.adapter.count(sample.query(count=SMALL_SAMPLE))
    except TooCostlyError:
        text = "searches have no total where more than one page matches: counting takes"
        text += " longer than source.count_timeout_seconds"
    else:
        if rows >= (due := min(SMALL_SAMPLE, total)):
            return
        text = f"returns {rows} rows where {due} are due: the others are never served"
        if listed.total is None:
            severity = Severity.ERROR
        else:
            text = (
                f"returns {rows} rows where {due} are due: a search with more (_count) is"
                " refused (502). Ask the vendor for the largest page, and offer no larger"
                " one: count: {max: …} in a profile"
            )
    yield Finding.at(listed.mark, text, f"{sample.kind}.list", severity=severity)


def _check_filters(sample: Sample) -> Iterator[Result]:
    """Search once with each filter, for a value that a row of the list has."""
    for parameter in sample.section.mapping.parameters:
        slots = SEARCH_PARAMETERS[sample.kind][parameter].slots
        places = [p for p in places_of(sample.section.mapping) if p.slot in slots]
        criteria = dict.fromkeys(sample.criteria(parameter)) if places else {}
        for criterion in [*criteria][:_PAGE]:
            try:
                yield from _check_filter(sample, places[0], criterion)
                break
            except NotAskableError:
                # The API cannot compare this value.
                continue
        else:
            reason = "no row of the list has a value that the API compares"
            sample.skip(f"search by '{parameter}'", reason)


def _check_filter(
    sample: Sample, place: Place, criterion: Criterion
) -> Iterator[Result]:
    """Measure a filter, then report the first of its trials that fails."""
    name, query = criterion.parameter, sample.query(criterion, count=_PAGE)
    column = ", ".join(place.field.columns)
    page, _, costs = _measured(sample, name, query)
    yield from costs
    if page and len(page.rows) == _PAGE and _may_be_ignored(sample, query):
        text = f"'{name}' brings as many rows as no filter: {_KNOWN}"
        yield Finding.of_field(place, column, text, Severity.WARNING)
        return
    for trial in _trials(sample, criterion):
        query = sample.query(trial.criterion, count=SMALL_SAMPLE)
        records, error = _walk(sample, query)
        brought = {criterion_of(name, record) for record in records}
        text = f"does not filter{trial.text}: {error}" if error else ""
        if not error and len(records) < _PAGE and not {*trial.finds} <= brought:
            text = f"brings no row{trial.text}, though the list has one with the value"
        if text:
            text = f"'{name}' {text}"
            yield Finding.of_field(place, column, text, Severity.ERROR)
            return


class Trial(NamedTuple):
    """A filter, how it is sent in words, and the values of which it has to bring rows."""

    text: str
    criterion: Criterion
    finds: Sequence[Criterion] = ()


def _trials(sample: Sample, criterion: Criterion) -> Iterator[Trial]:
    """Yield each way in which a filter is sent.

    A bound that is sent alone lies beyond all rows of the sample, so that a list that
    ignores it has such rows; then between them, for rows of an API that compares it with
    the end of a stay.
    """
    name = criterion.parameter
    call = sample.section.http.search[name]
    criteria = [*dict.fromkeys(sample.criteria(name))]
    days = [c.values[0] for c in criteria if isinstance(c, DateCriterion)]
    if days:
        middle = sorted(day.low for day in days)[len(days) // 2]
        first, last = min(day.low for day in days), max(day.high for day in days)
        for bound, prefix, end in (
            (call.lower, Prefix.GE, last),
            (call.upper, Prefix.LT, first),
        ):
            for moment in (end, middle) if bound else ():
                alone = DateCriterion(name, (DateValue(prefix, moment, moment),))
                sent = bound.parameters[0][0] if bound else ""
                yield Trial(f" by '{sent}' alone", alone)
    yield Trial("", criterion, [criterion])
    coded = [c for c in criteria if isinstance(c, (TokenCriterion, ReferenceCriterion))]
    if len(coded) > 1 and call.query and call.query.takes_several(call.separator):
        values: Any = tuple(value for c in coded[:2] for value in c.values)
        both = type(coded[0])(name, values)
        with suppress(NotAskableError):
            # Two numbers of two systems cannot always be sent at once.
            sample.adapter.explain(sample.query(both, count=_PAGE))
            yield Trial(" by two values at once (separator:)", both, coded[:2])


class Measured(NamedTuple):
    """What a search brought and cost: no page, and no costs, where it failed for this reason."""

    page: Page | None
    error: str
    costs: Sequence[Measurement]


def _measured(sample: Sample, name: str, query: SearchQuery) -> Measured:
    (page, error), milliseconds = timed(partial(sample.search, query))
    if page is None:
        return Measured(None, error, ())
    cost = Measurement(f"{sample.kind}?{name}", milliseconds, len(page.rows))
    return Measured(page, error, [cost])


def _walk(sample: Sample, query: SearchQuery) -> tuple[list[Record], str]:
    """Return the rows of a search, up to the limit, and why one of its pages is unusable."""
    records = list[Record]()
    for number in range(1, MAX_ROWS // SMALL_SAMPLE + 1):
        page, error = sample.search(query)
        if page is None:
            return records, f"page {number} of {query.count} rows: {error}"
        records += _records(page.rows)
        if not (page.more and page.last and sample.has_pages):
            break
        query = replace(query, after=page.last)
    return records, ""


def _may_be_ignored(sample: Sample, query: SearchQuery) -> bool:
    """Whether a filter that rows cannot be compared with narrows nothing."""
    if not isinstance(query.criteria[0], (StringCriterion, ReferenceCriterion)):
        return False
    try:
        everything = sample.adapter.count(replace(query, criteria=()))
        return len(sample.rows) > _PAGE and sample.adapter.count(query) == everything
    except (TooCostlyError, SourceUnavailableError):
        return False


def _check_orders(sample: Sample) -> Iterator[Result]:
    """Search in each order: an API that ignores the parameter keeps its own."""
    sort = sample.section.http.sort
    if sort is None or sort.mark is None:
        return
    goes_back = sample.adapter.capabilities[sample.kind].backwards
    for word, value in sort.by.items():
        key, descending = SortKey(word.removeprefix("-")), word.startswith("-")
        query = sample.query(sort=Sort(key, descending), count=2 * _PAGE)
        page, error, costs = _measured(sample, f"_sort={word}", query)
        yield from costs
        records = list(_records(page.rows)) if page else []
        slot = SORTS[sample.kind].get(key, "")
        has_key = any(getattr(record, slot, None) for record in records)
        if page and goes_back:
            page, error = sample.search(replace(query, from_end=True))
            records += _records(page.rows) if page else ()
        elif page and page.more and page.last and slot and not has_key:
            # Only a later page shows where the rows with the key are.
            later, error = _walk(sample, replace(query, after=page.last))
            records += later
        text = f"is not answered: {error}" if error else ""
        text = text or _order_fault(slot, records, query.sort)
        if text:
            sent = ", ".join(text for _, text in value)
            element, text = f"{sample.kind}.sort", f"'{word}' {text}"
            yield Finding.at(sort.mark, text, element, sent)


def _order_fault(slot: str, records: Sequence[Record], sort: Sort) -> str:
    """Return what is wrong with an order, by its first rows and its last."""
    keys = [getattr(record, slot, None) for record in dict.fromkeys(records)]
    times = [key for key in keys if isinstance(key, datetime)]
    first_without = keys.index(None) if None in keys else len(keys)
    if times and any(isinstance(key, datetime) for key in keys[first_without:]):
        return (
            "puts rows without the key before those with it. Say so (sort.nulls: high,"
            " low or first), or remove sort"
        )
    ordered = times[::-1] if sort.descending else times
    if all(one <= other + _CLOCK_CHANGE for one, other in pairwise(ordered)):
        return ""
    return f"returns the rows in another order: {_KNOWN}"


def _check_read(sample: Sample) -> Findings:
    """Read one row of the list by its id."""
    record = next((record for record in sample.records if record.id), None)
    if record is None:
        sample.skip("read", "no row of the list can be served")
        return
    place = next(p for p in places_of(sample.section.mapping) if p.slot == "id")
    try:
        sample.adapter.read(sample.kind, record.id)
    except (NotFoundError, GoneError):
        text = "read finds nothing by the id of a row of the list"
        yield Finding.of_field(place, place.field.columns[0], text, Severity.ERROR)


def _records(rows: Iterable[Record | RowFault]) -> Iterator[Record]:
    return (row for row in rows if not isinstance(row, RowFault))


CHECKS: tuple[tuple[str, Callable[[Sample], Iterator[Result]]], ...] = (
    ("rows", _check_rows),
    ("paging", _check_paging),
    ("all rows", _check_page_size),
    ("total", _check_total),
    ("the same order", _check_steady),
    ("no match", _check_no_match),
    ("filters", _check_filters),
    ("orders", _check_orders),
    ("read", _check_read),
)
"""The checks of a section with their subjects; without rows none after the first is run."""
