"""The building blocks of the schemas: marshmallow fields that speak plain words.

They load what `text.plain` gives (dict, list, str) and refuse with sentences for people
who do not program. A message that is a `KeyFault` is about the key, not about its value.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Self

from marshmallow import (
    EXCLUDE,
    Schema,
    ValidationError,
    fields,
    validate,
    validates_schema,
)

from adapters.mapping.problems import nearest, one_of

NOTHING = "nothing is written here"


MISSING = "missing"


class KeyFault(str):
    """A message about a key that should not be there; `meant` is the one it looks like."""

    __slots__ = ("meant",)
    meant: str

    def __new__(cls, text: str, meant: str = "") -> Self:
        """Make the message."""
        made = super().__new__(cls, text)
        made.meant = meant
        return made


class Shape(Schema):
    """Keys and values, none of them unknown."""

    class Meta:
        """Unknown keys are refused below, with the nearest known one."""

        unknown = EXCLUDE

    error_messages = {"type": "expected keys and values here"}  # noqa: RUF012 (marshmallow's)
    elsewhere: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Keys that belong to other shapes, and what to say of them."""

    @classmethod
    def known(cls) -> Mapping[str, fields.Field[Any]]:
        """Return the fields by the key that stands in the file."""
        return {
            field.data_key or name: field
            for name, field in cls._declared_fields.items()
        }

    @validates_schema(pass_original=True, skip_on_field_errors=False)
    def refuse_unknown(self, _data: Any, original: Any, **_: Any) -> None:
        """Refuse each key that is not in the shape."""
        if not isinstance(original, Mapping):
            return
        known = self.known()
        faults = {
            key: [self._refusal(key, known)] for key in original if key not in known
        }
        if faults:
            raise ValidationError(faults)

    def _refusal(self, key: str, known: Iterable[str]) -> KeyFault:
        if key in self.elsewhere:
            return KeyFault(f"'{key}' {self.elsewhere[key]}")
        return KeyFault(one_of(key, known, "a key here"), nearest(key, known))


class Text(fields.String):
    """A text that is not empty."""

    default_error_messages = {  # noqa: RUF012
        "required": MISSING,
        "invalid": "expected a text here",
    }

    def __init__(self, **kwargs: Any) -> None:
        checks = (validate.Length(min=1, error=NOTHING), *kwargs.pop("validate", ()))
        super().__init__(validate=checks, **kwargs)


class Word(validate.OneOf):
    """One of these words."""

    def __init__(self, words: Sequence[str], what: str) -> None:
        super().__init__(choices=words)
        self.what = what

    def _format_error(self, value: Any) -> str:
        return one_of(value, self.choices, self.what)


def word(words: Sequence[str], what: str, **kwargs: Any) -> Text:
    """Return a field that takes one of the words; `what` is said of another."""
    return Text(validate=(Word(words, what),), **kwargs)


class Number(fields.Float):
    """A number, written as text, between two bounds."""

    default_error_messages = {  # noqa: RUF012
        "invalid": "expected a number here",
        "special": "expected a number here",
    }

    def __init__(self, low: float, high: float, **kwargs: Any) -> None:
        error = f"must be from {low:g} to {high:g}"
        super().__init__(validate=validate.Range(low, high, error=error), **kwargs)


class Whole(fields.Integer):
    """A whole number, written as text, between two bounds."""

    default_error_messages = {"invalid": "expected a whole number here"}  # noqa: RUF012

    def __init__(self, low: int, high: int, **kwargs: Any) -> None:
        error = f"must be from {low} to {high}"
        super().__init__(validate=validate.Range(low, high, error=error), **kwargs)


class YesNo(fields.Boolean):
    """`true` or `false`."""

    truthy = {"true"}  # noqa: RUF012
    falsy = {"false"}  # noqa: RUF012
    default_error_messages = {"invalid": "expected true or false here"}  # noqa: RUF012


class Part(fields.Nested):
    """Keys and values of another shape."""

    default_error_messages = {"required": MISSING}  # noqa: RUF012


class Listed(fields.List[Any]):
    """A list."""

    default_error_messages = {  # noqa: RUF012
        "required": MISSING,
        "invalid": "expected a list here: [a, b]",
    }


class Entries(fields.Field[dict[str, Any]]):
    """Keys that the integrator chooses, each with a value of one kind."""

    default_error_messages = {  # noqa: RUF012
        "required": MISSING,
        "invalid": "expected keys and values here",
    }

    def __init__(self, inner: fields.Field[Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.inner = inner

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise self.make_error("invalid")
        found: dict[str, Any] = {}
        faults: dict[str, Any] = {}
        for key, entry in value.items():
            try:
                found[key] = self.inner.deserialize(entry)
            except ValidationError as error:
                faults[key] = error.messages
                if error.valid_data:
                    found[key] = error.valid_data
        if faults:
            raise ValidationError(faults, valid_data=found)
        return found


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


class OneValue(fields.Field[dict[str, Any]]):
    """Where one value comes from: options in braces, or a bare constant."""

    default_error_messages = {  # noqa: RUF012
        "required": MISSING,
        "invalid": "expected {{from: column}} or a constant here",
        "constant": "cannot be a constant: write {{from: column}}",
        "both": "'from' and 'value' cannot both be given",
        "neither": "needs 'from' (a column) or 'value' (a constant)",
        "column": "needs 'from' (a column)",
    }

    def __init__(self, options: type[Shape], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.options = options

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> dict[str, Any]:
        constant = "value" in self.options.known()
        if isinstance(value, str):
            if not constant:
                raise self.make_error("constant")
            value = {"value": value}
        if not isinstance(value, Mapping):
            raise self.make_error("invalid")
        if "from" in value and "value" in value and constant:
            raise self.make_error("both")
        loaded: dict[str, Any] = self.options().load(value)
        if not {"from", "value"} & set(value):
            raise self.make_error("neither" if constant else "column")
        return loaded
