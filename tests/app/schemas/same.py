"""A record as a schema writes it, held to what marshmallow makes of the same fields."""

from typing import Any

from marshmallow import Schema

from app.schemas.datatypes import Element, ResourceSchema


def dumped(schema: ResourceSchema, record: Any) -> Element:
    """Return the resource; marshmallow's own way has the same, in the same order."""
    body: Element = schema.dump(record)
    assert [*body.items()] == [*Schema.dump(schema, record).items()]
    return body
