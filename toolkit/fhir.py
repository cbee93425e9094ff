"""A first mapping file of a FHIR R4 server: it extends the base file mappings/fhir-r4.

The CapabilityStatement of the server says what it can search. A few stays and patients say
which systems their identifiers have; no other value of them is read.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from adapters.contract import AdapterError, ResourceType
from adapters.http.client import Call, Client, Deadline
from adapters.mapping.load import load_mapping
from adapters.mapping.paths import at, path_of
from app.console import CannotRunError
from toolkit.console import MARK

STAY, PATIENT, ORGANIZATION = ResourceType

_BASE = "fhir-r4/fhir-r4.yaml"
_SECONDS = 10.0
_SAMPLE = 200
_JSON = {"Accept": "application/fhir+json"}
_VERSION = path_of("fhirVersion || 'none'")
_TITLE = path_of("implementation.description || software.name")
_TYPES = path_of(
    "rest[?mode=='server'] | [0].{common: searchParam[].name, types:"
    " resource[].{type: type, can: interaction[].code, names: searchParam[].name}}"
)
_SYSTEMS = path_of("entry[].resource.identifier[].system || `[]`")

_HEAD = """\
# A first mapping of a FHIR R4 server: what its CapabilityStatement and some of its stays say.
# "# ?" marks what is open: answer it, and remove the mark. The base file has all the rest.
# mappings/fhir-r4/README.md says what may be different; `mapping check --live` finds it.
mapping: 1
extend: {base}
name: {name}  # ? the name that clients see
time_zone: Europe/Paris  # ? the hospital's zone; days without a time are read in it

source:
  url: {url}
  # ? how does a client authenticate? As an example, from the environment:
  # auth:
  #   oauth2:
  #     token_url: {{env: TOKEN_URL}}
  #     client_id: {{env: CLIENT_ID}}
  #     client_secret: {{env: CLIENT_SECRET}}
"""
_VISIT_NUMBER = """
encounter:
  fields:
    visit_number: {{from: {path}}}  # ? {systems}
    visit_number_system: {system}  # ? the system of the visit numbers
"""
_WITHOUT = {
    "organization": "the server has no Organization",
    "encounter.fields.organization_id": "the server has no Organization",
    "patient.fields.organization_id": "the server has no Organization",
}
_READ_ONLY = {
    f"organization.{key}": "the server does not search Organization"
    for key in ("list", "search", "sort")
}


class Statement(NamedTuple):
    """A CapabilityStatement: its title, and each resource type with its search parameters.

    A type that cannot be searched has None.
    """

    title: str
    types: Mapping[str, frozenset[str] | None]


def draft_of_server(url: str, written_url: str) -> str:
    """Return a mapping file of the FHIR R4 server at an address.

    Raises CannotRunError where there is none.
    """
    with closing(Client(url)) as client:
        statement = _statement(client)
        systems = {kind: _systems(client, kind) for kind in (STAY, PATIENT)}
    name = json.dumps(statement.title or "My hospital", ensure_ascii=False)
    text = _HEAD.format(base=_BASE, name=name, url=written_url)
    text += "".join(_of_systems(systems))
    lines = [f"  - {key}  {MARK}{why}" for key, why in _without(statement, url)]
    return "\n".join([text, "without:", *lines, ""]) if lines else text


def _statement(client: Client) -> Statement:
    """Return the CapabilityStatement; raises CannotRunError for anything else."""
    try:
        answer = _json(client, "/metadata")
    except AdapterError as error:
        raise _no_server(str(error)) from error
    if not str(at(answer, _VERSION)).startswith("4."):
        raise _no_server("its /metadata is no CapabilityStatement of version 4")
    rest = at(answer, _TYPES) or {}
    common = rest.get("common") or ()
    types = {
        each["type"]: frozenset((*common, *(each["names"] or ())))
        if "search-type" in (each["can"] or ())
        else None
        for each in rest.get("types") or ()
    }
    for kind in (STAY, PATIENT):
        if types.get(kind) is None:
            raise _no_server(f"the server does not search {kind}")
    title = at(answer, _TITLE)
    return Statement(title if isinstance(title, str) else "", types)


def _no_server(reason: str) -> CannotRunError:
    return CannotRunError(
        f"the address is no FHIR R4 server ({reason}), and another HTTP system has no"
        " catalogue: mappings/guide.md shows how to write its file, under 'A hospital"
        " behind an HTTP API'"
    )


def _json(client: Client, path: str, **parameters: str) -> Any:
    call = Call("GET", path, tuple(parameters.items()))
    answer = client.send(call, _JSON, Deadline(_SECONDS))
    return answer.json() if answer.status == 200 else None


def _systems(client: Client, kind: ResourceType) -> list[tuple[str, int]]:
    """Return the systems of identifiers in some resources, and how many have each.

    There is none where the server refuses to list them.
    """
    try:
        answer = _json(client, f"/{kind}", _count=str(_SAMPLE))
        texts = [each for each in at(answer, _SYSTEMS) or () if isinstance(each, str)]
    except AdapterError:
        return []
    return Counter(texts).most_common()


def _of_systems(systems: Mapping[ResourceType, list[tuple[str, int]]]) -> Iterator[str]:
    stays, patients = (
        ", ".join(f"{system} ({count})" for system, count in systems[kind])
        for kind in (STAY, PATIENT)
    )
    if not stays:
        yield f"\n{MARK}which system do visit numbers have? No stay could be read:"
        yield " mappings/fhir-r4/README.md\n"
    else:
        system = systems[STAY][0][0]
        # A raw string of JMESPath has no other way for its own quote.
        own = system.replace("\\", "\\\\").replace("'", "\\'")
        path = json.dumps(f"identifier[?system=='{own}'].value | [0]")
        named = json.dumps(system)
        yield _VISIT_NUMBER.format(path=path, systems=stays, system=named)
    if patients:
        yield f"\n{MARK}clients see the identifiers of patients of all systems: may they?"
        yield f" {patients}\n"


def _without(statement: Statement, url: str) -> Iterator[tuple[str, str]]:
    """Yield what the base file has and the server has not, and why."""
    base = Path(str(resources.files("mappings"))) / _BASE
    sections = load_mapping(base, {"FHIR_URL": url}).resources
    for kind, section in sections.items():
        names = statement.types.get(kind)
        if kind is ORGANIZATION and kind not in statement.types:
            yield from _WITHOUT.items()
        elif names is None:
            yield from _READ_ONLY.items()
        else:
            for name in section.parameters:
                if name not in names:
                    why = "the CapabilityStatement does not name it"
                    yield f"{kind.lower()}.search.{name}", why
