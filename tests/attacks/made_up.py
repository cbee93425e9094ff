"""What attackers and careless programs send: texts, dates, pairs, JSON."""

import os
import string
from collections.abc import Mapping
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from adapters.parameters import SEARCH_PARAMETERS
from tests.serving import BASE_URL
from toolkit.contract.hospital import UNIT_URL

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "0"))
"""How many examples each attack takes; 0 for as few as `make test` has time for."""


def tried(few: int) -> Any:
    """Return how long an attack goes on: `few` examples, the same each time, or many."""
    return settings(
        max_examples=EXAMPLES or few,
        deadline=None,
        database=None,
        derandomize=not EXAMPLES,
        suppress_health_check=list(HealthCheck),
    )


_PRINTABLE = r"""
' '' ' OR '1'='1 " OR ""=" 1) OR (1=1 1; DROP TABLE stays-- 1 UNION SELECT 1, 2, 3
1/**/OR/**/1=1 x' AND pg_sleep(9)-- SLEEP(9) ` % _ %% \\ \\' :id :p_1 ? %s %(id)s $1 {0}
NULL TRUE 0x31 1e1 1.0 +1 01 -1 -- ; /* 1e309 NaN Infinity -0 9223372036854775808
a|b | || a|b|c |' '| \, \ , 1, 1,2,' A\|B Patient/1 Patient/' Patient/1/_history/1
$ne [$ne] ${7*7} ../../etc/passwd <script> finished' ٣ １ 𝟏 ʼ ＇
"""
_OTHERS = (
    *("\u0000", "\u001f", "\u00a0", "\u200b1", "\ud7ff", "\U0010ffff", "\r\nX-Y: z"),
    *(" 1", "1 ", "9" * 19, "9" * 40, "a" * 64, "a" * 5000, "é" * 64),
)
SQL = (*_PRINTABLE.split(), *_OTHERS, *_PRINTABLE.strip().splitlines())
"""Values that mean something to a database, to Python, or to nobody."""

_WRITTEN_DAYS = """
2024 2024-05 2024-05-02 2024-05-02T10:00 2024-05-02T10:00:00Z 2024-02-29 2023-02-29
2024-05-02T10:00:00.123456+02:00 2024-03-31T02:30:00 2024-10-27T02:30:00
2016-12-31T23:59:60Z 0000 0001-01-01 9999 9999-12-31T23:59:59.999999-14:00
0001-01-01T00:00:00+14:00 10000 -2024 2024-13 2024-00-00 2024-05-02T24:00:00
2024-05-02T10 20240502 ２０２４ ٢٠٢٤ 2024-5-2 2024-05-02T10:00:00+2:00 now
"""
_DAYS = (*_WRITTEN_DAYS.split(), "2024-05-02 10:00")
_WRITTEN_PREFIXES = "eq ne gt lt ge le sa eb ap EQ e gtgt"
_PREFIXES = ("", *_WRITTEN_PREFIXES.split(), " ")


@st.composite
def _bent(draw: st.DrawFn) -> str:
    """Return a date, a sign of it taken away, doubled or changed."""
    text = draw(st.sampled_from(_DAYS))
    place = draw(st.integers(0, len(text)))
    other = draw(st.sampled_from(["", *string.digits, *"-:.TZ+ eé\0", text]))
    return text[:place] + other + text[place + draw(st.integers(0, 1)) :]


DATES = st.tuples(st.sampled_from(_PREFIXES), st.sampled_from(_DAYS) | _bent()).map(
    "".join
)
_CODES = ("finished", "planned", "in-progress", "EMER", "IMP", "UNK", "male", "unknown")
_NAMES = ("Du", "é", "LE", "cœur", "a", "ø", "Müller")
PLAUSIBLE: Mapping[str, tuple[str, ...]] = {
    "_id": ("1", "2,3", "37", "H1", "1,abc"),
    "patient": ("1", "Patient/2", "3,4", f"{BASE_URL}/Patient/1", "http://x/Patient/1"),
    "_lastUpdated": _DAYS,
    "date": _DAYS,
    "birthdate": _DAYS,
    "status": _CODES[:3],
    "class": _CODES[3:6],
    "gender": _CODES[6:],
    "identifier": ("A\\\\B", "000000007", "|1", "urn:oid:1.2|1", "1"),
    "service-provider": ("H1", "Organization/H2", f"{BASE_URL}/Organization/H1"),
    "service-provider._extension": (
        f"{UNIT_URL}|é",
        f"{UNIT_URL}|0123",
        f"{UNIT_URL}|'",
    ),
    **dict.fromkeys(("name", "family", "given"), _NAMES),
}
"""Values that find something in the hospital of edge cases, by parameter."""

GOOD = st.sampled_from(sorted({each for some in PLAUSIBLE.values() for each in some}))
TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
VALUES = st.sampled_from(SQL) | DATES | GOOD | TEXTS

_MODIFIERS = ("", ":exact", ":contains", ":missing", ":not", ":x", ":")
_CONTROLS = (
    *("_count", "_sort", "_summary", "_elements", "_format", "_pretty", "_include"),
    *("_lastUpdated", "_has", "_index", "_searchAfter", "access_token", ""),
)


def pairs(kind: str, most: int = 3) -> st.SearchStrategy[list[tuple[str, str]]]:
    """Return lists of names and values for a search of one resource type."""
    names = st.sampled_from(sorted(SEARCH_PARAMETERS[kind]))  # type: ignore[index]
    known = names.flatmap(
        lambda name: st.tuples(
            st.just(name), st.sampled_from(PLAUSIBLE[name]) | st.sampled_from(SQL)
        )
    )
    modified = st.tuples(names, st.sampled_from(_MODIFIERS)).map("".join)
    odd = st.tuples(modified | st.sampled_from(_CONTROLS) | TEXTS, VALUES)
    # Mostly what is known: a name that is not ends every search alike.
    return st.lists(known | known | known | odd, max_size=most)


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.sampled_from(["", "RS256", "none", "HS256", "rsa-1", "b64", "exp", *SQL[:9]])
    | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3)
    ),
    max_leaves=6,
)
