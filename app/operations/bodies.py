"""Bodies of requests that cannot be read whole, as errors that the framework knows."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from gunicorn.http import errors
from werkzeug.exceptions import (
    BadRequest,
    ClientDisconnected,
    RequestEntityTooLarge,
)

Application: TypeAlias = Callable[[dict[str, Any], Any], Iterable[bytes]]


def guard_bodies(application: Application) -> Application:
    """Return the application; a body that gunicorn cannot read is a 400 to it.

    A broken chunk comes to light while the application reads the body, as an error of
    gunicorn's that the framework would take for a bug and answer with 500.
    """

    def guarded(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        environ["wsgi.input"] = _GuardedBody(environ["wsgi.input"])
        return application(environ, start_response)

    return guarded


class LongBody:
    """Stands for a body in chunks that is too long, as an error that the framework knows.

    The framework would read as much as is allowed, and take that for the whole: the
    filters behind it would be left out.
    """

    def read(self, _size: int | None = None) -> bytes:
        raise RequestEntityTooLarge

    readline = read


class _GuardedBody:
    """A request body that fails in the framework's words."""

    def __init__(self, body: Any) -> None:
        self._body = body

    def read(self, size: int | None = None) -> bytes:
        return self._guarded(self._body.read, size)

    def readline(self, size: int | None = None) -> bytes:
        return self._guarded(self._body.readline, size)

    def readlines(self, _hint: int | None = None) -> list[bytes]:
        return list(self)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.readline, b"")

    @staticmethod
    def _guarded(read: Callable[[int | None], bytes], size: int | None) -> bytes:
        try:
            return read(size)
        except errors.ParseException as error:
            raise BadRequest from error
        except OSError as error:
            raise ClientDisconnected from error
