"""What a deployment says that no row holds."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Constants:
    """Values of the deployment that no row holds (spec 2.2 to 2.4).

    `class_systems` names another system for single class codes (decision 18).
    """

    visit_number_system: str | None = None
    identifier_type_system: str = (
        "http://www.interopsante.org/fhir/valueset/fr-encounter-identifier-type"
    )
    identifier_type_version: str = "3.0.1"
    identifier_type_display: str = "Visit Number"
    functional_unit_extension: str | None = None
    class_code_system: str = "http://hl7.org/fhir/v3/ActCode"
    class_systems: Mapping[str, str] = field(default_factory=dict)
    patient_identifier_type_system: str = (
        "http://interopsante.org/fhir/CodeSystem/fr-v2-0203"
    )
    organization_identifier_type_system: str = (
        "http://interopsante.org/fhir/CodeSystem/fr-v2-0203"
    )
