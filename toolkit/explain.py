"""`encounters mapping explain`: what is offered and why, and what a search would send."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from adapters.contract import ParameterCapability, Prefix, ResourceType
from adapters.mapping.load import load_mapping
from adapters.mapping.profile import profile_of
from adapters.parameters import SEARCH_PARAMETERS, ParameterType
from app.console import FINDINGS, FINE, aligned, print_json
from toolkit.trial import RefusedError, Searches, parsed_search, searching


class Row(NamedTuple):
    """One search parameter: whether it is offered, and why not or how far."""

    resource_type: ResourceType
    parameter: str
    offered: bool
    reason: str


def run(*, file: Path, search: str | None, as_json: bool) -> int:
    """Print the table of parameters, or what one search would send."""
    with searching(load_mapping(file, os.environ)) as searches:
        if search is not None:
            return _show_search(searches, search, as_json=as_json)
        rows = [*_rows(searches)]
    if as_json:
        print_json({"parameters": [row._asdict() for row in rows]})
    else:
        words = {True: "offered", False: "refused"}
        table = [(of, name, words[offered], why) for of, name, offered, why in rows]
        print(*aligned(table), sep="\n")
    return FINE


def _rows(searches: Searches) -> Iterator[Row]:
    """Yield each parameter of each section of the file."""
    mapping = searches.mapping
    profile = profile_of(mapping)
    for kind in dict.fromkeys(section.resource_type for section in mapping.sections):
        sections = [s for s in mapping.sections if s.resource_type is kind]
        listed = {name for section in sections for name in section.parameters}
        able = searches.adapter.capabilities[kind].parameters
        wanted = profile.resources.get(kind)
        for name in SEARCH_PARAMETERS[kind]:
            if wanted is None or name not in wanted.parameters:
                yield Row(kind, name, False, f"profile {profile.name} leaves it out")
            elif name not in listed:
                yield Row(kind, name, False, "the file does not list it under search")
            elif name not in able:
                yield Row(kind, name, False, "not every source can filter by it")
            else:
                values = wanted.parameters[name]
                yield Row(kind, name, True, _extent(kind, name, values, able[name]))


def _extent(
    kind: ResourceType, name: str, values: int, able: ParameterCapability
) -> str:
    """Return how far an offered parameter goes."""
    extent = "one value" if values == 1 else f"up to {values} values"
    type_ = SEARCH_PARAMETERS[kind][name].type
    if type_ is ParameterType.STRING:
        extent += "; compares " + ", ".join(sorted(able.matches))
    elif type_ is ParameterType.DATE:
        extent += "; prefixes " + " ".join(p for p in Prefix if p in able.prefixes)
    return extent


def _show_search(searches: Searches, search: str, *, as_json: bool) -> int:
    try:
        query = searches.query(*parsed_search(search))
        text, refused = searches.sent(query), False
    except RefusedError as error:
        text, refused = str(error), True
    if as_json:
        print_json({"search": search, "refused": refused, "text": text})
    else:
        print(f"refused: {text}" if refused else text)
    return FINDINGS if refused else FINE
