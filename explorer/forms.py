"""The search form: fields from what the service offers, and a sent form as parameters."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from werkzeug.datastructures import MultiDict

from explorer.offer import Parameter, SearchOffer
from explorer.sessions import Pairs
from explorer.words import CODES, DAYS, MODIFIERS, PARAMETERS, PREFIXES, SORTS

DATES = 2
"""How many bounds of a date the form has: a range."""


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


def form_of(offer: SearchOffer, sent: MultiDict[str, str]) -> dict[str, Any]:
    """Return what the template of a form shows, filled in as it was sent."""
    # What people know comes first, ids and changes of the record last.
    parameters = sorted(
        offer.parameters.values(), key=lambda parameter: parameter.name.startswith("_")
    )
    return {
        "kind": offer.kind,
        "offered": offer,
        "sent": sent,
        "fields": [_field(offer.kind, parameter) for parameter in parameters],
        "sorts": dict(_sorts(offer)),
    }


def parameters_of(offer: SearchOffer, sent: MultiDict[str, str]) -> Pairs:
    """Return the parameters of a search for what was filled in."""
    pairs = [
        pair
        for parameter in offer.parameters.values()
        for pair in _pairs(offer.kind, parameter, sent)
    ]
    pairs += [(name, sent.get(name, "")) for name in ("_sort", "_count", "_total")]
    return [(name, text) for name, text in pairs if text.strip()]


def _pairs(
    kind: str, parameter: Parameter, sent: MultiDict[str, str]
) -> Iterator[tuple[str, str]]:
    name, text = parameter.name, sent.get(parameter.name, "").strip()
    if (kind, name) in CODES:
        yield name, ",".join(sent.getlist(name))
    elif parameter.type == "date":
        for number in range(DATES):
            bound = sent.get(f"{name}.{number}", "").strip()
            prefix = sent.get(f"{name}.{number}.prefix", "")
            yield name, f"{prefix}{bound}" if bound else ""
    elif parameter.extension and text and "|" not in text:
        yield name, f"{parameter.extension}|{text}"
    else:
        match = sent.get(f"{name}.match", "")
        yield f"{name}:{match}" if match else name, text


def _field(kind: str, parameter: Parameter) -> Field:
    name, help = parameter.name, parameter.text
    text = Field(
        name=name,
        title=PARAMETERS.get(name, name),
        help=help,
        single=parameter.most == 1,
        inputs=(name,),
    )
    if (kind, name) in CODES:
        return replace(text, codes=CODES[kind, name])
    if parameter.type == "date":
        bounds = DATES if parameter.most is None else min(DATES, parameter.most)
        return replace(
            text,
            help=f"{help} {_date_help(parameter)}",
            inputs=[f"{name}.{bound}" for bound in range(bounds)],
            suffix="prefix",
            comparisons={p: PREFIXES[p] for p in PREFIXES if p in parameter.prefixes},
        )
    if parameter.type == "string":
        offered = {"", *parameter.modifiers}
        words = {m: MODIFIERS[m] for m in MODIFIERS if m in offered}
        return replace(text, suffix="match", comparisons=words)
    if parameter.extension:
        return replace(text, help="The code of the unit, whole and exact.")
    if text.single or name == "_id":
        return text
    many = "Several" if parameter.most is None else f"Up to {parameter.most}"
    return replace(text, help=f"{help} {many}, separated by commas.")


def _date_help(parameter: Parameter) -> str:
    text = "A year, a month or a day: 2024, 2024-05 or 2024-05-31"
    if parameter.has_days or parameter.name in DAYS:
        return f"{text}."
    return f"{text}, or with a time: 2024-05-31T14:30:00+02:00."


def _sorts(offer: SearchOffer) -> Iterator[tuple[str, str]]:
    for key in offer.sorts:
        words = SORTS.get(key, key)
        down, up = ("highest", "lowest") if key == "_id" else ("newest", "oldest")
        yield f"-{key}", f"{words}, {down} first"
        yield key, f"{words}, {up} first"
