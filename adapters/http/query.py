"""SearchQuery → the parameters that an HTTP source is sent, by the templates of the mapping.

What the source cannot compare is refused (NotAskableError): no criterion is left out, no
bound is widened, and no rows are fetched to be filtered here. A value that no template can
hold matches nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, time, timedelta
from math import ceil
from types import MappingProxyType
from typing import NamedTuple

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
    FieldMapping,
    HttpSection,
    ResourceMapping,
    SearchCall,
    Step,
    TimeRule,
)
from adapters.mapping.slots import (
    LONGEST_ID,
    SLOTS,
    UNSERVED,
    Slot,
    SlotKind,
    field_of,
    places_of,
)
from adapters.mapping.template import QueryPairs, Template, ValueRule
from adapters.mapping.times import (
    EPOCHS,
    directives,
    epoch_of,
    in_format,
    read_day,
    to_local,
)
from adapters.parameters import (
    SEARCH_PARAMETERS,
    SORTS,
    ParameterType,
    SearchParameter,
)


def parameters_of(
    section: ResourceMapping, query: SearchQuery, rule: ValueRule
) -> QueryPairs | None:
    """Return the parameters for all criteria of a search, None if nothing can match."""
    pairs: QueryPairs = ()
    for name in dict.fromkeys(c.parameter for c in query.criteria):
        criteria = [c for c in query.criteria if c.parameter == name]
        sent = _Filter(section, _http(section).search[name], rule).pairs(criteria)
        if sent is None:
            return None
        pairs += sent
    return pairs


def _http(section: ResourceMapping) -> HttpSection:
    assert section.http is not None, "only sections of HTTP sources are sent"
    return section.http


_EARLIEST = datetime(1940, 1, 1)  # noqa: DTZ001 - a day of each zone
"""Before every stay: a source treats a row without a start as none after this day."""

_FIRST_BIRTH = datetime(1850, 1, 1)  # noqa: DTZ001
_PLANNED = timedelta(days=3650)
"""No stay is planned further ahead: a time after it that is `absent` is later than all others."""


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
    rule: ValueRule

    def pairs(self, criteria: Sequence[Criterion]) -> QueryPairs | None:
        """Return what to send for all criteria of this parameter."""
        match criteria[0]:
            case DateCriterion():
                dates = [c for c in criteria if isinstance(c, DateCriterion)]
                return _date_pairs(self.call, self._time_rule(), dates, self._field)
            case StringCriterion() as texts:
                self._require_one(criteria)
                return self._texts(texts)
            case TokenCriterion() as numbers if self._row.system_slot is not None:
                self._require_one(criteria)
                return self._identifiers(numbers)
            case TokenCriterion() as tokens if self._means_otherwise(tokens):
                self._require_one(criteria)
                return self._all_but(tokens)
        assert self.call.query is not None, "the schema requires it"
        codes = [self._codes(criterion) for criterion in criteria]
        return self._sent(self.call.query, self._in_all(codes))

    def _require_one(self, criteria: Sequence[Criterion]) -> None:
        if len(criteria) > 1:
            raise _refusal(self.call, Limit.ONCE)

    def _texts(self, criterion: StringCriterion) -> QueryPairs | None:
        template = _match_templates(self.call)[criterion.match]
        if template is None:
            raise _refusal(self.call, Limit.PREFIX)
        texts = [text for text in criterion.values if fold(text)]
        if criterion.match is StringMatch.EXACT:
            texts = [text for text in texts if text not in self._absent]
        return self._sent(template, texts)

    def _means_otherwise(self, criterion: TokenCriterion) -> bool:
        """Whether a value means every code without an entry, and the source can exclude codes."""
        codes = self._field.codes
        if self.call.excluding is None or codes is None or not codes.otherwise:
            return False
        return any(token.code == codes.otherwise for token in criterion.values)

    def _all_but(self, criterion: TokenCriterion) -> QueryPairs | None:
        """Return what excludes the codes that stand for other values."""
        codes, excluding = self._field.codes, self.call.excluding
        assert codes is not None, "what it means is checked before"
        assert excluding is not None, "what it means is checked before"
        wanted, absent = {token.code for token in criterion.values}, self._absent
        others = [code for code, target in codes.table.items() if target not in wanted]
        others = [code for code in others if code not in absent]
        return self._sent(excluding, others) if others else ()

    def _sent(self, template: Template, values: Sequence[str]) -> QueryPairs | None:
        distinct = dict.fromkeys(values)
        return self._pairs(template, [{"value": v, "values": v} for v in distinct])

    def _pairs(
        self, template: Template, values: Sequence[Mapping[str, str]]
    ) -> QueryPairs | None:
        """Return several values of one parameter in the source's form, None for none."""
        call = self.call
        if len(values) > 1 and not template.takes_several(call.separator):
            raise _refusal(call, Limit.ONE_VALUE)
        if len(values) > call.most:
            raise _refusal(call, Limit.MOST)
        # A code of the file is what its author wrote, and no client's text.
        is_code = self._row.type is ParameterType.TOKEN and not self._row.system_slot
        trusted = is_code and self._field.codes is not None
        return template.several(values, self.rule, call.separator, trusted=trusted)

    def _codes(self, criterion: Criterion) -> list[str]:
        """Return the source's own codes or ids for the values of a criterion."""
        values: Sequence[str] = ()
        if isinstance(criterion, ReferenceCriterion):
            values = criterion.values
        elif isinstance(criterion, TokenCriterion):
            values = [token.code for token in criterion.values if token.code]
        field, codes = self._field, self._field.codes
        if self._row.is_id or isinstance(criterion, ReferenceCriterion):
            values = field.source_ids(id for id in values if len(id) <= LONGEST_ID)
        if field.slot == "status":
            values = [code for code in values if code not in UNSERVED]
        if codes is not None:
            if codes.otherwise in values:
                # It means every code without an entry: the source has no word for that.
                raise _refusal(self.call, Limit.CODE)
            values = [source for code in values for source in codes.sources(code)]
        absent = self._absent
        return [value for value in values if value not in absent]

    def _in_all(self, codes: Sequence[Sequence[str]]) -> Sequence[str]:
        """Return the codes that all criteria have in common."""
        common = [code for code in codes[0] if all(code in other for other in codes)]
        # Two ids may be those of one merged patient, which only the source knows.
        differ = all(codes) and all({*common} != {*other} for other in codes)
        if self.call.merged and differ:
            raise _refusal(self.call, Limit.ONCE)
        return common

    def _identifiers(self, criterion: TokenCriterion) -> QueryPairs | None:
        """Return what is sent for numbers, those with a system by a template of their own."""
        call, numbers = self.call, []
        for token in dict.fromkeys(criterion.values):
            if token.code is None:
                raise _refusal(call, Limit.SYSTEM)
            system = self._system(token)
            if system is not None and token.code not in self._absent:
                number = {"value": token.code, "values": token.code, "system": system}
                numbers.append(number)
        templates = [call.system if n["system"] else call.query for n in numbers]
        is_inside = call.query is not None and not call.query.is_list_of_texts
        if len(numbers) > 1 and call.system in templates and is_inside:
            raise _refusal(call, Limit.ONE_VALUE)
        if len({*templates}) == 1 and templates[0] is not None:
            return self._pairs(templates[0], numbers)
        # One list holds numbers with and without a system, if their parameter is the same.
        sent: list[tuple[str, str]] = []
        for template, number in zip(templates, numbers, strict=True):
            sent += (self._pairs(template, [number]) if template else None) or ()
        names = {name for name, _ in sent}
        if len(names) > 1 or (len(sent) > 1 and not call.separator):
            raise _refusal(call, Limit.ONE_VALUE)
        if not sent:
            return None
        return ((names.pop(), call.separator.join(text for _, text in sent)),)

    def _system(self, token: Token) -> str | None:
        """Return what is sent for a token's system: "" for nothing, None if no row has it."""
        constant, call = self._constant_system(), self.call
        if constant is not None:
            if token.system not in (None, constant):
                return None
            # Every row has this system: it is sent where the template has a place for it.
            return constant if call.system is not None and call.codes is None else ""
        if token.system is None:
            return ""
        if call.system is None or token.system == "":
            raise _refusal(call, Limit.SYSTEM)
        return token.system if call.codes is None else call.codes.get(token.system)

    def _constant_system(self) -> str | None:
        """Return the one system of all numbers, "" if they have none, None if it varies."""
        if self._row.system_slot not in _slots(self.section.resource_type):
            return None
        system = self.section.fields.get(str(self._row.system_slot))
        return system.constant if system else ""

    def _time_rule(self) -> TimeRule | None:
        """Return how the source's times are read, None for days of the calendar."""
        slot = _slots(self.section.resource_type)[self._row.slots[0]]
        return self._field.time if slot.kind is SlotKind.TIME else None

    @property
    def _absent(self) -> frozenset[str]:
        """The texts that are no value wherever the parameter is compared (decision 45)."""
        places = places_of(self.section)
        slots = self._row.slots
        texts = [place.field.absent for place in places if place.slot in slots]
        return frozenset.intersection(*texts) if texts else frozenset()

    @property
    def _field(self) -> FieldMapping:
        kind = self.section.resource_type
        return self.section.fields[field_of(kind, self.call.name)]

    @property
    def _row(self) -> SearchParameter:
        return SEARCH_PARAMETERS[self.section.resource_type][self.call.name]


def _slots(kind: ResourceType) -> Mapping[str, Slot]:
    """Return the slots of a resource itself, without those of the items of its lists."""
    return {slot.name: slot for slot in SLOTS[kind]}


def _match_templates(call: SearchCall) -> Mapping[StringMatch, Template | None]:
    return {
        StringMatch.STARTS_WITH: call.query,
        StringMatch.CONTAINS: call.contains,
        StringMatch.EXACT: call.exact,
    }


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
    if call.bounds:
        limit = _UNITS[call.step].limit
        prefixes = _prefixes(call)
        if splits and Prefix.EQ in prefixes:
            prefixes |= {Prefix.NE}
        return ParameterCapability(prefixes=prefixes, finest=limit)
    matches = _match_templates(call).items()
    takes_several = call.query and call.query.takes_several(call.separator)
    return ParameterCapability(
        matches=frozenset(m for m, text in matches if text),
        most=call.most if takes_several else 1,
        own_words=True,
    )


def _prefixes(call: SearchCall) -> frozenset[Prefix]:
    """Return the prefixes that the source's bounds can express; `ne` is never one."""
    lower = {Prefix.GE, Prefix.GT} if call.lower else set()
    upper = {Prefix.LT, Prefix.LE} if call.upper else set()
    both = {Prefix.EQ} if lower and upper else set()
    return frozenset(lower | upper | both)


def _date_pairs(
    call: SearchCall,
    rule: TimeRule | None,
    criteria: Iterable[DateCriterion],
    field: FieldMapping,
) -> QueryPairs | None:
    """Return the bounds to send, None if nothing can lie between them."""
    low, high = _bounds_of_real_times(call, rule, field)
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
    unit = _UNITS[call.step].length
    pairs: QueryPairs = ()
    for prefix, template in call.bounds.items():
        instant = low if prefix in (Prefix.GE, Prefix.GT) else high
        if instant is not None:
            is_inside = prefix in (Prefix.GT, Prefix.LE)
            less = unit if is_inside else timedelta()
            form = template.places[0].form or _UNITS[call.step].format
            text = _written(call, rule, instant, less, form)
            pairs += template.one({"value": text}, ValueRule(), trusted=True) or ()
    return pairs


def _bounds_of_real_times(
    call: SearchCall, rule: TimeRule | None, field: FieldMapping
) -> tuple[datetime | None, datetime | None]:
    """Return the bounds without which an API would find rows that have no time (decision 45).

    An absent time between real ones cannot be left out so; its rows are faults.
    """
    assert field.time is not None, "the loader gives every time a rule"
    zone = call.zone or field.time.zone
    earliest = (_EARLIEST if rule else _FIRST_BIRTH).replace(tzinfo=zone)
    latest = datetime.now(zone).date() + _PLANNED
    # A FHIR server treats a period without a start as one that began before all days.
    low = earliest if Prefix.GT in call.bounds else None
    high: datetime | None = None
    for text in field.absent:
        with suppress(ValueError):
            day = read_day(text, field.time)
            if day < earliest.date():
                low = earliest
            elif day > latest:
                midnight = datetime.combine(day, time(), field.time.zone)
                day = midnight.astimezone(zone).date()
                bounds = (high, datetime.combine(day, time(), zone))
                high = min(filter(None, bounds), default=None)
    return low, high


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
    call: SearchCall,
    rule: TimeRule | None,
    instant: datetime,
    less: timedelta,
    form: str,
) -> str:
    """Return a bound as the source writes times; refused between two of its units."""
    unit = _UNITS[call.step]
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
