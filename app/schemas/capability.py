"""CapabilityStatement: what a deployment offers, in FHIR's words."""

from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from app.schemas.datatypes import (
    ConstantField,
    Element,
    ElementField,
    ElementSchema,
    ValueField,
    filled,
)

FHIR_VERSION = "3.0.2"
FORMATS = ("application/fhir+json", "application/json", "json")
SOFTWARE = "Encounter Information Service"
SEARCHING = (
    "A search is POST [type]/_search with a form, or GET [type]; a page of one, a Bundle, "
    "is GET alone. A parameter that is not offered is refused; with Prefer: "
    "handling=lenient it is ignored, and the Bundle says so. Searches and reads take "
    "_summary and _elements, and a page is cut as its search was; _format and _pretty are "
    "taken everywhere."
)


class InteractionFacts(NamedTuple):
    """What a client may do with a resource type; `code` is a restful-interaction."""

    code: str
    documentation: str | None = None


class ParameterFacts(NamedTuple):
    """A search parameter; `definition` is None for one that STU3 does not define."""

    name: str
    definition: str | None
    type: str
    documentation: str | None = None


@dataclass(frozen=True, slots=True)
class ResourceFacts:
    """A resource type that is served; `dated` ones can be asked for if modified since."""

    type: str
    interactions: tuple[InteractionFacts, ...]
    parameters: tuple[ParameterFacts, ...] = ()
    dated: bool = False


@dataclass(frozen=True, slots=True)
class CapabilityFacts:
    """All that a statement says of one deployment; `date` is when it last changed."""

    base_url: str
    date: date
    software_version: str
    description: str
    resources: tuple[ResourceFacts, ...]
    security_description: str


class SoftwareField(ElementField):
    """`software`: which program answers."""

    def write(self, record: CapabilityFacts) -> object:
        """Return name and version."""
        return {"name": SOFTWARE, "version": record.software_version}


class ImplementationField(ElementField):
    """`implementation`: where this deployment is."""

    def write(self, record: CapabilityFacts) -> object:
        """Return what it is and its base URL."""
        return {"description": record.description, "url": record.base_url}


class FormatField(ElementField):
    """`format`: what a client may ask for."""

    def write(self, _record: CapabilityFacts) -> object:
        """Return JSON in its spellings."""
        return list(FORMATS)


class RestField(ElementField):
    """`rest`: the one server, with its security and its resource types."""

    def write(self, record: CapabilityFacts) -> object:
        """Return a list of one."""
        resources = [_resource(each) for each in record.resources]
        security = _security(record.security_description)
        return [
            {
                "mode": "server",
                "documentation": SEARCHING,
                "security": security,
                "resource": resources,
            }
        ]


def _security(description: str) -> Element:
    system = "http://hl7.org/fhir/restful-security-service"
    service = {
        "coding": [{"system": system, "code": "OAuth"}],
        "text": "OAuth 2.0, bearer token",
    }
    return {"cors": False, "service": [service], "description": description}


def _resource(facts: ResourceFacts) -> Element:
    profile = f"http://hl7.org/fhir/StructureDefinition/{facts.type}"
    return filled(
        {
            "type": facts.type,
            "profile": {"reference": profile},
            "interaction": [filled(each._asdict()) for each in facts.interactions],
            "versioning": "no-version",
            "readHistory": False,
            "updateCreate": False,
            "conditionalRead": _conditional_read(facts),
            "referencePolicy": ["literal", "local"],
            "searchParam": [filled(each._asdict()) for each in facts.parameters],
        }
    )


def _conditional_read(facts: ResourceFacts) -> str:
    if all(each.code != "read" for each in facts.interactions):
        return "not-supported"
    return "full-support" if facts.dated else "not-match"


class CapabilitySchema(ElementSchema):
    """What is offered as an STU3 CapabilityStatement, in the order of its definition."""

    resource_type = ConstantField("CapabilityStatement", data_key="resourceType")
    name = ConstantField(SOFTWARE)
    status = ConstantField("active")
    date = ValueField("date")
    kind = ConstantField("instance")
    software = SoftwareField()
    implementation = ImplementationField()
    fhir_version = ConstantField(FHIR_VERSION, data_key="fhirVersion")
    accept_unknown = ConstantField("no", data_key="acceptUnknown")
    format = FormatField()
    rest = RestField()


_SCHEMA = CapabilitySchema()


def capability_statement(facts: CapabilityFacts) -> Element:
    """Return the CapabilityStatement of a deployment."""
    body: Element = _SCHEMA.dump(facts)
    return body
