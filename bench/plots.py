"""Plots as SVG, written by hand: a line over the depth of a walk."""

from collections.abc import Sequence

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 720, 300, 60, 40, 30
_COLOURS = ("#1f5fa8", "#c2571a", "#4a7d2c")


def lines(
    title: str,
    across: str,
    up: str,
    series: Sequence[tuple[str, Sequence[tuple[float, float]]]],
) -> str:
    """Return a plot of some series of (x, y), both axes from zero."""
    right = max(x for _, points in series for x, _ in points)
    top = 1.2 * max(y for _, points in series for _, y in points)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="18" font-size="14">{title}</text>',
        f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 6}">{across}</text>',
        f'<text x="12" y="{_HEIGHT / 2}" transform="rotate(-90 12 {_HEIGHT / 2})">{up}</text>',
    ]
    parts += _axes(right, top)
    for number, (name, points) in enumerate(series):
        colour = _COLOURS[number]
        path = " ".join(f"{_x(x, right):.1f},{_y(y, top):.1f}" for x, y in points)
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
        )
        place = _WIDTH - 190
        parts.append(
            f'<text x="{place}" y="{_TOP + 16 * number + 12}" fill="{colour}">{name}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def _axes(right: float, top: float) -> list[str]:
    low, far = _HEIGHT - _BOTTOM, _WIDTH - 10
    drawn = [
        f'<path d="M{_LEFT},{_TOP}V{low}H{far}" fill="none" stroke="black"/>',
    ]
    for part in range(5):
        across, up = right * part / 4, top * part / 4
        drawn.append(
            f'<text x="{_x(across, right):.0f}" y="{low + 16}" '
            f'text-anchor="middle">{across:,.0f}</text>'
        )
        drawn.append(
            f'<text x="{_LEFT - 6}" y="{_y(up, top) + 4:.0f}" '
            f'text-anchor="end">{up:.3g}</text>'
        )
    return drawn


def _x(value: float, right: float) -> float:
    return _LEFT + (_WIDTH - 10 - _LEFT) * value / right


def _y(value: float, top: float) -> float:
    return _HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - _TOP) * value / top
