"""Where one value comes from: a column, two, or a constant."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from marshmallow import fields

from adapters.mapping.shapes import MISSING, NOTHING, Shape
from adapters.mapping.slots import UNSERVED


class Columns(fields.Field[tuple[str, ...]]):
    """The name of a column, or two names: a date and its time of day."""

    default_error_messages = {  # noqa: RUF012
        "invalid": "expected the name of one column here",
        "two": "two columns are a date and its time of day: [date, time]",
        "empty": NOTHING,
    }

    def __init__(self, two: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.two = two

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> tuple[str, ...]:
        names = (value,) if isinstance(value, str) else value
        if not isinstance(names, Sequence) or not all(
            isinstance(n, str) for n in names
        ):
            raise self.make_error("invalid")
        if len(names) != 1 and not (self.two and len(names) == 2):
            raise self.make_error("two" if self.two else "invalid")
        if not all(names):
            raise self.make_error("empty")
        return tuple(names)


@cache
def _ready(shape: type[Shape]) -> Shape:
    # A file has dozens of values, and a shape costs more to make ready than to use.
    return shape()


class OneValue(fields.Field[dict[str, Any]]):
    """Where one value comes from: options in braces, or a bare constant.

    `codes` are the only constants that a rule will take, and make a code table needed.
    """

    default_error_messages = {  # noqa: RUF012
        "required": MISSING,
        "invalid": "expected {{from: column}} or a constant here",
        "constant": "cannot be a constant: write {{from: {column}}}",
        "both": "'from' and 'value' cannot both be given",
        "neither": "needs 'from' (a column) or 'value' (a constant)",
        "column": "needs 'from' (a column)",
    }

    def __init__(
        self, options: type[Shape], codes: Sequence[str] = (), **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.options = options
        self.codes = tuple(code for code in codes if code not in UNSERVED)

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> dict[str, Any]:
        constant = "value" in self.options.known()
        if isinstance(value, str):
            if not constant:
                column = value if re.fullmatch(r"\w+", value) else "column"
                raise self.make_error("constant", column=column)
            value = {"value": value}
        if not isinstance(value, Mapping):
            raise self.make_error("invalid")
        if "from" in value and "value" in value and constant:
            raise self.make_error("both")
        loaded: dict[str, Any] = _ready(self.options).load(value)
        if not {"from", "value"} & set(value):
            raise self.make_error("neither" if constant else "column")
        return loaded
