"""Bodies that cannot be read whole fail in the framework's words, however they are read."""

import io
from collections.abc import Callable
from typing import Any, NoReturn

import pytest
from gunicorn.http.errors import InvalidChunkSize
from werkzeug.exceptions import (
    BadRequest,
    ClientDisconnected,
    HTTPException,
    RequestEntityTooLarge,
)

from app.operations.bodies import LongBody, guard_bodies

READS: dict[str, Callable[[Any], Any]] = {
    "whole": lambda body: body.read(),
    "a piece": lambda body: body.read(3),
    "a line": lambda body: body.readline(),
    "a piece of a line": lambda body: body.readline(3),
    "all lines": lambda body: body.readlines(),
    "line by line": lambda body: [*body],
}


class Broken:
    """A body that fails as gunicorn's do."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def read(self, _size: int | None = None) -> NoReturn:
        raise self._error

    readline = read


def guarded(body: Any, read: Callable[[Any], Any]) -> Any:
    """Return what an application reads of a body."""
    got = []

    def application(environ: dict[str, Any], _: object) -> list[bytes]:
        got.append(read(environ["wsgi.input"]))
        return [b"answer"]

    assert guard_bodies(application)({"wsgi.input": body}, None) == [b"answer"]
    return got[0]


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_body_is_read_as_it_came(read: Callable[[Any], Any]) -> None:
    text = b"one\n\ntwo\nthree"
    assert guarded(io.BytesIO(text), read) == read(io.BytesIO(text))


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (InvalidChunkSize(b"zz"), BadRequest),
        (ConnectionResetError(), ClientDisconnected),
        (TimeoutError(), ClientDisconnected),
    ],
)
def test_a_broken_body_is_the_clients_fault(
    read: Callable[[Any], Any], error: Exception, told: type[HTTPException]
) -> None:
    with pytest.raises(told):
        guarded(Broken(error), read)


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_nothing_of_a_body_that_is_too_long_is_taken_for_the_whole(
    read: Callable[[Any], Any],
) -> None:
    with pytest.raises(RequestEntityTooLarge):
        guarded(LongBody(), read)
