"""A first mapping file of a FHIR R4 server: mappings/fhir-r4 without what the server lacks.

The CapabilityStatement of the server says what it can search. A few stays and patients say
which systems their identifiers have; no other value of them is read.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from adapters.contract import AdapterError, ResourceType
from adapters.http.client import Deadline, HttpCall, HttpClient
from adapters.mapping.load import load_mapping
from adapters.mapping.model import SourceMapping
from adapters.mapping.paths import at, path_of
from app.console import CannotRunError
from toolkit.console import QUESTION

STAY, PATIENT, ORGANIZATION = ResourceType

_BASE_FILE = "fhir-r4/fhir-r4.yaml"
_TIMEOUT_SECONDS = 10.0
_SAMPLE_RESOURCES = 200
_HEADERS = {"Accept": "application/fhir+json"}
_VERSION = path_of("fhirVersion || 'none'")
_TITLE = path_of("implementation.description || software.name")
_TYPES = path_of(
    "rest[?mode=='server'] | [0].{common: searchParam[].name, types:"
    " resource[].{type: type, can: interaction[].code, names: searchParam[].name}}"
)
_SYSTEMS = path_of("entry[].resource.identifier[].system || `[]`")

_HEAD = """\
# A first mapping of a FHIR R4 server: what its CapabilityStatement and some of its stays say.
# "# ?" marks what is open: answer it, and remove the mark. The rest is mappings/fhir-r4.
# docs/bring/extend.md describes what may differ; `mapping check --live` finds it.
mapping: 1
name: {name}  # ? the name that clients see
profile: full
time_zone: Europe/Paris  # ? the hospital's zone; days without a time are read in it

source:
  kind: http
  url: {url}
  headers: {{Accept: application/fhir+json}}
  # ? how does a client authenticate? As an example, from the environment:
  # auth:
  #   oauth2:
  #     token_url: {{env: TOKEN_URL}}
  #     client_id: {{env: CLIENT_ID}}
  #     client_secret: {{env: CLIENT_SECRET}}
"""
_NO_ORGANIZATION = {
    "organization": "the server has no Organization",
    "encounter.fields.organization_id": "the server has no Organization",
    "patient.fields.organization_id": "the server has no Organization",
}
_READ_ONLY = {
    f"organization.{key}": "the server does not search Organization"
    for key in ("list", "search", "sort")
}


class ServerStatement(NamedTuple):
    """A CapabilityStatement: its title, and each resource type with its search parameters.

    A type that cannot be searched has None.
    """

    title: str
    types: Mapping[str, frozenset[str] | None]


def draft_of_server(url: str, written_url: str) -> str:
    """Return the text of a mapping file of the FHIR R4 server at `url`.

    `written_url` is what the file has as its address. Raises CannotRunError if there is no FHIR
    R4 server.
    """
    with closing(HttpClient(url)) as client:
        statement = _statement(client)
        systems = {kind: _systems(client, kind) for kind in (STAY, PATIENT)}
    name = json.dumps(statement.title or "My hospital", ensure_ascii=False)
    base = Path(str(resources.files("mappings"))) / _BASE_FILE
    text = base.read_text("utf-8")
    lines = text[text.index("\ncodes:\n") :].splitlines()
    for key, reason in _lacking(statement, load_mapping(base, {"FHIR_URL": url})):
        lines = _replaced(lines, key, f"{QUESTION}{key} is left out: {reason}")
    counts = {
        kind: ", ".join(f"{system} ({count})" for system, count in counted)
        for kind, counted in systems.items()
    }
    if systems[STAY]:
        system, _ = systems[STAY][0]
        for key, line in _visit_number(system, counts[STAY]).items():
            lines = _replaced(lines, key, line)
    head = _HEAD.format(name=name, url=written_url)
    questions = _questions(counts[STAY], counts[PATIENT])
    return "\n".join([head, *questions, *lines, ""])


def _replaced(lines: Sequence[str], key: str, line: str) -> list[str]:
    """Return the lines of a YAML file with one line in place of a key and its whole value.

    The parts of the key are separated by dots.
    """
    start, indent = 0, ""
    for depth, name in enumerate(key.split(".")):
        indent = "  " * depth
        while not lines[start].startswith(f"{indent}{name}:"):
            start += 1
    end = start + 1
    while end < len(lines) and lines[end].startswith(f"{indent} "):
        end += 1
    return [*lines[:start], indent + line, *lines[end:]]


def _statement(client: HttpClient) -> ServerStatement:
    """Return the CapabilityStatement; raises CannotRunError for anything else."""
    try:
        answer = _json(client, "/metadata")
    except AdapterError as error:
        raise _no_server(str(error)) from error
    if not str(at(answer, _VERSION)).startswith("4."):
        raise _no_server("its /metadata is no CapabilityStatement of version 4")
    rest = at(answer, _TYPES) or {}
    common = rest.get("common") or ()
    types: dict[str, frozenset[str] | None] = {}
    for resource in rest.get("types") or ():
        types[resource["type"]] = None
        if "search-type" in (resource["can"] or ()):
            names = resource["names"] or ()
            types[resource["type"]] = frozenset((*common, *names))
    for kind in (STAY, PATIENT):
        if types.get(kind) is None:
            raise _no_server(f"the server does not search {kind}")
    title = at(answer, _TITLE)
    return ServerStatement(title if isinstance(title, str) else "", types)


def _no_server(reason: str) -> CannotRunError:
    """Return the error that an address is no FHIR R4 server."""
    return CannotRunError(
        f"the address is not a FHIR R4 server ({reason}), and other HTTP systems have no"
        " catalogue: docs/bring/guide-http.md shows how to write the file"
    )


def _json(client: HttpClient, path: str, **parameters: str) -> Any:
    """Return the JSON at a path, None unless the status is 200. Raises AdapterError."""
    call = HttpCall("GET", path, tuple(parameters.items()))
    answer = client.send(call, _HEADERS, Deadline(_TIMEOUT_SECONDS))
    return answer.json() if answer.status == 200 else None


def _systems(client: HttpClient, kind: ResourceType) -> list[tuple[str, int]]:
    """Return the systems of identifiers in a page of resources, and how many have each.

    Return [] where the server refuses to list them.
    """
    try:
        answer = _json(client, f"/{kind}", _count=str(_SAMPLE_RESOURCES))
        texts = [
            system for system in at(answer, _SYSTEMS) or () if isinstance(system, str)
        ]
    except AdapterError:
        return []
    return Counter(texts).most_common()


def _questions(stays: str, patients: str) -> Iterator[str]:
    """Yield the questions about identifiers; the arguments are their systems with counts."""
    if not stays:
        question = "which system do visit numbers have? No stay could be read:"
        yield f"{QUESTION}{question} docs/bring/extend.md"
    if patients:
        question = (
            "clients see the patient identifiers of all systems: is this allowed?"
        )
        yield f"{QUESTION}{question} {patients}"


def _visit_number(system: str, counts: str) -> Mapping[str, str]:
    """Return the lines of the visit number and of its system, by their keys in the file."""
    # Escaped as a raw string of JMESPath needs it.
    escaped = system.replace("\\", "\\\\").replace("'", "\\'")
    path = json.dumps(f"identifier[?system=='{escaped}'].value | [0]")
    question = f"{QUESTION}the system of the visit numbers"
    return {
        "encounter.fields.visit_number": f"visit_number: {{from: {path}}}  {QUESTION}{counts}",
        "encounter.fields.visit_number_system": (
            f"visit_number_system: {json.dumps(system)}  {question}"
        ),
    }


def _lacking(
    statement: ServerStatement, mapping: SourceMapping
) -> Iterator[tuple[str, str]]:
    """Yield the keys of the base file that the server does not support, and why."""
    for kind, section in mapping.resources.items():
        names = statement.types.get(kind)
        if kind is ORGANIZATION and kind not in statement.types:
            yield from _NO_ORGANIZATION.items()
        elif names is None:
            yield from _READ_ONLY.items()
        else:
            for name in section.parameters:
                if name not in names:
                    reason = "the CapabilityStatement does not name it"
                    yield f"{kind.lower()}.search.{name}", reason
