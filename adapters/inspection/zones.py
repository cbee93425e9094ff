"""Times of which nothing says by whose clock they are written."""

import re
from datetime import datetime

from adapters.inspection import Observation, Weight
from adapters.mapping.places import Place


def hides_its_zone(place: Place) -> bool:
    """Tell whether nothing in the file says by whose clock a last change is written."""
    rule = place.field.time
    is_change = place.field.slot == "last_updated" and bool(place.field.columns)
    if rule is None or rule.is_told or not is_change:
        return False
    return "%z" not in (rule.format or "")


def has_offset(value: object) -> bool:
    """Tell whether a value says its own distance from UTC."""
    if isinstance(value, datetime):
        return value.tzinfo is not None
    return isinstance(value, str) and bool(_OFFSET.search(value.strip()))


_OFFSET = re.compile(r":\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d(?::?\d\d)?)$", re.IGNORECASE)


def hidden_zone(place: Place, column: str) -> Observation:
    """Return the doubt about such a time: no row can show that it is read wrongly."""
    assert place.field.time is not None, "only times have a zone"
    zone = place.field.time.zone.key
    text = (
        f"nothing says by whose clock it is written: it is read in {zone}, and no row shows"
        " whether that is wrong. Ask the vendor, and say what you are told"
    )
    remedy = f"time_zone: UTC   # or {zone}"
    return Observation.at(place, column, text, Weight.WARNING, remedy)
