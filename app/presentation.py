"""How results are shown: `_summary` and `_elements` (FHIR STU3 search; decision 19)."""

from collections.abc import Mapping
from dataclasses import dataclass

from adapters.contract import ResourceType
from app.schemas.summary import ELEMENTS, Summary
from app.values import bad_value

PRESENTATION = ("_summary", "_elements", "_format", "_pretty")
"""Parameters that are understood wherever resources are asked for, and filter nothing.

A page of a search is cut as its search was: its links take the last two only.
"""


@dataclass(frozen=True, slots=True)
class Presentation:
    """How much of a resource is shown; all of it by default."""

    summary: Summary = Summary.FALSE
    elements: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether nothing is cut."""
        return self.summary is Summary.FALSE and not self.elements


WHOLE = Presentation()


def read_presentation(
    asked: Mapping[str, str], resource_type: ResourceType
) -> Presentation:
    """Read the parameters of `PRESENTATION` that cut resources.

    Raises BadValueError.
    """
    if "_summary" not in asked and "_elements" not in asked:
        return WHOLE
    summary = read_summary(asked)
    elements = _elements(asked.get("_elements"), resource_type)
    if elements and summary is not Summary.FALSE:
        raise bad_value(
            "_elements", ",".join(elements), "_summary is there too: use one"
        )
    return Presentation(summary, elements)


def check_pretty(asked: Mapping[str, str]) -> None:
    """Refuse a `_pretty` that is neither true nor false. Raises BadValueError."""
    if asked.get("_pretty", "true") not in ("true", "false"):
        raise bad_value("_pretty", asked["_pretty"], "use true or false")


def read_summary(asked: Mapping[str, str]) -> Summary:
    """Read `_summary`. Raises BadValueError."""
    text = asked.get("_summary", Summary.FALSE)
    try:
        return Summary(text)
    except ValueError:
        raise bad_value(
            "_summary", text, f"it is one of {', '.join(Summary)}"
        ) from None


def _elements(text: str | None, resource_type: ResourceType) -> tuple[str, ...]:
    if text is None:
        return ()
    names = tuple(text.split(","))
    for name in names:
        # Libraries of clients name the type along, as JSON has it; it is always there.
        if name != "resourceType" and name not in ELEMENTS[resource_type]:
            known = ", ".join(sorted(ELEMENTS[resource_type]))
            allowed = f"name elements of {resource_type} (STU3): {known}"
            raise bad_value("_elements", name, allowed)
    return names
