"""A search form as a `SearchQuery`.

Flask, Redis and the source are out of sight here: pairs of text go in, a query or a
`ServiceError` comes out (spec 4.1; decisions 1 to 9). The query says what is asked;
whether anything matches is the source's business.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from adapters.contract import (
    Criterion,
    SearchQuery,
    Sort,
    SortKey,
    StringMatch,
)
from app.capabilities import OfferedParameter, ResourceOffer
from app.criteria import MATCHES, Asked, Context, ParameterType, modifiers
from app.errors import BadRequestError, BadValueError, BusinessRuleError, IssueCode
from app.forms import MOST_PARAMETERS, Pairs, refuse_token, too_many_parameters
from app.parameters import SEARCH_PARAMETERS
from app.presentation import (
    PRESENTATION,
    Presentation,
    check_pretty,
    read_presentation,
)
from app.values import bad_value, repeated, split

_COUNT = re.compile(r"([1-9][0-9]{0,8})[0-9]*+", re.ASCII)
_SINGLE = ("_count", "_sort", *PRESENTATION)
_FEW = ("_id", "date")
"""Parameters whose number of values the spec itself limits (spec 8)."""


@dataclass(frozen=True, slots=True)
class Search:
    """A search as it was read; `ignored` was left out, `capped` asked for too large a page."""

    query: SearchQuery
    presentation: Presentation
    ignored: tuple[str, ...] = ()
    capped: bool = False


def parse_search(
    pairs: Pairs, offer: ResourceOffer, context: Context, *, lenient: bool = False
) -> Search:
    """Read a search.

    With `lenient`, parameters that are not offered are left out and named in `ignored`,
    and a `_count` that is too large is lowered. Raises BadRequestError, BadValueError,
    BusinessRuleError.
    """
    _check_pairs(pairs)
    single, filters, ignored = _sorted_out(pairs, offer, lenient)
    criteria = tuple(_criteria(filters, offer, context))
    if not criteria and not offer.unfiltered:
        raise BusinessRuleError(
            f"A search of {offer.resource_type} needs one of: "
            f"{', '.join(offer.parameters)}."
        )
    presentation = read_presentation(single, offer.resource_type)
    check_pretty(single)
    size = _page_size(single.get("_count"), offer, lenient)
    query = SearchQuery(
        offer.resource_type,
        criteria,
        _sort(single.get("_sort"), offer),
        min(size, offer.count_max),
    )
    return Search(query, presentation, ignored, size > offer.count_max)


def read_single_values(
    pairs: Pairs,
    allowed: Sequence[str],
    *,
    lenient: bool = False,
    offered: Sequence[str] = (),
) -> Mapping[str, str]:
    """Return the single values of a request that takes no filters.

    A refusal names as `offered` what is `allowed` where nothing else is said. Raises
    BadRequestError for a parameter that is not `allowed`, unless `lenient`, and
    BadValueError for an empty or repeated one; a modifier is never left out.
    """
    _check_pairs(pairs)
    single: dict[str, str] = {}
    for name, text in pairs:
        if name in allowed:
            _once(single, name, text)
        elif name.partition(":")[0] in allowed:
            raise _bad_modifier(name)
        elif not lenient:
            raise _not_supported(name, offered or allowed)
    check_pretty(single)
    return single


def _check_pairs(pairs: Pairs) -> None:
    refuse_token(pairs)
    if len(pairs) > MOST_PARAMETERS:
        raise too_many_parameters()


# ------------------------------------------------------------------ sorting out


def _sorted_out(
    pairs: Pairs, offer: ResourceOffer, lenient: bool
) -> tuple[Mapping[str, str], Mapping[str, list[str]], tuple[str, ...]]:
    """Tell single values from filters, and both from what is not offered."""
    single: dict[str, str] = {}
    filters: dict[str, list[str]] = {}
    ignored: dict[str, None] = {}
    taken = _taken(offer)
    for name, text in pairs:
        base = name.partition(":")[0]
        if base in taken and base != name:
            _check_modifier(name, offer)
        if name in _SINGLE and name in taken:
            _once(single, name, text)
        elif base in offer.parameters:
            filters.setdefault(name, []).append(text)
        elif lenient:
            ignored[name] = None
        else:
            raise _not_supported(name, taken)
    return single, filters, tuple(ignored)


def _taken(offer: ResourceOffer) -> tuple[str, ...]:
    sort = ("_sort",) if offer.sortable else ()
    return (*offer.parameters, "_count", *sort, *PRESENTATION)


def _check_modifier(name: str, offer: ResourceOffer) -> None:
    base, _, modifier = name.partition(":")
    offered = offer.parameters.get(base)
    texts = offered is not None and _type(offer, base) is ParameterType.STRING
    able = offered.capability.matches if offered and texts else ()
    if not modifier or MATCHES.get(modifier) not in able:
        raise _bad_modifier(name, able)


def _bad_modifier(name: str, able: Collection[StringMatch] = ()) -> BadRequestError:
    base, _, modifier = name.partition(":")
    takes = modifiers(able)
    instead = f"; it takes {' and '.join(takes)}" if takes else ""
    return BadRequestError(
        f"Parameter '{base}' does not support the modifier ':{modifier}'{instead}.",
        f"http.{name}",
        code=IssueCode.CODE_INVALID,
    )


def _type(offer: ResourceOffer, name: str) -> ParameterType:
    return SEARCH_PARAMETERS[offer.resource_type][name].type


def _once(single: dict[str, str], name: str, text: str) -> None:
    if name in single:
        raise repeated(name, text)
    if not text:
        raise bad_value(name, text, "give it once, with a value")
    single[name] = text


def _not_supported(name: str, offered: Sequence[str]) -> BadRequestError:
    return BadRequestError(
        f"Parameter '{name}' is not supported here. Offered are: {', '.join(offered)}.",
        f"http.{name}",
        code=IssueCode.NOT_SUPPORTED,
    )


# --------------------------------------------------------------------- criteria


def _criteria(
    filters: Mapping[str, list[str]], offer: ResourceOffer, context: Context
) -> list[Criterion]:
    criteria: list[Criterion] = []
    counted: dict[str, int] = {}
    for name, texts in filters.items():
        base, _, modifier = name.partition(":")
        offered = offer.parameters[base]
        parameter = SEARCH_PARAMETERS[offer.resource_type][base]
        for text in texts:
            values = split(name, text)
            counted[base] = counted.get(base, 0) + len(values)
            _check_number(offered, counted[base])
            asked = Asked(MATCHES[modifier], offered.capability)
            criteria.append(parameter.read(parameter, values, context, asked))
    return criteria


def _check_number(offered: OfferedParameter, number: int) -> None:
    if number > offered.values:
        raise BadValueError(
            f"Parameter '{offered.name}' takes at most {offered.values} value"
            f"{'s' if offered.values > 1 else ''}, commas and repetitions counted.",
            f"http.{offered.name}",
            code=None if offered.name in _FEW else IssueCode.TOO_COSTLY,
        )


# ------------------------------------------------------------ result parameters


def _page_size(text: str | None, offer: ResourceOffer, lenient: bool) -> int:
    if text is None:
        return offer.count_default
    found = _COUNT.fullmatch(text)
    size = int(found.group(1)) if found else 0
    if not 1 <= size <= offer.count_max and not (lenient and size):
        raise bad_value("_count", text, f"use a number from 1 to {offer.count_max}")
    return size


def _sort(text: str | None, offer: ResourceOffer) -> Sort:
    if text is None:
        return offer.default_sort
    key = text.removeprefix("-")
    if key not in offer.sorts:
        keys = ", ".join(f"{key}, -{key}" for key in offer.sorts)
        raise bad_value("_sort", text, f"use one of {keys}")
    return Sort(SortKey(key), descending=text.startswith("-"))
