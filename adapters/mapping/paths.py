"""The place of a value in the answer of an HTTP API: a path into its body, or a header.

A path of plain keys with dots leads through objects only; every other path is a JMESPath
expression (https://jmespath.org/specification.html).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import jmespath
from jmespath.exceptions import JMESPathError, ParseError, UnknownFunctionError

from adapters.contract import SourceDataError

_WHOLE = "."
"""The path of the answer itself."""

_SYNTAX = re.compile(r"""[][(){}|&*?"'`!=<>,]""")
"""What no plain key has: a path with one of these is an expression."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A JMESPath expression, compiled."""

    text: str
    compiled: Any = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Header:
    """A header of an answer; of `Link`, the target of its relation `next` (RFC 8288)."""

    name: str


Path: TypeAlias = tuple[str, ...] | Expression
ValuePlace: TypeAlias = Path | Header


def path_of(text: str) -> Path:
    """Return the path that a text of the file describes; raises JMESPathError."""
    if _SYNTAX.search(text):
        return Expression(text, jmespath.compile(text))
    return () if text == _WHOLE else tuple(text.split("."))


def path_fault(text: str) -> tuple[str, int] | None:
    """Return what is wrong with the text of a path, and at which character, if anything."""
    try:
        path = path_of(text)
        if isinstance(path, Expression):
            path.compiled.search(None)
    except ParseError as error:
        position = min(error.lex_position, len(text) - 1)
        return "not a JMESPath expression: it cannot be read from here on", position
    except UnknownFunctionError:
        return "not a JMESPath expression: it has no such function", 0
    except JMESPathError:
        # Only an answer shows whether a function can be applied.
        return None
    return None


def unreadable(text: str, *, refused: bool = False, code: int = 0) -> SourceDataError:
    """Return the error of an answer that cannot be read; the text quotes none of it."""
    return SourceDataError(text, refused=refused, code=code, reason=text)


def at(answer: Any, path: Path) -> Any:
    """Return the value at a path, None if it is absent.

    Raises SourceDataError when a plain key leads into a text, a number or a list, and when
    a function of an expression cannot be applied.
    """
    if isinstance(path, Expression):
        try:
            return path.compiled.search(answer)
        except JMESPathError as error:
            raise unreadable("a function of a path cannot be applied") from error
    for key in path:
        if answer is None:
            return None
        if not isinstance(answer, Mapping):
            raise unreadable(f"no object around '{key}'")
        answer = answer.get(key)
    return answer
