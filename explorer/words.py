"""What people at the hospital call things; a name that is not in a table stands for itself."""

from collections.abc import Mapping

from explorer.language import mark as _

RESOURCES: Mapping[str, str] = {
    "Encounter": _("Stays"),
    "Patient": _("Patients"),
}
"""The resource types that are searched: the sections of the pages."""

COUNTS: Mapping[str, tuple[str, str]] = {
    "Encounter": ("%(count)s stay", "%(count)s stays"),
    "Patient": ("%(count)s patient", "%(count)s patients"),
}
"""One and several of a resource type, in numbers."""

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

SEX_LETTERS: Mapping[str, str] = {
    "female": _("F"),
    "male": _("M"),
    "other": _("undetermined"),
}

CODES: Mapping[str, Mapping[str, str]] = {
    "status": STATUSES,
    "class": CLASSES,
    "gender": SEXES,
}
"""The codes of a search parameter, in words."""

PRESETS: Mapping[str, str] = {
    "now": _("In hospital now"),
    "today": _("Today’s admissions"),
    "week": _("Last 7 days"),
}

SORTED: Mapping[str, str] = {
    "-date": _("latest admissions first"),
    "date": _("earliest admissions first"),
    "-_lastUpdated": _("last changed first"),
    "_lastUpdated": _("longest unchanged first"),
    "_id": _("by number"),
    "-_id": _("by number, highest first"),
}
"""How a list is sorted, in a sentence, by the value of `_sort`."""

TELECOMS: Mapping[tuple[str, str], str] = {
    ("phone", "mobile"): _("Mobile"),
    ("phone", "home"): _("Home"),
    ("phone", "work"): _("Work"),
    ("fax", ""): _("Fax"),
    ("email", ""): _("E-mail"),
    ("phone", ""): _("Telephone"),
}

ADDRESSES: Mapping[str, str] = {
    "home": _("Address"),
    "temp": _("Temporary address"),
    "old": _("Former address"),
    "work": _("Address"),
}

MESSAGES: Mapping[str, str] = {
    "too-costly": _("Counting takes too long: how many there are is not known."),
    "incomplete": _("Not everything is shown here: narrow the search."),
}
"""What the service says about a page, by the code of the issue."""
