"""Whether somebody's clock agrees with ours."""

from app.tools.doctor.rounds import Seen, error, fine, warning

AGREE_SECONDS = 5.0
"""How far two clocks that follow the same time may be apart, the way to ask included."""

_REMEDY = "let every machine follow one time (chronyc tracking, timedatectl)"


def compared(off: float, leeway: float | None = None) -> Seen:
    """Return what it means that a clock is `off` ours by so many seconds.

    `leeway` is how far it may be off before its tokens are refused, None for a clock that
    issues none.
    """
    told = f"its clock is {abs(off):.0f} seconds {'ahead of' if off > 0 else 'behind'} ours"
    if leeway is not None and abs(off) > leeway:
        harm = "tokens may be refused"
        text = f"{told}, more than ENCOUNTERS_LEEWAY_SECONDS ({leeway:g}): {harm}"
        return error(text, _REMEDY)
    if abs(off) > AGREE_SECONDS:
        return warning(told, _REMEDY)
    return fine("its clock agrees with ours")
