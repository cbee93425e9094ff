"""What marshmallow says of a file's shape, as paths and texts."""

from collections.abc import Iterator
from typing import Any

from marshmallow import ValidationError

from adapters.mapping.shapes import MISSING
from adapters.mapping.text import KeyPath


def readable(error: ValidationError) -> tuple[tuple[KeyPath, str], ...]:
    """Return path and text of each fault; a misspelt key is not a missing one too."""
    faults = tuple(_flatten(error.messages))
    meant = {(*path[:-1], getattr(text, "meant", "")) for path, text in faults}
    return tuple(
        (path, f"'{path[-1]}' is missing" if text == MISSING else text)
        for path, text in faults
        if text != MISSING or path not in meant
    )


def _flatten(messages: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Yield the path and the text of each message of a ValidationError."""
    if isinstance(messages, dict):
        for key, below in messages.items():
            yield from _flatten(below, path if key == "_schema" else (*path, key))
    elif isinstance(messages, list):
        for text in messages:
            yield from _flatten(text, path)
    else:
        yield path, messages
