"""The shape of a file of tests."""

from collections.abc import Mapping
from typing import Any

from marshmallow import fields

from adapters.mapping.elements import SECTIONS
from adapters.mapping.shapes import Listed, Part, Shape, Text, word


class RequestShape(Shape):
    """The request that a search sends to an HTTP system."""

    path = Text()
    method = word(("get", "post"), "a method")
    parameters = fields.Raw()


class OneRequest(fields.Field[Any]):
    """A request, or the word none."""

    default_error_messages = {  # noqa: RUF012 (marshmallow's)
        "invalid": "expected path and parameters here, or the word none"
    }

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> Any:
        if isinstance(value, Mapping):
            return RequestShape().load(value)
        if value != "none":
            raise self.make_error("invalid")
        return value


class CaseShape(Shape):
    """One case of a test, or a test without cases."""

    name = Text()
    given = fields.Raw()
    given_items = fields.Raw()
    given_patients = fields.Raw()
    search = fields.Raw()
    expect = fields.Raw()
    expect_absent = Listed(Text())
    expect_error = Text()
    expect_found = Listed(Text())
    expect_request = OneRequest()
    expect_refused = Text()


class TestShape(CaseShape):
    """One test."""

    __test__ = False  # pytest takes no schema for a test

    name = Text(required=True)
    of = word(tuple(SECTIONS), "a section")
    source = Text()
    cases = Listed(Part(CaseShape))


class TestFileShape(Shape):
    """A whole file."""

    __test__ = False

    tests = Listed(Part(TestShape), required=True)
