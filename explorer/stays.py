"""What the pages show of stays: their words, their times, their place."""

from dataclasses import dataclass
from datetime import datetime

from explorer.language import day, duration, gettext, moment
from explorer.people import House, Person, Resource
from explorer.words import CLASSES, STATUSES


@dataclass(frozen=True, slots=True)
class Stay:
    """A stay, with the patient and the hospital that came with it; None: they did not.

    `kind` is its code of type, UNK for one that nobody knows; `unit` the code of the ward and
    `ward` its name. `subject` and `site` are references. What is not known is "" or None.
    """

    resource: Resource
    id: str
    reference: str
    subject: str
    status: str
    kind: str
    start: datetime | None
    end: datetime | None
    changed: datetime | None
    unit: str
    ward: str
    site: str
    visit: str
    patient: Person | None = None
    house: House | None = None

    @classmethod
    def of(cls, resource: Resource) -> "Stay":
        """Read a stay as the service returns one."""
        provider = resource.get("serviceProvider", {})
        period = resource.get("period", {})
        code = resource.get("class", {}).get("code", "")
        units = [e.get("valueString", "") for e in provider.get("extension", ())]
        wards = [p["location"].get("display", "") for p in resource.get("location", ())]
        visits = [number.get("value", "") for number in resource.get("identifier", ())]
        return cls(
            resource=resource,
            id=resource["id"],
            reference=f"Encounter/{resource['id']}",
            subject=resource.get("subject", {}).get("reference", ""),
            status=resource["status"],
            kind=code if code in CLASSES else "UNK",
            start=_time(period.get("start")),
            end=_time(period.get("end")),
            changed=_time(resource.get("meta", {}).get("lastUpdated")),
            unit="".join(units[:1]),
            ward="".join(wards[:1]),
            site=provider.get("reference", ""),
            visit="".join(visits[:1]),
        )

    @property
    def status_words(self) -> str:
        """Its status in words."""
        return gettext(STATUSES.get(self.status, self.status))

    @property
    def kind_words(self) -> str:
        """Its type in words."""
        return gettext(CLASSES[self.kind])

    def took(self, now: datetime) -> str:
        """Return how long it took, or has taken; "" for one that has not begun."""
        has_begun = self.start is not None and (self.end or self.start <= now)
        if self.start is None or not has_begun or self.status == "planned":
            return ""
        return duration((self.end or now) - self.start)

    @property
    def place(self) -> str:
        """The ward by code and name."""
        return " ".join(filter(None, (self.unit, self.ward)))

    @property
    def site_words(self) -> str:
        """The name of its hospital, else its id."""
        return self.house.name if self.house else self.site.rpartition("/")[2]

    @property
    def title(self) -> str:
        """What it is called: its type, and the day of the admission."""
        if self.start is None:
            return self.kind_words
        words, date = self.kind_words, day(self.start)
        return gettext("%(type)s of %(date)s", type=words, date=date)

    @property
    def line(self) -> str:
        """Type, times and place in a line."""
        times = gettext("no date of admission")
        if self.start:
            times = moment(self.start)
        if self.start and self.end:
            same_day = self.start.date() == self.end.date()
            times += f" – {self.end:%H:%M}" if same_day else f" – {moment(self.end)}"
        place = gettext("ward %(ward)s", ward=self.place) if self.place else ""
        return ", ".join(filter(None, (self.kind_words, times, place)))

    @property
    def sentence(self) -> str:
        """Everything about it in a line, for who cannot see its bar."""
        visit = gettext("visit %(number)s", number=self.visit) if self.visit else ""
        parts = (self.line, self.status_words.lower(), visit)
        return ", ".join(filter(None, parts))


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
