"""Values of a search parameter as a criterion, one reader a kind of value.

Spec 4.1; decisions 4 to 9. The parameters themselves are a table, `app.parameters`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from enum import StrEnum
from types import MappingProxyType

from adapters.contract import (
    Criterion,
    DateCriterion,
    Limit,
    ParameterCapability,
    ReferenceCriterion,
    StringCriterion,
    StringMatch,
    Token,
    TokenCriterion,
)
from app.dates import FORMS
from app.errors import IssueCode
from app.values import (
    DAYS,
    Value,
    read_date,
    read_day,
    read_id,
    read_reference,
    read_string,
    read_token,
)


class ParameterType(StrEnum):
    """FHIR's search parameter types, as far as they occur here."""

    TOKEN = "token"  # noqa: S105 - a FHIR type
    DATE = "date"
    STRING = "string"
    REFERENCE = "reference"


@dataclass(frozen=True, slots=True)
class Context:
    """What reading a search needs to know of the deployment.

    `class_systems` holds the system of each class code.
    """

    base_url: str
    zone: tzinfo
    class_systems: Mapping[str, str]
    functional_unit_extension: str | None


MATCHES: Mapping[str, StringMatch] = MappingProxyType(
    {
        "": StringMatch.STARTS_WITH,
        "exact": StringMatch.EXACT,
        "contains": StringMatch.CONTAINS,
    }
)
"""How each modifier of a text compares; without one, starts of words are."""


def modifiers(able: Collection[StringMatch]) -> tuple[str, ...]:
    """Return the modifiers of a text that can be compared so, as a client writes them."""
    return tuple(
        f":{word}" for word, match in MATCHES.items() if word and match in able
    )


@dataclass(frozen=True, slots=True)
class Asked:
    """How values are to be compared, and what the source can compare at all."""

    match: StringMatch
    able: ParameterCapability


Read = Callable[["SearchParameter", Sequence[Value], Context, Asked], Criterion]


@dataclass(frozen=True, slots=True)
class SearchParameter:
    """A search parameter: how FHIR defines it and how its values are read here.

    `definition` is the STU3 canonical address, None for one of our own. `codes` is the
    closed list of a parameter that has one, `system` theirs where all have the same.
    """

    name: str
    type: ParameterType
    definition: str | None
    read: Read
    documentation: str
    codes: tuple[str, ...] = ()
    system: str | None = None


# ------------------------------------------------------------- reading criteria


def read_ids(
    parameter: SearchParameter, values: Sequence[Value], _: Context, __: Asked
) -> Criterion:
    """Read ids of resources. Raises BadValueError."""
    ids = tuple(Token(None, read_id(value)) for value in values)
    return TokenCriterion(parameter.name, ids)


def read_identifiers(
    parameter: SearchParameter, values: Sequence[Value], _: Context, __: Asked
) -> Criterion:
    """Read identifiers, with or without their system. Raises BadValueError."""
    return TokenCriterion(parameter.name, tuple(read_token(value) for value in values))


def read_codes(
    parameter: SearchParameter,
    values: Sequence[Value],
    context: Context,
    _: Asked,
) -> Criterion:
    """Read codes of the parameter's list; another system matches nothing. Raises BadValueError."""
    found: dict[Token, None] = {}
    for value in values:
        token = read_token(value)
        if token.code is not None and token.code not in parameter.codes:
            allowed = f"it is one of {', '.join(parameter.codes)}"
            raise value.bad(allowed, IssueCode.CODE_INVALID)
        for code in parameter.codes if token.code is None else (token.code,):
            if token.system in (None, _system_of(parameter, code, context)):
                found[Token(None, code)] = None
    return TokenCriterion(parameter.name, tuple(found))


def _system_of(parameter: SearchParameter, code: str, context: Context) -> str | None:
    return parameter.system or context.class_systems.get(code)


def read_units(
    parameter: SearchParameter,
    values: Sequence[Value],
    context: Context,
    _: Asked,
) -> Criterion:
    """Read functional units; another extension matches nothing. Raises BadValueError."""
    extension = context.functional_unit_extension
    for value in values:
        if len(value.parts) != 2 or not all(value.parts):
            raise value.bad(f"use {extension}|<functional unit code>")
    codes = (Token(None, v.parts[1]) for v in values if v.parts[0] == extension)
    return TokenCriterion(parameter.name, tuple(codes))


def read_dates(
    parameter: SearchParameter,
    values: Sequence[Value],
    context: Context,
    asked: Asked,
) -> Criterion:
    """Read dates, of whole days for a birth date. Raises BadValueError."""
    able, zone = asked.able.prefixes, context.zone
    if parameter.name == "birthdate":
        days = tuple(read_day(value, zone, able) for value in values)
        return DateCriterion(parameter.name, days)
    forms = DAYS if asked.able.finest is Limit.DAY else FORMS
    dates = tuple(read_date(value, zone, able, forms) for value in values)
    return DateCriterion(parameter.name, dates)


def read_strings(
    parameter: SearchParameter, values: Sequence[Value], _: Context, asked: Asked
) -> Criterion:
    """Read texts. Raises BadValueError."""
    texts = tuple(read_string(value) for value in values)
    return StringCriterion(parameter.name, texts, asked.match)


def read_patients(
    parameter: SearchParameter,
    values: Sequence[Value],
    context: Context,
    _: Asked,
) -> Criterion:
    """Read references to patients; another server's match nothing. Raises BadValueError."""
    ids = (read_reference(value, "Patient", context.base_url) for value in values)
    return ReferenceCriterion(parameter.name, tuple(id for id in ids if id is not None))
