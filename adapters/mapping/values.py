"""A source value as text, and what is remembered of values."""

from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Any
from uuid import UUID

from adapters.mapping.binary import BinaryForm, text_of

LONGEST_CODE = 20
"""A text that is longer is no code, and is not quoted in a fault (decision 16)."""

_EXACT = 2.0**53
"""Up to here no two whole numbers are one float."""


def as_text(value: object) -> str:
    """Return a value as a person would write it, without trailing blanks.

    Raises ValueError for what has no such form.
    """
    write = _WRITERS.get(type(value)) or _nearest(type(value))
    return write(value)


def text_or_none(value: object, form: BinaryForm = BinaryForm.HEX) -> str | None:
    """Return an id as clients see it, None for what has no such form."""
    try:
        return text_of(value, form) if type(value) is bytes else as_text(value)
    except ValueError:
        return None


def _number(value: Any) -> str:
    """Return a number in digits, without an exponent and without zeros at its end."""
    number = Decimal(str(value))
    if not number.is_finite():
        raise ValueError("not a number (NaN, Infinity)")
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _double(value: float) -> str:
    if abs(value) > _EXACT:
        # JSON's whole numbers beyond 64 bits come so: two ids would be one.
        raise ValueError(
            "a number with too many digits: convert it to a text in the source"
        )
    return _number(value)


def _time_of_day(value: timedelta) -> str:
    """Return the time of day of what the driver of MariaDB makes of a TIME."""
    # In MariaDB a TIME may be any span.
    if not _NO_TIME <= value < _DAY:
        raise ValueError("an interval is not a text: convert it in the SELECT")
    text = str(value)
    return f"0{text}" if text[1] == ":" else text


_NO_TIME = timedelta()
_DAY = timedelta(days=1)

_WRITERS: Mapping[type, Callable[[Any], str]] = MappingProxyType(
    {
        str: str.rstrip,
        bool: lambda value: "true" if value else "false",
        int: int.__str__,
        float: _double,
        Decimal: _number,
        UUID: str,
        datetime: datetime.isoformat,
        date: date.isoformat,
        time: time.isoformat,
        timedelta: _time_of_day,
    }
)


_HINTS: Mapping[type, str] = MappingProxyType(
    {
        dict: "an object: name a path inside it, like patient.ipp",
        list: "a list: read it by an item with 'rows'",
    }
)


def _nearest(kind: type) -> Callable[[Any], str]:
    """Return the writer of the nearest base class; raises ValueError if there is none."""
    for base in kind.__mro__:
        if base in _WRITERS:
            return _WRITERS[base]
    if hint := _HINTS.get(kind):
        raise ValueError(f"{hint}, or convert it to a text in the SELECT")
    raise ValueError(
        f"a value of type {kind.__name__} is not a text: convert it in the SELECT"
    )


def quoted(code: str) -> str:
    """Return a code in quotation marks; of a text too long for a code, its length alone."""
    if len(code) > LONGEST_CODE:
        return f"a text of {len(code)} characters"
    return repr(code)


class Memo(dict[Any, Any]):
    """What a function returns for each key, computed when the key is first looked up.

    It stores the results of the first `most` keys, and computes the others each time.
    """

    def __init__(self, function: Callable[[Any], Any], *, most: int) -> None:
        super().__init__()
        self._function = function
        self._most = most

    def __missing__(self, key: Any) -> Any:
        value = self._function(key)
        if len(self) < self._most:
            self[key] = value
        return value
