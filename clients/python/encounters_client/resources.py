"""Stays, patients and hospitals as typed objects that keep the JSON they came as.

The properties read `raw` whenever they are used. None, or an empty text, means that the service
returned nothing there. A `repr` shows no more than the id.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

TYPES = ("Encounter", "Patient", "Organization")


@dataclass(frozen=True)
class Identifier:
    """A number of a stay, a patient or a hospital, unique within its system."""

    system: str
    value: str


@dataclass(frozen=True, repr=False)
class Resource:
    """A resource of the service; `raw` is its JSON."""

    raw: Mapping[str, Any]

    @property
    def id(self) -> str:
        """The id, which is stable: what is read by it is this resource or gone."""
        return str(self.raw["id"])

    @property
    def last_updated(self) -> datetime | None:
        """The time of the last change, where the hospital records it."""
        return _time(self.raw.get("meta", {}).get("lastUpdated"))

    @property
    def identifiers(self) -> tuple[Identifier, ...]:
        """The numbers by which the hospital knows this resource."""
        return tuple(
            Identifier(system=item.get("system", ""), value=item.get("value", ""))
            for item in self.raw.get("identifier", ())
        )

    def __hash__(self) -> int:
        return hash((type(self), self.id))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"


@dataclass(frozen=True, repr=False, eq=False)
class Encounter(Resource):
    """A hospital stay."""

    @property
    def status(self) -> str:
        """The state: planned, in-progress or finished."""
        return str(self.raw.get("status", ""))

    @property
    def class_code(self) -> str:
        """The code of the class: EMER, IMP, PRENC, AMB, REC or UNK."""
        return str(self.raw.get("class", {}).get("code", ""))

    @property
    def start(self) -> datetime | None:
        """The start, with the offset of the hospital's time zone."""
        return _time(self.raw.get("period", {}).get("start"))

    @property
    def end(self) -> datetime | None:
        """The end; None while the stay is open."""
        return _time(self.raw.get("period", {}).get("end"))

    @property
    def patient_id(self) -> str:
        """The id of the patient; after a merge, of the one that remains."""
        return _id_in(self.raw.get("subject"))

    @property
    def organization_id(self) -> str:
        """The id of the hospital."""
        return _id_in(self.raw.get("serviceProvider"))

    @property
    def functional_unit(self) -> str:
        """The code of the functional unit."""
        for extension in self.raw.get("serviceProvider", {}).get("extension", ()):
            return str(extension.get("valueString", ""))
        return ""

    @property
    def ward(self) -> str:
        """The name of the ward."""
        for location in self.raw.get("location", ()):
            return str(location.get("location", {}).get("display", ""))
        return ""


@dataclass(frozen=True, repr=False, eq=False)
class Patient(Resource):
    """A patient: the administrative profile."""

    @property
    def family(self) -> str:
        """The family name of the first name."""
        return str(self._name().get("family", ""))

    @property
    def given(self) -> tuple[str, ...]:
        """The given names of the first name."""
        return tuple(self._name().get("given", ()))

    @property
    def gender(self) -> str:
        """The gender: male, female, other or unknown."""
        return str(self.raw.get("gender", ""))

    @property
    def birth_date(self) -> date | None:
        """The day of birth; None also where only month or year is known."""
        try:
            return date.fromisoformat(self.raw.get("birthDate", ""))
        except ValueError:
            return None

    @property
    def replaced_by(self) -> str:
        """The id of the patient into which this one was merged, empty if it was not."""
        for link in self.raw.get("link", ()):
            if link.get("type") == "replaced-by":
                return _id_in(link.get("other"))
        return ""

    def _name(self) -> Mapping[str, Any]:
        names: list[Mapping[str, Any]] = self.raw.get("name", [])
        return names[0] if names else {}


@dataclass(frozen=True, repr=False, eq=False)
class Organization(Resource):
    """A hospital."""

    @property
    def name(self) -> str:
        """The name."""
        return str(self.raw.get("name", ""))


def _id_in(reference: Mapping[str, Any] | None) -> str:
    """Return the id that a Reference ends with."""
    return str((reference or {}).get("reference", "")).rpartition("/")[2]


def _time(text: str | None) -> datetime | None:
    """Return a time with an offset, None for less than that."""
    if not text:
        return None
    try:
        # Python 3.10 does not know the Z.
        time = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return time if time.tzinfo else None
