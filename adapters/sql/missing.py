"""What a database says that it lacks or cannot read, as far as the mapping named it first."""

import re
from collections.abc import Iterable

_SAID = (
    r"no such (?:column|table): (\S+)",  # SQLite
    r'(?:column|relation) "?([\w.$]+)"? does not exist',  # PostgreSQL
    r"[Uu]nknown column '([^']+)'",  # MariaDB, MySQL
    r"Table '([^']+)' doesn't exist",
    r"ORA-00904: ([\w.$#\"]+): invalid identifier",  # Oracle
    r"Invalid (?:column|object) name '([^']+)'",  # SQL Server
)

_UNREAD = (r"""near ["'](\w+)""",)
"""SQLite, PostgreSQL, MariaDB, MySQL and SQL Server; Oracle names no word."""


def missing_name(message: str, rows: str) -> str:
    """Return the column or table that a message says is not there, "" when it is unclear.

    Only a name that stands in `rows` is returned: nothing else of what a database says
    is fit for a log.
    """
    return _named(_SAID, message, rows)


def unread_word(message: str, rows: str) -> str:
    """Return the word of `rows` at which a database reads no further, "" when it is unclear."""
    return _named(_UNREAD, message, rows)


def _named(patterns: Iterable[str], message: str, rows: str) -> str:
    for pattern in patterns:
        if found := re.search(pattern, message):
            name = found[1].replace('"', "")
            last = re.escape(name.rpartition(".")[2])
            return name if re.search(rf"\b{last}\b", rows, re.IGNORECASE) else ""
    return ""
