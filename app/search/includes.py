"""The resources that a page refers to, found by their ids (`_include`; decision 36)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from adapters.contract import (
    Adapter,
    Record,
    ResourceType,
    RowFault,
    SearchQuery,
    Sort,
    SortKey,
    Token,
    TokenCriterion,
)
from adapters.parameters import Include


@dataclass(frozen=True, slots=True)
class Included:
    """Resources beside the matches of a page, by type, each once; `missing` are references."""

    rows: Mapping[ResourceType, Sequence[Record | RowFault]] = field(
        default_factory=dict
    )
    missing: Sequence[str] = ()

    @property
    def records(self) -> Iterator[Record]:
        """The resources that can be shown."""
        for rows in self.rows.values():
            for row in rows:
                if not isinstance(row, RowFault):
                    yield row


def included_in(
    matches: Sequence[Record | RowFault], includes: Sequence[Include], adapter: Adapter
) -> Included:
    """Return the resources that the matches refer to: one search of the adapter for each type.

    A source that accepts fewer ids in one search gets several. Raises what the adapter raises.
    """
    ids: dict[ResourceType, dict[str, None]] = {}
    for include in includes:
        of_type = ids.setdefault(include.target, {})
        for row in matches:
            if not isinstance(row, RowFault) and (id := getattr(row, include.field)):
                of_type[id] = None
    rows = {
        kind: tuple(_found(kind, tuple(of_type), adapter))
        for kind, of_type in ids.items()
    }
    missing = [
        f"{kind}/{id}"
        for kind, of_type in ids.items()
        for id in of_type.keys() - {row.id for row in rows[kind]}
    ]
    return Included(rows, sorted(missing))


def _found(
    kind: ResourceType, ids: Sequence[str], adapter: Adapter
) -> Iterator[Record | RowFault]:
    most = adapter.capabilities[kind].parameters["_id"].most or len(ids)
    for start in range(0, len(ids), most or 1):
        tokens = tuple(Token(None, id) for id in ids[start : start + most])
        criterion = TokenCriterion("_id", tokens)
        query = SearchQuery(kind, (criterion,), Sort(SortKey.ID), len(tokens))
        yield from adapter.search(query).rows
