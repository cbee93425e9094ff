"""Columns that a SELECT computes: from one table, or from several, as far as it tells."""

import re

from adapters.mapping.places import Place
from adapters.sql.inspection.rows import Looked

_OF_ONE = (
    ", as the SELECT computes the column: an index of that expression would serve, or a"
    " plain column that search: names"
)
_OF_EACH = (
    ", as the SELECT puts rows of several tables together (UNION): each of them needs an"
    " index on the column that stands there"
)
_OF_SEVERAL = (
    ", as the SELECT computes the column from several tables: no index of it can exist."
    " Only a column of one table that holds the value helps, which search: names, or a"
    " view that the database keeps as a table"
)


def why_computed(looked: Looked, place: Place) -> str:
    """Return what there is to say of the index of a column that is computed."""
    rows = place.rows or looked.section.mapping.rows
    expression = expression_of(rows, place.field.filter_column or "")
    if is_of_several(expression):
        return _OF_SEVERAL
    return _OF_EACH if not expression and is_put_together(rows) else _OF_ONE


def expression_of(rows: str, column: str) -> str:
    """Return the SQL that a SELECT calls a column by `AS`, "" where that is not seen."""
    plain = _without_texts(rows)
    named = re.search(rf'\bAS\s+"?{re.escape(column)}\b', plain, re.IGNORECASE)
    if not named:
        return ""
    depth, at = 0, named.start()
    while at > 0:
        at -= 1
        depth += {")": 1, "(": -1}.get(plain[at], 0)
        is_first = re.match(r"SELECT\b", plain[at:], re.IGNORECASE)
        if depth < 0 or (depth == 0 and (plain[at] == "," or is_first)):
            break
    start = r"^[,(\s]*(SELECT\b)?"
    return re.sub(start, "", plain[at : named.start()], count=1, flags=re.IGNORECASE)


def is_put_together(rows: str) -> bool:
    """Tell whether a SELECT puts rows of several tables under each other."""
    return bool(re.search(r"\bUNION\b", _without_texts(rows), re.IGNORECASE))


def _without_texts(rows: str) -> str:
    # What stands in a text is neither a word, a comma nor a bracket of the statement.
    return re.sub(r"'[^']*'", lambda text: "x" * len(text[0]), rows)


def is_of_several(expression: str) -> bool:
    """Tell whether an expression reads more than one table."""
    tables = {name.lower() for name in re.findall(r"\b([^\W\d]\w*)\.", expression)}
    return len(tables) > 1 or bool(re.search(r"\bSELECT\b", expression, re.IGNORECASE))
