"""What each of several sources can be asked, and what it has nothing to say to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeVar

from adapters.contract import (
    Adapter,
    Criterion,
    Limit,
    ParameterCapability,
    ReferenceCriterion,
    ResourceCapabilities,
    ResourceType,
    SearchQuery,
    SortKey,
    SourceDataError,
    SourceUnavailableError,
    TokenCriterion,
)
from adapters.lanes import Lane

Answer = TypeVar("Answer")

_FINEST_FIRST = (None, Limit.SECOND, Limit.MINUTE, Limit.DAY)
_ONE_BY_ONE = "one source after the other, each in its own order"


@dataclass(frozen=True, slots=True)
class Part:
    """Resources of one type from one source, whose ids begin with `prefix`.

    Its adapter serves and understands ids as clients see them. `patients` is the prefix
    of the patients that its stays are of. `lacks` are parameters and sort keys that none
    of its rows has a value for. Calls run in `lane`, counts in `counts`; all parts of a
    source share them.
    """

    name: str
    kind: ResourceType
    adapter: Adapter
    lane: Lane
    counts: Lane
    prefix: str = ""
    patients: str = ""
    lacks: frozenset[str] = frozenset()

    @property
    def capabilities(self) -> ResourceCapabilities:
        """What the source can be asked of these resources."""
        return self.adapter.capabilities[self.kind]

    def concerns(self, query: SearchQuery) -> bool:
        """Whether a row of this part can match; nobody else is asked."""
        return all(self._may_match(criterion) for criterion in query.criteria)

    def keyless(self, query: SearchQuery) -> bool:
        """Whether no row of this part has the key that a search is ordered by."""
        return query.sort.key is not SortKey.ID and query.sort.key in self.lacks

    def named(self, call: Callable[[], Answer]) -> Answer:
        """Return what a call of the adapter returns; a failure names the source."""
        try:
            return call()
        except SourceUnavailableError as error:
            away = SourceUnavailableError(self.telling(error))
            away.source = self.name
            raise away from error
        except SourceDataError as error:
            text = self.telling(error)
            wrong = SourceDataError(text, error.fault, refused=error.refused)
            wrong.source = self.name
            raise wrong from error

    def telling(self, text: object) -> str:
        """Return a text with the name of the source before it, where it has one."""
        return f"source {self.name}: {text}" if self.name else str(text)

    def _may_match(self, criterion: Criterion) -> bool:
        match criterion:
            case ReferenceCriterion(values=ids):
                return any(id.startswith(self.patients) for id in ids)
            case TokenCriterion(parameter="_id", values=tokens):
                return any((t.code or "").startswith(self.prefix) for t in tokens)
            case _:
                return criterion.parameter not in self.lacks


def common(parts: Sequence[Part]) -> ResourceCapabilities:
    """Return what can be asked of all parts at once.

    Only what every part can go on with has pages (decision 12): an HTTP API cannot be asked
    for what comes after a row of another source.

    A part that lacks a parameter's field matches nothing and is in nobody's way; one that
    has the field and cannot filter by it withdraws the parameter. Sort keys likewise.
    """
    each = [part.capabilities for part in parts]
    if len(each) == 1:
        return each[0]
    names = dict.fromkeys(name for able in each for name in able.parameters)
    sorts = dict.fromkeys(key for able in each for key in able.sorts)
    keyset = all(able.keyset for able in each)
    shared = tuple(
        key
        for key in sorts
        if all(key in p.capabilities.sorts or key in p.lacks for p in parts)
    )
    return ResourceCapabilities(
        parameters={
            name: _narrowest(name, parts)
            for name in names
            if all(name in p.capabilities.parameters or name in p.lacks for p in parts)
        },
        sorts=shared,
        keyset=keyset,
        dated=all(able.dated for able in each),
        paging=keyset,
        backwards=keyset,
        order="" if shared else _ONE_BY_ONE,
    )


def _narrowest(name: str, parts: Sequence[Part]) -> ParameterCapability:
    found = [p.capabilities.parameters.get(name) for p in parts if name not in p.lacks]
    return reduce(
        lambda one, other: ParameterCapability(
            one.prefixes & other.prefixes,
            one.matches & other.matches,
            max(one.finest, other.finest, key=_FINEST_FIRST.index),
            one.period or other.period,
        ),
        (able for able in found if able is not None),
    )
