"""`encounters mapping explain`: what is offered and why, and what a search would send."""

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from types import SimpleNamespace

from adapters import open_adapter
from adapters.contract import (
    Adapter,
    AdapterError,
    NotAskableError,
    ParameterCapability,
    Prefix,
    ResourceType,
)
from adapters.inspection import with_values
from adapters.mapping.load import load_mapping
from adapters.mapping.model import SourceMapping
from adapters.mapping.problems import MappingError, one_of
from adapters.mapping.profile import Profile, profile_of
from adapters.parameters import SEARCH_PARAMETERS, ParameterType
from app.cli.check import FINDINGS, FINE, CannotRunError, print_json
from app.errors import LIMITS, ServiceError
from app.offer import compute_offer
from app.search.parser import Parameters, context_of, decode_form, parse_search

_BASE_URL = "https://example.org/fhir/v3"
"""Stands for the address of the deployment, which a mapping file does not say."""


@dataclass(frozen=True, slots=True)
class Row:
    """One search parameter: whether it is offered, and why not or how far."""

    resource_type: ResourceType
    parameter: str
    offered: bool
    reason: str


def run(options: SimpleNamespace) -> int:
    """Print the table of parameters, or what one search would send."""
    try:
        mapping = load_mapping(options.file, os.environ)
        profile = profile_of(mapping)
        adapter = open_adapter(mapping)
    except (AdapterError, MappingError) as error:
        raise CannotRunError(str(error)) from error
    with closing(adapter):
        if options.search is None:
            return _show_table(tuple(_rows(mapping, profile, adapter)), options.json)
        return _show_search(mapping, profile, adapter, options)


def _rows(mapping: SourceMapping, profile: Profile, adapter: Adapter) -> Iterator[Row]:
    """Yield each parameter of each section of the file."""
    for kind in dict.fromkeys(section.resource_type for section in mapping.sections):
        sections = [s for s in mapping.sections if s.resource_type is kind]
        listed = {name for section in sections for name in section.parameters}
        able = adapter.capabilities[kind].parameters
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


def _show_table(rows: tuple[Row, ...], as_json: bool) -> int:
    if as_json:
        print_json({"parameters": [asdict(row) for row in rows]})
        return FINE
    width = max(len(row.parameter) for row in rows)
    for row in rows:
        offered = "offered" if row.offered else "refused"
        name = f"{row.resource_type:<12}  {row.parameter:<{width}}"
        print(f"{name}  {offered}  {row.reason}")
    return FINE


def _show_search(
    mapping: SourceMapping, profile: Profile, adapter: Adapter, options: SimpleNamespace
) -> int:
    context = context_of(_BASE_URL, mapping.constants, mapping.time_zone)
    explain = with_values(adapter) if options.values else adapter.explain
    try:
        kind, pairs = parsed_search(options.search)
        offer = compute_offer(profile, adapter.capabilities).resources.get(kind)
        if offer is None or not offer.searchable:
            return _show(options, f"{kind} is not searched here.", refused=True)
        sent = explain(parse_search(pairs, offer, context).query)
    except ServiceError as error:
        return _show(options, error.text, refused=True)
    except NotAskableError as error:
        limit = LIMITS[error.limit] if error.limit else "cannot be asked here"
        text = f"Parameter '{error.parameter}' {limit}."
        return _show(options, text, refused=True)
    except AdapterError as error:
        text = f"the source does not list its columns: {error}"
        raise CannotRunError(text) from error
    return _show(options, sent or "nothing is asked: nothing can match", refused=False)


def parsed_search(search: str) -> tuple[ResourceType, Parameters]:
    """Return the resource type and the pairs of a search like `Encounter?date=2024`."""
    path, _, query = search.partition("?")
    name = path.rstrip("/").rpartition("/")[2]
    kinds = {str(kind): kind for kind in ResourceType}
    if name not in kinds:
        text = one_of(name, kinds, "a resource type")
        raise CannotRunError(f"{text}; a search is like 'Encounter?patient=42'")
    return kinds[name], decode_form(query.encode())


def _show(options: SimpleNamespace, text: str, *, refused: bool) -> int:
    if options.json:
        print_json({"search": options.search, "refused": refused, "text": text})
    else:
        print(f"refused: {text}" if refused else text)
    return FINDINGS if refused else FINE
