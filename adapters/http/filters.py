"""A search in FHIR's terms as the parameters that the source is sent.

What the source cannot be asked is refused (NotAskableError); nothing is ever left out of
a question, and no rows are fetched to be filtered here.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from adapters.contract import (
    Criterion,
    DateCriterion,
    Limit,
    NotAskableError,
    ReferenceCriterion,
    ResourceType,
    SearchQuery,
    StringCriterion,
    StringMatch,
    Token,
    TokenCriterion,
)
from adapters.http.dates import date_pairs
from adapters.mapping.http_model import SearchCall, Several
from adapters.mapping.model import HIDDEN, REMOVED, FieldMapping, ResourceMapping
from adapters.mapping.parameters import COMPARED
from adapters.words import fold

Pair: TypeAlias = tuple[str, str]
Asked: TypeAlias = tuple[Pair, ...] | None
"""Parameters to send; None when nothing can match."""

_IDS = ("_id", "patient")
_LONGEST_ID = 64
_UNSENT = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Filters:
    """The parameters of one section."""

    section: ResourceMapping
    calls: Mapping[str, SearchCall]

    def of_query(self, query: SearchQuery) -> Asked:
        """Return what to send for all criteria of a search together."""
        pairs: list[Pair] = []
        for name in dict.fromkeys(c.parameter for c in query.criteria):
            criteria = [c for c in query.criteria if c.parameter == name]
            asked = self._of(self.calls[name], criteria)
            if asked is None:
                return None
            pairs += asked
        return tuple(pairs)

    def _of(self, call: SearchCall, criteria: Sequence[Criterion]) -> Asked:
        match criteria[0]:
            case DateCriterion():
                dates = [c for c in criteria if isinstance(c, DateCriterion)]
                rule = self._field(call).time if call.name == "date" else None
                return date_pairs(call, rule, dates)
            case StringCriterion() as text:
                if len(criteria) > 1:
                    raise refusal(call, Limit.ONCE)
                return _string(call, text)
            case TokenCriterion(parameter="identifier"):
                return self._identifiers(call, criteria)
            case _:
                values = [self._values(call, c) for c in criteria]
                return sent(call, call.send, _shared(call, values))

    def _values(self, call: SearchCall, criterion: Criterion) -> list[str]:
        field = self._field(call)
        if isinstance(criterion, ReferenceCriterion):
            codes: Iterable[str] = criterion.values
        elif isinstance(criterion, TokenCriterion):
            codes = [token.code for token in criterion.values if token.code]
        if call.name in _IDS:
            codes = field.own(code for code in codes if len(code) <= _LONGEST_ID)
        return [made for code in codes for made in _source_codes(call, field, code)]

    def _field(self, call: SearchCall) -> FieldMapping:
        return self.section.fields[COMPARED[self.section.resource_type][call.name]]

    # -------------------------------------------------------------- identifiers

    def _identifiers(self, call: SearchCall, criteria: Sequence[Criterion]) -> Asked:
        if len(criteria) > 1:
            raise refusal(call, Limit.ONCE)
        tokens = criteria[0].values
        named = [self._identifier(call, t) for t in tokens if isinstance(t, Token)]
        found = [pair for pair in named if pair is not None]
        if not any(system for system, _ in found):
            return sent(call, call.send, [number for _, number in found])
        if len(found) > 1 or call.system is None:
            raise refusal(call, Limit.ONE_VALUE)
        ((system, number),) = found
        asked = sent(call, call.send, [number])
        return None if asked is None else (*asked, (call.system.send, system))

    def _identifier(self, call: SearchCall, token: Token) -> Pair | None:
        """Return the source's code of the system ("" for any) and the number."""
        if token.code is None:
            raise refusal(call, Limit.SYSTEM)
        if token.system is None:
            return "", token.code
        constant = self._constant_system()
        if constant is not None:
            return ("", token.code) if token.system == constant else None
        if call.system is None or token.system == "":
            raise refusal(call, Limit.SYSTEM)
        if call.system.codes is None:
            return token.system, token.code
        code = call.system.codes.get(token.system)
        return None if code is None else (code, token.code)

    def _constant_system(self) -> str | None:
        """Return the one system of all visit numbers, where there is one."""
        if self.section.resource_type is not ResourceType.ENCOUNTER:
            return None
        system = self.section.fields.get("visit_number_system")
        return system.constant if system else ""


def _shared(call: SearchCall, values: Sequence[Sequence[str]]) -> Sequence[str]:
    """Return what to ask for when one of each list has to hold, of a stay that has one."""
    kept = [value for value in values[0] if all(value in other for other in values)]
    # Two numbers may be those of one patient, who was merged: only the source knows.
    differ = all(values) and all({*kept} != {*each} for each in values)
    if call.merged and differ:
        raise refusal(call, Limit.ONCE)
    return kept


def _source_codes(call: SearchCall, field: FieldMapping, code: str) -> tuple[str, ...]:
    if code in (HIDDEN, REMOVED) and field.slot == "status":
        return ()
    if field.codes is None:
        return (code,)
    if field.codes.otherwise == code:
        # It stands for whatever no table names: no source has a word for that.
        raise refusal(call, Limit.CODE)
    return field.codes.sources(code)


def _string(call: SearchCall, criterion: StringCriterion) -> Asked:
    names = {
        StringMatch.STARTS_WITH: call.send,
        StringMatch.CONTAINS: call.contains,
        StringMatch.EXACT: call.exact,
    }
    name = names[criterion.match]
    if not name:
        raise refusal(call, Limit.PREFIX)
    return sent(call, name, [text for text in criterion.values if fold(text)])


def sent(call: SearchCall, name: str, values: Iterable[str]) -> Asked:
    """Return the values of one parameter as the source takes several, None for none."""
    kept = list(dict.fromkeys(v for v in values if v and not _UNSENT.search(v)))
    if not kept:
        return None
    if call.several is Several.REPEAT:
        return tuple((name, value) for value in kept)
    if call.several is Several.COMMA:
        if any("," in value for value in kept):
            raise refusal(call, Limit.SIGN)
        return ((name, ",".join(kept)),)
    if len(kept) > 1:
        raise refusal(call, Limit.ONE_VALUE)
    return ((name, kept[0]),)


def refusal(call: SearchCall, limit: Limit) -> NotAskableError:
    """Return the error of a value that the source cannot be asked for."""
    return NotAskableError("the source cannot be asked for it", call.name, limit)
