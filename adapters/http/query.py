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
    """Return the searches to send in place of one, in the order of its results.

    A search for dates that are not in an interval (`ne`) is sent as two: before the interval
    and after it. Raises NotAskableError where the results of the two are not one list.
    """
    negated = [
        (index, c)
        for index, c in enumerate(query.criteria)
        if isinstance(c, DateCriterion) and any(v.prefix is Prefix.NE for v in c.values)
    ]
    if not negated:
        return (query,)
    index, criterion = negated[0]
    is_sort_key = criterion.parameter == query.sort.key
    is_one_list = is_sort_key and can_split(section)
    if len(negated) > 1 or len(criterion.values) > 1 or not is_one_list:
        raise _refusal(_http(section).search[criterion.parameter], Limit.PREFIX)
    prefixes = [Prefix.LT, Prefix.GT]
    if query.sort.descending:
        prefixes.reverse()
    searches = []
    for prefix in prefixes:
        value = replace(criterion.values[0], prefix=prefix)
        searches.append(_with(query, replace(criterion, values=(value,)), index))
    return tuple(searches)


def can_split(section: ResourceMapping) -> bool:
    """Whether two searches of a section can be read as one list."""
    listed = _http(section).list
    if listed is None or listed.total is None or listed.paging is None:
        return False
    return listed.paging.is_numbered


def keyed(section: ResourceMapping, query: SearchQuery) -> SearchQuery | None:
    """Return the search for the rows that have the sort key alone.

    None if the source returns these first anyway, or if it cannot be asked for them.
    """
    sort = _http(section).sort
    key = query.sort.key
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


def _with(query: SearchQuery, criterion: Criterion, index: int) -> SearchQuery:
    """Return a search whose criterion at an index is another one, or added at the end."""
    criteria = (*query.criteria[:index], criterion, *query.criteria[index + 1 :])
    return replace(query, criteria=criteria)


class _Filter(NamedTuple):
    """One search parameter of a section, and how it is sent."""

    section: ResourceMapping
    call: SearchCall
    rule: ValueRule

    def pairs(self, criteria: Sequence[Criterion]) -> QueryPairs | None:
        """Return what to send for all criteria of this parameter."""
        first = criteria[0]
        match first:
            case DateCriterion():
                dates = [c for c in criteria if isinstance(c, DateCriterion)]
                return _date_pairs(self.call, self._time_rule(), dates, self._field)
            case StringCriterion():
                self._require_one(criteria)
                return self._texts(first)
            case TokenCriterion() if self._row.system_slot is not None:
                self._require_one(criteria)
                return self._identifiers(first)
            case TokenCriterion() if self._means_otherwise(first):
                self._require_one(criteria)
                return self._all_but(first)
        assert self.call.query is not None, "the schema requires it"
        codes = [self._codes(criterion) for criterion in criteria]
        return self._sent(self.call.query, self._in_all(codes))

    def _require_one(self, criteria: Sequence[Criterion]) -> None:
        if len(criteria) > 1:
            raise _refusal(self.call, Limit.ONCE)

    def _texts(self, criterion: StringCriterion) -> QueryPairs | None:
        """Return what to send for texts, None if none of them can match."""
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
        """Return what excludes the source's codes that stand for other values."""
        codes = self._field.codes
        excluding = self.call.excluding
        assert codes is not None, "_means_otherwise checks it"
        assert excluding is not None, "_means_otherwise checks it"
        wanted = {token.code for token in criterion.values}
        absent = self._absent
        unwanted = [
            code for code, target in codes.table.items() if target not in wanted
        ]
        excluded = [code for code in unwanted if code not in absent]
        return self._sent(excluding, excluded) if excluded else ()

    def _sent(self, template: Template, values: Sequence[str]) -> QueryPairs | None:
        """Return what to send for values, each once, None if none of them fits."""
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
        """Return the source's own codes or ids for the values of a criterion.

        Raises NotAskableError for a value that means every code without an entry.
        """
        values: Sequence[str] = ()
        if isinstance(criterion, ReferenceCriterion):
            values = criterion.values
        elif isinstance(criterion, TokenCriterion):
            values = [token.code for token in criterion.values if token.code]
        field = self._field
        codes = field.codes
        if self._row.is_id or isinstance(criterion, ReferenceCriterion):
            values = field.source_ids(id for id in values if len(id) <= LONGEST_ID)
        if field.slot == "status":
            values = [code for code in values if code not in UNSERVED]
        if codes is not None:
            if codes.otherwise in values:
                raise _refusal(self.call, Limit.CODE)
            values = [source for code in values for source in codes.sources(code)]
        absent = self._absent
        return [value for value in values if value not in absent]

    def _in_all(self, codes: Sequence[Sequence[str]]) -> Sequence[str]:
        """Return the codes that all criteria of a parameter name.

        Raises NotAskableError if the criteria name different patients of a source that
        merges patients: only the source knows whether two ids are of one patient.
        """
        first = codes[0]
        common = [code for code in first if all(code in named for named in codes)]
        differ = all(codes) and all({*common} != {*named} for named in codes)
        if self.call.merged and differ:
            raise _refusal(self.call, Limit.ONCE)
        return common

    def _identifiers(self, criterion: TokenCriterion) -> QueryPairs | None:
        """Return what is sent for identifiers, None if no row can have one of them.

        Those with a system are sent by the template `system`, the others by `query`.
        Raises NotAskableError if one request cannot hold them all.
        """
        call = self.call
        identifiers: list[dict[str, str]] = []
        for token in dict.fromkeys(criterion.values):
            if token.code is None:
                raise _refusal(call, Limit.SYSTEM)
            system = self._system(token)
            if system is not None and token.code not in self._absent:
                identifiers.append(
                    {"value": token.code, "values": token.code, "system": system}
                )
        templates = [
            call.system if identifier["system"] else call.query
            for identifier in identifiers
        ]

        # Values in the middle of a text have no place for the system of one of them.
        is_inside = call.query is not None and not call.query.is_list_of_texts
        if len(identifiers) > 1 and call.system in templates and is_inside:
            raise _refusal(call, Limit.ONE_VALUE)
        if len({*templates}) == 1 and templates[0] is not None:
            return self._pairs(templates[0], identifiers)

        # Both templates are in use: their texts are one list if they fill one parameter.
        sent: list[tuple[str, str]] = []
        for template, identifier in zip(templates, identifiers, strict=True):
            if template is not None:
                sent += self._pairs(template, [identifier]) or ()
        if not sent:
            return None
        names = {name for name, _ in sent}
        if len(names) > 1 or (len(sent) > 1 and not call.separator):
            raise _refusal(call, Limit.ONE_VALUE)
        return ((names.pop(), call.separator.join(text for _, text in sent)),)

    def _system(self, token: Token) -> str | None:
        """Return what is sent for a token's system: "" for nothing, None if no row has it.

        Raises NotAskableError if the source cannot be searched by it.
        """
        call = self.call
        constant = self._constant_system()
        if constant is not None:
            if token.system not in (None, constant):
                return None
            # Every row has this system: it is sent where the template has a place for it.
            has_place = call.system is not None and call.codes is None
            return constant if has_place else ""
        if token.system is None:
            return ""
        if call.system is None or token.system == "":
            raise _refusal(call, Limit.SYSTEM)
        return token.system if call.codes is None else call.codes.get(token.system)

    def _constant_system(self) -> str | None:
        """Return the one system of all identifiers, "" if they have none, None if it varies."""
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
        """The texts that mean no value in every field that is compared (decision 45)."""
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
    """Return the error of a criterion that the source cannot compare."""
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
    """Return the parameters for the bounds of a time, None if nothing lies between them.

    `rule` is None for days of the calendar. Raises NotAskableError for what the source
    cannot compare.
    """
    low, high = _bounds_of_real_times(call, rule, field)
    for criterion in criteria:
        if not criterion.values:
            return None
        if len(criterion.values) > 1:
            raise _refusal(call, Limit.ONE_VALUE)
        start, end = _bounds(call, criterion.values[0])
        low = _later(low, start)
        high = _earlier(high, end)
    if low is not None and high is not None and low >= high:
        return None
    unit = _UNITS[call.step].length
    pairs: QueryPairs = ()
    for prefix, template in call.bounds.items():
        instant = low if prefix in (Prefix.GE, Prefix.GT) else high
        if instant is None:
            continue
        # From `instant` on is "greater than the unit before", before it "up to that unit".
        subtracted = unit if prefix in (Prefix.GT, Prefix.LE) else timedelta()
        form = template.places[0].form or _UNITS[call.step].format
        text = _written(call, rule, instant, subtracted=subtracted, form=form)
        pairs += template.one({"value": text}, ValueRule(), trusted=True) or ()
    return pairs


def _later(first: datetime | None, second: datetime | None) -> datetime | None:
    """Return the later of two bounds, None if there is neither."""
    bounds = [bound for bound in (first, second) if bound is not None]
    return max(bounds, default=None)


def _earlier(first: datetime | None, second: datetime | None) -> datetime | None:
    """Return the earlier of two bounds, None if there is neither."""
    bounds = [bound for bound in (first, second) if bound is not None]
    return min(bounds, default=None)


def _bounds_of_real_times(
    call: SearchCall, rule: TimeRule | None, field: FieldMapping
) -> tuple[datetime | None, datetime | None]:
    """Return from and before which instants real times lie, None for no limit (decision 45).

    An API may hold a time that is not known as a day that is early or late, one of the
    texts of `absent`. Without these bounds it would find such rows. A text that is a day
    between real ones gives no bound; its rows are faults.
    """
    assert field.time is not None, "the loader gives every time a rule"
    zone = call.zone or field.time.zone
    first_day = _EARLIEST if rule else _FIRST_BIRTH
    earliest = first_day.replace(tzinfo=zone)
    latest_day = datetime.now(zone).date() + _PLANNED
    # A FHIR server treats a period without a start as one that began before all days.
    low = earliest if Prefix.GT in call.bounds else None
    high: datetime | None = None
    for text in field.absent:
        with suppress(ValueError):
            day = read_day(text, field.time)
            if day < earliest.date():
                low = earliest
            elif day > latest_day:
                midnight = datetime.combine(day, time(), field.time.zone)
                sent_day = midnight.astimezone(zone).date()
                high = _earlier(high, datetime.combine(sent_day, time(), zone))
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
    *,
    subtracted: timedelta,
    form: str,
) -> str:
    """Return an instant minus `subtracted`, as the source writes times.

    Raises NotAskableError for an instant between two of the source's units, such as 10:00
    where it compares whole days, and for one that the format cannot hold.
    """
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
        return str(ceil(epoch_of(instant - subtracted, form)))
    try:
        if "z" in directives(form) and rule is not None:
            return in_format((instant - subtracted).astimezone(zone), form)
        return in_format(local - subtracted, form)
    except OverflowError as error:
        raise _refusal(call, Limit.PREFIX) from error
