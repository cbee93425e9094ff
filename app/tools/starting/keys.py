"""The id of a resource: the key of its table, or what could be one."""

from adapters.sql.tables import TableColumn
from adapters.sql.tallies import are_different
from app.tools.starting.building import Builder
from app.tools.starting.draft import Part
from app.tools.starting.select import Cell
from app.tools.starting.words import meaning

_KEY_WORDS = frozenset({"ID", "NUMBER", "STAY", "VISITNO", "FILE", "ALIAS"})


def put_id(builder: Builder, part: Part) -> None:
    """Fill the id from the key of the table, or from the column most like one."""
    table = part.select.table
    key = [table.by_name[name] for name in table.primary_key]
    unique = [c for c in table.columns if table.is_unique(c.name)]
    if len(key) == 1 or (unique and not key):
        part.put("id", {"from": part.select.add((key or unique)[0])})
    elif key:
        cells = [Cell(0, column) for column in key]
        template = " || '-' || ".join(f"{{{n}}}" for n in range(len(cells)))
        name = part.select.express("whole_id", template, *cells)
        part.put("id", {"from": name}, "made of the columns of the key")
    else:
        question = "no key is declared: has each row a value of its own here?"
        column = _likely_key(builder, part)
        part.put("id", {"from": part.select.add(column)}, question)


def _likely_key(builder: Builder, part: Part) -> TableColumn:
    """Return the first column named like a key whose values are all different."""
    table = part.select.table
    likely = [c for c in table.columns if meaning(c.name).known & _KEY_WORDS]
    likely = likely or list(table.columns)
    alone = (c for c in likely if are_different(builder.database, table, c.name))
    return next(alone, likely[0])
