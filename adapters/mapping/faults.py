"""What marshmallow says of a file's shape, as paths and texts."""

from collections.abc import Iterator
from typing import Any

from marshmallow import ValidationError

from adapters.mapping.nodes import KeyPath
from adapters.mapping.shapes import MISSING, KeyFault, Unindented


def readable(error: ValidationError) -> tuple[tuple[KeyPath, str], ...]:
    """Return path and text of each fault; a misspelt key is not a missing one too."""
    faults = tuple(_flatten(error.messages))
    bare = {path for path, text in faults if isinstance(text, Unindented)}
    keys = {path for path, text in faults if isinstance(text, KeyFault)}
    meant = {(*path[:-1], getattr(text, "meant", "")) for path, text in faults}
    meant |= {(*path[:-2], getattr(text, "meant", "")) for path, text in faults}
    # A key that stands one level too far out or in is not missing where it should be.
    meant |= {path for path, _ in faults if path and (*path[:-2], path[-1]) in keys}
    meant |= {(*path[:-2], path[-1]) for path in keys if len(path) > 1}
    return tuple(
        (path, f"'{path[-1]}' is missing" if text == MISSING else text)
        for path, text in faults
        if (text != MISSING or path not in meant)
        and (path not in bare or isinstance(text, Unindented))
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
