"""An HTTP source as checked, typed values; paths into answers are tuples of keys."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from adapters.mapping.model import Mark

Path: TypeAlias = tuple[str, ...]


class Several(StrEnum):
    """How several values of one parameter are sent."""

    ONE = "one"
    COMMA = "comma"
    REPEAT = "repeat"


class Step(StrEnum):
    """The precision with which a source compares times."""

    DAY = "day"
    MINUTE = "minute"
    SECOND = "second"


class Method(StrEnum):
    """How a list is asked for: parameters in the address, or as a form."""

    GET = "get"
    POST = "post"


class PagingKind(StrEnum):
    """How a source leads from one page to the next."""

    OFFSET = "offset"
    PAGE = "page"
    NEXT = "next"
    TOKEN = "token"  # noqa: S105 - a word of the format


@dataclass(frozen=True, slots=True)
class Basic:
    """A user and a password, sent with every request."""

    user: str
    password: str


@dataclass(frozen=True, slots=True)
class OAuth2:
    """Client credentials (RFC 6749, 4.4), exchanged for a token at `token_url`."""

    token_url: str
    client_id: str
    client_secret: str
    scope: str | None = None
    audience: str | None = None


@dataclass(frozen=True, slots=True)
class Login:
    """A session of the source's own; `format` writes `{token}` into `header`."""

    path: str
    values: Mapping[str, str]
    token: Path
    header: str
    format: str
    as_json: bool


@dataclass(frozen=True, slots=True)
class ErrorRule:
    """How an error that comes with status 200 is recognised, and what it means.

    What stands at `path` is an error unless it is nothing, false or one of `fine`.
    """

    path: Path
    fine: frozenset[str] = frozenset()
    not_found: frozenset[str] = frozenset()
    unavailable: frozenset[str] = frozenset()
    expired: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class HttpSource:
    """How an HTTP source is spoken to; secrets are resolved."""

    headers: Mapping[str, str] = field(default_factory=dict)
    auth: Basic | OAuth2 | Login | None = None
    error: ErrorRule | None = None


@dataclass(frozen=True, slots=True)
class ReadCall:
    """How one resource is asked for; `row` is where it stands in the answer.

    `mark` is where the file says so; it is no part of what is asked.
    """

    path: str
    row: Path
    mark: "Mark | None" = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CountCall:
    """A call of its own that tells how many rows match."""

    path: str
    total: Path


@dataclass(frozen=True, slots=True)
class Paging:
    """How further pages are asked for.

    `send` is the parameter (of OFFSET, PAGE, TOKEN), `path` where the answer holds the
    link or token of the next page, `first` the number of the first page. `mark` is where
    the file says so; it is no part of what is asked.
    """

    kind: PagingKind
    send: str = ""
    path: Path = ()
    first: int = 1
    mark: "Mark | None" = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ListCall:
    """How rows are asked for; `fixed` is sent with every question.

    The marks are where the file says so, and where it names `count`.
    """

    path: str
    rows: Path
    count: str
    method: Method
    total: Path | None
    counting: CountCall | None
    paging: Paging | None
    fixed: Mapping[str, str]
    mark: "Mark | None" = field(compare=False, repr=False)
    count_mark: "Mark | None" = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SystemParameter:
    """The parameter that the system of an identifier is sent as.

    `codes` holds the source's code of each system, None where systems go as they are.
    """

    send: str
    codes: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class SearchCall:
    """How one search parameter is sent.

    Texts have up to three parameters, one a way to compare; times have bounds in place
    of `send`: `low` is included, `before` is not, `until` is with all of its step.
    """

    name: str
    send: str = ""
    several: Several = Several.ONE
    contains: str | None = None
    exact: str | None = None
    system: SystemParameter | None = None
    merged: bool = False
    low: str | None = None
    before: str | None = None
    until: str | None = None
    step: Step = Step.SECOND
    format: str | None = None
    zone: ZoneInfo | None = None


@dataclass(frozen=True, slots=True)
class SortCall:
    """The parameter of the order, and its value for each key, `-` before descending ones."""

    send: str
    by: Mapping[str, str]
    mark: "Mark | None" = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class HttpSection:
    """How one resource type is read and searched."""

    read: ReadCall
    list: ListCall | None
    search: Mapping[str, SearchCall]
    sort: SortCall | None = None
    order: str = ""
