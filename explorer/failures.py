"""Pages that cannot be shown: what is wrong in people's words, and what to do next."""

import logging
from collections.abc import Mapping

from werkzeug.exceptions import HTTPException

from app.call import request_id
from explorer.language import gettext
from explorer.language import mark as _

_NUMBER = _("Give the operator the number below, which identifies the reason.")

TEXTS: Mapping[int, tuple[str, str]] = {
    400: (
        _("This hospital does not offer such a search."),
        _("Change the search. If it worked before, tell the operator."),
    ),
    401: (_("Your login has ended."), _("Log in again.")),
    403: (
        _("Your account may not see this."),
        _("Ask the operator for permission; trying again does not help."),
    ),
    404: (
        _("This page does not exist."),
        _(
            "A result is stored for 15 minutes, and only for you. Search again. Somebody "
            "else’s link does not work for you."
        ),
    ),
    410: (
        _("This no longer exists."),
        _("The stay was removed, or the result has expired. Search again."),
    ),
    412: (
        _("The hospital system cannot read one of the values."),
        _("Correct it, and search again."),
    ),
    422: (_("The search is too wide."), _("Add a name, a number, a ward or dates.")),
    429: (_("Too many searches in this minute."), _("Wait a moment, then try again.")),
    500: (_("This page cannot be shown."), _NUMBER),
    502: (_("The hospital system returned an invalid answer."), _NUMBER),
    503: (
        _("The hospital system does not answer."),
        _("Wait a few seconds, then try again."),
    ),
}
"""What is wrong and what to do next, by status."""

_log = logging.getLogger(__name__)


class PageError(Exception):
    """A page that cannot be shown; without texts of its own it has those of its status.

    What the service has refused has the request id of the call, and the parameter that it
    names.
    """

    def __init__(
        self,
        status: int,
        text: str = "",
        advice: str = "",
        *,
        parameter: str = "",
        request_id: str = "",
    ) -> None:
        usual = TEXTS.get(status, TEXTS[500 if status >= 500 else 400])
        super().__init__(status, text)
        self.status = status
        self.text = gettext(text or usual[0])
        self.advice = gettext(advice or usual[1])
        self.parameter, self.request_id = parameter, request_id


def page_error(error: Exception) -> PageError:
    """Return what a page shows of an error; one that is not the person's is logged."""
    if isinstance(error, HTTPException):
        return PageError(error.code or 500, request_id=request_id() or "")
    page = error if isinstance(error, PageError) else PageError(500)
    if page.status >= 500 and not page.request_id:
        # The log formatter writes the type and places of the error, never its message.
        data = {"status": page.status}
        _log.error("page failed", exc_info=error, extra={"data": data})
    page.request_id = page.request_id or request_id() or ""
    return page
