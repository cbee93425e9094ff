"""What people at the hospital call things; a name that is not in a table stands for itself."""

from collections.abc import Mapping

from explorer.language import mark as _

RESOURCES: Mapping[str, str] = {
    "Encounter": _("Stays"),
    "Patient": _("Patients"),
}
"""The resource types that are searched: the sections of the pages."""

CLASSES: Mapping[str, str] = {
    "IMP": _("Inpatient"),
    "EMER": _("Emergency"),
    "PRENC": _("Pre-admission"),
    "AMB": _("Outpatient"),
    "REC": _("Recurring session"),
    "UNK": _("Unknown"),
}
"""Types of stays, in the order in which a timeline has them."""

STATUSES: Mapping[str, str] = {
    "planned": _("Planned"),
    "in-progress": _("In progress"),
    "finished": _("Finished"),
}

SEXES: Mapping[str, str] = {
    "female": _("Female"),
    "male": _("Male"),
    "other": _("Undetermined"),
    "unknown": _("Unknown"),
}

CODES: Mapping[str, Mapping[str, str]] = {
    "status": STATUSES,
    "class": CLASSES,
    "gender": SEXES,
}
"""The codes of a search parameter, in words."""
