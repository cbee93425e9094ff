"""Questions to an adapter, and answers in a form that can be compared."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from adapters.contract import (
    Adapter,
    Criterion,
    DateCriterion,
    DateValue,
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
    StringCriterion,
    StringMatch,
    Token,
    TokenCriterion,
)
from adapters.testing.hospital import IPP_SYSTEM, PARIS
from adapters.testing.opened import Opened

STAY, PATIENT, ORGANIZATION = ResourceType

NEWEST_FIRST = Sort(SortKey.DATE, descending=True)
EVERY_ROW = 1000


def ask(
    *criteria: Criterion,
    of: ResourceType = STAY,
    sort: Sort | None = None,
    count: int = EVERY_ROW,
    after: Position | None = None,
    before: Position | None = None,
    from_end: bool = False,
) -> SearchQuery:
    """Return a search; stays come newest first, other resources by id."""
    order = sort or (NEWEST_FIRST if of is STAY else Sort(SortKey.ID))
    return SearchQuery(of, criteria, order, count, after, before, from_end)


def token(parameter: str, *values: str) -> TokenCriterion:
    """Return a criterion of tokens as clients write them: code, system|code, |code."""
    return TokenCriterion(parameter, tuple(_token(value) for value in values))


def _token(text: str) -> Token:
    system, bar, code = text.rpartition("|")
    return Token(system if bar else None, code if code or not bar else None)


def text(
    parameter: str, *values: str, match: StringMatch = StringMatch.STARTS_WITH
) -> StringCriterion:
    """Return a criterion of texts."""
    return StringCriterion(parameter, values, match)


def patient(*ids: str) -> ReferenceCriterion:
    """Return a criterion of patients."""
    return ReferenceCriterion("patient", ids)


def dates(*values: str, parameter: str = "date") -> DateCriterion:
    """Return a criterion of dates as clients write them, prefix included."""
    return DateCriterion(parameter, tuple(date_value(value) for value in values))


def date_value(value: str) -> DateValue:
    """Read a date text; without an offset it is in the deployment's zone (decision 5)."""
    has_prefix = value[:2].isalpha()
    prefix = Prefix(value[:2]) if has_prefix else Prefix.EQ
    return DateValue(prefix, *_range(value[2:] if has_prefix else value))


def _range(text: str) -> tuple[datetime, datetime]:
    if len(text) <= len("2019-03-14"):
        year, month, day = (*map(int, text.split("-")), 0, 0)[:3]
        low = datetime(year, month or 1, day or 1, tzinfo=PARIS)
        if day:
            return low, low + timedelta(days=1)
        if month:
            return low, low.replace(year=year + month // 12, month=month % 12 + 1)
        return low, low.replace(year=year + 1)
    low = datetime.fromisoformat(text)
    low = low if low.tzinfo else low.replace(tzinfo=PARIS)
    clock = text[len("2019-03-14T") :].partition("+")[0].rstrip("Z")
    step = timedelta(minutes=1) if clock.count(":") == 1 else timedelta(seconds=1)
    if "." in clock:
        step = timedelta(microseconds=10 ** (6 - len(clock.partition(".")[2])))
    low = low.astimezone(UTC)
    return low, low + step


def plain(row: Record | RowFault) -> Any:
    """Return a row in a form whose equality is that of what clients see.

    Times as ISO texts, since Python finds no time of the odd hours equal in two zones;
    identifiers in any order; of a fault only where it is.
    """
    if isinstance(row, RowFault):
        return ("fault", row.column)
    values = row._asdict()
    if "identifiers" in values:
        values["identifiers"] = sorted(row.identifiers, key=repr)  # type: ignore[union-attr]
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in values.items()
    }


def rows_of(page: Page) -> list[Any]:
    """Return the rows of a page for comparing."""
    return [plain(row) for row in page.rows]


def ids_of(page: Page) -> list[str]:
    """Return the ids of a page's rows, `!column` for faults."""
    return [
        f"!{row.column}" if isinstance(row, RowFault) else row.id for row in page.rows
    ]


def walk(adapter: Adapter, query: SearchQuery, *, back: bool = False) -> Iterable[Page]:
    """Yield the pages of a search one by one, from its position on.

    Stops when the adapter says that no row lies beyond, and fails when it goes in circles.
    """
    page = adapter.search(query)
    seen = set()
    while page.rows:
        yield page
        mark = page.first if back else page.last
        assert mark is not None, "a page with rows says where it stands"
        assert mark not in seen, "the walk goes in circles"
        seen.add(mark)
        after, before = (None, mark) if back else (mark, None)
        further = ask(
            *query.criteria,
            of=query.resource_type,
            sort=query.sort,
            count=query.count,
            after=after,
            before=before,
        )
        following = adapter.search(further)
        assert page.more is bool(following.rows), "`more` tells whether rows follow"
        page = following


def assert_as_model(opened: Opened, query: SearchQuery) -> None:
    """Check rows, their number and, where the source can give it, their order."""
    expected = rows_of(opened.model.search(query))
    found = rows_of(opened.adapter.search(query))
    if not opened.adapter.sorts_by(query):
        expected, found = sorted(expected, key=repr), sorted(found, key=repr)
    assert found == expected
    assert opened.adapter.count(query) == len(expected)


def with_ids(opened: Opened, criterion: Criterion) -> Criterion:
    """Write numbers of rows as the hospital's ids, where ids are asked for."""
    if isinstance(criterion, ReferenceCriterion):
        return patient(*(_id(opened, value) for value in criterion.values))
    if not isinstance(criterion, TokenCriterion):
        return criterion
    by_id = criterion.parameter == "_id"
    values = (
        Token(t.system, _id(opened, t.code or ""))
        if by_id or t.system == IPP_SYSTEM
        else t
        for t in criterion.values
    )
    return TokenCriterion(criterion.parameter, tuple(values))


def _id(opened: Opened, value: str) -> str:
    return opened.id(int(value)) if value.isdecimal() else value
