"""A search form as a `SearchQuery`: form, parameters, values, criteria, query, in this order.

Text goes in; a query or a `ServiceError` comes out (spec 4.1; decisions 1 to 9). Which
parameters there are and how their values are read is the table in `adapters.parameters`;
which of them the deployment offers is its `Offer`. Whether anything matches is up to the
source.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from enum import StrEnum
from typing import TypeAlias
from urllib.parse import parse_qsl

from adapters.contract import (
    Criterion,
    ResourceType,
    SearchQuery,
    Sort,
    SortKey,
    StringMatch,
)
from adapters.mapping.model import Constants
from adapters.parameters import RESULT_PARAMETERS, SEARCH_PARAMETERS, Include
from app.errors import BadRequestError, BadValueError, BusinessRuleError, IssueCode
from app.fhir.summary import ELEMENTS, Presentation, Summary
from app.offer import OfferedParameter, ResourceOffer
from app.search.dates import shortened
from app.search.types import MATCHES, TYPES, Context, Value, bad_value

Parameters: TypeAlias = Sequence[tuple[str, str]]
"""The parameters of a request as names and texts, in their order."""

MOST_PARAMETERS = 50

PRESENTATION = ("_summary", "_elements", "_format", "_pretty")
"""Parameters that every search and read accepts, and that filter nothing.

A page is cut as its search was: page links take the last two only.
"""

_LIMITED_BY_SPEC = ("_id", "date")
"""Parameters whose number of values the spec itself limits (spec 8)."""

_COUNT = re.compile(r"([1-9][0-9]{0,8})[0-9]*+", re.ASCII)
_PIECES = re.compile(r"(?:[^\\,|]|\\[\\,|$])+|[,|]|\\")
_ESCAPE = re.compile(r"\\([,|$\\])")


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
    """A parsed search; `ignored` names parameters left out, `capped` a lowered `_count`.

    `patients` are criteria of the patients whose stays are searched, besides those of the
    `query`. `includes` are references whose resources are added to the page.
    """

    query: SearchQuery
    presentation: Presentation
    patients: tuple[Criterion, ...] = ()
    includes: tuple[Include, ...] = ()
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
    is_offered = {
        "_sort": offer.sortable,
        "_total": offer.uncounted,
        "_include": bool(offer.includes),
    }
    results = [name for name in RESULT_PARAMETERS if is_offered.get(name, True)]
    if not offer.uncounted:
        # It changes nothing where every page is counted (decision 38).
        parameters = [pair for pair in parameters if pair != ("_total", Total.ACCURATE)]
    allowed = (*results, *PRESENTATION)
    includes: dict[str, Include] = {}
    if offer.includes:
        includes = _includes(parameters, offer)
        # Alone among the parameters without a filter it may be repeated.
        parameters = [pair for pair in parameters if pair[0] != "_include"]
    single, filters, ignored = _sort_out(
        parameters,
        allowed,
        offer=offer,
        offered=(*offer.parameters, *allowed),
        lenient=lenient,
    )
    if not filters and not offer.unfiltered:
        raise BusinessRuleError(
            f"A search of {offer.resource_type} needs one of: "
            f"{', '.join(offer.parameters)}."
        )
    presentation = read_presentation(single, offer.resource_type)
    size = _page_size(single.get("_count"), offer, lenient)
    criteria: list[Criterion] = []
    patients: list[Criterion] = []
    for parameter, criterion in _criteria(filters, offer, context):
        if parameter.is_linked:
            patients.append(criterion)
        else:
            criteria.append(criterion)
    query = SearchQuery(
        offer.resource_type,
        tuple(criteria),
        sort=_sort(single.get("_sort"), offer),
        count=min(size, offer.count_max),
    )
    if presentation.summary is Summary.COUNT:
        includes = {}
    return Search(
        query,
        presentation,
        patients=tuple(patients),
        includes=tuple(includes.values()),
        total=_total(single.get("_total"), presentation),
        ignored=ignored,
        capped=size > offer.count_max,
    )


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
    single, _, _ = _sort_out(
        parameters, allowed, offer=None, offered=offered or allowed, lenient=lenient
    )
    return single


def _check_parameters(parameters: Parameters) -> None:
    # Decision 2; RFC 6750, 5.3.
    if any(name == "access_token" for name, _ in parameters):
        raise BadRequestError(
            "Send the token in the Authorization header only.", "http.access_token"
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
    *,
    offer: ResourceOffer | None,
    offered: Sequence[str],
    lenient: bool,
) -> tuple[Mapping[str, str], Mapping[str, list[str]], tuple[str, ...]]:
    """Return the values of `allowed`, the filters by name with modifier, and ignored names.

    Filters are the parameters of `offer`; without it there are none. The error for an
    unknown parameter lists the names in `offered`; `lenient` ignores it.
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
            f"Parameter '{name}' occurs more than once, again with "
            f"'{shortened(text)}': send it once.",
            f"http.{name}",
        )
    if not text:
        raise bad_value(name, text, "send it once, with a value")
    single[name] = text


def _check_modifier(name: str, offer: ResourceOffer) -> None:
    base, _, modifier = name.partition(":")
    offered = offer.parameters[base]
    words = TYPES[offered.row.type].modifiers(offered.row, offered.capability)
    if f":{modifier}" not in words:
        raise _bad_modifier(name, words)


def _bad_modifier(name: str, words: Sequence[str] = ()) -> BadRequestError:
    base, _, modifier = name.partition(":")
    instead = f"; it supports {' and '.join(words)}" if words else ""
    return BadRequestError(
        f"Parameter '{base}' does not support the modifier ':{modifier}'{instead}.",
        f"http.{name}",
        code=IssueCode.CODE_INVALID,
    )


def _split(name: str, text: str) -> Sequence[Value]:
    """Return the alternatives in one repetition of a parameter (decision 4)."""
    # Alternatives, each a list of the parts between its bars.
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
        raise bad_value(name, "", "send a value, and none that is empty between commas")
    return [Value(name, parts) for parts in values]


def _criteria(
    filters: Mapping[str, list[str]], offer: ResourceOffer, context: Context
) -> Iterator[tuple[OfferedParameter, Criterion]]:
    counts: dict[str, int] = {}
    for name, texts in filters.items():
        base, _, modifier = name.partition(":")
        offered = offer.parameters[base]
        row = offered.row
        for text in texts:
            values = _split(name, text)
            counts[base] = counts.get(base, 0) + len(values)
            if counts[base] > offered.values:
                raise BadValueError(
                    f"Parameter '{base}' accepts at most {offered.values} value"
                    f"{'s' if offered.values > 1 else ''}, commas and repetitions counted.",
                    f"http.{base}",
                    code=None if base in _LIMITED_BY_SPEC else IssueCode.TOO_COSTLY,
                )
            match = MATCHES.get(modifier, StringMatch.STARTS_WITH)
            yield (
                offered,
                TYPES[row.type].read(row, values, match, offered.capability, context),
            )


def _page_size(text: str | None, offer: ResourceOffer, lenient: bool) -> int:
    """Return the requested size of a page, which may be too large if `lenient`.

    `parse_search` lowers that one. Raises BadValueError.
    """
    if text is None:
        return offer.count_default
    match = _COUNT.fullmatch(text)
    size = int(match.group(1)) if match else 0
    if size < 1 or (size > offer.count_max and not lenient):
        raise bad_value("_count", text, f"use a number from 1 to {offer.count_max}")
    return size


def _total(text: str | None, presentation: Presentation) -> Total:
    """Read `_total`; `_summary=count` wants nothing else (decisions 13 and 34)."""
    if text not in (None, Total.NONE, Total.ACCURATE):
        raise bad_value("_total", text, "use none or accurate")
    is_count = presentation.summary is Summary.COUNT
    if is_count and text == Total.NONE:
        raise bad_value("_total", text, "_summary=count requests the total")
    return Total.ACCURATE if is_count else Total(text or "")


def _includes(parameters: Parameters, offer: ResourceOffer) -> dict[str, Include]:
    """Return the includes of a search by their text; it may repeat one."""
    texts = dict.fromkeys(text for name, text in parameters if name == "_include")
    for text in texts:
        if text not in offer.includes:
            allowed = f"use one of {', '.join(offer.includes)}, each as a parameter"
            raise bad_value("_include", text, allowed)
    return {text: offer.includes[text] for text in texts}


def _sort(text: str | None, offer: ResourceOffer) -> Sort:
    if text is None:
        return offer.default_sort
    if text not in offer.sort_values:
        raise bad_value("_sort", text, f"use one of {', '.join(offer.sort_values)}")
    first = text.partition(",")[0]
    key = first.removeprefix("-")
    return Sort(SortKey(key), descending=first != key)


def read_presentation(
    single: Mapping[str, str], resource_type: ResourceType
) -> Presentation:
    """Read `_summary` and `_elements` (decision 19). Raises BadValueError."""
    summary = read_summary(single)
    elements = _elements(single.get("_elements"), resource_type)
    if elements and summary is not Summary.FALSE:
        allowed = "use either _summary or _elements"
        raise bad_value("_elements", ",".join(elements), allowed)
    return Presentation(summary, elements)


def read_summary(single: Mapping[str, str]) -> Summary:
    """Read `_summary`. Raises BadValueError."""
    text = single.get("_summary", Summary.FALSE)
    if text not in [*Summary]:
        raise bad_value("_summary", text, f"use one of {', '.join(Summary)}")
    return Summary(text)


def _elements(text: str | None, resource_type: ResourceType) -> tuple[str, ...]:
    names = tuple(text.split(",")) if text else ()
    for name in names:
        # Client libraries send resourceType too, as JSON has it; it is always returned.
        if name != "resourceType" and name not in ELEMENTS[resource_type]:
            known = ", ".join(sorted(ELEMENTS[resource_type]))
            allowed = f"use elements of {resource_type} (STU3): {known}"
            raise bad_value("_elements", name, allowed)
    return names
