"""The search form: fields from what the deployment offers, and a sent form as parameters."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from werkzeug.datastructures import MultiDict

from adapters.contract import Limit, Prefix, ResourceType, StringMatch
from adapters.parameters import SEARCH_PARAMETERS, ParameterType, SearchParameter
from app.offer import OfferedParameter, ResourceOffer
from app.search.parser import MATCHES, Parameters
from app.ui.calls import Pairs
from app.ui.results import in_words

DATES = 2
"""How many bounds of a date the form has: a range."""

TITLES: Mapping[str, str] = {
    "_id": "Id",
    "_lastUpdated": "Last changed",
    "patient": "Patient",
    "date": "Start of the stay",
    "identifier": "Number (visit number, IPP …)",
    "status": "Status",
    "class": "Class",
    "service-provider._extension": "Ward (functional unit)",
    "name": "Name",
    "family": "Family name",
    "given": "Given name",
    "birthdate": "Birth date",
    "gender": "Gender",
}
"""The search parameters that the form knows, and what it calls them."""

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
class Choice:
    """A value that can be chosen, and how it reads."""

    value: str
    title: str
    chosen: bool = False


@dataclass(frozen=True, slots=True)
class Input:
    """A text of a field; `choices` stand before it: prefixes or ways to compare."""

    name: str
    value: str
    label: str
    choices: tuple[Choice, ...] = ()


@dataclass(frozen=True, slots=True)
class Field:
    """One search parameter: boxes to tick for a closed list of codes, else texts."""

    name: str
    title: str
    help: str
    boxes: tuple[Choice, ...] = ()
    single: bool = False
    inputs: tuple[Input, ...] = ()


def form_of(offer: ResourceOffer, sent: MultiDict[str, str]) -> dict[str, Any]:
    """Return what the template of a form shows, filled in as it was sent."""
    rows = SEARCH_PARAMETERS[offer.resource_type]
    fields = [
        _field(row, offer.parameters[name], sent)
        # What people know comes first, ids and changes of the record last.
        for name, row in sorted(rows.items(), key=lambda each: each[0].startswith("_"))
        if name in offer.parameters
    ]
    return {
        "kind": offer.resource_type,
        "offered": offer,
        "fields": fields,
        "sorts": list(_sorts(offer, sent)) if offer.sortable else [],
        "count": sent.get("_count", offer.count_default),
        "is_uncounted": "_total" in sent,
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


def _field(
    row: SearchParameter, offered: OfferedParameter, sent: MultiDict[str, str]
) -> Field:
    name = row.name
    field = Field(name, TITLES.get(name, name), row.documentation)
    if row.codes:
        chosen = sent.getlist(name)
        boxes = tuple(Choice(c, in_words(name, c), c in chosen) for c in row.codes)
        return replace(field, boxes=boxes, single=offered.values == 1)
    if row.type is ParameterType.DATE:
        return replace(
            field,
            help=_date_help(row, offered),
            inputs=tuple(_dates(row, offered, sent)),
        )
    choices: tuple[Choice, ...] = ()
    if row.type is ParameterType.STRING:
        able = offered.capability.matches
        chosen_match = sent.get(f"{name}.match", "")
        choices = tuple(
            Choice(modifier, _MATCHES[modifier], modifier == chosen_match)
            for modifier in _MATCHES
            if MATCHES[modifier] in able or MATCHES[modifier] is StringMatch.STARTS_WITH
        )
    help = row.documentation
    if offered.values > 1 and row.type is not ParameterType.STRING and not row.is_id:
        help += f" Up to {offered.values}, separated by commas."
    if row.extension:
        help = "The code of the unit, whole and exact."
    text = Input(name, sent.get(name, ""), field.title, choices)
    return replace(field, help=help, inputs=(text,))


def _dates(
    row: SearchParameter, offered: OfferedParameter, sent: MultiDict[str, str]
) -> Iterator[Input]:
    able = [p for p in _PREFIXES if p in offered.capability.prefixes]
    for number in range(min(DATES, offered.values)):
        name = f"{row.name}.{number}"
        usual = able[min(number, len(able) - 1)].value
        chosen = sent.get(f"{name}.prefix", usual)
        choices = tuple(Choice(p.value, _PREFIXES[p], p.value == chosen) for p in able)
        label = f"{TITLES.get(row.name, row.name)} ({number + 1})"
        yield Input(name, sent.get(name, ""), label, choices)


def _date_help(row: SearchParameter, offered: OfferedParameter) -> str:
    days = offered.capability.finest is Limit.DAY or row.name == "birthdate"
    form = "2024, 2024-05 or 2024-05-31"
    if not days:
        form += ", or with a time: 2024-05-31T14:30:00+02:00"
    return f"{row.documentation} A year, a month or a day: {form}."


def _sorts(offer: ResourceOffer, sent: MultiDict[str, str]) -> Iterator[Choice]:
    default = offer.default_sort
    usual = ("-" if default.descending else "") + default.key
    chosen = sent.get("_sort", usual)
    for key in offer.sorts:
        words = _SORTS.get(key, key)
        down, up = ("highest", "lowest") if key == "_id" else ("newest", "oldest")
        yield Choice(f"-{key}", f"{words}, {down} first", f"-{key}" == chosen)
        yield Choice(key, f"{words}, {up} first", key == chosen)
