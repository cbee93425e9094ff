"""One HTTP source as questions and answers: who asks is shown, errors have names."""

from typing import Any

from adapters.contract import (
    GoneError,
    NotAskableError,
    NotFoundError,
    SourceDataError,
    SourceUnavailableError,
)
from adapters.http.answers import Verdict, verdict
from adapters.http.client import Answer, Call, Client, Deadline
from adapters.http.credentials import credentials_of
from adapters.mapping.http_model import HttpSource
from adapters.mapping.model import SourceConfig

_SERVER_ERROR = 500


class Source:
    """The hospital's API; safe to share between threads."""

    def __init__(self, config: SourceConfig) -> None:
        self._http = config.http or HttpSource()
        self._client = Client(config.url, config.connections, config.wait_seconds)
        self._credentials = credentials_of(self._http, self._client.send)

    def ask(self, call: Call, seconds: float) -> Any:
        """Send a request and return its answer, read as JSON.

        Raises NotFoundError and GoneError when the source says so, NotAskableError when
        it says that the address is too long, else SourceUnavailableError and
        SourceDataError.
        """
        until = Deadline(seconds)
        said, answer = self._try(call, until)
        if said is Verdict.EXPIRED:
            said, answer = self._try(call, until)
        match said:
            case Verdict.FINE:
                return answer
            case Verdict.NOT_FOUND:
                raise NotFoundError("the source has no such row")
            case Verdict.UNAVAILABLE:
                raise SourceUnavailableError("the source says that it is away")
            case Verdict.EXPIRED:
                raise SourceDataError("the source refuses who asks", refused=True)
            case Verdict.ERROR:
                raise SourceDataError("the source answered an error")

    def linked(self, link: str, asked: str) -> str:
        """Return a link in the answer of `asked` whole; raises SourceDataError."""
        return self._client.linked(link, asked)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _try(self, call: Call, until: Deadline) -> tuple[Verdict, Any]:
        shown = self._credentials.headers(until)
        answer = self._client.send(call, {**self._http.headers, **shown}, until)
        said, found = self._read(answer)
        if said is Verdict.EXPIRED and not self._credentials.refuse(shown):
            raise SourceDataError("the source refuses who asks", refused=True)
        return said, found

    def _read(self, answer: Answer) -> tuple[Verdict, Any]:
        status = answer.status
        if status == 404:
            return Verdict.NOT_FOUND, None
        if status == 410:
            raise GoneError("the source says that the row is gone")
        if status == 414:
            raise NotAskableError("the source takes no address as long as this")
        if status == 401:
            return Verdict.EXPIRED, None
        if status == 429 or status >= _SERVER_ERROR:
            raise SourceUnavailableError(f"the source answered {status}")
        if status // 100 != 2:
            raise SourceDataError(f"the source answered {status}", code=status)
        found = answer.json()
        return verdict(found, self._http.error), found
