"""The timeline of stays: bands, lanes, bars and ticks, as numbers that a template draws.

It is drawn for three widths, of which the page shows one. Times are the hospital's wall
clock: a change of the clock moves nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from explorer.language import day, gettext, named, ngettext
from explorer.stays import Stay

_STEPS = {
    "hour": (3600, (6,)),
    "day": (86400, (1, 2)),
    "week": (604800, (1,)),
    "month": (2629800, (1, 2, 3)),
    "year": (31557600, (1, 2, 5, 10)),
}
"""Between two ticks: a unit, its seconds, and how many of it."""

GAP = 4
"""What is between two bars of a lane at least."""

_MOST_LANES = 3
"""A band of more lanes gathers short neighbours."""

_LATEST = datetime(9000, 1, 1)  # noqa: DTZ001 - a wall clock
"""Systems write the end of time for what is not known; it is not drawn."""

_LETTER, _RIGHT, _TOP = 6.7, 8, 44


@dataclass(frozen=True)
class Drawing:
    """A width to draw for, and its sizes; about a pixel a unit."""

    name: str
    width: int
    bar: int = 20
    pitch: int = 28
    least: int = 8
    head: int = 4
    tick: int = 76
    is_narrow: bool = False


DRAWINGS = (
    Drawing("w1160", 1160),
    Drawing("w720", 720),
    Drawing("w360", 360, bar=24, pitch=32, least=10, head=22, tick=64, is_narrow=True),
)


@dataclass(frozen=True)
class Band:
    """Stays that are drawn beside a title; `reference` is what the title leads to."""

    title: str
    stays: Sequence[Stay]
    sub: str = ""
    reference: str = ""


@dataclass
class Bar:
    """One stay, or several short ones that are neighbours; `tail` is behind an open end."""

    stays: list[Stay]
    x: float
    width: float
    tail: float
    is_cut: bool
    is_small: bool
    lane: int = 0
    y: float = 0
    label: str = ""

    @property
    def stay(self) -> Stay:
        """The first of its stays."""
        return self.stays[0]

    @property
    def end(self) -> float:
        """Where it ends, its tail included."""
        return self.x + self.width + self.tail

    @property
    def title(self) -> str:
        """What it is, in words."""
        if len(self.stays) == 1 or self.stay.start is None:
            return self.stay.sentence
        count, start = len(self.stays), day(self.stay.start)
        return ngettext(
            "%(count)s finished stay since %(date)s",
            "%(count)s finished stays since %(date)s",
            count,
            date=start,
        )


@dataclass
class Row:
    """A band as it is drawn."""

    band: Band
    y: float
    bars: list[Bar] = field(default_factory=list)


@dataclass
class Timeline:
    """A drawing, filled in; `now` is None where it is not in the span."""

    drawing: Drawing
    height: float
    now: float | None
    now_anchor: str
    ticks: list[tuple[float, str]]
    rows: list[Row]


def wall(time: datetime) -> datetime:
    """Return a time as the clock on the wall shows it."""
    return time.replace(tzinfo=None)


def timelines(
    bands: Sequence[Band],
    now: datetime,
    *,
    gutter: int,
    since: datetime | None = None,
    until: datetime | None = None,
) -> list[Timeline]:
    """Return the drawings of bands, [] where no stay has a start in the span.

    `gutter` is the width of the titles, `since` and `until` the span, else that of the stays.
    """
    shown = [
        replace(band, stays=stays)
        for band in bands
        if (stays := [s for s in band.stays if _is_within(s, since, until)])
    ]
    if not shown:
        return []
    stays = [stay for band in shown for stay in band.stays]
    starts = [wall(stay.start) for stay in stays if stay.start]
    ends = [wall(stay.end) for stay in stays if stay.end]
    first = since or min(starts)
    last = until or max([wall(now), *starts, *ends])
    last = max(min(last, _LATEST), first)
    last += max(last - first, timedelta(hours=6)) * 0.04
    layouts = [
        _Layout(
            drawing, first, last, now=now, gutter=gutter, is_fixed=since is not None
        )
        for drawing in DRAWINGS
    ]
    return [layout.draw(shown) for layout in layouts]


def _is_within(stay: Stay, since: datetime | None, until: datetime | None) -> bool:
    if stay.start is None or (until and wall(stay.start) > until):
        return False
    if since is None or wall(stay.start) >= since:
        return True
    return wall(stay.end) >= since if stay.end else stay.status == "in-progress"


class _Layout:
    """Where everything of one drawing is."""

    def __init__(
        self,
        drawing: Drawing,
        first: datetime,
        last: datetime,
        *,
        now: datetime,
        gutter: int,
        is_fixed: bool,
    ) -> None:
        self._drawing, self._last = drawing, last
        self._moment, self._now = now, wall(now)
        self._left = 0 if drawing.is_narrow else gutter
        self._plot = drawing.width - self._left - _RIGHT
        seconds = (last - first).total_seconds()
        steps = (
            (unit, count)
            for unit, (size, counts) in _STEPS.items()
            for count in counts
            if seconds / size / count * drawing.tick <= self._plot
        )
        self._unit, self._count = next(steps, ("year", 10))
        self._first = first if is_fixed else self._floor(first)

    def draw(self, bands: Sequence[Band]) -> Timeline:
        """Return the drawing."""
        drawing, y = self._drawing, float(_TOP)
        ticks, rows = [*self._ticks()], []
        for band in bands:
            row = Row(band, y)
            y += drawing.head
            row.bars = self._bars(band.stays, [x for x, _ in ticks])
            for bar in row.bars:
                bar.y = y + bar.lane * drawing.pitch + (drawing.pitch - drawing.bar) / 2
                bar.label = self._label_of(bar)
            lanes = max((bar.lane for bar in row.bars), default=0) + 1
            y += lanes * drawing.pitch + 4
            rows.append(row)
        is_in_span = self._first <= self._now <= self._last
        now = self._x(self._now) if is_in_span else None
        anchor = "middle"
        if now is not None and now > drawing.width - 60:
            anchor = "end"
        elif now is not None and now < self._left + 40:
            anchor = "start"
        return Timeline(
            drawing, y + 4, now=now, now_anchor=anchor, ticks=ticks, rows=rows
        )

    def _x(self, time: datetime) -> float:
        part = (time - self._first) / (self._last - self._first)
        return round(self._left + min(max(part, 0), 1) * self._plot, 1)

    def _label_of(self, bar: Bar) -> str:
        """Return the first text that fits into a bar, "" for none."""
        count = len(bar.stays)
        if count > 1:
            texts = [ngettext("%(count)s stay", "%(count)s stays", count)]
            texts += [f"×{count}", str(count)]
        else:
            ward, took = bar.stay.ward or bar.stay.unit, bar.stay.took(self._moment)
            both = " · ".join(filter(None, (ward, took)))
            texts = [both, ward, took, bar.stay.unit]
        fitting = (t for t in texts if t and len(t) * _LETTER + 12 <= bar.width)
        return next(fitting, "")

    def _bars(self, stays: Sequence[Stay], ticks: Sequence[float]) -> list[Bar]:
        edge = self._drawing.width - _RIGHT
        bars = []
        for stay in sorted(stays, key=lambda stay: (stay.start, stay.id)):
            assert stay.start is not None
            start, is_here = wall(stay.start), stay.status == "in-progress"
            x = end = self._x(start)
            if stay.end:
                end = self._x(wall(stay.end))
            elif is_here:
                end = self._x(self._now)
            width = round(max(end - x, self._drawing.least), 1)
            x = min(x, edge - width)
            tail = 0.0
            if is_here and stay.end is None:
                tail = round(max(edge - x - width, 0), 1)
            bar = Bar(
                [stay],
                x,
                width=width,
                tail=tail,
                is_cut=start < self._first,
                is_small=width == self._drawing.least and stay.status == "finished",
            )
            bars.append(bar)
        lanes = _pack(bars)
        if lanes > _MOST_LANES:
            bars = _gather(bars, ticks)
            _pack(bars)
        return bars

    def _ticks(self) -> Iterator[tuple[float, str]]:
        time, edge, is_first = self._floor(self._first), -99.0, True
        while time <= self._last:
            if time >= self._first:
                x, text = self._x(time), self._label(time, is_first=is_first)
                size = len(text) * 6.6
                fits = x + GAP >= edge and x + size < self._drawing.width
                if fits:
                    edge, is_first = x + size + 12, False
                yield x, text if fits else ""
            time = self._next(time)

    def _label(self, time: datetime, *, is_first: bool) -> str:
        if self._unit == "hour" and time.hour:
            return gettext("%(hour)s:00", hour=time.hour)
        if self._unit in {"hour", "day"}:
            return named(time, gettext("ccc d MMM"))
        if self._unit == "week":
            return day(time) if is_first else named(time, gettext("d MMM"))
        if self._unit == "month":
            return named(time, "LLL y" if is_first or time.month == 1 else "LLL")
        return str(time.year)

    def _floor(self, time: datetime) -> datetime:
        unit, count = self._unit, self._count
        midnight = time.replace(hour=0, minute=0, second=0, microsecond=0)
        if unit == "hour":
            return midnight.replace(hour=time.hour - time.hour % count)
        if unit == "day":
            return midnight - timedelta(midnight.toordinal() % count)
        if unit == "week":
            return midnight - timedelta(midnight.weekday())
        if unit == "month":
            month = time.month - (time.month - 1) % count
            return midnight.replace(day=1, month=month)
        return midnight.replace(day=1, month=1, year=time.year - time.year % count)

    def _next(self, time: datetime) -> datetime:
        unit, count = self._unit, self._count
        if unit == "month":
            month = time.month - 1 + count
            return time.replace(year=time.year + month // 12, month=month % 12 + 1)
        if unit == "year":
            return time.replace(year=time.year + count)
        hours = {"hour": 1, "day": 24, "week": 168}[unit] * count
        return time + timedelta(hours=hours)


def _pack(bars: Sequence[Bar]) -> int:
    """Put each bar into the first lane that is free there; return how many lanes there are."""
    ends: list[float] = []
    for bar in bars:
        free = (lane for lane, end in enumerate(ends) if end + GAP <= bar.x)
        bar.lane = next(free, len(ends))
        ends[bar.lane : bar.lane + 1] = [bar.end]
    return len(ends)


def _gather(bars: Sequence[Bar], ticks: Sequence[float]) -> list[Bar]:
    """Return the bars, short neighbours of one interval of ticks as one."""
    gathered: list[Bar] = []
    last: Bar | None = None  # the last short one
    for bar in bars:
        limit = next((tick for tick in ticks if tick > bar.x), None)
        if (
            last is None
            or not bar.is_small
            or bar.x >= last.end + GAP
            or limit != next((tick for tick in ticks if tick > last.x), None)
        ):
            gathered.append(bar)
            if bar.is_small:
                last = bar
            continue
        width = max(bar.x + bar.width, last.end) - last.x
        if limit is not None:
            width = min(width, limit - GAP - last.x)
        last.stays += bar.stays
        last.width = round(max(width, bar.width), 1)
    return gathered
