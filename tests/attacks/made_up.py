"""What attackers and careless programs send: texts, dates, pairs, JSON."""

import os
import string
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from app.parameters import SEARCH_PARAMETERS

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


SQL = (
    *("'", "''", "' OR '1'='1", '" OR ""="', "1) OR (1=1", "1; DROP TABLE stays--"),
    *("1 UNION SELECT 1, 2, 3", "1/**/OR/**/1=1", "x' AND pg_sleep(9)--", "SLEEP(9)"),
    *(
        "`",
        "%",
        "_",
        "%%",
        "\\\\",
        "\\\\'",
        ":id",
        ":p_1",
        "?",
        "%s",
        "%(id)s",
        "$1",
        "{0}",
    ),
    *(
        "NULL",
        "TRUE",
        "0x31",
        "1e1",
        "1.0",
        "+1",
        " 1",
        "1 ",
        "01",
        "-1",
        "--",
        ";",
        "/*",
    ),
    *(
        "٣",
        "１",
        "𝟏",
        "ʼ",
        "＇",
        "\u0000",
        "\u001f",
        "\u00a0",
        "\u200b1",
        "\ud7ff",
        "\U0010ffff",
    ),
    *("9" * 19, "9223372036854775808", "9" * 40, "1e309", "NaN", "Infinity", "-0"),
    *("a" * 64, "a" * 5000, "é" * 64, "Patient/1", "Patient/'", "Patient/1/_history/1"),
    *("a|b", "|", "||", "a|b|c", "|'", "'|", "\\,", "\\", ",", "1,", "1,2,'", "A\\|B"),
    *(
        "$ne",
        "[$ne]",
        "${7*7}",
        "../../etc/passwd",
        "<script>",
        "\r\nX-Y: z",
        "finished'",
    ),
)
"""Values that mean something to a database, to Python, or to nobody."""

_DAYS = (
    *("2024", "2024-05", "2024-05-02", "2024-05-02T10:00", "2024-05-02T10:00:00Z"),
    *("2024-05-02T10:00:00.123456+02:00", "2024-03-31T02:30:00", "2024-10-27T02:30:00"),
    *("2024-02-29", "2023-02-29", "2016-12-31T23:59:60Z", "0000", "0001-01-01", "9999"),
    *(
        "9999-12-31T23:59:59.999999-14:00",
        "0001-01-01T00:00:00+14:00",
        "10000",
        "-2024",
    ),
    *("2024-13", "2024-00-00", "2024-05-02T24:00:00", "2024-05-02T10", "20240502"),
    *(
        "２０２４",
        "٢٠٢٤",
        "2024-5-2",
        "2024-05-02 10:00",
        "2024-05-02T10:00:00+2:00",
        "now",
    ),
)
_PREFIXES = (
    "",
    "eq",
    "ne",
    "gt",
    "lt",
    "ge",
    "le",
    "sa",
    "eb",
    "ap",
    "EQ",
    "e",
    "gtgt",
    " ",
)


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
GOOD = st.sampled_from(
    ["1", "2", "37", "finished", "EMER", "IMP", "male", "Dupont", "H1"]
)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
VALUES = st.sampled_from(SQL) | DATES | GOOD | TEXTS

_MODIFIERS = ("", "", "", ":exact", ":contains", ":missing", ":not", ":x", ":")
_CONTROLS = (
    *("_count", "_sort", "_summary", "_elements", "_format", "_pretty", "_include"),
    *("_lastUpdated", "_has", "_index", "_searchAfter", "access_token", ""),
)


def pairs(kind: str, most: int = 4) -> st.SearchStrategy[list[tuple[str, str]]]:
    """Return lists of names and values for a search of one resource type."""
    known = st.tuples(
        st.sampled_from(sorted(SEARCH_PARAMETERS[kind])),  # type: ignore[index]
        st.sampled_from(_MODIFIERS),
    ).map("".join)
    # Mostly what is known: a name that is not ends every search alike.
    names = known | known | known | st.sampled_from(_CONTROLS) | TEXTS
    return st.lists(st.tuples(names, VALUES), max_size=most)


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
