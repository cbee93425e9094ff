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
"""How many rows are requested at once, of the list as it comes."""

_FILTER_PAGE = 10
_CLOCK_CHANGE = timedelta(hours=1)
"""How far apart the times of an autumn night may be read from their order."""

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
            # It may have a limit of its own, or take too long for so many.
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
        """Return the codes of a field in the rows in which it counts."""
        path, rows = path_of(place.field.columns[0]), _rows_within(self.rows, place)
        if place.only_if is not None:
            of_condition, values = path_of(place.only_if.column), place.only_if.values
            rows = [r for r in rows if plain_text(_value(r, of_condition)) in values]
        return [(_value(row, path), 1) for row in rows]

    def counted_days(self, place: Place) -> Counted:
        """Return the values of a time."""
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
    """Run a check; what the source refuses is a finding, and refused rows end the others."""
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
            names = {"read": "read", "filters": "search"}
            at = (call.mark if call else None) or sample.section.mark
            element = f"{sample.kind}.{names.get(subject, 'list')}"
            yield Finding.at(at, str(error), element)


def _not_examined(sample: HttpInspection) -> Findings:
    if sample.is_refused:
        # The error about the list says so.
        return
    sample.skipped.insert(0, "types and indexes (an API does not report them)")
    if sample.kind is ResourceType.ENCOUNTER:
        sample.skip("starts before births, references", "no patient is read for a stay")
    yield from sample.not_examined()


def _check_rows(sample: HttpInspection) -> Findings:
    """Report what of the list cannot be read, and states that it should not have."""
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
    """Return the finding for a list without a row: no hospital has one of stays."""
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


def _check_paging(sample: HttpInspection) -> Findings:
    """Request two pages of one row each: an API that ignores the parameter repeats it."""
    paging = sample.listed.paging
    if paging is None or paging.mark is None:
        return
    query = sample.query(count=1)
    first = sample.adapter.search(query)
    if not first.more or first.last is None:
        sample.skip("paging", "the list has at most one row")
        return
    second, error = sample.search(replace(query, after=first.last))
    is_same = second is not None and bool({*_ids(first)} & {*_ids(second)})
    if error or is_same:
        reason = error or "the second page is the same as the first"
        element = f"{sample.kind}.list.paging"
        sent = paging.query.source if paging.query else ""
        yield Finding.at(paging.mark, f"{reason}: {_CHECK_PARAMETER}", element, sent)


def _check_total(sample: HttpInspection) -> Findings:
    """Compare the totals of two page sizes, and look for rows beyond the end."""
    if not sample.rows:
        return
    totals = [sample.search(sample.query(count=size)) for size in (1, API_PAGE)]
    small, large = (page.total if page else None for page, _ in totals)
    if small is not None and large is not None and small != large:
        text = (
            f"the total is {small:,} on a page of 1 row and {large:,} on a page of"
            f" {API_PAGE}: it does not count all matches. Name another path in list.total,"
            " or use list.counting"
        )
        yield sample.of_list(text, "list.total")
        return
    with suppress(TooCostlyError):
        total = sample.adapter.count(sample.query(count=1))
        if text := _beyond_the_end(sample, total):
            yield sample.of_list(text, "list.total")


def _beyond_the_end(sample: HttpInspection, total: int) -> str:
    """Return which rows there are beyond a total, "" for none."""
    paging, query = sample.listed.paging, sample.query(count=1)
    if paging is not None and paging.is_numbered:
        last = Position(Group.KEYED, total - 1, id=None)
        page, _ = sample.search(replace(query, after=last))
        if page is not None and page.rows:
            return f"the total is {total:,}, but the list has more rows"
    elif paging is not None and total <= LIST_ROWS:
        records, error = _walk(sample, replace(query, count=API_PAGE))
        if error or len(records) > total:
            numbers = (
                f"the total is {total:,}, but the pages have {len(records):,} rows"
            )
            return error or numbers
    else:
        sample.skip("the end of the list", "it cannot be requested by a number")
    return ""


def _check_steady(sample: HttpInspection) -> Findings:
    """Send one request twice: pages of an order that changes lose rows and repeat others."""
    sorts = [*sample.section.sorts, SortKey.ID]
    query = sample.query(sort=Sort(sorts[0], descending=True), count=API_PAGE)
    (one, _), (other, _) = sample.search(query), sample.search(query)
    first, second = _ids(one), _ids(other)
    # A stay that comes or goes in between is none of both.
    both = {*first} & {*second}
    is_same = [id for id in first if id in both] == [id for id in second if id in both]
    is_whole = len(both) >= max(len(first), len(second)) // 2
    if not (is_same and is_whole):
        text = (
            "two identical requests return the rows in different orders, so pages repeat"
            " some rows and omit others. Add the id to the order (sort.by, or list.fixed)"
        )
        yield sample.of_list(text)


def _check_page_size(sample: HttpInspection) -> Findings:
    """Compare the list with its total, where one request has to return a whole page."""
    paging, severity = sample.listed.paging, Severity.WARNING
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
    else:
        if rows >= (due := min(API_PAGE, total)):
            return
        text = f"the list returns {rows} rows instead of {due}: "
        if sample.listed.total is None:
            text += "the others are never served"
            severity = Severity.ERROR
        else:
            text += (
                "a search with a larger _count fails (502). Ask the vendor for the largest"
                " page, and set it as the maximum in a profile (count: {max: …})"
            )
    yield sample.of_list(text, severity=severity)


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
    name, query = criterion.parameter, sample.query(criterion, count=_FILTER_PAGE)
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
        brought = {criterion_of(name, record) for record in records}
        text = f"does not filter{trial.text}: {error}" if error else ""
        if not error and len(records) < _FILTER_PAGE and not {*trial.finds} <= brought:
            text = (
                f"returns no row{trial.text}, although the list has one with the value"
            )
        if text:
            yield sample.at(place, f"'{name}' {text}", Severity.ERROR)
            return


class FilterTrial(NamedTuple):
    """A filter, how it is sent in words, and the values of which it has to bring rows."""

    text: str
    criterion: Criterion
    finds: Sequence[Criterion] = ()


def _trials(sample: HttpInspection, criterion: Criterion) -> Iterator[FilterTrial]:
    """Yield each way in which a filter is sent.

    A bound that is sent alone lies beyond all rows of the sample, so that a list that
    ignores it has such rows; then between them, for rows of an API that compares it with
    the end of a stay.
    """
    name = criterion.parameter
    call = sample.opened.http.search[name]
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
                yield FilterTrial(f" by '{sent}' alone", alone)
    yield FilterTrial("", criterion, [criterion])
    coded = [c for c in criteria if isinstance(c, (TokenCriterion, ReferenceCriterion))]
    if len(coded) > 1 and call.query and call.query.takes_several(call.separator):
        values: Any = tuple(value for c in coded[:2] for value in c.values)
        both = type(coded[0])(name, values)
        with suppress(NotAskableError):
            # Two numbers of two systems cannot always be sent at once.
            sample.adapter.explain(sample.query(both, count=_FILTER_PAGE))
            yield FilterTrial(" by two values at once (separator:)", both, coded[:2])


def _measured(
    sample: HttpInspection, name: str, query: SearchQuery
) -> tuple[Page | None, str, list[Measurement]]:
    """Return what a search brought, or why it failed, and what it cost."""
    (page, error), milliseconds = timed(partial(sample.search, query))
    if page is None:
        return None, error, []
    cost = Measurement(f"{sample.kind}?{name}", milliseconds, len(page.rows))
    return page, error, [cost]


def _walk(sample: HttpInspection, query: SearchQuery) -> tuple[list[Record], str]:
    """Return the rows of a search, up to the limit, and why one of its pages is unusable."""
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
    """Whether a filter that rows cannot be compared with narrows nothing."""
    (criterion,) = query.criteria
    # The rows of all others are compared.
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
        text = f"fails: {error}" if error else ""
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
            "returns the rows without a value first. Set sort.nulls to high, low or first,"
            " or remove sort"
        )
    ordered = times[::-1] if sort.descending else times
    if all(start <= later + _CLOCK_CHANGE for start, later in pairwise(ordered)):
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
