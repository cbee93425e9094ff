"""Bundle: the pages of earlier searches (spec 4.3; decisions 10 and 14)."""

import re
from collections.abc import Mapping

from flask import Blueprint, Response

from app.auth import require
from app.current import sent
from app.errors import BadRequestError, IssueCode
from app.negotiation import check_format
from app.operations.audit import note_walk
from app.paging import PageLink
from app.search import read_single_values
from app.service import service
from app.stamps import is_well_formed
from app.stored import Direction
from app.values import bad_value
from app.views.asked import is_lenient, request_pairs
from app.views.bundles import present
from app.views.common import (
    SEARCH_SCOPES,
    answer,
    authenticated,
    client,
)

_CURSORS: Mapping[str, Direction] = {
    "_searchAfter": Direction.AFTER,
    "_searchBefore": Direction.BEFORE,
}
_SELF = ("_id", "_format", "_pretty")
"""What a deployment without further pages offers. A cursor is read there all the same: it
is one that was made up, or one of the time before.
"""
_TAKEN = ("_id", "_index", *_CURSORS, "_format", "_pretty")
_INDEX = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)

blueprint = Blueprint("bundle", __name__)


@blueprint.get("/Bundle")
@authenticated
def page() -> Response:
    """Answer a page: the one of `_id`, or the one that its link leads to."""
    joined = service()
    pairs = request_pairs()
    offered = _TAKEN if joined.offer.paging else _SELF
    asked = read_single_values(pairs, _TAKEN, lenient=is_lenient(), offered=offered)
    check_format(asked.get("_format"), sent("HTTP_ACCEPT"))
    kept = joined.walks.find(_page_id(asked), client().id, _link(asked))
    note_walk(kept.search.resource_type, kept.search.pairs)
    require(client(), SEARCH_SCOPES[kept.search.resource_type])
    left_out = [name for name, _ in pairs if name not in asked]
    return answer(present(joined, joined.walks.show(kept), left_out), asked)


def _page_id(asked: Mapping[str, str]) -> str:
    if "_id" not in asked:
        raise _required("_id")
    return _stamp("_id", asked["_id"])


def _link(asked: Mapping[str, str]) -> PageLink | None:
    cursors = [name for name in _CURSORS if name in asked]
    index = asked.get("_index")
    if not cursors and index is None:
        return None
    if len(cursors) == 2:
        text = "use _searchAfter or _searchBefore, not both"
        raise bad_value("_searchBefore", asked["_searchBefore"], text)
    if not cursors or index is None:
        raise _required("_index" if cursors else "_searchAfter")
    if not _INDEX.fullmatch(index):
        raise bad_value("_index", index, "it is the number of a page, from 1 on")
    (name,) = cursors
    return PageLink(_CURSORS[name], int(index), _stamp(name, asked[name]))


def _stamp(name: str, text: str) -> str:
    if not is_well_formed(text):
        raise bad_value(name, text, "take it from a link of a search, as it stands")
    return text


def _required(name: str) -> BadRequestError:
    return BadRequestError(
        f"Parameter '{name}' is required here.",
        f"http.{name}",
        code=IssueCode.REQUIRED,
    )
