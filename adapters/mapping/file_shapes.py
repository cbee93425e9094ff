"""The shapes of the smaller parts of a mapping file."""

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, validate

from adapters.mapping.checks import SYSTEM_PATTERN
from adapters.mapping.problems import nearest
from adapters.mapping.secrets import Secret
from adapters.mapping.shapes import (
    Entries,
    Listed,
    Number,
    Part,
    Shape,
    Text,
    Whole,
    word,
)
from adapters.mapping.slots import CLASSES
from adapters.mapping.time_rule import Never, Twice

TWICE = tuple(Twice)
NEVER = tuple(Never)


class CodeTableShape(Shape):
    """Source codes, what they become, and what all other codes become."""

    table = Entries(Text(), required=True)
    otherwise = Text()


class CodeTable(Part):
    """A code table; its codes stand under `table`."""

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        known = CodeTableShape.known()
        keys = tuple(value) if isinstance(value, Mapping) else ()
        if keys and not any(nearest(key, known) for key in keys):
            raise ValidationError("the codes stand under table: {table: {A: b}}")
        return super()._deserialize(value, *args, **kwargs)


class LocalTimesShape(Shape):
    """How local times are read around the clock changes."""

    twice = word(TWICE, "a way to read an hour that happens twice")
    never = word(NEVER, "a way to read an hour that never happens")


def _told() -> Text:
    """Return a field for a part of a finding: of "…" alone all of them would be known."""
    error = "'…' alone means every finding, those to come too: say which one is known"
    own = validate.Regexp(r"[\s…]*[^\s…]|\Z", error=error)
    return Text("[^\\s…]", required=True, validate=(own,))


class KnownShape(Shape):
    """A finding of the check that is known and meant to stay."""

    at = _told()
    says = _told()
    because = Text(required=True)


class ConstantsShape(Shape):
    """Values of the deployment that no row holds: the fields of `Constants`."""

    class_systems = Entries(Text(SYSTEM_PATTERN), keys=CLASSES.split())
    visit_number_system = Text(SYSTEM_PATTERN)
    identifier_type_system = Text(SYSTEM_PATTERN)
    identifier_type_version = Text()
    identifier_type_display = Text()
    functional_unit_extension = Text(SYSTEM_PATTERN)
    class_code_system = Text(SYSTEM_PATTERN)
    patient_identifier_type_system = Text(SYSTEM_PATTERN)
    organization_identifier_type_system = Text(SYSTEM_PATTERN)


class ConditionShape(Shape):
    """A column and the texts with which an item counts."""

    column = Text(data_key="from", required=True)
    values = Listed(Text(), data_key="in", required=True)


class SourceShape(Shape):
    """A system that is reached over the network: where it is and how long it may take."""

    kind = Text(required=True)
    url = Secret(required=True)
    timeout_seconds = Number(0.1, 60)
    count_timeout_seconds = Number(0.1, 60)
    connections = Whole(1, 100)
    wait_seconds = Number(0.1, 60)
    time_zone = Text()
