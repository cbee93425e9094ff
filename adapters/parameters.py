"""The table of search parameters, and of sort keys: everything that needs one reads it here.

The parser of searches, the CapabilityStatement, OpenAPI, every adapter, the checks of mapping
files and profiles and the reference page are derived from it. A new search parameter is a row
of this table, a line in the profile `full`, and its test (spec 4.1; decisions 4 to 9).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from adapters.contract import ResourceType, SortKey


class ParameterType(StrEnum):
    """FHIR's search parameter types, as far as they occur here."""

    TOKEN = "token"  # noqa: S105 - a FHIR type
    DATE = "date"
    STRING = "string"
    REFERENCE = "reference"


@dataclass(frozen=True, slots=True)
class SearchParameter:
    """A search parameter: how FHIR defines it, and the slots that it is compared with.

    A row matches if one of `slots` does; `names.family` is a slot of the items of a list.
    `shown` is where a resource shows what is compared (JMESPath): texts, tokens as
    [system, code], dates as [start, end].
    `definition` is the STU3 canonical address, None for a parameter of this service.

    Of a token, `codes` is the closed list of a parameter that has one, `system` the system
    of all its codes, and `system_slot` the slot of the system of an identifier. With
    `extension` the value is written `<extension url>|<code>`. `target` is the type of the
    resource that a reference leads to.
    """

    name: str
    type: ParameterType
    slots: tuple[str, ...]
    documentation: str
    shown: str
    definition: str | None = None
    codes: tuple[str, ...] = ()
    system: str | None = None
    system_slot: str | None = None
    extension: bool = False
    target: ResourceType | None = None

    @property
    def is_id(self) -> bool:
        """Whether the values are ids of the resource itself."""
        return self.slots == ("id",)


_STU3 = "http://hl7.org/fhir/SearchParameter/"
_ID = SearchParameter(
    "_id",
    ParameterType.TOKEN,
    slots=("id",),
    documentation="Ids, comma-separated.",
    shown="[[`null`, id]]",
    definition=_STU3 + "Resource-id",
)


_LAST_UPDATED = SearchParameter(
    "_lastUpdated",
    ParameterType.DATE,
    slots=("last_updated",),
    documentation="When the resource last changed.",
    shown="[[meta.lastUpdated, meta.lastUpdated]]",
    definition=_STU3 + "Resource-lastUpdated",
)


def _string(
    name: str,
    slots: tuple[str, ...],
    documentation: str,
    shown: str,
    definition: str,
) -> SearchParameter:
    return SearchParameter(
        name,
        ParameterType.STRING,
        slots=slots,
        documentation=documentation,
        shown=shown,
        definition=_STU3 + definition,
    )


_ENCOUNTER = (
    _ID,
    _LAST_UPDATED,
    SearchParameter(
        "patient",
        ParameterType.REFERENCE,
        slots=("patient_id",),
        documentation=(
            "The patient: Patient/<id>, <id> (also as patient:Patient)"
            " or the absolute address."
        ),
        shown="[[`null`, subject.reference]]",
        definition=_STU3 + "clinical-patient",
        target=ResourceType.PATIENT,
    ),
    SearchParameter(
        "date",
        ParameterType.DATE,
        slots=("start",),
        documentation="When the stay began.",
        shown="[[period.start, period.end]]",
        definition=_STU3 + "clinical-date",
    ),
    SearchParameter(
        "identifier",
        ParameterType.TOKEN,
        slots=("visit_number",),
        documentation="The visit number, whole and exact.",
        shown="identifier[].[system, value]",
        definition=_STU3 + "clinical-identifier",
        system_slot="visit_number_system",
    ),
    SearchParameter(
        "status",
        ParameterType.TOKEN,
        slots=("status",),
        documentation="planned, in-progress or finished.",
        shown="[[`null`, status]]",
        definition=_STU3 + "Encounter-status",
        codes=("planned", "in-progress", "finished"),
        system="http://hl7.org/fhir/encounter-status",
    ),
    SearchParameter(
        "class",
        ParameterType.TOKEN,
        slots=("class",),
        documentation="EMER, IMP, PRENC, AMB, REC or UNK.",
        shown="[[class.system, class.code]]",
        definition=_STU3 + "Encounter-class",
        codes=("EMER", "IMP", "PRENC", "AMB", "REC", "UNK"),
    ),
    SearchParameter(
        "service-provider._extension",
        ParameterType.TOKEN,
        slots=("functional_unit",),
        documentation="The functional unit: <extension url>|<code>, whole and exact.",
        shown="serviceProvider.extension[].[url, valueString]",
        extension=True,
    ),
    SearchParameter(
        "service-provider",
        ParameterType.REFERENCE,
        slots=("organization_id",),
        documentation="The hospital: Organization/<id>, <id> or the absolute address.",
        shown="[[`null`, serviceProvider.reference]]",
        definition=_STU3 + "Encounter-service-provider",
        target=ResourceType.ORGANIZATION,
    ),
)
_PATIENT = (
    _ID,
    _LAST_UPDATED,
    _string(
        "name",
        ("names.family", "names.given", "names.text"),
        "Any part of a name: the start of a word.",
        "name[].[family, given, text][][]",
        "Patient-name",
    ),
    _string(
        "family",
        ("names.family",),
        "A family name: the start of a word.",
        "name[].family",
        "individual-family",
    ),
    _string(
        "given",
        ("names.given",),
        "A given name: the start of a word.",
        "name[].given[]",
        "individual-given",
    ),
    SearchParameter(
        "birthdate",
        ParameterType.DATE,
        slots=("birth_date",),
        documentation="The day of birth.",
        shown="[[birthDate, birthDate]]",
        definition=_STU3 + "individual-birthdate",
    ),
    SearchParameter(
        "gender",
        ParameterType.TOKEN,
        slots=("gender",),
        documentation="male, female, other or unknown.",
        shown="[[`null`, gender]]",
        definition=_STU3 + "individual-gender",
        codes=("male", "female", "other", "unknown"),
        system="http://hl7.org/fhir/administrative-gender",
    ),
    SearchParameter(
        "identifier",
        ParameterType.TOKEN,
        slots=("identifiers.value",),
        documentation="An identifier (IPP, INS), whole and exact.",
        shown="identifier[].[system, value]",
        definition=_STU3 + "Patient-identifier",
        system_slot="identifiers.system",
    ),
)
_ORGANIZATION = (
    _ID,
    _LAST_UPDATED,
    _string(
        "name",
        ("name",),
        "The name: the start of a word.",
        "[name]",
        "Organization-name",
    ),
    SearchParameter(
        "identifier",
        ParameterType.TOKEN,
        slots=("identifiers.value",),
        documentation="An identifier, whole and exact.",
        shown="identifier[].[system, value]",
        definition=_STU3 + "Organization-identifier",
        system_slot="identifiers.system",
    ),
)

SEARCH_PARAMETERS: Mapping[ResourceType, Mapping[str, SearchParameter]] = {
    kind: {row.name: row for row in rows}
    for kind, rows in (
        (ResourceType.ENCOUNTER, _ENCOUNTER),
        (ResourceType.PATIENT, _PATIENT),
        (ResourceType.ORGANIZATION, _ORGANIZATION),
    )
}
"""The search parameters by resource type and name."""


@dataclass(frozen=True, slots=True)
class DerivedParameter:
    """A parameter that the service answers by another one: no adapter knows it.

    Its values are those of `parameter` of a `kind`. If that is another type than the one
    searched, the search is for what refers to the resources that they find.
    """

    name: str
    kind: ResourceType
    parameter: str
    documentation: str
    definition: str | None = None


DERIVED: Mapping[ResourceType, Mapping[str, DerivedParameter]] = {
    ResourceType.ENCOUNTER: {
        row.name: row
        for row in (
            DerivedParameter(
                "subject",
                ResourceType.ENCOUNTER,
                parameter="patient",
                documentation="The patient, as in the parameter patient.",
                definition=_STU3 + "Encounter-subject",
            ),
            DerivedParameter(
                "patient.identifier",
                ResourceType.PATIENT,
                parameter="identifier",
                documentation="An identifier of the patient (IPP, INS), whole and exact.",
            ),
        )
    },
}
"""The derived parameters by resource type and name (decision 36)."""

RESULT_PARAMETERS = ("_count", "_sort", "_total", "_include")
"""Parameters of a search that filter nothing, and that a profile may offer."""


@dataclass(frozen=True, slots=True)
class Include:
    """A value of `_include`; the attribute `field` of a record has the id of what is added."""

    name: str
    field: str
    target: ResourceType


INCLUDES: Mapping[ResourceType, tuple[Include, ...]] = {
    ResourceType.ENCOUNTER: (
        Include("Encounter:patient", "patient_id", ResourceType.PATIENT),
        Include("Encounter:subject", "patient_id", ResourceType.PATIENT),
        Include(
            "Encounter:service-provider", "organization_id", ResourceType.ORGANIZATION
        ),
    ),
}
"""The references that `_include` follows, by the resource type searched (decision 36)."""


def profile_parameters(kind: ResourceType) -> tuple[str, ...]:
    """Return every parameter of a search of this type that a profile may offer."""
    results = (n for n in RESULT_PARAMETERS if n != "_include" or kind in INCLUDES)
    return (*SEARCH_PARAMETERS[kind], *DERIVED.get(kind, ()), *results)


SORTS: Mapping[ResourceType, Mapping[str, str]] = {
    ResourceType.ENCOUNTER: {
        SortKey.DATE: "start",
        SortKey.LAST_UPDATED: "last_updated",
        SortKey.ID: "id",
    },
    ResourceType.PATIENT: {SortKey.ID: "id", SortKey.LAST_UPDATED: "last_updated"},
    ResourceType.ORGANIZATION: {
        SortKey.ID: "id",
        SortKey.LAST_UPDATED: "last_updated",
    },
}
"""For each sort key the slot whose column gives the order; the default first (decision 8)."""
