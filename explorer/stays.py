"""What the pages show of stays: their words, their times, their place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from explorer.language import day, duration, gettext, moment
from explorer.people import House, Person, Resource
from explorer.words import CLASSES, STATUSES


@dataclass(frozen=True)
class Stay:
    """A stay, with the patient and the hospital that came with it; None: they did not."""

    resource: Resource
    patient: Person | None
    house: House | None

    @property
    def id(self) -> str:
        """Its id."""
        return str(self.resource["id"])

    @property
    def reference(self) -> str:
        """The reference to it."""
        return f"Encounter/{self.id}"

    @property
    def subject(self) -> str:
        """The reference to its patient."""
        return str(self.resource.get("subject", {}).get("reference", ""))

    @property
    def status(self) -> str:
        """Its code of status: planned, in-progress or finished."""
        return str(self.resource["status"])

    @property
    def status_words(self) -> str:
        """Its status in words."""
        return gettext(STATUSES.get(self.status, self.status))

    @property
    def kind(self) -> str:
        """Its code of type; one that nobody knows is UNK."""
        code = self.resource.get("class", {}).get("code", "UNK")
        return code if code in CLASSES else "UNK"

    @property
    def kind_words(self) -> str:
        """Its type in words."""
        return gettext(CLASSES[self.kind])

    def _time(self, name: str) -> datetime | None:
        text = self.resource.get("period", {}).get(name)
        return datetime.fromisoformat(text) if text else None

    @property
    def start(self) -> datetime | None:
        """The admission."""
        return self._time("start")

    @property
    def end(self) -> datetime | None:
        """The discharge."""
        return self._time("end")

    @property
    def changed(self) -> datetime | None:
        """When the record last changed."""
        text = self.resource.get("meta", {}).get("lastUpdated")
        return datetime.fromisoformat(text) if text else None

    def took(self, now: datetime) -> str:
        """Return how long it took, or has taken; "" for one that has not begun."""
        if self.start is None or (self.end is None and self.start > now):
            return ""
        if self.status == "planned":
            return ""
        return duration((self.end or now) - self.start)

    @property
    def _provider(self) -> Mapping[str, Any]:
        provider: Mapping[str, Any] = self.resource.get("serviceProvider", {})
        return provider

    @property
    def unit(self) -> str:
        """The code of the ward."""
        extensions: Sequence[Resource] = self._provider.get("extension", ())
        codes = (extension.get("valueString", "") for extension in extensions)
        return str(next(codes, ""))

    @property
    def ward(self) -> str:
        """The name of the ward."""
        places: Sequence[Resource] = self.resource.get("location", ())
        names = (place["location"].get("display", "") for place in places)
        return str(next(names, ""))

    @property
    def place(self) -> str:
        """The ward by code and name."""
        return " ".join(filter(None, (self.unit, self.ward)))

    @property
    def site(self) -> str:
        """The reference to its hospital."""
        return str(self._provider.get("reference", ""))

    @property
    def site_words(self) -> str:
        """The name of its hospital, else its id."""
        return self.house.name if self.house else self.site.rpartition("/")[2]

    @property
    def visit(self) -> str:
        """The visit number."""
        numbers = self.resource.get("identifier", ())
        return str(next((n.get("value", "") for n in numbers), ""))

    @property
    def title(self) -> str:
        """What it is called: its type, and the day of the admission."""
        if self.start is None:
            return self.kind_words
        words, date = self.kind_words, day(self.start)
        return gettext("%(type)s of %(date)s", type=words, date=date)

    @property
    def times(self) -> str:
        """Admission and discharge in words."""
        if self.start is None:
            return gettext("no date of admission")
        if self.end is None:
            return moment(self.start)
        same_day = self.start.date() == self.end.date()
        end = f"{self.end:%H:%M}" if same_day else moment(self.end)
        return f"{moment(self.start)} – {end}"

    @property
    def sentence(self) -> str:
        """Everything about it in a line, for who cannot see its bar."""
        place = gettext("ward %(ward)s", ward=self.place) if self.place else ""
        visit = gettext("visit %(number)s", number=self.visit) if self.visit else ""
        parts = (self.kind_words, self.times, place, self.status_words.lower(), visit)
        return ", ".join(filter(None, parts))

    @property
    def line(self) -> str:
        """Type, times and place in a line."""
        place = gettext("ward %(ward)s", ward=self.place) if self.place else ""
        return ", ".join(filter(None, (self.kind_words, self.times, place)))
