"""The parts of the contract suite: the adapter under test, searches, and expected rows.

A search that the adapter does not offer skips its test, with the reason. Expected rows are
named by their number, and so are ids in `_id`, `patient` and the hospital's own patient
number: the suite writes them as ids of the hospital.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeAlias

import pytest

from adapters.contract import (
    Adapter,
    AdapterError,
    Capabilities,
    Criterion,
    DateCriterion,
    DateValue,
    Limit,
    NotAskableError,
    Page,
    Position,
    Prefix,
    Record,
    ReferenceCriterion,
    ResourceCapabilities,
    ResourceType,
    RowFault,
    SearchQuery,
    Sort,
    SortKey,
    SourceDataError,
    StringCriterion,
    StringMatch,
    Token,
    TokenCriterion,
)
from adapters.matching import utc
from adapters.memory import MemoryAdapter
from toolkit.contract.hospital import (
    FINESS_SYSTEM,
    IPP_SYSTEM,
    LARGEST_ID,
    PARIS,
    VISIT_SYSTEMS,
    Hospital,
)

LARGEST_PAGE = 100
"""The largest page that the service requests."""


class Offered:
    """An adapter for tests: a search that it does not offer skips the test.

    `columns` has the suite's name of a column by the name in the adapter's faults.
    """

    def __init__(self, adapter: Adapter, columns: Mapping[str, str]) -> None:
        self._adapter = adapter
        self._columns = columns
        self.capabilities = adapter.capabilities
        self.check = adapter.check
        self.close = adapter.close

    @property
    def fingerprint(self) -> str:
        """A digest of source, rows and order."""
        return self._adapter.fingerprint

    def search(self, query: SearchQuery) -> Page:
        """Return the rows of a page, in the source's own order where it has no other."""
        with self._offered(query) as served:
            page = self._adapter.search(served)
        rows = (self._named(r) if isinstance(r, RowFault) else r for r in page.rows)
        return replace(page, rows=tuple(rows))

    def count(self, query: SearchQuery) -> int:
        """Return how many rows match."""
        with self._offered(query) as served:
            return self._adapter.count(served)

    def explain(self, query: SearchQuery) -> str:
        """Return what would be sent."""
        with self._offered(query) as served:
            return self._adapter.explain(served)

    def read(self, resource_type: ResourceType, id: str) -> Record:
        """Return one resource; raises as the adapter does."""
        if resource_type not in self.capabilities:
            pytest.skip(f"{resource_type} is not offered")
        try:
            return self._adapter.read(resource_type, id)
        except SourceDataError as error:
            error.fault = error.fault and self._named(error.fault)
            raise

    def sorts_by(self, query: SearchQuery) -> bool:
        """Whether the source can give the order that the query names."""
        return query.sort.key in self.capabilities[query.resource_type].sorts

    def takes(self, query: SearchQuery) -> bool:
        """Whether the adapter offers the search."""
        try:
            self.count(query)
        except pytest.skip.Exception:
            return False
        return True

    @contextmanager
    def _offered(self, query: SearchQuery) -> Iterator[SearchQuery]:
        """Yield a query as the service would send it."""
        if reason := _lack(self.capabilities, query):
            pytest.skip(reason)
        try:
            yield self._as_served(query)
        except NotAskableError as error:
            search = f"{query.resource_type} by {error.parameter}"
            pytest.skip(f"{search} {error.limit or 'is not offered'}")

    def _as_served(self, query: SearchQuery) -> SearchQuery:
        """Return a query with a page size and an order that the service would request."""
        served = replace(query, count=min(query.count, LARGEST_PAGE))
        if self.sorts_by(query):
            return served
        sorts = self.capabilities[query.resource_type].sorts
        key = sorts[0] if sorts else SortKey.ID
        return replace(served, sort=Sort(key, descending=key is not SortKey.ID))

    def _named(self, fault: RowFault) -> RowFault:
        """Return a fault with the suite's name of its column."""
        column = self._columns.get(fault.column, fault.column)
        return replace(fault, column=column)


def _lack(capabilities: Capabilities, query: SearchQuery) -> str:
    """Return why a query is not offered, "" if it is."""
    kind = query.resource_type
    offered = capabilities.get(kind)
    if offered is None:
        return f"{kind} is not offered"
    if query.after is not None and not offered.paging:
        return "further pages are not offered"
    if query.backwards and not (offered.paging and offered.backwards):
        return "earlier pages are not offered"
    for criterion in query.criteria:
        if lack := _lack_of(offered, criterion):
            return f"{kind} by {lack}"
    return ""


def _lack_of(offered: ResourceCapabilities, criterion: Criterion) -> str:
    """Return why a criterion is not offered, "" if it is."""
    name = criterion.parameter
    parameter = offered.parameters.get(name)
    if parameter is None:
        return f"{name} is not offered"
    match criterion:
        case StringCriterion(match=match) if match not in parameter.matches:
            return f"{name}:{match} is not offered"
        case DateCriterion(values=dates):
            if any(date.prefix not in parameter.prefixes for date in dates):
                return f"{name} {Limit.PREFIX}"
    return ""


@contextmanager
def noted(refusals: set[str]) -> Iterator[None]:
    """Add the reason why a search is not offered to `refusals`, and go on with the test."""
    try:
        yield
    except pytest.skip.Exception as refusal:
        refusals.add(str(refusal))


def skip_for(refusals: Iterable[str]) -> None:
    """Skip a test that has ended, if a search of it was not offered."""
    if reasons := ", ".join(sorted(refusals)):
        pytest.skip(reasons)


class Opened:
    """A hospital, the adapter that is opened on it, and the model of both.

    `columns` has the suite's name of a column (`state`) by the name in the adapter's faults,
    where the two differ. `model` is that of the hospital unless another is passed.
    """

    def __init__(
        self,
        hospital: Hospital,
        adapter: Adapter,
        model: MemoryAdapter | None = None,
        *,
        columns: Mapping[str, str] | None = None,
    ) -> None:
        self.hospital = hospital
        self.adapter = Offered(adapter, columns or {})
        self.model = model or hospital.model()

    def id(self, number: int) -> str:
        """Return the id of a row as clients see it."""
        return self.hospital.ids.text(number)

    def held(self, kind: ResourceType) -> frozenset[str]:
        """Return the ids of all rows of the hospital, those that are not served too."""
        hospital = self.hospital
        if kind is ResourceType.ORGANIZATION:
            return frozenset(row.code for row in hospital.organizations)
        rows = hospital.stays if kind is ResourceType.ENCOUNTER else hospital.patients
        return frozenset(self.id(row.id) for row in rows)


Open: TypeAlias = Callable[[Hospital], Opened]
"""Opens the adapter under test on a hospital, until the tests of the module are done."""


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
    return SearchQuery(
        of,
        criteria,
        sort=order,
        count=count,
        after=after,
        before=before,
        from_end=from_end,
    )


def token(parameter: str, *values: str) -> TokenCriterion:
    """Return a criterion of tokens as clients write them: code, system|code, |code."""
    return TokenCriterion(parameter, tuple(_token(value) for value in values))


def _token(text: str) -> Token:
    if "|" not in text:
        return Token(None, text)
    system, _, code = text.rpartition("|")
    return Token(system, code or None)


def text(
    parameter: str, *values: str, match: StringMatch = StringMatch.STARTS_WITH
) -> StringCriterion:
    """Return a criterion of texts."""
    return StringCriterion(parameter, values, match)


def hospital(*ids: str) -> ReferenceCriterion:
    """Return a criterion of hospitals."""
    return ReferenceCriterion("service-provider", ids)


def patient(*ids: str) -> ReferenceCriterion:
    """Return a criterion of patients."""
    return ReferenceCriterion("patient", ids)


def dates(*values: str, parameter: str = "date") -> DateCriterion:
    """Return a criterion of dates as clients write them, prefix included.

    Without an offset they are in the deployment's zone (decision 5).
    """
    return DateCriterion(parameter, tuple(map(_date_value, values)))


def _date_value(value: str) -> DateValue:
    has_prefix = value[:2].isalpha()
    prefix = Prefix(value[:2]) if has_prefix else Prefix.EQ
    text = value[2:] if has_prefix else value
    return DateValue(prefix, *(_time(text) if "T" in text else _day(text)))


def _day(text: str) -> tuple[datetime, datetime]:
    """Return the interval of a year, a month or a day."""
    match [int(part) for part in text.split("-")]:
        case [year]:
            return _midnight(year, 1), _midnight(year + 1, 1)
        case [year, 12]:
            return _midnight(year, 12), _midnight(year + 1, 1)
        case [year, month]:
            return _midnight(year, month), _midnight(year, month + 1)
    low = datetime.fromisoformat(text).replace(tzinfo=PARIS)
    return low, low + timedelta(days=1)


def _midnight(year: int, month: int) -> datetime:
    return datetime(year, month, 1, tzinfo=PARIS)


def _time(text: str) -> tuple[datetime, datetime]:
    """Return the interval of a minute, a second or a fraction of one."""
    low = datetime.fromisoformat(text)
    low = low if low.tzinfo else low.replace(tzinfo=PARIS)
    clock, _, fraction = text[11:].partition("+")[0].rstrip("Z").partition(".")
    step = timedelta(microseconds=10 ** (6 - len(fraction)))
    if clock.count(":") == 1:
        step = timedelta(minutes=1)
    return utc(low), utc(low) + step


Outcome: TypeAlias = Record | RowFault | type[AdapterError]
"""What a read returns or raises: a record, its fault, or the type of an error without one."""


def plain(row: Outcome) -> Any:
    """Return a row in a form in which two rows are equal if clients see the same.

    Times are ISO texts, as Python finds times of the odd hours unequal in two zones. The order
    of identifiers does not count, and of a fault only its column.
    """
    if isinstance(row, type):
        return row
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
    """Yield the pages of a search one by one, from its position to the end or to the start.

    Fails when the adapter repeats a position.
    """
    page = adapter.search(query)
    positions = set()
    while page.rows:
        yield page
        position = page.first if back else page.last
        assert position is not None, "a page with rows has a position"
        assert position not in positions, "the walk goes in circles"
        positions.add(position)
        further = replace(query, after=position, before=None, from_end=False)
        if back:
            further = replace(query, after=None, before=position, from_end=False)
        next_page = adapter.search(further)
        assert page.more is bool(next_page.rows), "`more` is whether rows follow"
        page = next_page
    assert (page.more, page.first, page.last) == (False, None, None)


def assert_as_model(opened: Opened, query: SearchQuery) -> None:
    """Check rows, their number and, where the source can give it, their order."""
    expected = rows_of(opened.model.search(query))
    rows = rows_of(opened.adapter.search(query))
    if not opened.adapter.sorts_by(query):
        expected, rows = sorted(expected, key=repr), sorted(rows, key=repr)
    assert rows == expected
    assert opened.adapter.count(query) == len(expected)


def with_ids(opened: Opened, criterion: Criterion) -> Criterion:
    """Return a criterion with the hospital's ids in place of the suite's numbers of rows."""

    def written(value: str) -> str:
        return opened.id(int(value)) if value.isdecimal() else value

    match criterion:
        case ReferenceCriterion(parameter="patient", values=ids):
            return replace(criterion, values=tuple(map(written, ids)))
        case TokenCriterion(parameter=name, values=tokens):
            values = (
                Token(t.system, written(t.code or ""))
                if name == "_id" or t.system == IPP_SYSTEM
                else t
                for t in tokens
            )
            return TokenCriterion(name, tuple(values))
    return criterion


H1, H2 = VISIT_SYSTEMS.values()
EXTENSION = "service-provider._extension"
CONTAINS, EXACT = StringMatch.CONTAINS, StringMatch.EXACT

_MALE = token("gender", "male")

SearchCase: TypeAlias = tuple[str, tuple[Criterion, ...], tuple[int | str, ...]]
"""A name, criteria, and the rows that meet them: by number, organizations by id."""

_JUNE_1 = dates("2024-06-01")
STAYS_FOUND: tuple[SearchCase, ...] = (
    ("visit number", (token("identifier", "V1"),), (1,)),
    ("visit number, other case", (token("identifier", "v1"),), (2,)),
    ("visit number, part of it", (token("identifier", "V"),), ()),
    ("visit number, zeros count", (token("identifier", "123"),), (73,)),
    ("visit number in all systems", (token("identifier", "000123"),), (72, 71, 70)),
    ("visit number in one", (token("identifier", f"{H1}|000123"),), (70,)),
    ("visit number in none, or in ''", (token("identifier", "|000123", "|123"),), (73, 72)),
    ("visit number in an unknown one", (token("identifier", "urn:x|000123"),), ()),
    ("any visit number of a system", (token("identifier", f"{H2}|"),), (71,)),
    ("no empty number", (token("identifier", "|"),), (73, 72)),
    ("several visit numbers", (token("identifier", "V1", "A_B"),), (75, 1)),
    ("per cent", (token("identifier", "%"), token("identifier", "100%")), ()),
    ("wildcards are letters", (token("identifier", "100%", "A_B", "A\\B"),), (77, 75, 74)),
    ("quotes are letters", (token("identifier", "O'B", '"', ":v0", "?"),), (81, 80, 79, 78)),
    ("functional unit", (token(EXTENSION, "0123"),), (6,)),
    ("functional unit without zeros", (token(EXTENSION, "123"),), (7,)),
    ("functional unit with accent", (token(EXTENSION, "É"),), (76,)),
    ("functional unit, wildcards", (token(EXTENSION, "%", "_"),), (75, 74)),
    ("hospital", (hospital("H2"),), (71,)),
    ("hospital in other case", (hospital("h2", "H-2"),), ()),
    ("hospital or another", (hospital("H2", "H1"), patient("6"), _JUNE_1), (71, 70)),
    ("class", (token("class", "REC"),), (27,)),
    ("class of several codes", (token("class", "IMP"), patient("4")), (60,)),
    ("otherwise", (token("class", "UNK"),), (64, 63, 62, 61)),
    ("a source's code is no class, nor in other case", (token("class", "HC", "URG", "amb"),), ()),
    ("status", (token("status", "in-progress"),), (65, 22)),
    ("hidden is no status", (token("status", "hidden", "removed"),), ()),
    ("a source's code is no status", (token("status", "A", "X", "Z", "S"),), ()),
    ("changed on a day", (dates("2024-03-20", parameter="_lastUpdated"),), (25, 24, 23)),
    ("changed since an instant",
     (dates("ge2024-03-20T10:00:00.123457+01:00", parameter="_lastUpdated"),), (32, 34, 24)),
    ("changed before", (dates("lt2024", parameter="_lastUpdated"),), (42, 92)),
    ("half a second before midnight",
     (dates("ge2024-03-13T23:59:59.5+01:00"), dates("lt2024-03-14T00:00+01:00")), (6,)),
    ("a microsecond after midnight",
     (dates("gt2024-03-14T00:00:00.000000+01:00"), dates("lt2024-03-14T00:01+01:00")), (7,)),
    ("the last microsecond", (dates("2024-03-14T23:59:59.999999+01:00"),), (5,)),
    ("before years of four digits", (dates("lt0999-07"),), ()),
    ("since a year of three digits", (dates("ge0999-07"), patient("4")), (60, 61, 62, 63, 64, 65)),
    ("id", (token("_id", "60"),), (60,)),
    ("patient", (patient("4"),), (65, 64, 63, 62, 61, 60)),
    ("merged patient", (patient("7"),), (91, 90)),
    ("survivor", (patient("8"),), (91, 90)),
    ("both at once", (patient("7"), patient("8")), (91, 90)),
    ("both or another at once", (patient("7", "2"), patient("8", "3")), (91, 90)),
    ("one of them, as of both", (patient("7"), patient("8", "7")), (91, 90)),
    ("merged patient or another", (patient("7", "2"),), (91, 90, 42, 27)),
    ("no such patient", (patient("999"),), ()),
    ("a patient is no id in a url", (patient("Patient/8"),), ()),
    ("one patient and, no other", (patient("8"), patient("2")), ()),
    ("_id twice is and", (token("_id", "1"), token("_id", "2")), ()),
    ("no values", (TokenCriterion("_id", ()),), ()),
    ("no values of dates", (dates(),), ()),
    ("no values of patients", (patient(), token("_id", "1")), ()),
)  # fmt: skip

PATIENTS_FOUND: tuple[SearchCase, ...] = (
    ("family in capitals, cut", (text("family", "MART"),), (1, 3)),
    ("family with accent for none", (text("family", "mârtin"),), (1, 3)),
    ("family without accent for one", (text("family", "dupres"),), (1,)),
    ("inside a word", (text("family", "artin"),), ()),
    ("several words, in any order", (text("family", "tour la"),), (2,)),
    ("words of several parts, cut", (text("name", "pau mart je"),), (1,)),
    ("words of several names", (text("name", "dupr martin"),), (1,)),
    ("one word of another", (text("name", "martin eleonore x"),), ()),
    ("words of a family are no given names", (text("family", "martin jean"),), ()),
    ("two equal words need two", (text("family", "de de"),), (2,)),
    ("three need three", (text("family", "de de de"), text("name", "de")), ()),
    ("two equal words, two there", (text("name", "p p"),), (13,)),
    ("two equal words, one there", (text("name", "martin martin"),), ()),
    ("several words, or others", (text("name", "zoe x", "paul ancien"),), (7, 8)),
    ("ten words, and eleven", (text("name", "a " * 10, "a " * 11),), ()),
    ("full stop for blank", (text("family", "saint. jean"),), (9,)),
    ("full stop in it", (text("given", "p j"),), (1, 13)),
    ("a later word", (text("family", "tour"),), (2,)),
    ("a phrase, cut", (text("family", "la to"),), (2,)),
    ("run together", (text("family", "latour"),), (3,)),
    ("apostrophe", (text("family", "brien"),), (4,)),
    ("other apostrophe", (text("family", "l'hermite"),), (4,)),
    ("blank for apostrophe", (text("family", "l hermite"),), (4,)),
    ("ligature", (text("family", "boeuf"),), (5,)),
    ("ligature in the search", (text("family", "BŒUF"),), (5,)),
    ("ligature in capitals", (text("given", "oedipe"),), (5,)),
    ("sharp s", (text("family", "strauss"),), (5,)),
    ("blank for hyphen", (text("family", "saint jean"),), (9,)),
    ("hyphen for blank", (text("family", "la-tour"),), (2,)),
    ("tilde", (text("family", "nunez"),), (9,)),
    ("stroke", (text("given", "lukasz"),), (9,)),
    ("diaeresis in two characters", (text("given", "zoé"),), (4,)),
    ("given, second", (text("given", "paul"),), (1, 7, 8)),
    ("given is not family", (text("given", "martin"),), ()),
    ("name is either", (text("name", "jean"),), (1, 9)),
    ("name, one of several", (text("name", "nunez", "zoe"),), (4, 9)),
    ("name, all of several", (text("name", "martin"), text("name", "jean")), (1,)),
    ("per cent in it", (text("name", "100%"), text("name", "back\\")), (6,)),
    ("underscore in it", (text("name", "a_b"),), (6,)),
    ("no wildcards", (text("name", "%", "_", "m_rtin", "!%", "m!!", "m!_"),), ()),
    ("escape character", (text("name", "ping !", "m!0"),), (13,)),
    ("quote in SQL", (text("name", "' OR 1=1 --"),), ()),
    ("nothing but a hyphen", (text("name", "-", match=CONTAINS),), ()),
    ("no character", (text("name", " ", "\x00", "mar\x00tin", "\ud83d"),), ()),
    ("longer than a pattern", (text("name", "a" * 60_000, "nunez"),), (9,)),
    ("longer than a pattern, words", (text("name", "a " * 30_000),), ()),
    ("longer than a pattern, within", (text("name", "a" * 60_000, match=CONTAINS),), ()),
    ("exact", (text("family", "Martin", match=EXACT),), (1,)),
    ("exact, capitals", (text("family", "MARTIN", match=EXACT),), (3,)),
    ("exact, with accent", (text("family", "Duprès", match=EXACT),), (1,)),
    ("exact, part", (text("family", "Mart", "Jones", "%", "_", match=EXACT),), ()),
    ("exact, without accent", (text("family", "Dupres", match=EXACT),), ()),
    ("contains", (text("family", "artin", match=CONTAINS),), (1, 3)),
    ("contains, over a blank", (text("family", "e la t", match=CONTAINS),), (2,)),
    ("contains, two words", (text("name", "th jo", match=CONTAINS),), (12,)),
    ("gender", (token("gender", "male"),), (1, 7, 8, 9)),
    ("gender, otherwise", (token("gender", "unknown"), text("name", "b")), (5, 4, 6)),
    ("a source's code is no gender", (token("gender", "1"),), ()),
    ("day of birth", (dates("1950-02-28", parameter="birthdate"),), (1,)),
    ("day of birth, not", (dates("ne1950", parameter="birthdate"), _MALE), (7, 8, 9)),
    ("year of birth", (dates("1950", parameter="birthdate"),), (1, 2)),
    ("month of birth", (dates("1950-02", parameter="birthdate"),), (1,)),
    ("born after", (dates("gt1999-12-31", parameter="birthdate"),), (3, 5)),
    ("born from", (dates("ge1999-12-31", parameter="birthdate"),), (3, 4, 5)),
    ("born before years of four digits", (dates("lt0999", parameter="birthdate"),), ()),
    ("born before", (dates("lt1950-03-01", parameter="birthdate"),), (1,)),
    ("born up to", (dates("le1950-03-01", parameter="birthdate"),), (1, 2)),
    ("born in one of", (dates("1950", "2000-02", parameter="birthdate"),), (1, 2, 3)),
    ("number, any system", (token("identifier", "0042"),), (12, LARGEST_ID)),
    ("number, one system", (token("identifier", "urn:oid:1.2.3|0042"),), (12,)),
    ("number, zeros count", (token("identifier", "42", "00042"),), ()),
    ("number, case counts", (token("identifier", "abc"),), (LARGEST_ID,)),
    ("number of another's system", (token("identifier", "urn:oid:1.2.3|AbC"),), ()),
    ("number without system", (token("identifier", "|7"),), (12,)),
    ("any number of a system", (token("identifier", "urn:oid:1.2.3|"),), (12,)),
    ("own number", (token("identifier", f"{IPP_SYSTEM}|1"),), (1,)),
    ("changed", (dates("ge2024", parameter="_lastUpdated"),), (10, 11, 12)),
    ("a merged patient is there", (token("_id", "7"),), (7,)),
)  # fmt: skip

ORGANIZATIONS_FOUND: tuple[SearchCase, ...] = (
    ("name", (text("name", "hopital"),), ("H1", "h2")),
    ("name after apostrophe", (text("name", "ile"),), ("H1",)),
    ("name with ligature", (text("name", "coeur"),), ("H2",)),
    ("name with %", (text("name", "100%"),), ("H-3.b",)),
    ("exact", (text("name", "HOPITAL DU NORD", match=EXACT),), ("h2",)),
    ("id", (token("_id", "H1", "042"),), ("042", "H1")),
    ("id in other case", (token("_id", "H-3.B"),), ()),
    ("number", (token("identifier", "0042"),), ("042",)),
    ("changed", (dates("2024", parameter="_lastUpdated"),), ("H1", "H2")),
    ("empty number", (token("identifier", f"{FINESS_SYSTEM}|"),), ("042", "H1", "H2")),
)

FOUND: Mapping[ResourceType, tuple[SearchCase, ...]] = {
    STAY: STAYS_FOUND,
    PATIENT: PATIENTS_FOUND,
    ORGANIZATION: ORGANIZATIONS_FOUND,
}


SOME: tuple[Criterion, ...] = (
    dates("ge2024-03-14"),
    dates("lt2024-06-02"),
    dates("ne2024-03-14"),
    dates("2024-03-14", "2024-06"),
    token("status", "finished"),
    token("status", "planned", "in-progress"),
    token("class", "IMP", "AMB"),
    token("class", "UNK", "EMER"),
    token("identifier", "V1", "000123", "Z1"),
    token("identifier", f"{H1}|"),
    token(EXTENSION, "0123", "123"),
    patient("5", "6", "7"),
    patient("1", "2"),
    token("_id", "1", "2", "12", "37", "90"),
)
