"""What is sent to an HTTP API: parameters with places for values, and no value leaves its place.

`$filter=ipp eq '{value}'&$top=5` is read once, when the file is: names and literal texts are
fixed then. A value is percent-encoded as a whole when it is sent; here it is fitted into its
place, or refused.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TypeAlias

QueryPairs: TypeAlias = tuple[tuple[str, str], ...]

_PLACE = re.compile(r"\{(value|values|system|id)(?::([^{}]*))?\}")
_UNSENDABLE = re.compile("[\0-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]")
_LANGUAGE = re.compile(r"[\s=<>!;]")
"""What a text with operators has: there, a bare word could be the name of a field."""

_NAME = re.compile("[?&][^?&=]*=")
_LITERAL = re.compile(
    "-?[0-9]+([.][0-9]+)?|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
)
"""A number or a UUID, which can stand in such a text without quotation marks."""

_WORD = re.compile(r"[\w.:/-]+")
"""What can stand bare beside other text."""

ANY = "any"
"""The form of a place that ends where its parameter does: `eq.{value:any}` holds any text."""

_INTEGERS: Mapping[str, int] = MappingProxyType({"int32": 2**31, "int64": 2**63})
"""Forms of whole numbers, and what is too large for them."""

_INTEGER = re.compile("0|-?[1-9][0-9]{0,18}")

FORMS = ("", ANY, *_INTEGERS)
"""The forms of values that are not times."""


class Quote(StrEnum):
    """How an API reads a quotation mark inside quotation marks."""

    DOUBLE = "double"
    BACKSLASH = "backslash"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class ValueRule:
    """How an API reads values: its quotation marks, and signs that mean something else."""

    quote: Quote = Quote.DOUBLE
    without: str = ""


@dataclass(frozen=True, slots=True)
class Placeholder:
    """The place of a value: `quote` is the mark around it, `bare` what fits without one.

    `form` is the strptime format of a time, or one of FORMS.
    """

    name: str
    form: str = ""
    quote: str = ""
    bare: re.Pattern[str] | None = None

    def fitted(self, value: str, rule: ValueRule, *, trusted: bool) -> str | None:
        """Return a value as it is written in this place, None if it does not fit.

        A `trusted` value is from the file or from this service, not from a client: without
        quotation marks around it, it may be any text.
        """
        if not value or _UNSENDABLE.search(value):
            return None
        if limit := _INTEGERS.get(self.form):
            # A leading zero would find a row with another id.
            is_fit = _INTEGER.fullmatch(value) and -limit <= int(value) < limit
            return value if is_fit else None
        if not trusted and any(sign in value for sign in rule.without):
            return None
        if not self.quote:
            fits = trusted or self.bare is None or self.bare.fullmatch(value)
            return value if fits else None
        match rule.quote:
            case Quote.BACKSLASH:
                escaped = value.replace("\\", "\\\\")
                return escaped.replace(self.quote, f"\\{self.quote}")
            case Quote.DOUBLE:
                return value.replace(self.quote, 2 * self.quote)
        return None if self.quote in value else value


@dataclass(frozen=True, slots=True)
class TextTemplate:
    """A text with places for values; `is_open` is whether a quotation mark in it has no end."""

    parts: tuple[str | Placeholder, ...]
    is_open: bool = field(default=False, repr=False)

    @property
    def places(self) -> tuple[Placeholder, ...]:
        """The places in it."""
        return tuple(part for part in self.parts if isinstance(part, Placeholder))

    def filled(self, values: Mapping[str, str]) -> str:
        """Return the text with fitted values."""
        return "".join(
            part if isinstance(part, str) else values[part.name] for part in self.parts
        )


@dataclass(frozen=True, slots=True)
class Template:
    """The parameters of a request, each with its text. `source` is what the file says."""

    source: str
    parameters: tuple[tuple[str, TextTemplate], ...] = field(repr=False)

    @property
    def places(self) -> tuple[Placeholder, ...]:
        """The places of all parameters."""
        return tuple(place for _, text in self.parameters for place in text.places)

    @property
    def names(self) -> frozenset[str]:
        """The names of the places."""
        return frozenset(place.name for place in self.places)

    @property
    def is_list_of_texts(self) -> bool:
        """Whether separators stand between whole texts, not inside one around `{values}`."""
        is_alone = all(len(text.parts) == 1 for _, text in self.parameters)
        return "values" not in self.names or is_alone

    @property
    def fixed(self) -> QueryPairs:
        """The pairs of a template without places."""
        return tuple((name, text.filled({})) for name, text in self.parameters)

    def one(
        self, values: Mapping[str, str], rule: ValueRule, *, trusted: bool = False
    ) -> QueryPairs | None:
        """Return the pairs with these values in their places, None if one does not fit."""
        pairs: list[tuple[str, str]] = []
        for name, text in self.parameters:
            fitted: dict[str, str] = {}
            for place in text.places:
                value = place.fitted(values[place.name], rule, trusted=trusted)
                if value is None:
                    return None
                fitted[place.name] = value
            pairs.append((name, text.filled(fitted)))
        return tuple(pairs)

    def several(
        self,
        values: Sequence[Mapping[str, str]],
        rule: ValueRule,
        separator: str,
        *,
        trusted: bool = False,
    ) -> QueryPairs | None:
        """Return the pairs with all values that fit, None if none does.

        Without a separator, the parameters stand once for each value. With one, there is one
        parameter: `{values}` becomes the values with the separator between them; of a text
        with `{value}`, the whole is repeated, with the separator between.
        """
        fitting: list[Mapping[str, str]] = []
        pairs: list[tuple[str, str]] = []
        for held in values:
            if separator and any(separator in value for value in held.values()):
                continue
            if pairs_of_value := self.one(held, rule, trusted=trusted):
                fitting.append(held)
                pairs += pairs_of_value
        if not fitting:
            return None
        if len(fitting) == 1 or not separator:
            return tuple(pairs)
        ((name, text),) = self.parameters
        if "values" not in self.names:
            return ((name, separator.join(filled for _, filled in pairs)),)
        (place,) = text.places
        texts = [
            place.fitted(held["values"], rule, trusted=trusted) for held in fitting
        ]
        joined = separator.join(filter(None, texts))
        return ((name, text.filled({"values": joined})),)

    def takes_several(self, separator: str) -> bool:
        """Whether it can hold several values."""
        is_list = "values" in self.names or separator != ""
        return is_list and len(self.parameters) == 1


def template_of(text: str) -> Template:
    """Return the template of `name=text&name=text`; a bare name has the value as its text."""
    parameters = []
    for part in text.split("&"):
        name, equals, value = part.partition("=")
        parameters.append((name, text_of(value if equals else "{value}")))
    return Template(text, tuple(parameters))


def text_of(text: str) -> TextTemplate:
    """Return a text with its places, each with the quotation mark that it stands in."""
    # In a path, `?name=` is no operator.
    literals = _NAME.sub("", _PLACE.sub("", text))
    has_operator = _LANGUAGE.search(literals) is not None
    parts: list[str | Placeholder] = []
    quote = ""
    end = 0
    for match in _PLACE.finditer(text):
        name = match[1]
        form = match[2] or ""
        literal = text[end : match.start()]
        end = match.end()
        quote = _quote_after(literal, quote)
        # A value alone may be any text; beside other text it must look like one value.
        bare: re.Pattern[str] | None = None
        if match[0] != text and form != ANY:
            bare = _LITERAL if has_operator else _WORD
        if literal:
            parts.append(literal)
        parts.append(Placeholder(name, form, quote=quote, bare=bare))
    rest = text[end:]
    if rest:
        parts.append(rest)
    return TextTemplate(tuple(parts), is_open=_quote_after(rest, quote) != "")


def _quote_after(literal: str, quote: str) -> str:
    """Return the quote that is open after a text, "" for none; `quote` is open before it."""
    for character in literal:
        if quote == "" and character in "'\"":
            quote = character
        elif quote == character:
            quote = ""
    return quote


PLACES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "query": frozenset({"value", "values"}),
        "system": frozenset({"value", "system"}),
        "time": frozenset({"value"}),
        "one": frozenset({"value"}),
        "fixed": frozenset(),
    }
)
"""The places that a template may have, by what it is for."""


def template_fault(text: str, purpose: str) -> str:
    """Return what is wrong with a template for a purpose (a key of PLACES), "" if nothing is."""
    template = template_of(text)
    allowed = PLACES[purpose]
    if purpose != "one" and "=" not in text:
        return f"'{text}' has no name: write name=text"
    if not all(name and "{value" not in name for name, _ in template.parameters):
        return "the name of a parameter is missing or contains {value}"
    if other := sorted(template.names - allowed):
        return f"{{{other[0]}}} cannot be used here"
    if purpose == "system" and len(template.names) < len(allowed):
        return "needs {system} and {value}"
    if allowed and not template.names:
        return f"has no place for the value: add {{{min(allowed)}}}"
    if "values" in template.names and len(template.places) > 1:
        return "{values} sends all values at once: write {value} to send one"
    if any(part.is_open and part.places for _, part in template.parameters):
        return "a quotation mark is not closed"
    forms = {place.form for place in template.places}
    if purpose != "time" and (other := sorted(forms.difference(FORMS))):
        return (
            f"'{other[0]}' is only for times; for other values use any, int32 or int64"
        )
    return ""


TEMPLATES = (
    "query",
    "system",
    "contains",
    "exact",
    "excluding",
    "ge",
    "gt",
    "lt",
    "le",
)
"""The keys of a search that are templates."""
