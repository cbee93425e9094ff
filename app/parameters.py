"""The search parameters of the service: one table, from which all else is read.

How FHIR STU3 defines each (spec 4.1; decisions 4 to 9). What a deployment offers of
them is for `app.capabilities` to say.
"""

from collections.abc import Mapping
from datetime import tzinfo
from types import MappingProxyType

from adapters.contract import ResourceType
from adapters.mapping.constants import Constants
from app.criteria import (
    Context,
    ParameterType,
    SearchParameter,
    read_codes,
    read_dates,
    read_identifiers,
    read_ids,
    read_patients,
    read_strings,
    read_units,
)

_STU3 = "http://hl7.org/fhir/SearchParameter/"
_ID = SearchParameter(
    "_id",
    ParameterType.TOKEN,
    _STU3 + "Resource-id",
    read_ids,
    "Ids, comma-separated.",
)


def _name(name: str, definition: str, documentation: str) -> SearchParameter:
    return SearchParameter(
        name, ParameterType.STRING, _STU3 + definition, read_strings, documentation
    )


def _identifier(definition: str, documentation: str) -> SearchParameter:
    return SearchParameter(
        "identifier",
        ParameterType.TOKEN,
        _STU3 + definition,
        read_identifiers,
        documentation,
    )


_ENCOUNTER = (
    _ID,
    SearchParameter(
        "patient",
        ParameterType.REFERENCE,
        _STU3 + "clinical-patient",
        read_patients,
        "The patient: Patient/<id>, <id> or the absolute address.",
    ),
    SearchParameter(
        "date",
        ParameterType.DATE,
        _STU3 + "clinical-date",
        read_dates,
        "When the stay began.",
    ),
    _identifier("clinical-identifier", "The visit number, whole and exact."),
    SearchParameter(
        "status",
        ParameterType.TOKEN,
        _STU3 + "Encounter-status",
        read_codes,
        "planned, in-progress or finished.",
        codes=("planned", "in-progress", "finished"),
        system="http://hl7.org/fhir/encounter-status",
    ),
    SearchParameter(
        "class",
        ParameterType.TOKEN,
        _STU3 + "Encounter-class",
        read_codes,
        "EMER, IMP, PRENC, AMB, REC or UNK.",
        codes=("EMER", "IMP", "PRENC", "AMB", "REC", "UNK"),
    ),
    SearchParameter(
        "service-provider._extension",
        ParameterType.TOKEN,
        None,
        read_units,
        "The functional unit: <extension url>|<code>, whole and exact.",
    ),
)
_PATIENT = (
    _ID,
    _name("name", "Patient-name", "Any part of a name: the start of a word."),
    _name("family", "individual-family", "A family name: the start of a word."),
    _name("given", "individual-given", "A given name: the start of a word."),
    SearchParameter(
        "birthdate",
        ParameterType.DATE,
        _STU3 + "individual-birthdate",
        read_dates,
        "The day of birth.",
    ),
    SearchParameter(
        "gender",
        ParameterType.TOKEN,
        _STU3 + "individual-gender",
        read_codes,
        "male, female, other or unknown.",
        codes=("male", "female", "other", "unknown"),
        system="http://hl7.org/fhir/administrative-gender",
    ),
    _identifier("Patient-identifier", "An identifier (IPP, INS), whole and exact."),
)
_ORGANIZATION = (
    _ID,
    _name("name", "Organization-name", "The name: the start of a word."),
    _identifier("Organization-identifier", "An identifier, whole and exact."),
)

SEARCH_PARAMETERS: Mapping[ResourceType, Mapping[str, SearchParameter]] = (
    MappingProxyType(
        {
            kind: MappingProxyType({row.name: row for row in rows})
            for kind, rows in (
                (ResourceType.ENCOUNTER, _ENCOUNTER),
                (ResourceType.PATIENT, _PATIENT),
                (ResourceType.ORGANIZATION, _ORGANIZATION),
            )
        }
    )
)
"""By resource type and name."""


def context_of(base_url: str, constants: Constants, zone: tzinfo) -> Context:
    """Return what reading a search needs to know of a deployment at `base_url`."""
    codes = SEARCH_PARAMETERS[ResourceType.ENCOUNTER]["class"].codes
    systems = {
        code: constants.class_systems.get(code, constants.class_code_system)
        for code in codes
    }
    return Context(base_url, zone, systems, constants.functional_unit_extension)
