"""Bundle: the pages of earlier searches (spec 4.3; decisions 10 and 14)."""

import re
from collections.abc import Mapping

from flask import Blueprint, Response, g, request

from app.audit import note_walk
from app.auth import require
from app.errors import BadRequestError, IssueCode
from app.middleware import check_format
from app.paging.store import Direction, PageLink, is_well_formed
from app.search.parser import bad_value, read_single_values
from app.service import current_service
from app.stages import Stage, stage
from app.views import (
    SEARCH_SCOPES,
    authenticated,
    fhir_response,
    is_lenient,
    request_parameters,
)
from app.views.resources import searchset_of

_CURSORS: Mapping[str, Direction] = {
    "_searchAfter": Direction.AFTER,
    "_searchBefore": Direction.BEFORE,
}
_WITHOUT_PAGING = ("_id", "_format", "_pretty")
"""What a deployment without paging lists as offered. It reads cursors all the same: they
are invented, or from the time before.
"""
_PARAMETERS = ("_id", "_index", *_CURSORS, "_format", "_pretty")
_INDEX = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)

blueprint = Blueprint("bundle", __name__)


@blueprint.get("/Bundle")
@authenticated
def page() -> Response:
    """Answer the page `_id`, or the page that its link leads to."""
    service = current_service()
    # Before any lookup: which of them is known only once the page is (decision 32).
    require(g.client, *dict.fromkeys(SEARCH_SCOPES.values()))
    with stage(Stage.PARSE):
        parameters = request_parameters()
        offered = _PARAMETERS if service.offer.paging else _WITHOUT_PAGING
        single = read_single_values(
            parameters, _PARAMETERS, lenient=is_lenient(), offered=offered
        )
        check_format(single.get("_format"), request.headers.get("Accept"))
    stored = service.sessions.find(_page_id(single), g.client.id, _link(single))
    note_walk(stored.search.resource_type, stored.search.parameters)
    require(g.client, SEARCH_SCOPES[stored.search.resource_type])
    result = service.sessions.run(stored)
    with stage(Stage.MAP):
        ignored = [name for name, _ in parameters if name not in single]
        bundle = searchset_of(service, result, ignored)
    return fhir_response(bundle, single)


def _page_id(single: Mapping[str, str]) -> str:
    if "_id" not in single:
        raise _required("_id")
    return _signed_id("_id", single["_id"])


def _link(single: Mapping[str, str]) -> PageLink | None:
    cursors = [name for name in _CURSORS if name in single]
    index = single.get("_index")
    if not cursors and index is None:
        return None
    if len(cursors) == 2:
        text = "use _searchAfter or _searchBefore, not both"
        raise bad_value("_searchBefore", single["_searchBefore"], text)
    if not cursors or index is None:
        raise _required("_index" if cursors else "_searchAfter")
    if not _INDEX.fullmatch(index):
        raise bad_value("_index", index, "it is the number of a page, from 1 on")
    (name,) = cursors
    return PageLink(_CURSORS[name], int(index), _signed_id(name, single[name]))


def _signed_id(name: str, text: str) -> str:
    if not is_well_formed(text):
        raise bad_value(name, text, "take it from a link of a search, as it stands")
    return text


def _required(name: str) -> BadRequestError:
    return BadRequestError(
        f"Parameter '{name}' is required here.",
        f"http.{name}",
        code=IssueCode.REQUIRED,
    )
