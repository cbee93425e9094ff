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
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple

from adapters.contract import (
    AdapterError,
    Criterion,
    DateCriterion,
    DateValue,
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
    TokenCriterion,
    TooCostlyError,
)
from adapters.http.adapter import HttpAdapter
from adapters.http.paging import JsonRow
from adapters.mapping.model import ListCall, PagingKind
from adapters.mapping.paths import Expression, Path, at, path_of
from adapters.mapping.problems import did_you_mean
from adapters.mapping.row_mapper import own_columns
from adapters.mapping.slots import UNSERVED, Place
from adapters.matching import criterion_of
from adapters.parameters import SEARCH_PARAMETERS, SORTS
from toolkit.checks.inspection import (
    UNEXAMINED,
    Counted,
    Findings,
    Inspection,
    SampledRows,
)
from toolkit.checks.rows import (
    API_PAGE,
    codes,
    doubtful_times,
    far_days,
    invalid_rows,
    never_filled,
    plain_text,
    unknown_zone,
)
from toolkit.findings import Check, Finding, Measurement, Result, Severity, timed

LIST_ROWS = 2000
"""How many rows of the list are requested at once, without a filter or an order."""

_FILTER_PAGE = 10
_CLOCK_CHANGE = timedelta(hours=1)
"""Times may be so far out of order: in autumn the hour of the clock change comes twice."""

_CHECK_PARAMETER = "check that the API has this parameter"
_FORBIDDEN = 403
_NO_CREDENTIALS = (
    "the API refuses access, and the file sends no credentials. Set source.headers or"
    " source.auth as the documentation of the API requires"
)


class HttpInspection(Inspection):
    """A section of an API under inspection, and the first rows of its list.

    `is_refused` is whether the source refused to return the list, `size` how many rows were
    requested.
    """

    def __init__(self, adapter: HttpAdapter, kind: ResourceType) -> None:
        self.opened = adapter.section(kind)
        super().__init__(self.opened.mapping)
        self.adapter = adapter
        self.source = adapter.mapping.source
        self.is_refused = False
        self.size = LIST_ROWS

    @cached_property
    def rows(self) -> Sequence[JsonRow]:
        """The first rows of the list."""
        try:
            return self.adapter.first_rows(self.kind, LIST_ROWS)
        except AdapterError as error:
            if isinstance(error, SourceDataError) and error.refused:
                raise
            # The API may limit the page size, or be too slow for so many rows.
            self.size = API_PAGE
            return self.adapter.first_rows(self.kind, API_PAGE)

    @cached_property
    def sample(self) -> Sequence[Record | RowFault]:
        """Those rows as records and faults."""
        return tuple(map(self.opened.record, self.rows))

    def cells(self) -> tuple[Sequence[str], SampledRows]:
        """Return the columns and cells of the rows, none where a column is missing."""
        rows = [] if [*missing_columns(self)] else self.rows
        return own_columns(self.section), [self.opened.cells(row) for row in rows]

    def values(self, place: Place) -> Sequence[object]:
        """Return the values of a field."""
        path = path_of(place.field.columns[0])
        return [_value(row, path) for row in _rows_within(self.rows, place)]

    def counted_codes(self, place: Place) -> Counted:
        """Return the codes of a field, one for each row that meets its `only_if`."""
        rows = _rows_within(self.rows, place)
        if place.only_if is not None:
            condition = place.only_if
            path = path_of(condition.column)
            rows = [r for r in rows if plain_text(_value(r, path)) in condition.values]
        code_path = path_of(place.field.columns[0])
        return [(_value(row, code_path), 1) for row in rows]

    def counted_days(self, place: Place) -> Counted:
        """Return the values of a time, one for each row."""
        return [(value, 1) for value in self.values(place)]

    @property
    def listed(self) -> ListCall:
        """How the list is requested; a section without one is not examined."""
        listed = self.opened.http.list
        assert listed is not None, "there are no checks without a list"
        return listed

    def of_list(
        self, text: str, key: str = "list", severity: Severity = Severity.ERROR
    ) -> Finding:
        """Return a finding about the list, at its line."""
        mark = self.listed.mark or self.section.mark
        return Finding.at(mark, text, f"{self.kind}.{key}", severity=severity)

    def criteria(self, parameter: str) -> Iterator[Criterion]:
        """Yield a criterion of a parameter for each record that has a value, which meets it."""
        criteria = (criterion_of(parameter, record) for record in self.records)
        return (criterion for criterion in criteria if criterion is not None)

    def query(
        self, *criteria: Any, sort: Sort | None = None, count: int
    ) -> SearchQuery:
        """Return a search of this section, by id unless `sort` says otherwise."""
        return SearchQuery(self.kind, criteria, sort or Sort(SortKey.ID), count)

    def search(self, query: SearchQuery) -> tuple[Page | None, str]:
        """Return the page and "", or None and the error of the source.

        Raises SourceDataError if the source refuses the credentials.
        """
        try:
            return self.adapter.search(query), ""
        except (SourceDataError, SourceUnavailableError, TooCostlyError) as error:
            if isinstance(error, SourceDataError) and error.refused:
                raise
            return None, str(error)


def checks(adapter: HttpAdapter, kinds: Collection[ResourceType]) -> Iterator[Check]:
    """Yield the checks of an API, section by section."""
    for kind in adapter.mapping.resources:
        if kind not in kinds:
            continue
        inspection = HttpInspection(adapter, kind)
        if inspection.opened.http.list is None:
            text = "not examined, because the section has no list"
            finding = inspection.finding(text, Severity.NOTE, UNEXAMINED)
            yield Check(f"{kind}: rows", partial(iter, [finding]))
            continue
        for subject, check in CHECKS:
            run = partial(_run, inspection, subject, check)
            yield Check(f"{kind}: {subject}", run)
        yield Check(f"{kind}: what is not examined", partial(_not_examined, inspection))


def _run(
    sample: HttpInspection,
    subject: str,
    check: Callable[[HttpInspection], Iterator[Result]],
) -> Iterator[Result]:
    """Run a check; an error of the source is a finding.

    After an error of the check "rows" the other checks yield nothing. Raises SourceDataError
    if the source refuses credentials that the file sends.
    """
    if sample.is_refused:
        return
    try:
        yield from check(sample)
    except SourceDataError as error:
        sample.is_refused = subject == "rows"
        http, opened = sample.source.http, sample.opened
        authenticates = http is not None and bool(http.headers or http.auth)
        if (error.refused or error.code == _FORBIDDEN) and not authenticates:
            yield Finding.at(sample.source.mark, _NO_CREDENTIALS, "source")
        elif error.refused:
            raise
        else:
            call = opened.http.read if subject == "read" else opened.http.list
            mark = (call.mark if call else None) or sample.section.mark
            keys = {"read": "read", "filters": "search"}
            element = f"{sample.kind}.{keys.get(subject, 'list')}"
            yield Finding.at(mark, str(error), element)


def _not_examined(sample: HttpInspection) -> Findings:
    """Yield the note about what is not examined, unless the list cannot be read at all."""
    if sample.is_refused:
        return
    sample.skipped.insert(0, "types and indexes (an API does not report them)")
    if sample.kind is ResourceType.ENCOUNTER:
        sample.skip("starts before births, references", "no patient is read for a stay")
    yield from sample.not_examined()


def _check_rows(sample: HttpInspection) -> Findings:
    """Report an empty list, columns that no row has, and rows that must not be served."""
    if not sample.rows:
        yield _no_rows(sample)
        return
    rows = f"only the first {len(sample.rows):,} rows of the list are examined"
    text = f"{rows} ({sample.size:,} were requested in one call)"
    yield sample.finding(text, Severity.NOTE, UNEXAMINED)
    yield from missing_columns(sample)
    if hidden := sum(stay.status in UNSERVED for stay in sample.stays):
        text = (
            f"{hidden} rows of the list are hidden or removed, so searches that meet them"
            " fail (502). Exclude them with a parameter under list.fixed"
        )
        yield sample.finding(text, Severity.ERROR)


def _check_zones(sample: HttpInspection) -> Findings:
    for place in sample.places:
        yield from unknown_zone(sample, place)


def _no_rows(sample: HttpInspection) -> Finding:
    """Return the finding for an empty list, which is an error for stays."""
    keys = ", ".join(sample.adapter.keys_beside_rows(sample.kind)) or "none"
    text = (
        f"the list has no rows; the keys of its answer are: {keys}. If one of them reports"
        " an error, name it in source.error; otherwise correct list.rows"
    )
    is_stay = sample.kind is ResourceType.ENCOUNTER
    return sample.finding(text, Severity.ERROR if is_stay else Severity.WARNING)


def missing_columns(sample: HttpInspection) -> Findings:
    """Report the columns that no row of the list has."""
    for place in sample.places:
        rows = _rows_within(sample.rows, place)
        known = Counter(path for row in rows for path in _paths(row))
        for column in place.field.columns:
            if rows and not any(_has(row, path_of(column)) for row in rows):
                text = f"no row of the list has '{column}'{did_you_mean(column, known)}"
                yield Finding.of_field(place, column, text, Severity.ERROR)


def _rows_within(rows: Sequence[JsonRow], place: Place) -> list[Any]:
    """Return the rows with a field: for an item with its own list, the entries of that."""
    if not place.rows:
        return list(rows)
    return [item for row in rows for item in _value(row, path_of(place.rows)) or ()]


def _has(row: Any, path: Path) -> bool:
    """Whether a row has the key at a path, even if its value is null."""
    if isinstance(path, Expression):
        return _value(row, path) is not None
    parent = _value(row, path[:-1])
    return isinstance(parent, Mapping) and path[-1] in parent


def _value(row: Any, path: Path) -> Any:
    """Return the value at a path of a row, None where the row has no such key."""
    if isinstance(path, Expression):
        return at(row, path)
    value = row
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _paths(row: Any, prefix: str = "") -> Iterator[str]:
    """Yield the path of each key of a row, with that of each key in its objects."""
    if isinstance(row, Mapping):
        for key, value in row.items():
            yield f"{prefix}{key}"
            yield from _paths(value, f"{prefix}{key}.")


def _check_paging(sample: HttpInspection) -> Findings:
    """Request two pages of one row each: an API that ignores the parameter repeats the row."""
    paging = sample.listed.paging
    if paging is None or paging.mark is None:
        return
    query = sample.query(count=1)
    first = sample.adapter.search(query)
    if not first.more or first.last is None:
        sample.skip("paging", "the list has at most one row")
        return
    second, fault = sample.search(replace(query, after=first.last))
    if set(_ids(first)) & set(_ids(second)):
        fault = "the second page is the same as the first"
    if fault:
        element = f"{sample.kind}.list.paging"
        sent = paging.query.source if paging.query else ""
        yield Finding.at(paging.mark, f"{fault}: {_CHECK_PARAMETER}", element, sent)


def _check_total(sample: HttpInspection) -> Findings:
    """Compare the totals of two page sizes, and look for rows beyond the total."""
    if not sample.rows:
        return
    small_page, _ = sample.search(sample.query(count=1))
    large_page, _ = sample.search(sample.query(count=API_PAGE))
    total_of_small = small_page.total if small_page else None
    total_of_large = large_page.total if large_page else None
    if (
        total_of_small is not None
        and total_of_large is not None
        and total_of_small != total_of_large
    ):
        text = (
            f"the total is {total_of_small:,} on a page of 1 row and {total_of_large:,} on a"
            f" page of {API_PAGE}: it does not count all matches. Name another path in"
            " list.total, or use list.counting"
        )
        yield sample.of_list(text, "list.total")
        return
    with suppress(TooCostlyError):
        total = sample.adapter.count(sample.query(count=1))
        if text := _beyond_the_end(sample, total):
            yield sample.of_list(text, "list.total")


def _beyond_the_end(sample: HttpInspection, total: int) -> str:
    """Return what is wrong with a total: the list has more rows. Return "" if it is right."""
    paging = sample.listed.paging
    if paging is not None and paging.is_numbered:
        last = Position(Group.KEYED, total - 1, id=None)
        page, _ = sample.search(replace(sample.query(count=1), after=last))
        if page is not None and page.rows:
            return f"the total is {total:,}, but the list has more rows"
    elif paging is not None and total <= LIST_ROWS:
        records, error = _walk(sample, sample.query(count=API_PAGE))
        if error:
            return error
        if len(records) > total:
            return f"the total is {total:,}, but the pages have {len(records):,} rows"
    else:
        sample.skip("the end of the list", "it cannot be requested by a number")
    return ""


def _check_steady(sample: HttpInspection) -> Findings:
    """Send one request twice: where the order changes, pages lose rows and repeat others."""
    sorts = [*sample.section.sorts, SortKey.ID]
    query = sample.query(sort=Sort(sorts[0], descending=True), count=API_PAGE)
    first_page, _ = sample.search(query)
    second_page, _ = sample.search(query)
    first, second = _ids(first_page), _ids(second_page)
    # A row that was added or removed in between is on one page only.
    common = set(first) & set(second)
    common_in_first = [id for id in first if id in common]
    common_in_second = [id for id in second if id in common]
    are_most = len(common) >= max(len(first), len(second)) // 2
    if common_in_first != common_in_second or not are_most:
        text = (
            "two identical requests return the rows in different orders, so pages repeat"
            " some rows and omit others. Add the id to the order (sort.by, or list.fixed)"
        )
        yield sample.of_list(text)


def _check_page_size(sample: HttpInspection) -> Findings:
    """Report a list that returns fewer rows than its total, where a request is one page."""
    paging = sample.listed.paging
    if paging is not None and paging.kind is not PagingKind.PAGE:
        return
    rows = len(sample.adapter.first_rows(sample.kind, API_PAGE))
    try:
        total = sample.adapter.count(sample.query(count=API_PAGE))
    except TooCostlyError:
        text = (
            "searches with more than one page of matches have no total: counting takes"
            " longer than source.count_timeout_seconds"
        )
        yield sample.of_list(text, severity=Severity.WARNING)
        return
    expected = min(API_PAGE, total)
    if rows >= expected:
        return
    text = f"the list returns {rows} rows instead of {expected}: "
    if sample.listed.total is None:
        text += "the others are never served"
        yield sample.of_list(text)
    else:
        text += (
            "a search with a larger _count fails (502). Ask the vendor for the largest"
            " page, and set it as the maximum in a profile (count: {max: …})"
        )
        yield sample.of_list(text, severity=Severity.WARNING)


def _check_filters(sample: HttpInspection) -> Iterator[Result]:
    """Search once with each filter, for a value that a row of the list has."""
    for parameter in sample.section.parameters:
        slots = SEARCH_PARAMETERS[sample.kind][parameter].slots
        places = [p for p in sample.places if p.slot in slots]
        criteria = dict.fromkeys(sample.criteria(parameter)) if places else {}
        for criterion in [*criteria][:_FILTER_PAGE]:
            try:
                yield from _check_filter(sample, places[0], criterion)
                break
            except NotAskableError:
                # The API cannot compare this value.
                continue
        else:
            reason = "no row of the list has a value that can be sent"
            sample.skip(f"search by '{parameter}'", reason)


def _check_filter(
    sample: HttpInspection, place: Place, criterion: Criterion
) -> Iterator[Result]:
    """Measure a filter, then report the first of its trials that fails."""
    name = criterion.parameter
    query = sample.query(criterion, count=_FILTER_PAGE)
    page, _, costs = _measured(sample, name, query)
    yield from costs
    if page and len(page.rows) == _FILTER_PAGE and _may_be_ignored(sample, query):
        text = (
            f"'{name}' matches as many rows as a search without it: {_CHECK_PARAMETER}"
        )
        yield sample.at(place, text, Severity.WARNING)
        return
    for trial in _trials(sample, criterion):
        query = sample.query(trial.criterion, count=API_PAGE)
        records, error = _walk(sample, query)
        criteria_met = {criterion_of(name, record) for record in records}
        text = ""
        if error:
            text = f"does not filter{trial.text}: {error}"
        elif len(records) < _FILTER_PAGE and not criteria_met.issuperset(
            trial.expected
        ):
            text = (
                f"returns no row{trial.text}, although the list has one with the value"
            )
        if text:
            yield sample.at(place, f"'{name}' {text}", Severity.ERROR)
            return


class FilterTrial(NamedTuple):
    """One way to send a filter; `text` says in words how it is sent.

    For each `expected` criterion the filter has to return a row that meets it.
    """

    text: str
    criterion: Criterion
    expected: Sequence[Criterion] = ()


def _trials(sample: HttpInspection, criterion: Criterion) -> Iterator[FilterTrial]:
    """Yield each way in which a filter is sent: dates by one bound, one value, two values.

    A bound is first sent with a time that no row of the sample meets: an API that ignores it
    returns rows all the same. Then with a time in the middle of the sample, which shows an
    API that compares the bound with the end of a stay.
    """
    name = criterion.parameter
    call = sample.opened.http.search[name]
    criteria = [*dict.fromkeys(sample.criteria(name))]
    days = [c.values[0] for c in criteria if isinstance(c, DateCriterion)]
    if days:
        middle = sorted(day.low for day in days)[len(days) // 2]
        after_all = max(day.high for day in days)
        before_all = min(day.low for day in days)
        for bound, prefix, beyond in (
            (call.lower, Prefix.GE, after_all),
            (call.upper, Prefix.LT, before_all),
        ):
            if bound is None:
                continue
            sent = bound.parameters[0][0]
            for moment in (beyond, middle):
                alone = DateCriterion(name, (DateValue(prefix, moment, moment),))
                yield FilterTrial(f" by '{sent}' alone", alone)
    yield FilterTrial("", criterion, [criterion])
    coded = [c for c in criteria if isinstance(c, (TokenCriterion, ReferenceCriterion))]
    if len(coded) > 1 and call.query and call.query.takes_several(call.separator):
        first, second = coded[:2]
        values: Any = (*first.values, *second.values)
        either = type(first)(name, values)
        with suppress(NotAskableError):
            # Two numbers of two systems cannot always be sent at once.
            sample.adapter.explain(sample.query(either, count=_FILTER_PAGE))
            text = " by two values at once (separator:)"
            yield FilterTrial(text, either, [first, second])


def _measured(
    sample: HttpInspection, name: str, query: SearchQuery
) -> tuple[Page | None, str, list[Measurement]]:
    """Return the page of a search, the error if there is none, and what the search cost.

    A search that failed has no cost.
    """
    (page, error), milliseconds = timed(partial(sample.search, query))
    if page is None:
        return None, error, []
    cost = Measurement(f"{sample.kind}?{name}", milliseconds, len(page.rows))
    return page, error, [cost]


def _walk(sample: HttpInspection, query: SearchQuery) -> tuple[list[Record], str]:
    """Return the records of a search, at most LIST_ROWS, and the error of a page or ""."""
    records = list[Record]()
    for number in range(1, LIST_ROWS // API_PAGE + 1):
        page, error = sample.search(query)
        if page is None:
            return records, f"page {number} of {query.count} rows: {error}"
        records += _records(page.rows)
        if not (page.more and page.last and sample.listed.paging):
            break
        query = replace(query, after=page.last)
    return records, ""


def _may_be_ignored(sample: HttpInspection, query: SearchQuery) -> bool:
    """Whether a search by text, or one whose merges the API follows, filters nothing.

    It filters nothing if it matches as many rows as a search without it. Always false for
    other filters: their trials compare the rows themselves.
    """
    (criterion,) = query.criteria
    is_merged = sample.opened.http.search[criterion.parameter].merged
    if not (is_merged or isinstance(criterion, StringCriterion)):
        return False
    try:
        everything = sample.adapter.count(replace(query, criteria=()))
        return (
            len(sample.rows) > _FILTER_PAGE
            and sample.adapter.count(query) == everything
        )
    except (TooCostlyError, SourceUnavailableError):
        return False


def _check_orders(sample: HttpInspection) -> Iterator[Result]:
    """Search in each order: an API that ignores the parameter keeps its own."""
    sort = sample.opened.http.sort
    if sort is None or sort.mark is None:
        return
    goes_back = sample.adapter.capabilities[sample.kind].backwards
    for word, value in sort.by.items():
        key, descending = SortKey(word.removeprefix("-")), word.startswith("-")
        query = sample.query(sort=Sort(key, descending), count=2 * _FILTER_PAGE)
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
        fault = f"fails: {error}" if error else _order_fault(slot, records, query.sort)
        if fault:
            sent = ", ".join(text for _, text in value)
            element = f"{sample.kind}.sort"
            yield Finding.at(sort.mark, f"'{word}' {fault}", element, sent)


def _order_fault(slot: str, records: Sequence[Record], sort: Sort) -> str:
    """Return what is wrong with the order of records by a slot, "" if nothing is."""
    keys = [getattr(record, slot, None) for record in dict.fromkeys(records)]
    times = [key for key in keys if isinstance(key, datetime)]
    first_without = keys.index(None) if None in keys else len(keys)
    if times and any(isinstance(key, datetime) for key in keys[first_without:]):
        return (
            "returns the rows without a value first. Set sort.nulls to high, low or first,"
            " or remove sort"
        )
    ascending = times[::-1] if sort.descending else times
    if all(time <= later + _CLOCK_CHANGE for time, later in pairwise(ascending)):
        return ""
    return f"returns the rows in another order: {_CHECK_PARAMETER}"


def _check_read(sample: HttpInspection) -> Findings:
    """Read one row of the list by its id."""
    record = next((record for record in sample.records if record.id), None)
    if record is None:
        sample.skip("read", "no row of the list can be served")
        return
    place = sample.place("id")
    try:
        sample.adapter.read(sample.kind, record.id)
    except (NotFoundError, GoneError):
        text = "read does not find a row of the list by its id. Check read.path and this column"
        yield sample.at(place, text, Severity.ERROR)


def _ids(page: Page | None) -> list[str]:
    """Return the ids of the records of a page."""
    return [record.id for record in _records(page.rows)] if page else []


def _records(rows: Iterable[Record | RowFault]) -> Iterator[Record]:
    return (row for row in rows if not isinstance(row, RowFault))


CHECKS: tuple[tuple[str, Callable[[HttpInspection], Iterator[Result]]], ...] = (
    ("rows", _check_rows),
    ("codes", codes),
    ("invalid rows", invalid_rows),
    ("times", doubtful_times),
    ("fields", never_filled),
    ("zones", _check_zones),
    ("far days", far_days),
    ("paging", _check_paging),
    ("all rows", _check_page_size),
    ("total", _check_total),
    ("the same order", _check_steady),
    ("filters", _check_filters),
    ("orders", _check_orders),
    ("read", _check_read),
)
"""The checks of a section with their subjects; without rows none after the first is run."""
