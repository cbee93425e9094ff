"""The search form: fields from what the deployment offers, and a sent form as parameters."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from werkzeug.datastructures import MultiDict

from adapters.contract import Limit, Prefix, ResourceType, StringMatch
from adapters.parameters import SEARCH_PARAMETERS, ParameterType, SearchParameter
from app.offer import OfferedParameter, ResourceOffer
from app.search.parser import MATCHES, Parameters, takes_days
from explorer.calls import Pairs
from explorer.results import in_words

DATES = 2
"""How many bounds of a date the form has: a range."""

_PREFIXES: Mapping[Prefix, str] = {
    Prefix.GE: "from",
    Prefix.LE: "until",
    Prefix.EQ: "on",
    Prefix.NE: "not on",
    Prefix.GT: "after",
    Prefix.LT: "before",
}
_MATCHES: Mapping[str, str] = {
    "": "begins with",
    "contains": "contains",
    "exact": "is exactly",
}
_SORTS: Mapping[str, str] = {
    "date": "start of the stay",
    "_lastUpdated": "last change",
    "_id": "id",
}


@dataclass(frozen=True, slots=True)
class Field:
    """One search parameter as a form shows it.

    A closed list of codes has boxes to tick (`codes`), anything else a text (`inputs`), a
    date one for each bound. What is chosen of `comparisons` is sent under the name of the
    text and `suffix`.
    """

    name: str
    title: str
    help: str
    single: bool
    inputs: Sequence[str]
    codes: Mapping[str, str] = field(default_factory=dict)
    suffix: str = ""
    comparisons: Mapping[str, str] = field(default_factory=dict)


def form_of(offer: ResourceOffer, sent: MultiDict[str, str]) -> dict[str, Any]:
    """Return what the template of a form shows, filled in as it was sent."""
    rows = SEARCH_PARAMETERS[offer.resource_type]
    default = offer.default_sort
    return {
        "kind": offer.resource_type,
        "offered": offer,
        "sent": sent,
        "fields": [
            _field(row, offer.parameters[name])
            # What people know comes first, ids and changes of the record last.
            for name, row in sorted(rows.items(), key=lambda r: r[0].startswith("_"))
            if name in offer.parameters
        ],
        "sorts": dict(_sorts(offer)) if offer.sortable else {},
        "usual_sort": ("-" if default.descending else "") + default.key,
    }


def parameters_of(
    offer: ResourceOffer, sent: MultiDict[str, str], unit_extension: str | None
) -> Pairs:
    """Return the parameters of a search for what was filled in."""
    rows = SEARCH_PARAMETERS[offer.resource_type]
    pairs = [
        pair
        for name in offer.parameters
        for pair in _pairs(rows[name], sent, unit_extension)
    ]
    pairs += [(name, sent.get(name, "")) for name in ("_sort", "_count", "_total")]
    return [(name, text) for name, text in pairs if text.strip()]


def _pairs(
    row: SearchParameter, sent: MultiDict[str, str], unit_extension: str | None
) -> Iterator[tuple[str, str]]:
    name, text = row.name, sent.get(row.name, "").strip()
    if row.codes:
        yield name, ",".join(sent.getlist(name))
    elif row.type is ParameterType.DATE:
        for number in range(DATES):
            bound = sent.get(f"{name}.{number}", "").strip()
            yield name, bound and sent.get(f"{name}.{number}.prefix", "") + bound
    elif row.extension and unit_extension and "|" not in text:
        yield name, text and f"{unit_extension}|{text}"
    else:
        match = sent.get(f"{name}.match", "")
        yield f"{name}:{match}" if match else name, text


def filled(kind: ResourceType, parameters: Parameters) -> MultiDict[str, str]:
    """Return a form as it would be sent for the parameters of a search."""
    sent: MultiDict[str, str] = MultiDict()
    dates: dict[str, int] = {}
    for name, text in parameters:
        base, _, modifier = name.partition(":")
        row = SEARCH_PARAMETERS[kind].get(base)
        if row is None:
            sent[name] = text
        elif row.type is ParameterType.DATE:
            number = dates[base] = dates.get(base, -1) + 1
            prefix = text[:2] if text[:1].isalpha() else Prefix.EQ.value
            sent[f"{base}.{number}.prefix"] = prefix
            sent[f"{base}.{number}"] = text.removeprefix(prefix)
        elif row.codes:
            sent.setlist(base, [each.rpartition("|")[2] for each in text.split(",")])
        else:
            sent[base], sent[f"{base}.match"] = text, modifier
    return sent


def _field(row: SearchParameter, offered: OfferedParameter) -> Field:
    name, able = row.name, offered.capability
    single = offered.values == 1
    text = Field(name, row.title, row.documentation, single, inputs=(name,))
    if row.codes:
        return replace(text, codes={c: in_words(name, c) for c in row.codes})
    if row.type is ParameterType.DATE:
        return replace(
            text,
            help=f"{row.documentation} {_date_help(row, offered)}",
            inputs=[f"{name}.{bound}" for bound in range(min(DATES, offered.values))],
            suffix="prefix",
            comparisons={
                p: word for p, word in _PREFIXES.items() if p in able.prefixes
            },
        )
    if row.type is ParameterType.STRING:
        matches = {*able.matches, StringMatch.STARTS_WITH}
        words = {m: word for m, word in _MATCHES.items() if MATCHES[m] in matches}
        return replace(text, suffix="match", comparisons=words)
    if row.extension:
        return replace(text, help="The code of the unit, whole and exact.")
    if single or row.is_id:
        return text
    more = f"Up to {offered.values}, separated by commas."
    return replace(text, help=f"{row.documentation} {more}")


def _date_help(row: SearchParameter, offered: OfferedParameter) -> str:
    days = offered.capability.finest is Limit.DAY or takes_days(row)
    times = "" if days else ", or with a time: 2024-05-31T14:30:00+02:00"
    return f"A year, a month or a day: 2024, 2024-05 or 2024-05-31{times}."


def _sorts(offer: ResourceOffer) -> Iterator[tuple[str, str]]:
    for key in offer.sorts:
        words = _SORTS.get(key, key)
        down, up = ("highest", "lowest") if key == "_id" else ("newest", "oldest")
        yield f"-{key}", f"{words}, {down} first"
        yield key, f"{words}, {up} first"
