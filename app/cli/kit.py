"""`encounters kit`: requests to try on this deployment, as Bruno collection and `.http` file.

    DIR/openapi.json      for client generators
    DIR/requests.http     for editors (httpyac), with the variables of http-client.env.json
    DIR/bruno/            for Bruno: one file a request, `bru run --env deployment`

Offer → requests → files. There is one request for each parameter that is offered, for pages,
reads and the errors that a client can provoke. Ids come from the answer to the first search,
secrets from variables: no file has one.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adapters.contract import ResourceType
from adapters.parameters import SEARCH_PARAMETERS, ParameterType
from app.cli.openapi import Deployment, configured
from app.console import FINE
from app.offer import Offer, ResourceOffer
from app.openapi import search_parameters
from app.snippets import SIGNED, http_request
from toolkit.console import write_text

Pairs = tuple[tuple[str, str], ...]

STAY, _JSON = ResourceType.ENCOUNTER, "application/json"
SECRET = "client_secret"  # noqa: S105 - the name of a variable

_EXAMPLE_PROVIDER = "https://identity.example.org/oauth/token"
_FIRST = "entry.find(e => e.search.mode === 'match').resource"
_SAVED: Mapping[str, str] = {
    "encounter_id": f"{_FIRST}.id",
    "patient_id": f"{_FIRST}.subject.reference.split('/').pop()",
    "organization_id": f"{_FIRST}.serviceProvider?.reference.split('/').pop()",
}
"""Where the answer to the first search has the ids of the other requests."""

_NEXT = {"next": "link.find(l => l.relation === 'next').url"}
_SAMPLES: Mapping[ParameterType, str] = {
    ParameterType.DATE: "ge2024-01-01",
    ParameterType.STRING: "martin",
    ParameterType.TOKEN: "12345",
}
_UNIT = "https://example.org/fhir/StructureDefinition/functional-unit|0123"


@dataclass(frozen=True, slots=True)
class Request:
    """A request and the status of its answer; `saves` maps variables to parts of the body."""

    name: str
    path: str
    status: int = 200
    method: str = "GET"
    form: Pairs | None = None
    headers: Pairs = ()
    signed: bool = True
    saves: Mapping[str, str] = field(default_factory=dict)

    @property
    def sent_headers(self) -> Pairs:
        """The headers, that of the token included."""
        return (SIGNED, *self.headers) if self.signed else self.headers

    @property
    def url(self) -> str:
        """The address; a path that is a variable stands for a whole one."""
        return self.path if self.path.startswith("{{") else f"{{{{base}}}}/{self.path}"


def run(*, out: Path) -> int:
    """Write the kit of the deployment that the environment configures."""
    files = kit(configured(os.environ))
    for name, text in files.items():
        write_text(out / name, text)
    print(f"{out}: {len(files)} files")
    return FINE


def kit(deployment: Deployment) -> Mapping[str, str]:
    """Return the files of a kit by their path."""
    requests = [_TOKEN, *requests_of(deployment.offer)]
    variables = {
        "base": deployment.base_url,
        "token_url": deployment.token_url or _EXAMPLE_PROVIDER,
        "client_id": "client",
        "audience": deployment.audience,
    }
    description = json.dumps(deployment.description(), indent=2)
    collection = {"version": "1", "name": deployment.title, "type": "collection"}
    lines = "".join(f"  {name}: {text}\n" for name, text in variables.items())
    secret = f"vars:secret [\n  {SECRET}\n]\n"
    return {
        "openapi.json": f"{description}\n",
        "requests.http": _http_file(requests),
        "http-client.env.json": json.dumps({"deployment": variables}, indent=2) + "\n",
        "bruno/bruno.json": json.dumps(collection, indent=2) + "\n",
        "bruno/environments/deployment.bru": f"vars {{\n{lines}}}\n{secret}",
        **{
            f"bruno/{number:02} {each.name}.bru": _bruno(number, each)
            for number, each in enumerate(requests, 1)
        },
    }


_TOKEN = Request(
    "token",
    "{{token_url}}",
    method="POST",
    form=(
        ("grant_type", "client_credentials"),
        ("client_id", "{{client_id}}"),
        (SECRET, "{{client_secret}}"),
        ("audience", "{{audience}}"),
    ),
    signed=False,
    saves={"token": "access_token"},
)


def requests_of(offer: Offer) -> Iterator[Request]:
    """Yield the requests for what a deployment offers, in an order that works."""
    yield Request("capabilities", "metadata", signed=False)
    encounters = offer.resources[STAY]
    saves = {**_SAVED, **_NEXT} if offer.paging else _SAVED
    yield _search(encounters, "first search", ("_count", "1"), saves=saves)
    if offer.paging:
        yield Request("next page", "{{next}}")
    for kind, each in offer.resources.items():
        id = f"{{{{{kind.lower()}_id}}}}"
        yield Request(f"{kind} read", f"{kind}/{id}")
        if each.searchable:
            yield from _searches(each, id)
    yield from _errors(offer)


def _search(
    offer: ResourceOffer, name: str, *form: tuple[str, str], **more: Any
) -> Request:
    path = f"{offer.resource_type}/_search"
    return Request(name, path, method="POST", form=form, **more)


def _searches(offer: ResourceOffer, id: str) -> Iterator[Request]:
    """Yield a search by each parameter; what is no criterion comes with an id."""
    for node in search_parameters(offer):
        name = node["name"]
        form = [(name, _sample(offer.resource_type, name, node["schema"], id))]
        if name.partition(":")[0] not in offer.parameters:
            form.insert(0, ("_id", id))
        title = f"{offer.resource_type} {name.replace(':', ' ')}"
        yield _search(offer, title, *form)


def _sample(kind: ResourceType, name: str, schema: Mapping[str, Any], id: str) -> str:
    row = SEARCH_PARAMETERS[kind].get(name.partition(":")[0])
    if row is None:
        return str(schema.get("default", schema.get("enum", ["1"])[0]))
    if row.is_id:
        return id
    if row.target:
        return f"{row.target}/{{{{{row.target.lower()}_id}}}}"
    return row.codes[0] if row.codes else _UNIT if row.extension else _SAMPLES[row.type]


def _errors(offer: Offer) -> Iterator[Request]:
    """Yield a request for each status of an error that a client can provoke."""
    stay, encounters = "Encounter/{{encounter_id}}", offer.resources[STAY]
    xml, json_body = ("Accept", "application/fhir+xml"), ("Content-Type", _JSON)
    yield _search(encounters, "400 not offered", ("length", "3"), status=400)
    yield Request("401 no token", stay, 401, signed=False)
    yield Request("404 no such stay", "Encounter/none", 404)
    yield Request("405 read only", stay, 405, "DELETE")
    yield Request("406 not JSON", stay, 406, headers=(xml,))
    yield _search(encounters, "412 bad value", ("_count", "0"), status=412)
    form = "Encounter/_search"
    yield Request("415 not a form", form, 415, "POST", headers=(json_body,))
    patients = offer.resources.get(ResourceType.PATIENT)
    if patients and patients.searchable and not patients.unfiltered:
        yield _search(patients, "422 no criterion", ("_count", "1"), status=422)


def _http_file(requests: Iterable[Request]) -> str:
    """Return the requests as text for editors."""
    lines: list[str] = []
    for each in requests:
        request = http_request(each.method, each.url, each.sent_headers, each.form)
        lines += [f"### {each.name}", request, f"?? status == {each.status}"]
        exports = [
            f"  exports.{name} = response.parsedBody.{part};"
            for name, part in each.saves.items()
        ]
        lines += ["{{", *exports, "}}", ""] if exports else [""]
    return "\n".join(lines)


def _bruno(number: int, request: Request) -> str:
    """Return a request as a file of Bruno's."""
    body = "none" if request.form is None else "formUrlEncoded"
    target = f"  url: {request.url}\n  body: {body}\n  auth: none"
    meta = f"  name: {request.name}\n  type: http\n  seq: {number}"
    parts = {"meta": meta, request.method.lower(): target}
    parts["headers"] = _lines(request.sent_headers)
    parts["body:form-urlencoded"] = _lines(request.form or ())
    parts["assert"] = f"  res.status: eq {request.status}"
    parts["script:post-response"] = "\n".join(
        f"  bru.setVar('{name}', res.body.{part});"
        for name, part in request.saves.items()
    )
    return "\n".join(f"{name} {{\n{text}\n}}\n" for name, text in parts.items() if text)


def _lines(pairs: Pairs) -> str:
    # A name ends at the first colon unless it is quoted.
    names = ((f'"{name}"' if ":" in name else name, text) for name, text in pairs)
    return "\n".join(f"  {name}: {text}" for name, text in names)
