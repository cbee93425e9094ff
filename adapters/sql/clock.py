"""`:now` and `:today` in a SELECT of a mapping: the current time in the source's zone.

The session's own clock is set to UTC, so NOW() is hours away from local times (decision 29).
"""

import re
from collections.abc import Callable
from datetime import datetime
from functools import partial
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from adapters.sql.dialects.base import Dialect

# Quoted texts and names, comments and PostgreSQL's casts (::) are passed over.
_COLONS = re.compile(
    r"""'[^']*'|"[^"]*"|`[^`]*`|--[^\n]*|/\*.*?\*/|(?<![:\w]):(?P<name>now|today)\b|:""",
    re.DOTALL,
)
_UNTYPED = sa.types.NullType()


def bound_text(rows: str, dialect: Dialect, zone: ZoneInfo) -> sa.TextClause:
    """Return a SELECT as SQL that reads the clock whenever it is run.

    Any other colon in it is a colon. It may end in a comment.
    """
    names = {match["name"] for match in _COLONS.finditer(rows) if match["name"]}
    text = _replaced(rows, lambda name: f":{name}", colon=r"\:")
    return sa.text(f"{text}\n").bindparams(
        *(
            sa.bindparam(
                name, callable_=partial(_value, dialect, zone, name), type_=_UNTYPED
            )
            for name in sorted(names)
        )
    )


def described_text(rows: str, dialect: Dialect) -> str:
    """Return a SELECT with a literal for each time, to be described and never run."""
    return _replaced(rows, lambda _name: dialect.some_time)


def _replaced(rows: str, time: Callable[[str], str], colon: str = ":") -> str:
    def replacement(match: re.Match[str]) -> str:
        name = match["name"]
        return time(name) if name else match[0].replace(":", colon)

    return _COLONS.sub(replacement, rows)


def _value(dialect: Dialect, zone: ZoneInfo, name: str) -> object:
    now, today = dialect.clock(datetime.now(zone).replace(microsecond=0))
    return now if name == "now" else today
