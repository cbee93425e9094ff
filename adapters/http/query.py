"""SearchQuery → the parameters that an HTTP source is sent.

What the source cannot compare is refused (NotAskableError): no criterion is left out, no
bound is widened, and no rows are fetched to be filtered here.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from math import ceil
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from adapters.contract import (
    Criterion,
    DateCriterion,
    DateValue,
    Limit,
    NotAskableError,
    ParameterCapability,
    Prefix,
    ReferenceCriterion,
    ResourceType,
    SearchQuery,
    SortKey,
    StringCriterion,
    StringMatch,
    Token,
    TokenCriterion,
)
from adapters.folding import fold
from adapters.mapping.model import (
    BoundParameter,
    FieldMapping,
    HttpSection,
    ResourceMapping,
    SearchCall,
    Several,
    Step,
    TimeRule,
)
from adapters.mapping.slots import LONGEST_ID, SLOTS, UNSERVED, Kind, Slot, field_of
from adapters.mapping.times import EPOCHS, directives, epoch_of, in_format, to_local
from adapters.parameters import SEARCH_PARAMETERS, SORTS, SearchParameter

Pairs: TypeAlias = tuple[tuple[str, str], ...]

_UNSENDABLE = re.compile("[\0\ud800-\udfff]")


def parameters_of(section: ResourceMapping, query: SearchQuery) -> Pairs | None:
    """Return the parameters for all criteria of a search, None if nothing can match."""
    pairs: Pairs = ()
    for name in dict.fromkeys(c.parameter for c in query.criteria):
        criteria = [c for c in query.criteria if c.parameter == name]
        sent = _Filter(section, _http(section).search[name]).pairs(criteria)
        if sent is None:
            return None
        pairs += sent
    return pairs


def _http(section: ResourceMapping) -> HttpSection:
    assert section.http is not None, "only sections of HTTP sources are sent"
    return section.http


_EARLIEST = datetime(1940, 1, 1)  # noqa: DTZ001 - a day of each zone
"""Before every stay: a source treats a row without a start as none after this day."""


def split(section: ResourceMapping, query: SearchQuery) -> tuple[SearchQuery, ...]:
    """Return the searches that are one together, in their order: two for `ne`.

    Raises NotAskableError for `ne` where the two would not follow each other.
    """
    criteria = [
        (at, c)
        for at, c in enumerate(query.criteria)
        if isinstance(c, DateCriterion) and any(v.prefix is Prefix.NE for v in c.values)
    ]
    if not criteria:
        return (query,)
    (at, criterion), *others = criteria
    is_order = criterion.parameter == query.sort.key and can_split(section)
    if others or len(criterion.values) > 1 or not is_order:
        raise _refusal(_http(section).search[criterion.parameter], Limit.PREFIX)
    prefixes = (Prefix.LT, Prefix.GT)[:: -1 if query.sort.descending else 1]
    halves = [replace(criterion.values[0], prefix=prefix) for prefix in prefixes]
    return tuple(_with(query, replace(criterion, values=(v,)), at) for v in halves)


def can_split(section: ResourceMapping) -> bool:
    """Whether two searches of a section can be read as one list."""
    listed = _http(section).list
    if listed is None or listed.total is None or listed.paging is None:
        return False
    return listed.paging.is_numbered


def keyed(section: ResourceMapping, query: SearchQuery) -> SearchQuery | None:
    """Return the search for the rows with the sort key, if others come before them."""
    sort, key = _http(section).sort, query.sort.key
    if sort is None or not sort.nulls.come_first(descending=query.sort.descending):
        return None
    call = _http(section).search.get(key)
    is_compared = any(c.parameter == key for c in query.criteria)
    if key is SortKey.ID or is_compared or call is None or not call.lower:
        return None
    slot = SORTS[section.resource_type][key]
    rule = section.fields[slot].time
    assert rule is not None, "the loader gives every time a rule"
    zone = call.zone or rule.zone
    earliest = _EARLIEST.replace(tzinfo=zone)
    value = DateValue(Prefix.GE, earliest, earliest)
    return _with(query, DateCriterion(str(key), (value,)), len(query.criteria))


def _with(query: SearchQuery, criterion: Criterion, at: int) -> SearchQuery:
    """Return a search with a criterion at a place, in place of the one there."""
    criteria = (*query.criteria[:at], criterion, *query.criteria[at + 1 :])
    return replace(query, criteria=criteria)


class _Filter(NamedTuple):
    """One search parameter of a section, and how it is sent."""

    section: ResourceMapping
    call: SearchCall

    def pairs(self, criteria: Sequence[Criterion]) -> Pairs | None:
        """Return what to send for all criteria of this parameter."""
        match criteria[0]:
            case DateCriterion():
                dates = [c for c in criteria if isinstance(c, DateCriterion)]
                return _date_pairs(self.call, self._time_rule(), dates)
            case StringCriterion() as text:
                self._refuse_repeated(criteria)
                return _string_pairs(self.call, text)
            case TokenCriterion() as tokens if self._row.system_slot:
                self._refuse_repeated(criteria)
                return self._identifiers(tokens)
            case TokenCriterion() as tokens if (
                others := self._others(tokens)
            ) is not None:
                self._refuse_repeated(criteria)
                name = str(self.call.excluding)
                return _pairs(self.call, name, others) if others else ()
            case _:
                codes = [self._codes(criterion) for criterion in criteria]
                return _pairs(self.call, self.call.send, self._in_all(codes))

    def _others(self, criterion: TokenCriterion) -> list[str] | None:
        """Return the codes to exclude where a value means every code without an entry.

        None where no value does, or where the source cannot exclude codes.
        """
        codes, wanted = self._field.codes, {token.code for token in criterion.values}
        can_exclude = self.call.excluding and codes and codes.otherwise
        if not can_exclude or codes is None or codes.otherwise not in wanted:
            return None
        return [code for code, target in codes.table.items() if target not in wanted]

    def _codes(self, criterion: Criterion) -> list[str]:
        """Return the source's own codes or ids for the values of a criterion."""
        codes: Iterable[str] = ()
        if isinstance(criterion, ReferenceCriterion):
            codes = criterion.values
        elif isinstance(criterion, TokenCriterion):
            codes = [token.code for token in criterion.values if token.code]
        if self._row.is_id or isinstance(criterion, ReferenceCriterion):
            codes = self._field.own(code for code in codes if len(code) <= LONGEST_ID)
        return [each for code in codes for each in self._source_codes(code)]

    def _source_codes(self, code: str) -> tuple[str, ...]:
        field = self._field
        if code in UNSERVED and field.slot == "status":
            return ()
        if field.codes is None:
            return (code,)
        if field.codes.otherwise == code:
            # It means every code without an entry: the source has no word for that.
            raise _refusal(self.call, Limit.CODE)
        return field.codes.sources(code)

    def _in_all(self, codes: Sequence[Sequence[str]]) -> Sequence[str]:
        """Return the codes that all criteria have in common."""
        common = [code for code in codes[0] if all(code in other for other in codes)]
        # Two ids may be those of one merged patient, which only the source knows.
        differ = all(codes) and all({*common} != {*each} for each in codes)
        if self.call.merged and differ:
            raise _refusal(self.call, Limit.ONCE)
        return common

    def _identifiers(self, criterion: TokenCriterion) -> Pairs | None:
        call = self.call
        numbers = [
            identifier
            for token in criterion.values
            if (identifier := self._identifier(token)) is not None
        ]
        if call.system is not None and call.system.join:
            joined = [_joined(call, call.system.join, *each) for each in numbers]
            return _pairs(call, call.send, joined)
        if not any(system for system, _ in numbers):
            return _pairs(call, call.send, [number for _, number in numbers])
        if len(numbers) > 1 or call.system is None:
            raise _refusal(call, Limit.ONE_VALUE)
        ((system, number),) = numbers
        pairs = _pairs(call, call.send, [number])
        return None if pairs is None else (*pairs, (call.system.send, system))

    def _identifier(self, token: Token) -> tuple[str, str] | None:
        """Return the source's code of the system ("" for any) and the number."""
        if token.code is None:
            raise _refusal(self.call, Limit.SYSTEM)
        constant, system = self._constant_system(), self.call.system
        if constant is not None:
            # Sent without it, a number finds those of other systems as well.
            sent = constant if system is not None and system.join else ""
            return (sent, token.code) if token.system in (None, constant) else None
        if token.system is None:
            return "", token.code
        if system is None or token.system == "":
            raise _refusal(self.call, Limit.SYSTEM)
        if system.codes is None:
            return token.system, token.code
        code = system.codes.get(token.system)
        return None if code is None else (code, token.code)

    def _constant_system(self) -> str | None:
        """Return the one system of all numbers, "" if they have none, None if it varies."""
        if self._row.system_slot not in _slots(self.section.resource_type):
            return None
        system = self.section.fields.get(str(self._row.system_slot))
        return system.constant if system else ""

    def _refuse_repeated(self, criteria: Sequence[Criterion]) -> None:
        if len(criteria) > 1:
            raise _refusal(self.call, Limit.ONCE)

    def _time_rule(self) -> TimeRule | None:
        """Return how the source's times are read, None for days of the calendar."""
        slot = _slots(self.section.resource_type)[self._row.slots[0]]
        return self._field.time if slot.kind is Kind.TIME else None

    @property
    def _field(self) -> FieldMapping:
        kind = self.section.resource_type
        return self.section.fields[field_of(kind, self.call.name)]

    @property
    def _row(self) -> SearchParameter:
        return SEARCH_PARAMETERS[self.section.resource_type][self.call.name]


def _joined(call: SearchCall, sign: str, system: str, number: str) -> str:
    """Return system and number as one value; a sign inside the number is refused."""
    if sign in number or "\\" in number:
        raise _refusal(call, Limit.SIGN)
    return f"{system}{sign}{number}" if system else number


def _slots(kind: ResourceType) -> Mapping[str, Slot]:
    """Return the slots of a resource itself, without those of the items of its lists."""
    return {slot.name: slot for slot in SLOTS[kind]}


def _string_pairs(call: SearchCall, criterion: StringCriterion) -> Pairs | None:
    name = _match_parameters(call)[criterion.match]
    if not name:
        raise _refusal(call, Limit.PREFIX)
    return _pairs(call, name, [text for text in criterion.values if fold(text)])


def _match_parameters(call: SearchCall) -> Mapping[StringMatch, str | None]:
    return {
        StringMatch.STARTS_WITH: call.send,
        StringMatch.CONTAINS: call.contains,
        StringMatch.EXACT: call.exact,
    }


def _pairs(call: SearchCall, name: str, values: Iterable[str]) -> Pairs | None:
    """Return several values of one parameter in the source's form, None for none."""
    sent = list(dict.fromkeys(v for v in values if v and not _UNSENDABLE.search(v)))
    if not sent:
        return None
    if call.several is Several.REPEAT:
        return tuple((name, value) for value in sent)
    if call.several is Several.COMMA:
        if any("," in value for value in sent):
            raise _refusal(call, Limit.SIGN)
        return ((name, ",".join(sent)),)
    if len(sent) > 1:
        raise _refusal(call, Limit.ONE_VALUE)
    return ((name, sent[0]),)


def _refusal(call: SearchCall, limit: Limit) -> NotAskableError:
    return NotAskableError("the source cannot compare it", call.name, limit)


class _Unit(NamedTuple):
    """The unit in which a source compares times."""

    length: timedelta
    limit: Limit
    format: str


_UNITS: Mapping[Step, _Unit] = MappingProxyType(
    {
        Step.DAY: _Unit(timedelta(days=1), Limit.DAY, "%Y-%m-%d"),
        Step.MINUTE: _Unit(timedelta(minutes=1), Limit.MINUTE, "%Y-%m-%dT%H:%M"),
        Step.SECOND: _Unit(timedelta(seconds=1), Limit.SECOND, "%Y-%m-%dT%H:%M:%S"),
    }
)


def capability_of(call: SearchCall, *, splits: bool) -> ParameterCapability:
    """Return what a source can compare with one parameter.

    With `splits`, a search for `ne` is sent as two: before the interval, and after it.
    """
    if not call.send:
        limit = _UNITS[call.step].limit
        prefixes = _prefixes(call)
        if splits and Prefix.EQ in prefixes:
            prefixes |= {Prefix.NE}
        return ParameterCapability(prefixes=prefixes, finest=limit)
    matches = _match_parameters(call).items()
    return ParameterCapability(
        matches=frozenset(m for m, name in matches if name),
        most=None if call.several else 1,
    )


def _prefixes(call: SearchCall) -> frozenset[Prefix]:
    """Return the prefixes that the source's bounds can express; `ne` is never one."""
    lower = {Prefix.GE, Prefix.GT} if call.lower else set()
    upper = {Prefix.LT, Prefix.LE} if call.upper else set()
    both = {Prefix.EQ} if lower and upper else set()
    return frozenset(lower | upper | both)


def _date_pairs(
    call: SearchCall, rule: TimeRule | None, criteria: Iterable[DateCriterion]
) -> Pairs | None:
    """Return the bounds to send, None if nothing can lie between them."""
    low: datetime | None = None
    high: datetime | None = None
    for criterion in criteria:
        if not criterion.values:
            return None
        if len(criterion.values) > 1:
            raise _refusal(call, Limit.ONE_VALUE)
        start, end = _bounds(call, criterion.values[0])
        low = max(filter(None, (low, start)), default=None)
        high = min(filter(None, (high, end)), default=None)
    if low is not None and high is not None and low >= high:
        return None
    if low is None and high is not None and isinstance(call.after, BoundParameter):
        # A FHIR server treats a period without a start as one that began before all days.
        low = _EARLIEST.replace(tzinfo=call.zone or (rule.zone if rule else UTC))
    unit = _UNITS[call.step].length
    bounds = (
        (call.low, low, timedelta()),
        (call.after, low, unit),
        (call.before, high, timedelta()),
        (call.until, high, unit),
    )
    return tuple(
        _bound(parameter, _written(call, rule, instant, less))
        for parameter, instant, less in bounds
        if parameter and instant is not None
    )


def _bound(parameter: str | BoundParameter, text: str) -> tuple[str, str]:
    if isinstance(parameter, BoundParameter):
        return parameter.send, parameter.prefix + text
    return parameter, text


def _bounds(
    call: SearchCall, value: DateValue
) -> tuple[datetime | None, datetime | None]:
    """Return the instants from which and before which a value matches."""
    if value.prefix not in _prefixes(call):
        raise _refusal(call, Limit.PREFIX)
    low, high = value.low, value.high
    starts = {Prefix.EQ: low, Prefix.GE: low, Prefix.GT: high}
    ends = {Prefix.EQ: high, Prefix.LE: high, Prefix.LT: low}
    return starts.get(value.prefix), ends.get(value.prefix)


def _written(
    call: SearchCall, rule: TimeRule | None, instant: datetime, less: timedelta
) -> str:
    """Return a bound as the source writes times; refused between two of its units."""
    unit = _UNITS[call.step]
    form = call.format or unit.format
    zone = call.zone or (rule.zone if rule else None)
    if rule is None or zone is None:
        # A birth date is a day of the calendar, whatever the zone of the search.
        local = instant.replace(tzinfo=None)
    else:
        local = to_local(instant, replace(rule, zone=zone))
    if (local - datetime.combine(local, time())) % unit.length:
        is_day = call.step is Step.DAY and instant.time() == time()
        raise _refusal(call, Limit.OTHER_DAYS if is_day else unit.limit)
    if form in EPOCHS:
        return str(ceil(epoch_of(instant - less, form)))
    try:
        if "z" in directives(form) and rule is not None:
            return in_format((instant - less).astimezone(zone), form)
        return in_format(local - less, form)
    except OverflowError as error:
        raise _refusal(call, Limit.PREFIX) from error
