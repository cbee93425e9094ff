"""The timeline of stays: bands, lanes, bars and ticks, as numbers that a template draws.

It is drawn for three widths, of which the page shows one. Times are the hospital's wall
clock: a change of the clock moves nothing.
"""

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from explorer.language import day, gettext, named, ngettext
from explorer.records import Stay

GAP = 4
"""The least distance between two bars of a lane."""

_MOST_LANES = 3
"""A band of more lanes gathers short neighbours."""

_MONDAY = datetime(1, 1, 1)  # noqa: DTZ001 - a wall clock
_LATEST = datetime(9000, 1, 1)  # noqa: DTZ001 - a wall clock
"""Systems write the end of time for what is not known; it is not drawn."""

_LETTER, _RIGHT, _TOP = 6.7, 8, 44


@dataclass(frozen=True)
class TickStep:
    """The time between two ticks: hours, counted from a Monday, or months."""

    hours: int = 0
    months: int = 0

    @property
    def size(self) -> timedelta:
        """The time as a duration; that of months is a mean."""
        return timedelta(hours=self.hours or self.months * 730.5)

    def floor(self, time: datetime, more: int = 0) -> datetime:
        """Return the last tick at or before a time, or the tick `more` steps after that."""
        if self.hours:
            return time - (time - _MONDAY) % self.size + more * self.size
        months = (time.year * 12 + time.month - 1) // self.months + more
        year, month = divmod(months * self.months, 12)
        return _MONDAY.replace(year=year, month=month + 1)

    def label(self, time: datetime, *, is_first: bool) -> str:
        """Return the text of a tick; the first one and each January have the year."""
        if 0 < self.hours < 24 and time.hour:
            return gettext("%(hour)s:00", hour=time.hour)
        if 0 < self.hours <= 48:
            return named(time, gettext("ccc d MMM"))
        if self.hours:
            return day(time) if is_first else named(time, gettext("d MMM"))
        if self.months < 12:
            return named(time, "LLL y" if is_first or time.month == 1 else "LLL")
        return str(time.year)


_STEPS = (
    *(TickStep(hours=hours) for hours in (6, 24, 48, 168)),
    *(TickStep(months=months) for months in (1, 2, 3, 12, 24, 60, 120)),
)


@dataclass(frozen=True)
class Drawing:
    """A width to draw for, and the sizes of its parts; a unit is about a pixel.

    Titles of bands are in the first `left` units, or above the bars where `left` is 0.
    """

    width: int
    left: int = 176
    bar: int = 20
    pitch: int = 28
    least: int = 8
    head: int = 4
    tick: int = 76


DRAWINGS = (
    Drawing(1160),
    Drawing(720),
    Drawing(360, left=0, bar=24, pitch=32, least=10, head=22, tick=64),
)


@dataclass(frozen=True)
class Band:
    """Stays that are drawn beside a title, which leads to an address, "" for none."""

    title: str
    stays: Sequence[Stay]
    sub: str = ""
    address: str = ""


@dataclass
class Bar:
    """One stay, or several short neighbours; `tail` is the width behind an open end."""

    stays: list[Stay]
    x: float
    width: float
    tail: float
    is_cut: bool
    is_small: bool
    lane: int = 0
    y: float = 0

    @property
    def end(self) -> float:
        """Where it ends, its tail included."""
        return self.x + self.width + self.tail

    def label(self, now: datetime) -> str:
        """Return the first text that fits into it, "" for none."""
        count = len(self.stays)
        if count > 1:
            words = ngettext("%(count)s stay", "%(count)s stays", count)
            texts = [words, f"×{count}", str(count)]
        else:
            stay = self.stays[0]
            ward = stay.ward or stay.unit
            took = stay.took(now)
            texts = [" · ".join(filter(None, (ward, took))), ward, took, stay.unit]
        for text in texts:
            if text and len(text) * _LETTER + 12 <= self.width:
                return text
        return ""


class Timeline:
    """A drawing of bands from `first`, with `is_rounded` from the tick before it, to `last`."""

    def __init__(
        self,
        drawing: Drawing,
        bands: Sequence[Band],
        now: datetime,
        first: datetime,
        last: datetime,
        *,
        is_rounded: bool,
    ) -> None:
        self.drawing, self.now, self.last = drawing, now, last
        self.plot = drawing.width - drawing.left - _RIGHT
        most = self.plot / drawing.tick
        fitting = (step for step in _STEPS if (last - first) / step.size <= most)
        self.step = next(fitting, _STEPS[-1])
        self.first = self.step.floor(first) if is_rounded else first
        self.ticks = self._ticks()
        self.rows: list[tuple[Band, float, list[Bar]]] = []
        self.height: float = _TOP
        for band in bands:
            self._draw(band)

    def x(self, time: datetime) -> float:
        """Return where a time is, at the edge for one that is not in the span."""
        part = (wall(time) - self.first) / (self.last - self.first)
        return round(self.drawing.left + min(max(part, 0), 1) * self.plot, 1)

    @property
    def today(self) -> float | None:
        """Where the present is, None where it is not in the span."""
        return self.x(self.now) if self.first <= wall(self.now) <= self.last else None

    def _draw(self, band: Band) -> None:
        """Add a band below the others."""
        drawing = self.drawing
        y = self.height + drawing.head
        bars = self._bars(band)
        if _pack(bars) > _MOST_LANES:
            bars = _gather(bars, [x for x, _ in self.ticks])
            _pack(bars)
        for bar in bars:
            bar.y = y + bar.lane * drawing.pitch + (drawing.pitch - drawing.bar) / 2
        self.rows.append((band, self.height, bars))
        self.height = y + (max(bar.lane for bar in bars) + 1) * drawing.pitch + 4

    def _bars(self, band: Band) -> list[Bar]:
        """Return a bar for each stay of a band, in the order of their starts."""
        edge = self.drawing.width - _RIGHT
        least = self.drawing.least
        bars = []
        for stay in sorted(band.stays, key=lambda stay: (stay.start, stay.id)):
            assert stay.start is not None
            is_open = stay.status == "in-progress" and stay.end is None
            end = stay.end or (self.now if is_open else stay.start)
            x = self.x(stay.start)
            width = round(max(self.x(end) - x, least), 1)
            x = min(x, edge - width)
            bar = Bar(
                [stay],
                x,
                width=width,
                tail=round(edge - x - width, 1) if is_open else 0,
                is_cut=wall(stay.start) < self.first,
                is_small=width == least and stay.status == "finished",
            )
            bars.append(bar)
        return bars

    def _ticks(self) -> list[tuple[float, str]]:
        """Return where each tick is, with its text; "" where there is no room for one."""
        ticks: list[tuple[float, str]] = []
        free_from = 0.0  # where the next text may begin
        is_first = True
        number = 0
        time = self.step.floor(self.first)
        while time <= self.last:
            if time >= self.first:
                x = self.x(time)
                text = self.step.label(time, is_first=is_first)
                end = x + len(text) * 6.6
                if x + GAP >= free_from and end < self.drawing.width:
                    free_from = end + 12
                    is_first = False
                else:
                    text = ""
                ticks.append((x, text))
            number += 1
            time = self.step.floor(self.first, number)
        return ticks


def wall(time: datetime) -> datetime:
    """Return a time as the clock on the wall shows it."""
    return time.replace(tzinfo=None)


def timelines(
    bands: Sequence[Band],
    now: datetime,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
) -> list[Timeline]:
    """Return the drawings of bands, [] where no stay has a start in the span.

    `since` and `until` are the span, else it is that of the stays.
    """
    drawn_bands: list[Band] = []
    drawn_stays: list[Stay] = []
    for band in bands:
        stays = [stay for stay in band.stays if _is_within(stay, since, until)]
        if stays:
            drawn_bands.append(replace(band, stays=stays))
            drawn_stays += stays
    if not drawn_bands:
        return []
    starts = [wall(stay.start) for stay in drawn_stays if stay.start]
    ends = [wall(stay.end) for stay in drawn_stays if stay.end]
    first = since or min(starts)
    last = until or max([wall(now), *starts, *ends])
    last = max(min(last, _LATEST), first)
    last += max(last - first, timedelta(hours=6)) * 0.04
    return [
        Timeline(drawing, drawn_bands, now, first, last, is_rounded=since is None)
        for drawing in DRAWINGS
    ]


def _is_within(stay: Stay, since: datetime | None, until: datetime | None) -> bool:
    """Return whether a part of a stay is in the span; one without a start has none."""
    if stay.start is None:
        return False
    start = wall(stay.start)
    if until and start > until:
        return False
    if since is None or start >= since:
        return True
    if stay.end:
        return wall(stay.end) >= since
    return stay.status == "in-progress"


def _pack(bars: Sequence[Bar]) -> int:
    """Put each bar into the first lane that is free there; return how many lanes there are."""
    lane_ends: list[float] = []
    for bar in bars:
        free_lanes = (i for i, end in enumerate(lane_ends) if end + GAP <= bar.x)
        bar.lane = next(free_lanes, len(lane_ends))
        if bar.lane == len(lane_ends):
            lane_ends.append(bar.end)
        else:
            lane_ends[bar.lane] = bar.end
    return len(lane_ends)


def _gather(bars: Sequence[Bar], ticks: Sequence[float]) -> list[Bar]:
    """Return the bars; short neighbours between the same two ticks become one bar."""
    gathered: list[Bar] = []
    last_short: Bar | None = None
    for bar in bars:
        interval = bisect(ticks, bar.x)
        if (
            last_short is not None
            and bar.is_small
            and bar.x < last_short.end + GAP
            and interval == bisect(ticks, last_short.x)
        ):
            # It becomes a part of the one before, which ends before the next tick.
            width = max(bar.end, last_short.end) - last_short.x
            if interval < len(ticks):
                width = min(width, ticks[interval] - GAP - last_short.x)
            last_short.stays += bar.stays
            last_short.width = round(max(width, bar.width), 1)
            continue
        gathered.append(bar)
        if bar.is_small:
            last_short = bar
    return gathered
