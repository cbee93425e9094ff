"""Calls outwards, told to whoever follows a request: what kind, and how each ended.

Never an address, a statement or a value: a call is told in words of ours.
"""

from contextlib import AbstractContextManager
from contextvars import ContextVar
from enum import StrEnum
from types import TracebackType
from typing import Protocol, TypeAlias


class Kind(StrEnum):
    """What is called."""

    SOURCE = "source"
    """A source of the mapping, by its name; the calls that this takes are told too."""
    STORE = "store"
    """A database or Redis, by its kind."""
    HTTP = "http"
    """A server, by what it is to us."""


class Call(Protocol):
    """A call under way."""

    def answered(self, status: int) -> None:
        """Take in the status of an answer over HTTP."""


class Follower(Protocol):
    """Who is told of the calls of one request, each as a block that it lasts for."""

    def __call__(
        self, kind: Kind, name: str, operation: str
    ) -> AbstractContextManager[Call]:
        """Take in that a call begins."""


class _Unfollowed:
    __slots__ = ()

    def __enter__(self) -> "_Unfollowed":
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None: ...

    def answered(self, status: int) -> None: ...


_Block: TypeAlias = AbstractContextManager[Call]
_UNFOLLOWED: _Block = _Unfollowed()
_follower: ContextVar[Follower | None] = ContextVar("follower", default=None)


def outward(kind: Kind, name: str, operation: str) -> _Block:
    """Tell of a call, which lasts as long as the block; nothing where nobody follows."""
    follower = _follower.get()
    return _UNFOLLOWED if follower is None else follower(kind, name, operation)


def follow(follower: Follower | None) -> None:
    """Let the calls of this context be told from now on, or to nobody any more."""
    _follower.set(follower)
