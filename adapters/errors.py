"""What can go wrong with a hospital system, named by what to do next.

    AdapterError
    ├── NotFoundError            there is no such resource
    ├── GoneError                there was one; it has been removed
    ├── SourceUnavailableError   the hospital system did not answer: try again later
    │   └── SourceTimedOutError  the same, since it took longer than it may
    ├── SourceDataError          it answered what cannot be read: tell the integrator
    ├── TooCostlyError           the question is too wide for its time budget: narrow it
    └── NotAskableError          the source has no way to be asked this: ask otherwise

None knows HTTP.
"""

from enum import StrEnum

from adapters.records import RowFault


class AdapterError(Exception):
    """A hospital system could not give what was asked. The text is for the log only.

    `source` is the name that the mapping has for it, where there are several.
    """

    source: str = ""


class NotFoundError(AdapterError):
    """There is no such resource."""


class GoneError(AdapterError):
    """The resource was there and has been removed."""


class SourceUnavailableError(AdapterError):
    """The source did not answer in time, or not at all: trying again later may help."""


class SourceTimedOutError(SourceUnavailableError):
    """The source took longer than it may."""


class SourceDataError(AdapterError):
    """The source answered what cannot be read; `fault` says where, when one row did.

    It is `refused` where the source lets this account in nowhere. `code` is the number with
    which the source refused the question, 0 where it gave none.
    """

    def __init__(
        self,
        text: str,
        fault: RowFault | None = None,
        *,
        refused: bool = False,
        code: int = 0,
    ) -> None:
        super().__init__(text)
        self.code = code
        self.fault = fault
        self.refused = refused


class TooCostlyError(AdapterError):
    """The question goes past its time budget: a narrower one may not."""


class Limit(StrEnum):
    """What keeps a source from comparing a value of a parameter that it offers."""

    ONE_VALUE = "takes one value"
    ONCE = "takes what is given once, with one value or several"
    DAY = "compares whole days"
    OTHER_DAYS = "compares whole days that begin at another time"
    MINUTE = "compares whole minutes"
    SECOND = "compares whole seconds"
    PREFIX = "cannot compare with this prefix"
    CODE = "has no name for this code"
    SYSTEM = "cannot be asked for this system"
    SIGN = "cannot be sent such a sign"


class NotAskableError(AdapterError):
    """The source cannot compare this value of a parameter that it offers otherwise."""

    def __init__(
        self, text: str, parameter: str = "", limit: Limit | None = None
    ) -> None:
        super().__init__(text)
        self.parameter = parameter
        self.limit = limit
