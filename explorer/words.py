"""What people at the hospital call things; a name that is not in a table stands for itself."""

from collections.abc import Mapping

RESOURCES: Mapping[str, tuple[str, str]] = {
    "Encounter": ("stay", "stays"),
    "Patient": ("patient", "patients"),
    "Organization": ("hospital", "hospitals"),
}
"""What people call one and several of a resource type."""

PARAMETERS: Mapping[str, str] = {
    "_id": "Id",
    "_lastUpdated": "Last changed",
    "patient": "Patient",
    "date": "Start of the stay",
    "identifier": "Number (visit number, IPP …)",
    "status": "Status",
    "class": "Class",
    "service-provider._extension": "Ward (functional unit)",
    "name": "Name",
    "family": "Family name",
    "given": "Given name",
    "birthdate": "Birth date",
    "gender": "Gender",
}
"""Titles of search parameters."""

CODES: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("Encounter", "status"): {
        "planned": "planned",
        "in-progress": "in progress",
        "finished": "finished",
    },
    ("Encounter", "class"): {
        "EMER": "emergency",
        "IMP": "inpatient encounter",
        "PRENC": "pre-admission",
        "AMB": "ambulatory",
        "REC": "recurring",
        "UNK": "unknown",
    },
    ("Patient", "gender"): {
        "male": "male",
        "female": "female",
        "other": "other",
        "unknown": "unknown",
    },
}
"""The codes of an element of a resource type, in words."""

DAYS = frozenset({"birthdate"})
"""Parameters that STU3 compares with an element of type `date`, which has no time."""

PREFIXES: Mapping[str, str] = {
    "ge": "from",
    "le": "until",
    "eq": "on",
    "ne": "not on",
    "gt": "after",
    "lt": "before",
}
MODIFIERS: Mapping[str, str] = {
    "": "begins with",
    "contains": "contains",
    "exact": "is exactly",
}
SORTS: Mapping[str, str] = {
    "date": "start of the stay",
    "_lastUpdated": "last change",
    "_id": "id",
}


def code_in_words(kind: str, element: str, code: str) -> str:
    """Return a code of a resource in words."""
    return CODES.get((kind, element), {}).get(code, code)
