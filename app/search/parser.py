"""A search form as a `SearchQuery`: form, parameters, values, criteria, query, in this order.

Text goes in; a query or a `ServiceError` comes out (spec 4.1; decisions 1 to 9). Which
parameters there are and how their values are read is the table in `adapters.parameters`;
which of them the deployment offers is its `Offer`. Whether anything matches is up to the
source.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from enum import StrEnum
from types import MappingProxyType
from typing import TypeAlias
from urllib.parse import parse_qsl

from adapters.contract import (
    Criterion,
    DateCriterion,
    DateValue,
    Limit,
    Prefix,
    ReferenceCriterion,
    ResourceType,
    SearchQuery,
    Sort,
    SortKey,
    StringCriterion,
    StringMatch,
    Token,
    TokenCriterion,
)
from adapters.mapping.model import Constants
from adapters.mapping.slots import FHIR_ID, SLOTS, Kind
from adapters.parameters import (
    RESULT_PARAMETERS,
    SEARCH_PARAMETERS,
    ParameterType,
    SearchParameter,
)
from app.errors import BadRequestError, BadValueError, BusinessRuleError, IssueCode
from app.fhir.summary import ELEMENTS, Presentation, Summary
from app.offer import OfferedParameter, ResourceOffer
from app.search.dates import FORMS, DateTextError, parse_date, shortened

Parameters: TypeAlias = Sequence[tuple[str, str]]
"""The parameters of a request as names and texts, in their order."""

MOST_PARAMETERS = 50

PRESENTATION = ("_summary", "_elements", "_format", "_pretty")
"""Parameters that every search and read accepts, and that filter nothing.

A page is cut as its search was: page links take the last two only.
"""

ID_FORM = "an id is 1 to 64 of A-Z, a-z, 0-9, '-' and '.'"
"""What an id looks like, for error texts."""

DAYS = "YYYY, YYYY-MM, YYYY-MM-DD"
"""The forms of a date where whole days are compared, for error texts."""

MATCHES: Mapping[str, StringMatch] = MappingProxyType(
    {
        "": StringMatch.STARTS_WITH,
        "exact": StringMatch.EXACT,
        "contains": StringMatch.CONTAINS,
    }
)
"""How each modifier of a string compares."""

_LIMITED_BY_SPEC = ("_id", "date")
"""Parameters whose number of values the spec itself limits (spec 8)."""

_DAY_SLOTS = frozenset(
    slot.name for slots in SLOTS.values() for slot in slots if slot.kind is Kind.DATE
)
_TYPE = re.compile(r"[A-Z][A-Za-z]+")
_DAY = re.compile(r"[a-z]{0,2}[0-9]{4}(-[0-9]{2}){0,2}")
_COUNT = re.compile(r"([1-9][0-9]{0,8})[0-9]*+", re.ASCII)
_PIECES = re.compile(r"(?:[^\\,|]|\\[\\,|$])+|[,|]|\\")
_ESCAPE = re.compile(r"\\([,|$\\])")


@dataclass(frozen=True, slots=True)
class Context:
    """What the parser needs from the deployment.

    `class_systems` holds the system of each class code.
    """

    base_url: str
    zone: tzinfo
    class_systems: Mapping[str, str]
    functional_unit_extension: str | None


def context_of(base_url: str, constants: Constants, zone: tzinfo) -> Context:
    """Return the context of a deployment at `base_url`."""
    codes = SEARCH_PARAMETERS[ResourceType.ENCOUNTER]["class"].codes
    systems = {
        code: constants.class_systems.get(code, constants.class_code_system)
        for code in codes
    }
    return Context(base_url, zone, systems, constants.functional_unit_extension)


class Total(StrEnum):
    """What a client wants of the total (FHIR R4, `_total`)."""

    NONE = "none"
    """Nothing is counted."""
    IN_TIME = ""
    """It is counted if that does not take too long: the page comes first (decision 34)."""
    ACCURATE = "accurate"
    """Without it the search fails."""


@dataclass(frozen=True, slots=True)
class Search:
    """A parsed search; `ignored` names parameters left out, `capped` a lowered `_count`."""

    query: SearchQuery
    presentation: Presentation
    total: Total = Total.IN_TIME
    ignored: tuple[str, ...] = ()
    capped: bool = False


def decode_form(raw: bytes) -> Parameters:
    """Return the parameters of a query string or form body, empty values included.

    Raises BadRequestError for what is not UTF-8, BadValueError for too many parameters.
    """
    try:
        return parse_qsl(
            raw.decode(),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=2 * MOST_PARAMETERS,
        )
    except UnicodeDecodeError as error:
        raise BadRequestError(
            "The parameters are not UTF-8.", code=IssueCode.STRUCTURE
        ) from error
    except ValueError as error:
        raise _too_many_parameters() from error


def parse_search(
    parameters: Parameters,
    offer: ResourceOffer,
    context: Context,
    *,
    lenient: bool = False,
) -> Search:
    """Parse a search.

    With `lenient`, parameters that are not offered are left out and named in `ignored`,
    and a `_count` that is too large is lowered. Raises BadRequestError, BadValueError,
    BusinessRuleError.
    """
    is_offered = {"_sort": offer.sortable, "_total": offer.uncounted}
    results = [name for name in RESULT_PARAMETERS if is_offered.get(name, True)]
    allowed = (*results, *PRESENTATION)
    offered = (*offer.parameters, *allowed)
    single, filters, ignored = _sort_out(parameters, allowed, offered, offer, lenient)
    criteria = tuple(_criteria(filters, offer, context))
    if not criteria and not offer.unfiltered:
        raise BusinessRuleError(
            f"A search of {offer.resource_type} needs one of: "
            f"{', '.join(offer.parameters)}."
        )
    presentation = read_presentation(single, offer.resource_type)
    size = _page_size(single.get("_count"), offer, lenient)
    query = SearchQuery(
        offer.resource_type,
        criteria,
        _sort(single.get("_sort"), offer),
        min(size, offer.count_max),
    )
    total = _total(single.get("_total"), presentation)
    return Search(query, presentation, total, ignored, size > offer.count_max)


def read_single_values(
    parameters: Parameters,
    allowed: Sequence[str],
    *,
    lenient: bool = False,
    offered: Sequence[str] = (),
) -> Mapping[str, str]:
    """Return the values of a request without filters, by parameter.

    An error text lists `offered`, by default `allowed`. Raises BadRequestError for a
    modifier and, unless `lenient`, for a parameter that is not `allowed`, and
    BadValueError for an empty or repeated one.
    """
    return _sort_out(parameters, allowed, offered or allowed, None, lenient)[0]


def _check_parameters(parameters: Parameters) -> None:
    # Decision 2; RFC 6750, 5.3.
    if any(name == "access_token" for name, _ in parameters):
        raise BadRequestError(
            "A token is taken from the Authorization header only.", "http.access_token"
        )
    if len(parameters) > MOST_PARAMETERS:
        raise _too_many_parameters()


def _too_many_parameters() -> BadValueError:
    return BadValueError(
        f"A request may have at most {MOST_PARAMETERS} parameters.",
        code=IssueCode.TOO_COSTLY,
    )


def _sort_out(
    parameters: Parameters,
    allowed: Sequence[str],
    offered: Sequence[str],
    offer: ResourceOffer | None,
    lenient: bool,
) -> tuple[Mapping[str, str], Mapping[str, list[str]], tuple[str, ...]]:
    """Return values of `allowed`, filters by name with modifier, and names to ignore.

    Without an `offer` there are no filters. Error texts list what is `offered`.
    """
    _check_parameters(parameters)
    single: dict[str, str] = {}
    filters: dict[str, list[str]] = {}
    ignored: dict[str, None] = {}
    for name, text in parameters:
        base = name.partition(":")[0]
        if name in allowed:
            _add_single(single, name, text)
        elif offer and base in offer.parameters:
            if base != name:
                _check_modifier(name, offer)
            filters.setdefault(name, []).append(text)
        elif base in allowed:
            raise _bad_modifier(name)
        elif lenient:
            ignored[name] = None
        else:
            raise BadRequestError(
                f"Parameter '{name}' is not supported here. Offered are: "
                f"{', '.join(offered)}.",
                f"http.{name}",
                code=IssueCode.NOT_SUPPORTED,
            )
    if single.get("_pretty", "true") not in ("true", "false"):
        raise bad_value("_pretty", single["_pretty"], "use true or false")
    return single, filters, tuple(ignored)


def _add_single(single: dict[str, str], name: str, text: str) -> None:
    if name in single:
        raise BadValueError(
            f"Parameter '{name}' is there more than once, again with "
            f"'{shortened(text)}': give it once.",
            f"http.{name}",
        )
    if not text:
        raise bad_value(name, text, "give it once, with a value")
    single[name] = text


def _check_modifier(name: str, offer: ResourceOffer) -> None:
    base, _, modifier = name.partition(":")
    is_string = (
        SEARCH_PARAMETERS[offer.resource_type][base].type is ParameterType.STRING
    )
    matches = offer.parameters[base].capability.matches if is_string else ()
    if not modifier or MATCHES.get(modifier) not in matches:
        raise _bad_modifier(name, matches)


def modifiers(matches: Collection[StringMatch]) -> tuple[str, ...]:
    """Return the modifiers of a string that these comparisons offer, with their colon."""
    return tuple(
        f":{word}" for word, match in MATCHES.items() if word and match in matches
    )


def _bad_modifier(name: str, matches: Collection[StringMatch] = ()) -> BadRequestError:
    base, _, modifier = name.partition(":")
    words = modifiers(matches)
    instead = f"; it takes {' and '.join(words)}" if words else ""
    return BadRequestError(
        f"Parameter '{base}' does not support the modifier ':{modifier}'{instead}.",
        f"http.{name}",
        code=IssueCode.CODE_INVALID,
    )


@dataclass(frozen=True, slots=True)
class _Value:
    """One alternative of a parameter: its name, and the parts between unescaped bars."""

    name: str
    parts: Sequence[str]

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
    problem = f"has no value '{shortened(text)}'" if text else "must not be empty"
    return BadValueError(
        f"Parameter '{name}' {problem}: {allowed}.", f"http.{name}", code=code
    )


def _split(name: str, text: str) -> Sequence[_Value]:
    """Return the alternatives in one repetition of a parameter (decision 4)."""
    values = [[""]]
    for piece in _PIECES.findall(text):
        if piece == ",":
            values.append([""])
        elif piece == "|":
            values[-1].append("")
        elif piece == "\\":
            allowed = r"a backslash is allowed only before one of , | $ \ to escape it"
            raise bad_value(name, text, allowed)
        else:
            values[-1][-1] += _ESCAPE.sub(r"\1", piece)
    if not all(any(parts) for parts in values):
        raise bad_value(name, "", "give a value, and no comma without one beside it")
    return [_Value(name, parts) for parts in values]


def is_id(text: str) -> bool:
    """Whether the text can be the id of a resource (FHIR STU3, type `id`)."""
    return FHIR_ID.fullmatch(text) is not None


def _read_id(value: _Value) -> Token:
    if not is_id(value.text):
        raise value.bad(ID_FORM)
    return Token(None, value.text)


def _read_token(value: _Value) -> Token:
    """Read `code`, `system|code`, `system|` or `|code` (decision 6)."""
    if len(value.parts) == 1:
        return Token(None, value.parts[0])
    if len(value.parts) > 2:
        raise value.bad("use code, system|code, system| or |code")
    system, code = value.parts
    return Token(system, code or None)


def _read_reference(value: _Value, target: str, base_url: str) -> str | None:
    """Return the id in a reference, None for another server's or type's (decision 7)."""
    text, home = value.text, f"{base_url}/"
    if ":" in text and not text.startswith(home):
        return None
    kind, slash, id = text.removeprefix(home).rpartition("/")
    if not is_id(id) or (slash and not _TYPE.fullmatch(kind)) or text == home + id:
        raise value.bad(f"use {target}/<id>, <id> or an address below {base_url}")
    return id if kind in ("", target) else None


def takes_days(row: SearchParameter) -> bool:
    """Whether a date parameter is compared with calendar days, as birth dates are."""
    return _DAY_SLOTS.issuperset(row.slots)


def prefix_list(prefixes: Collection[Prefix]) -> str:
    """Return prefixes as text, in FHIR's order."""
    return ", ".join(prefix for prefix in Prefix if prefix in prefixes)


def _criteria(
    filters: Mapping[str, list[str]], offer: ResourceOffer, context: Context
) -> Iterator[Criterion]:
    counts: dict[str, int] = {}
    for name, texts in filters.items():
        base, _, modifier = name.partition(":")
        offered = offer.parameters[base]
        row = SEARCH_PARAMETERS[offer.resource_type][base]
        for text in texts:
            values = _split(name, text)
            counts[base] = counts.get(base, 0) + len(values)
            if counts[base] > offered.values:
                raise BadValueError(
                    f"Parameter '{base}' takes at most {offered.values} value"
                    f"{'s' if offered.values > 1 else ''}, commas and repetitions counted.",
                    f"http.{base}",
                    code=None if base in _LIMITED_BY_SPEC else IssueCode.TOO_COSTLY,
                )
            yield _criterion(row, values, MATCHES[modifier], offered, context)


def _criterion(
    row: SearchParameter,
    values: Sequence[_Value],
    match: StringMatch,
    offered: OfferedParameter,
    context: Context,
) -> Criterion:
    """Read the values of a parameter by its FHIR type."""
    if row.type is ParameterType.DATE:
        return DateCriterion(row.name, tuple(_dates(row, values, offered, context)))
    if row.type is ParameterType.STRING:
        for value in values:
            if not any(character.isalnum() for character in value.text):
                raise value.bad("a text needs a letter or a digit")
        return StringCriterion(row.name, tuple(v.text for v in values), match)
    if row.type is ParameterType.REFERENCE:
        target = str(row.target)
        ids = (_read_reference(value, target, context.base_url) for value in values)
        return ReferenceCriterion(row.name, tuple(id for id in ids if id is not None))
    return TokenCriterion(row.name, tuple(_tokens(row, values, context)))


def _tokens(
    row: SearchParameter, values: Sequence[_Value], context: Context
) -> Iterator[Token]:
    if row.extension:
        return _extension_values(values, context.functional_unit_extension)
    if row.codes:
        return _codes(row, values, context)
    return map(_read_id if row.is_id else _read_token, values)


def _extension_values(
    values: Sequence[_Value], extension: str | None
) -> Iterator[Token]:
    """Yield the codes behind the deployment's extension; others match nothing."""
    for value in values:
        if len(value.parts) != 2 or not all(value.parts):
            raise value.bad(f"use {extension}|<functional unit code>")
        if value.parts[0] == extension:
            yield Token(None, value.parts[1])


def _codes(
    row: SearchParameter, values: Sequence[_Value], context: Context
) -> Iterator[Token]:
    """Yield codes of a closed list, each once; those of another system match nothing."""
    codes: dict[str, None] = {}
    for value in values:
        token = _read_token(value)
        if token.code is not None and token.code not in row.codes:
            allowed = f"it is one of {', '.join(row.codes)}"
            raise value.bad(allowed, IssueCode.CODE_INVALID)
        for code in row.codes if token.code is None else (token.code,):
            system = row.system or context.class_systems.get(code)
            if token.system is None or token.system == system:
                codes[code] = None
    return (Token(None, code) for code in codes)


def _dates(
    row: SearchParameter,
    values: Sequence[_Value],
    offered: OfferedParameter,
    context: Context,
) -> Iterator[DateValue]:
    """Yield dates with a prefix that the source can compare (decision 5)."""
    days, capability = takes_days(row), offered.capability
    forms = DAYS if days or capability.finest is Limit.DAY else FORMS
    prefixes = prefix_list(capability.prefixes)
    allowed = f"allowed are the prefixes {prefixes} and {forms}"
    for value in values:
        if days and not _DAY.fullmatch(value.text):
            raise value.bad(allowed)
        try:
            date = parse_date(value.text, context.zone)
        except DateTextError as error:
            raise value.bad(f"{error}; {allowed}") from error
        if date.prefix not in capability.prefixes:
            raise value.bad(
                f"nothing is compared with the prefix '{date.prefix}' here; "
                f"this deployment's source can answer {prefixes}"
            )
        yield date


def _page_size(text: str | None, offer: ResourceOffer, lenient: bool) -> int:
    """Return the requested size; too large a one is refused unless `lenient`.

    `parse_search` lowers it then.
    """
    if text is None:
        return offer.count_default
    match = _COUNT.fullmatch(text)
    size = int(match.group(1)) if match else 0
    if not 1 <= size <= offer.count_max and not (lenient and size):
        raise bad_value("_count", text, f"use a number from 1 to {offer.count_max}")
    return size


def _total(text: str | None, presentation: Presentation) -> Total:
    """Read `_total`; `_summary=count` wants nothing else (decisions 13 and 34)."""
    if text not in (None, Total.NONE, Total.ACCURATE):
        raise bad_value("_total", text, "it is none or accurate")
    is_count = presentation.summary is Summary.COUNT
    if is_count and text == Total.NONE:
        raise bad_value("_total", text, "_summary=count requests the total")
    return Total.ACCURATE if is_count else Total(text or "")


def _sort(text: str | None, offer: ResourceOffer) -> Sort:
    if text is None:
        return offer.default_sort
    key = text.removeprefix("-")
    if key not in offer.sorts:
        keys = ", ".join(f"{key}, -{key}" for key in offer.sorts)
        raise bad_value("_sort", text, f"use one of {keys}")
    return Sort(SortKey(key), descending=text.startswith("-"))


def read_presentation(
    single: Mapping[str, str], resource_type: ResourceType
) -> Presentation:
    """Read `_summary` and `_elements` (decision 19). Raises BadValueError."""
    summary = read_summary(single)
    elements = _elements(single.get("_elements"), resource_type)
    if elements and summary is not Summary.FALSE:
        allowed = "_summary is there too: use one"
        raise bad_value("_elements", ",".join(elements), allowed)
    return Presentation(summary, elements)


def read_summary(single: Mapping[str, str]) -> Summary:
    """Read `_summary`. Raises BadValueError."""
    text = single.get("_summary", Summary.FALSE)
    if text not in [*Summary]:
        raise bad_value("_summary", text, f"it is one of {', '.join(Summary)}")
    return Summary(text)


def _elements(text: str | None, resource_type: ResourceType) -> tuple[str, ...]:
    names = tuple(text.split(",")) if text else ()
    for name in names:
        # Client libraries send resourceType too, as JSON has it; it is always returned.
        if name != "resourceType" and name not in ELEMENTS[resource_type]:
            known = ", ".join(sorted(ELEMENTS[resource_type]))
            allowed = f"name elements of {resource_type} (STU3): {known}"
            raise bad_value("_elements", name, allowed)
    return names
