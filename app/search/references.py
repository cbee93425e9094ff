"""What a search and its pages refer to: patients by an identifier, and resources to include.

Both are searches of the adapter for other resources than those searched (decision 36).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from adapters.contract import (
    Adapter,
    Record,
    ReferenceCriterion,
    ResourceType,
    RowFault,
    SearchQuery,
    Sort,
    SortKey,
    Token,
    TokenCriterion,
)
from adapters.parameters import Include
from app.errors import BusinessRuleError, IssueCode
from app.search.parser import Search

MOST_PATIENTS = 100
"""How many patients a search may name by identifiers."""


def linked(search: Search, adapter: Adapter) -> tuple[Search, tuple[str, ...]]:
    """Return the search with patients' ids in place of their identifiers, and these ids.

    Raises BusinessRuleError for too many, and what the adapter raises.
    """
    if not search.patients:
        return search, ()
    kind = ResourceType.PATIENT
    most = MOST_PATIENTS + 1
    query = SearchQuery(kind, search.patients, sort=Sort(SortKey.ID), count=most)
    rows = adapter.search(query).rows
    if len(rows) > MOST_PATIENTS:
        raise BusinessRuleError(
            f"More than {MOST_PATIENTS} patients have such an identifier: name fewer.",
            "http.patient.identifier",
            code=IssueCode.TOO_COSTLY,
        )
    ids = tuple(row.id for row in rows if row.id)
    criteria = (*search.query.criteria, ReferenceCriterion("patient", ids))
    return replace(search, query=replace(search.query, criteria=criteria)), ids


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
        target_ids = ids.setdefault(include.target, {})
        for row in matches:
            if not isinstance(row, RowFault) and (id := getattr(row, include.field)):
                target_ids[id] = None
    rows: dict[ResourceType, Sequence[Record | RowFault]] = {}
    missing: list[str] = []
    for kind, target_ids in ids.items():
        rows[kind] = tuple(_rows_by_id(kind, tuple(target_ids), adapter))
        missing_ids = target_ids.keys() - {row.id for row in rows[kind]}
        missing += [f"{kind}/{id}" for id in missing_ids]
    return Included(rows, sorted(missing))


def _rows_by_id(
    kind: ResourceType, ids: Sequence[str], adapter: Adapter
) -> Iterator[Record | RowFault]:
    """Yield the resources with these ids, in as many searches as the source needs."""
    if not ids:
        return
    most = adapter.capabilities[kind].parameters["_id"].most or len(ids)
    for start in range(0, len(ids), most):
        tokens = tuple(Token(None, id) for id in ids[start : start + most])
        criterion = TokenCriterion("_id", tokens)
        sort = Sort(SortKey.ID)
        query = SearchQuery(kind, (criterion,), sort=sort, count=len(tokens))
        yield from adapter.search(query).rows
