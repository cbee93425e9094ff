"""What the explorer shows of a Bundle: rows with what came beside them, columns, CSV, elements.

All of it is computed from the resources that the service returned.
"""

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from shlex import quote
from typing import Any

from flask import request

from explorer.language import gettext, language, moment, ngettext
from explorer.language import mark as _
from explorer.resources import House, Person, Resource, Stay, changed
from explorer.words import MESSAGES

REFERENCE = re.compile(r"(?:Encounter|Patient|Organization)/[A-Za-z0-9\-.]{1,64}")
"""A reference to a resource that has a page."""

COLUMN_COOKIE = "columns-"

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What makes a spreadsheet compute a cell."""


class BundleEntries:
    """The entries of a Bundle: matches, what is included, and messages about them."""

    def __init__(self, bundle: Resource) -> None:
        self.total: int | None = bundle.get("total")
        self.matches: list[Resource] = []
        self.included: dict[str, Resource] = {}
        self._issues: list[tuple[str, str]] = []
        for entry in bundle.get("entry", []):
            resource, mode = entry["resource"], entry["search"]["mode"]
            if mode == "match":
                self.matches.append(resource)
            elif mode == "include":
                reference = f"{resource['resourceType']}/{resource['id']}"
                self.included[reference] = resource
            else:
                self._issues += (
                    (issue["code"], issue.get("diagnostics", ""))
                    for issue in resource["issue"]
                )

    @property
    def messages(self) -> Sequence[str]:
        """What the service says about the page, in people's words."""
        codes = {code for code, _ in self._issues}
        texts = [gettext(words) for code, words in MESSAGES.items() if code in codes]
        rows = [text for code, text in self._issues if code == "exception"]
        if rows:
            names = ", ".join(sorted({text.split()[-1].strip(".") for text in rows}))
            text = ngettext(
                "%(count)s row cannot be shown. Tell the operator: %(names)s.",
                "%(count)s rows cannot be shown. Tell the operator: %(names)s.",
                len(rows),
                names=names,
            )
            texts.append(text)
        return texts

    def house(self, reference: str) -> House | None:
        """Return a hospital that came with the matches."""
        resource = self.included.get(reference)
        return House(resource) if resource else None

    @cached_property
    def stays(self) -> Sequence[Stay]:
        """The matches, which are stays, with their patients and hospitals."""
        stays = [Stay(resource) for resource in self.matches]
        for stay in stays:
            self.name(stay)
        return stays

    def name(self, stay: Stay) -> None:
        """Give a stay the patient and the hospital that came with it."""
        patient = self.included.get(stay.subject)
        stay.patient = Person(patient) if patient else None
        stay.house = self.house(stay.site)

    def rows(self, kind: str) -> Sequence[Any]:
        """Return the matches of a type: stays, patients or hospitals."""
        if kind == "Encounter":
            return self.stays
        record = Person if kind == "Patient" else House
        return [record(resource) for resource in self.matches]


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table: its title, and the text of a row at a time of looking.

    `sort` is what the service sorts it by, "" for nothing.
    """

    name: str
    title: str
    text: Callable[[Any, datetime], str]
    sort: str = ""


def _when(time: datetime | None) -> str:
    return moment(time) if time else ""


_CHANGED = TableColumn(
    "changed",
    _("Last changed"),
    lambda row, _: _when(changed(row.resource)),
    "_lastUpdated",
)

_FIRST: Mapping[str, Sequence[TableColumn]] = {
    "Encounter": (
        TableColumn(
            "name", _("Patient"), lambda s, _: s.patient.name if s.patient else ""
        ),
        TableColumn(
            "born", _("Born"), lambda s, _: s.patient.born if s.patient else ""
        ),
    ),
    "Patient": (
        TableColumn("name", _("Patient"), lambda person, _: person.name),
        TableColumn("born", _("Born"), lambda person, _: person.born),
    ),
    "Organization": (TableColumn("name", _("Hospital"), lambda house, _: house.name),),
}
"""The first columns of a CSV file, which name who or what a row is."""

COLUMNS: Mapping[str, Sequence[TableColumn]] = {
    "Encounter": (
        TableColumn("status", _("Status"), lambda stay, _: stay.status_words),
        TableColumn("class", _("Type"), lambda stay, _: stay.class_words),
        TableColumn("start", _("Admission"), lambda stay, _: _when(stay.start), "date"),
        TableColumn("end", _("Discharge"), lambda stay, _: _when(stay.end)),
        TableColumn("duration", _("Length"), lambda stay, now: stay.took(now)),
        TableColumn("ward", _("Ward"), lambda stay, _: stay.place),
        TableColumn("site", _("Hospital"), lambda stay, _: stay.site_name),
        TableColumn("visit", _("Visit number"), lambda stay, _: stay.visit),
        _CHANGED,
    ),
    "Patient": (
        TableColumn("sex", _("Sex"), lambda person, _: person.sex),
        TableColumn("ipp", _("IPP"), lambda person, _: person.masked_number),
        _CHANGED,
    ),
    "Organization": (TableColumn("finess", "FINESS", lambda h, _: h.finess), _CHANGED),
}
"""The columns beside the first one, which names who or what a row is."""


def columns_of(kind: str) -> Sequence[TableColumn]:
    """Return the columns that the person has chosen for a table, else the usual ones."""
    names = request.cookies.get(f"{COLUMN_COOKIE}{kind}", "").split(".")
    chosen = [column for column in COLUMNS[kind] if column.name in names]
    return chosen or [column for column in COLUMNS[kind] if column is not _CHANGED]


def csv_lines(kind: str, results: BundleEntries, now: datetime, *, head: bool) -> str:
    """Return rows as CSV (RFC 4180), as spreadsheets of the language read it.

    French ones separate by semicolons. No cell is a formula.
    """
    file = io.StringIO()
    writer = csv.writer(file, delimiter=";" if language() == "fr" else ",")
    columns = [*_FIRST[kind], *columns_of(kind)]
    if head:
        writer.writerow([gettext(column.title) for column in columns])
    for row in results.rows(kind):
        texts = (column.text(row, now) for column in columns)
        writer.writerow(f"'{t}" if t.startswith(_FORMULA) else t for t in texts)
    return file.getvalue()


def elements(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield each value inside a resource with its path, as JSON writes them."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from elements(below, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for number, below in enumerate(value):
            yield from elements(below, f"{path}[{number}]")
    else:
        yield path, str(value).lower() if isinstance(value, bool) else str(value)


def as_curl(url: str, form: Sequence[tuple[str, str]]) -> str:
    """Return a search as a command line, whose token is a variable of the shell."""
    lines = ['curl -sS -H "Authorization: Bearer $TOKEN"']
    lines += [f"  --data-urlencode {quote(f'{name}={text}')}" for name, text in form]
    # Without criteria, too, it is a POST.
    return " \\\n".join([*lines, f"  -X POST {quote(url)}"])
