"""Values that stand in the environment: {env: NAME} in place of a text."""

from collections.abc import Iterator, Mapping
from typing import Any

from marshmallow import fields, validate

from adapters.mapping.nodes import KeyPath
from adapters.mapping.shapes import MISSING, Shape, Text

_NAME = "[A-Za-z_][A-Za-z0-9_]*"


class FromEnvironment(Shape):
    """A value that stands in an environment variable."""

    env = Text(
        required=True,
        pattern=f"^{_NAME}$",
        validate=(
            validate.Regexp(
                rf"{_NAME}\Z",
                error="not the name of a variable: letters, digits and '_' (PAS_URL)",
            ),
        ),
    )


class Secret(fields.Field[Any]):
    """A text, or {env: NAME} for the value of an environment variable."""

    def __init__(self, pattern: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pattern = pattern

    default_error_messages = {  # noqa: RUF012
        "required": MISSING,
        "invalid": "expected a text or {{env: NAME}} here",
    }

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> Any:
        if isinstance(value, str) and value:
            return value
        if not isinstance(value, Mapping):
            raise self.make_error("invalid")
        return FromEnvironment().load(value)


def resolved(value: Any, environ: Mapping[str, str] | None) -> str:
    """Return a text, from the environment where the file says so; "" when it is not set."""
    if isinstance(value, Mapping):
        return variable(value.get("env", ""), environ or {})
    return str(value)


def variable(name: str, environ: Mapping[str, str]) -> str:
    """Return the value of a variable, "" when it is not set.

    Line ends around it are those of the file that it was taken from, and no part of it.
    """
    return environ.get(name, "").strip("\r\n")


def named(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Yield each environment variable that a loaded value names, and where."""
    if not isinstance(value, Mapping):
        return
    if set(value) == {"env"} and isinstance(value["env"], str):
        yield (*path, "env"), value["env"]
        return
    for key, below in value.items():
        yield from named(below, (*path, key))
