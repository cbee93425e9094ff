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

from adapters.mapping.outside import Holder, indent, left_outside
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


class Unindented(KeyFault):
    """Said of a key that holds nothing, because what belongs to it is not indented."""

    __slots__ = ()


class Shape(Schema):
    """Keys and values, none of them unknown."""

    class Meta:
        """Unknown keys are refused below, with the nearest known one."""

        unknown = EXCLUDE

    error_messages = {"type": "expected keys and values here"}  # noqa: RUF012 (marshmallow's)
    one_of: ClassVar[Sequence[str]] = ()
    """Keys of which exactly one is given; `rules` refuse it, an editor is told."""
    any_of: ClassVar[Sequence[str]] = ()
    """Keys of which at least one is given, likewise."""
    elsewhere: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Keys that belong to other shapes, and what to say of them."""

    @classmethod
    def known(cls) -> Mapping[str, fields.Field[Any]]:
        """Return the fields by the key that stands in the file."""
        return {
            field.data_key or name: field
            for name, field in cls._declared_fields.items()
        }

    instead: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """For some of those the key that is wanted here: it is not said to be missing too."""

    @validates_schema(pass_original=True, skip_on_field_errors=False)
    def refuse_unknown(self, _data: Any, original: Any, **_: Any) -> None:
        """Refuse each key that is not in the shape, and each that holds nothing yet."""
        if not isinstance(original, Mapping):
            return
        known = self.known()
        outside = left_outside(original, known)
        told = {key for keys in outside.values() for key in keys}
        faults: dict[str, list[str]] = {
            key: [self._refusal(key, value, known)]
            for key, value in original.items()
            if key not in known and key not in told
        }
        faults |= {
            key: [Unindented(indent(key, below))] for key, below in outside.items()
        }
        if faults:
            raise ValidationError(faults)

    def _refusal(self, key: str, value: Any, known: Iterable[str]) -> KeyFault:
        first, front = key.partition(" ")[0], key.partition(":")[0]
        if key in self.elsewhere:
            return KeyFault(f"'{key}' {self.elsewhere[key]}", self.instead.get(key, ""))
        if front != key and front in known:
            return KeyFault(f"a blank is missing behind '{front}:'", front)
        if value == "" and first != key:
            if first in known:
                return KeyFault(f"a ':' is missing behind '{first}'", first)
            return KeyFault(f"'{key}': in braces, a text with a ',' needs quotes")
        return KeyFault(one_of(key, known, "a key here"), nearest(key, known))


class Text(fields.String):
    """A text that is not empty; `pattern` is for editors, where a rule says more."""

    default_error_messages = {  # noqa: RUF012
        "required": MISSING,
        "invalid": "expected a text here",
    }

    def __init__(self, pattern: str = "", **kwargs: Any) -> None:
        checks = (validate.Length(min=1, error=NOTHING), *kwargs.pop("validate", ()))
        super().__init__(validate=checks, **kwargs)
        self.pattern = pattern


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

    def takes(self, key: str, _value: object) -> bool:
        """Tell whether a key may stand in it."""
        return isinstance(self.schema, Shape) and key in self.schema.known()


class Listed(fields.List[Any]):
    """A list."""

    default_error_messages = {  # noqa: RUF012
        "required": MISSING,
        "invalid": "expected a list here: [a, b]",
        "items": "expected a list here: each item begins with '- '",
    }

    def make_error(self, key: str, **kwargs: Any) -> ValidationError:
        """Return the error of a message, which shows a list as it is written here."""
        shown = "items" if isinstance(self.inner, Part) else "invalid"
        return super().make_error(shown if key == "invalid" else key, **kwargs)


class Entries(fields.Field[dict[str, Any]]):
    """Keys that the integrator chooses, each with a value of one kind.

    `keys` are those that an editor offers, where a rule knows them all.
    """

    default_error_messages = {  # noqa: RUF012
        "required": MISSING,
        "invalid": "expected keys and values here",
    }

    def __init__(
        self, inner: fields.Field[Any], keys: Sequence[str] = (), **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.inner = inner
        self.keys = keys

    def takes(self, _key: str, value: object) -> bool:
        """Tell whether a value may stand in it, whatever the key."""
        inner = self.inner
        if not isinstance(inner, Holder) or not isinstance(value, Mapping):
            return False
        return any(inner.takes(key, below) for key, below in value.items())

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
