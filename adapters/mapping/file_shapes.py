"""The shapes of the smaller parts of a mapping file."""

from adapters.mapping.secrets import Secret
from adapters.mapping.shapes import Entries, Listed, Number, Shape, Text, Whole, word
from adapters.mapping.time_rule import Never, Twice

TWICE = tuple(Twice)
NEVER = tuple(Never)


class CodeTableShape(Shape):
    """Source codes, what they become, and what all other codes become."""

    table = Entries(Text(), required=True)
    otherwise = Text()


class LocalTimesShape(Shape):
    """How local times are read around the clock changes."""

    twice = word(TWICE, "a way to read an hour that happens twice")
    never = word(NEVER, "a way to read an hour that never happens")


class ConstantsShape(Shape):
    """Values of the deployment that no row holds: the fields of `Constants`."""

    class_systems = Entries(Text())
    visit_number_system = Text()
    identifier_type_system = Text()
    identifier_type_version = Text()
    identifier_type_display = Text()
    functional_unit_extension = Text()
    class_code_system = Text()
    patient_identifier_type_system = Text()
    organization_identifier_type_system = Text()


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
