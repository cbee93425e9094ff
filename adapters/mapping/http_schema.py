"""The shape of what an HTTP source says differently from a database."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from marshmallow import ValidationError, fields

from adapters.contract import ResourceType
from adapters.mapping.auth_schema import AuthShape
from adapters.mapping.checks import DAY_PATTERN
from adapters.mapping.file_shapes import SourceShape
from adapters.mapping.http_model import Method, Several, Step
from adapters.mapping.misplaced import OF_DATABASES, under_fields
from adapters.mapping.parameters import PARAMETERS
from adapters.mapping.problems import nearest, one_of
from adapters.mapping.secrets import Secret
from adapters.mapping.shapes import (
    Entries,
    KeyFault,
    Listed,
    Part,
    Shape,
    Text,
    Whole,
    YesNo,
    word,
)


class ErrorShape(Shape):
    """How an error is recognised that comes with status 200."""

    path = Text(required=True)
    fine = Listed(Text())
    not_found = Listed(Text())
    unavailable = Listed(Text())
    expired = Listed(Text())


class HttpSourceShape(SourceShape):
    """An HTTP API."""

    url = Secret("^https?://", required=True)
    headers = Entries(Secret())
    auth = Part(AuthShape)
    error = Part(ErrorShape)


class ReadShape(Shape):
    """How one resource is asked for."""

    path = Text(r"\{id\}", required=True)
    row = Text()


class CountingShape(Shape):
    """A call of its own for the number of rows."""

    path = Text(required=True)
    total = Text(required=True)


class TokenShape(Shape):
    """A token that leads to the next page."""

    send = Text(required=True)
    path = Text(required=True)


class PagingShape(Shape):
    """One way to ask for further pages."""

    one_of = ("offset", "page", "next", "token")
    offset = Text()
    page = Text()
    first = Whole(0, 1)
    next = Text()
    token = Part(TokenShape)


class ListShape(Shape):
    """How rows are asked for."""

    one_of = ("total", "counting")
    path = Text(required=True)
    method = word(tuple(Method), "a way to ask")
    rows = Text(required=True)
    total = Text()
    counting = Part(CountingShape)
    count = Text(required=True)
    paging = Part(PagingShape)
    fixed = Entries(Text())


class SystemShape(Shape):
    """The parameter of an identifier's system."""

    send = Text(required=True)
    codes = Text()


class TokenSearch(Shape):
    """Codes and ids."""

    send = Text(required=True)
    several = word(tuple(Several), "a way to send several values")


class IdentifierSearch(TokenSearch):
    """Identifiers, with or without their system."""

    system = Part(SystemShape)


class PatientSearch(TokenSearch):
    """Patients; `merged` when the source finds the stays of a merged one's survivor."""

    merged = YesNo()


class TextSearch(TokenSearch):
    """Texts: one parameter for each way to compare."""

    contains = Text()
    exact = Text()


class DateSearch(Shape):
    """Times: one parameter for each bound."""

    low = Text(data_key="from")
    before = Text()
    until = Text()
    step = word(tuple(Step), "a precision")
    format = Text(DAY_PATTERN)
    time_zone = Text()


_SEARCHES: Mapping[str, type[Shape]] = MappingProxyType(
    {
        "identifier": IdentifierSearch,
        "patient": PatientSearch,
        "date": DateSearch,
        "birthdate": DateSearch,
        "name": TextSearch,
        "family": TextSearch,
        "given": TextSearch,
    }
)


class Searches(fields.Field[dict[str, Any]]):
    """Search parameters by name, each in the shape of its kind."""

    default_error_messages = {  # noqa: RUF012
        "invalid": "expected keys and values here: {{_id: {{send: …}}}}",
    }

    def __init__(self, kind: ResourceType) -> None:
        super().__init__()
        self.shapes = {
            name: _SEARCHES.get(name, TokenSearch) for name in PARAMETERS[kind]
        }
        self.kind = kind

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise self.make_error("invalid")
        found, faults = {}, {}
        for name, options in value.items():
            try:
                found[name] = self._one(name, options)
            except ValidationError as error:
                faults[name] = error.messages
                if isinstance(error.valid_data, dict):
                    found[name] = error.valid_data
        if faults:
            raise ValidationError(faults, valid_data=found)
        return found

    def _one(self, name: str, options: Any) -> Any:
        if name not in self.shapes:
            text = one_of(name, self.shapes, f"a search parameter of {self.kind}")
            raise ValidationError([KeyFault(text, nearest(name, self.shapes))])
        if not isinstance(options, Mapping):
            raise ValidationError(["expected keys and values here: {send: …}"])
        return self.shapes[name]().load(options)


class SortShape(Shape):
    """The parameter of the order, and its value for each sort key."""

    send = Text(required=True)
    by = Entries(Text(), required=True)


def http_section_shape(kind: ResourceType, fields_shape: type[Shape]) -> type[Shape]:
    """Return the shape of a section whose rows come from an HTTP source."""
    keys: dict[str, Any] = {
        "read": Part(ReadShape, required=True),
        "list": Part(ListShape),
        "fields": Part(fields_shape, required=True),
        "search": Searches(kind),
        "sort": Part(SortShape),
        "order": Text(),
        "requires": Listed(Text()),
        "source": Text(),
        "elsewhere": {**under_fields(kind), **OF_DATABASES},
        "instead": dict.fromkeys(OF_DATABASES, "read"),
    }
    return type(f"{kind}HttpSection", (Shape,), keys)
