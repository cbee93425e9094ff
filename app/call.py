"""A request on its way: what its stages learn of it, for response, log, metrics and audit.

`app.middleware` begins a `Call` before the framework sees the request, and reports it when the
response is ready. The views get it as their argument.
"""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from enum import StrEnum
from time import perf_counter
from typing import TYPE_CHECKING, Any

from adapters.contract import Record, ResourceType, RowFault
from app.search.parser import Parameters

if TYPE_CHECKING:
    from app.auth import Client
    from app.service import Service

CALL = "encounters.call"
"""The key of the `Call` in the environ of its request."""


class Stage(StrEnum):
    """What a request spends its time on."""

    PARSE = "parse"
    """The token and the parameters; every request begins here."""
    SOURCE = "source"
    """The hospital system: calls to it, its rows read as records."""
    REDIS = "redis"
    """Pages stored and found again."""
    MAP = "map"
    """Records made into FHIR resources."""
    WRITE = "write"
    """The answer as bytes, its audit event, and what reports it."""


_NO_SECONDS = dict.fromkeys(Stage, 0.0)


@dataclass(slots=True)
class Call:
    """One request; `service` and `client` are there once a view begins.

    `route` is the template of its address and `view` the name of what answers it, both ""
    where there is none. `parameters` are as they came; `page_of` is the search of a page;
    `patients` are the ids of those that a search names by identifiers; `rows` and `bundle`,
    the id of their Bundle, are what is returned if nothing fails.
    `seconds` has the time of each stage; the present one began at `since`.
    """

    id: str
    environ: Mapping[str, Any]
    client_id: str | None = None
    route: str = ""
    view: str = ""
    resource_id: str = ""
    parameters: Parameters = ()
    page_of: tuple[ResourceType, Parameters] | None = None
    patients: Sequence[str] = ()
    rows: Sequence[Record | RowFault] = ()
    bundle: str | None = None
    seconds: dict[Stage, float] = field(default_factory=_NO_SECONDS.copy)
    stage: Stage = Stage.PARSE
    since: float = field(default_factory=perf_counter)
    service: "Service" = field(init=False)
    client: "Client" = field(init=False)

    def enter(self, stage: Stage) -> None:
        """Charge what follows to a stage."""
        now = perf_counter()
        self.seconds[self.stage] += now - self.since
        self.stage, self.since = stage, now

    def header(self, name: str) -> str | None:
        """Return a header by its WSGI name, without HTTP_."""
        value: str | None = self.environ.get(f"HTTP_{name}")
        return value

    @property
    def is_pretty(self) -> bool:
        """Whether the answer is indented."""
        return ("_pretty", "true") in self.parameters


_current: ContextVar[str | None] = ContextVar("request id", default=None)


def request_id() -> str | None:
    """Return the id of the request of this context, for log lines; None outside of one."""
    return _current.get()


def begin(id: str) -> Token[str | None]:
    """Name the request of this context in log lines; `end` takes the token back."""
    return _current.set(id)


def end(token: Token[str | None]) -> None:
    """Forget the request of this context, or return to the one around it."""
    _current.reset(token)
