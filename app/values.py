"""Search values: split at commas, unescaped, and read as FHIR's token, reference, string.

FHIR STU3 search, "escaping search parameters"; decisions 3, 4, 6 and 7. Every fault is a
`BadValueError` that names the parameter, the part and the forms that are allowed.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import tzinfo

from adapters.contract import DateValue, Prefix, Token
from app.dates import FORMS, DateTextError, parse_date
from app.errors import BadValueError, IssueCode

ID_FORM = "an id is 1 to 64 of A-Z, a-z, 0-9, '-' and '.'"
"""What an id looks like, for the text of an error."""

_ID = re.compile(r"[A-Za-z0-9\-.]{1,64}")
_DAY = re.compile(r"[a-z]{0,2}[0-9]{4}(-[0-9]{2}){0,2}")
_PARTS = re.compile(r"(?:[^\\,|]|\\[,|$\\])+|[,|]|\\")
_ESCAPE = re.compile(r"\\([,|$\\])")
_SHOWN = 120
_TYPE = re.compile(r"[A-Z][A-Za-z]+")
DAYS = "YYYY, YYYY-MM, YYYY-MM-DD"
"""The forms of a date where whole days are compared, for the text of an error."""


@dataclass(frozen=True, slots=True)
class Value:
    """One alternative of a parameter: its name, and the parts between unescaped bars."""

    name: str
    parts: tuple[str, ...]

    @property
    def text(self) -> str:
        """The value as one text."""
        return "|".join(self.parts)

    def bad(self, allowed: str, code: IssueCode | None = None) -> BadValueError:
        """Return the error that refuses this value; `allowed` completes the sentence."""
        return bad_value(self.name, self.text, allowed, code)


def bad_value(
    name: str, text: str, allowed: str, code: IssueCode | None = None
) -> BadValueError:
    """Return the error that refuses `text` as a value of the parameter `name`."""
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    problem = f"has no value '{shown}'" if shown else "must not be empty"
    return BadValueError(
        f"Parameter '{name}' {problem}: {allowed}.", f"http.{name}", code=code
    )


def repeated(name: str, text: str) -> BadValueError:
    """Return the error that refuses `text` beside another value of the parameter `name`."""
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return BadValueError(
        f"Parameter '{name}' is there more than once, again with '{shown}': give it once.",
        f"http.{name}",
    )


def split(name: str, text: str) -> tuple[Value, ...]:
    """Cut one repetition of a parameter into its alternatives.

    Raises BadValueError for an empty alternative and for a stray backslash.
    """
    values = [Value(name, parts) for parts in _alternatives(name, text)]
    if not all(any(value.parts) for value in values):
        raise bad_value(name, "", "give a value, and no comma without one beside it")
    return tuple(values)


def _alternatives(name: str, text: str) -> Iterator[tuple[str, ...]]:
    parts = [""]
    for piece in _PARTS.findall(text):
        if piece == ",":
            yield tuple(parts)
            parts = [""]
        elif piece == "|":
            parts.append("")
        elif piece == "\\":
            raise bad_value(
                name,
                text,
                r"a backslash stands only before one of , | $ \ to escape it",
            )
        else:
            parts[-1] += _ESCAPE.sub(r"\1", piece)
    yield tuple(parts)


def is_id(text: str) -> bool:
    """Whether the text can be the id of a resource (FHIR STU3, type `id`)."""
    return _ID.fullmatch(text) is not None


def read_id(value: Value) -> str:
    """Read an id. Raises BadValueError."""
    if not is_id(value.text):
        raise value.bad(ID_FORM)
    return value.text


def read_token(value: Value) -> Token:
    """Read `code`, `system|code`, `system|` or `|code`. Raises BadValueError."""
    if len(value.parts) == 1:
        return Token(None, value.parts[0])
    if len(value.parts) > 2:
        raise value.bad("use code, system|code, system| or |code")
    system, code = value.parts
    return Token(system, code or None)


def read_date(
    value: Value, zone: tzinfo, able: Collection[Prefix], forms: str = FORMS
) -> DateValue:
    """Read a date with its prefix, one of those that the source is `able` to compare.

    Raises BadValueError.
    """
    try:
        found = parse_date(value.text, zone)
    except DateTextError as error:
        raise value.bad(f"{error}; {_allowed(able, forms)}") from error
    if found.prefix not in able:
        raise value.bad(
            f"nothing is compared with the prefix '{found.prefix}' here; "
            f"this deployment's source can answer {listed(able)}"
        )
    return found


def read_day(value: Value, zone: tzinfo, able: Collection[Prefix]) -> DateValue:
    """Read a date of whole days, as birth dates are. Raises BadValueError."""
    if not _DAY.fullmatch(value.text):
        raise value.bad(_allowed(able, DAYS))
    return read_date(value, zone, able, DAYS)


def listed(prefixes: Collection[Prefix]) -> str:
    """Return prefixes as a client reads them, in FHIR's order."""
    return ", ".join(prefix for prefix in Prefix if prefix in prefixes)


def _allowed(able: Collection[Prefix], forms: str) -> str:
    return f"allowed are the prefixes {listed(able)} and {forms}"


def read_string(value: Value) -> str:
    """Read a text to be found in names. Raises BadValueError."""
    if not any(character.isalnum() for character in value.text):
        raise value.bad("a text needs a letter or a digit")
    return value.text


def read_reference(value: Value, resource_type: str, base_url: str) -> str | None:
    """Read a reference to a resource of this service: its id, None for any other.

    Takes `<type>/<id>`, `<id>` and an absolute address under `base_url` (decision 7).
    Raises BadValueError.
    """
    text, home = value.text, f"{base_url}/"
    if ":" in text and not text.startswith(home):
        return None
    kind, slash, id = text.removeprefix(home).rpartition("/")
    if not is_id(id) or (slash and not _TYPE.fullmatch(kind)) or text == home + id:
        raise value.bad(
            f"use {resource_type}/<id>, <id> or an address below {base_url}"
        )
    return id if kind in ("", resource_type) else None
