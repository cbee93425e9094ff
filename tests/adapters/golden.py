"""Every shape of statement in the SQL of every database, as tests/golden/sql holds it.

`python -m tests.adapters.golden` writes the files anew; a change of theirs is read by
somebody who knows the database, since for two of them no test has a server.
"""

from collections.abc import Mapping
from pathlib import Path

from sqlalchemy.engine import Dialect as Compiler
from sqlalchemy.engine import make_url

from adapters.contract import StringMatch
from adapters.sql.columns import Column, Kind
from adapters.sql.conditions import (
    All,
    Any,
    Compare,
    Condition,
    EndsInBlanks,
    In,
    InOrReplaced,
    InRows,
    IsNull,
    Matches,
    NotIn,
    NotNull,
)
from adapters.sql.dialects import dialect_named
from adapters.sql.statements import Shape, Statement, compile_shape

GOLDEN = Path(__file__).parents[1] / "golden" / "sql"

DRIVERS: Mapping[str, tuple[str, str]] = {
    "mssql": ("mssql+pyodbc", "qmark"),
    "mysql": ("mysql+pymysql", "pyformat"),
    "oracle": ("oracle+oracledb", "named"),
    "postgresql": ("postgresql+psycopg", "pyformat"),
    "sqlite": ("sqlite", "qmark"),
}
"""Each database's driver and how its placeholders look (PEP 249)."""

KINDS: Mapping[str, tuple[Kind, Kind, Kind]] = {
    "mssql": (Kind.FOLDING, Kind.FOLDING, Kind.TICK_TIME),
    "mysql": (Kind.FOLDING, Kind.WESTERN, Kind.LOCAL_TIME),
    "oracle": (Kind.FILLED, Kind.PADDED, Kind.SECOND_TIME),
    "postgresql": (Kind.TEXT, Kind.TEXT, Kind.LOCAL_TIME),
    "sqlite": (Kind.TEXT, Kind.TEXT, Kind.TEXT),
}
"""What an old table has for names, for codes and for times."""

STAYS = "SELECT id, patient, state, began FROM stays -- all"
PATIENTS = "SELECT id, name, merged FROM patients WHERE note <> ':x'"
NUMBERS = "SELECT patient, digits FROM numbers"
SELECTED = ("id", "patient", "state", "began")


def shapes(database: str) -> Mapping[str, Shape]:
    """Return the shapes by name, with the kinds of column of one database."""
    text_kind, code_kind, time_kind = KINDS[database]
    id_, patient = Column("id", Kind.INTEGER), Column("patient", Kind.INTEGER)
    merged = Column("merged", Kind.INTEGER)
    name, state = Column("name", text_kind), Column("state", code_kind)
    text_id, began = Column("id", text_kind), Column("began", time_kind)
    other, uuid = Column("colour", Kind.OTHER), Column("patient", Kind.UUID)
    folding = Column("name", Kind.FOLDING)
    text_merged = Column("merged", text_kind)
    newest = ((began, True), (id_, True))
    past = Any((Compare(began, "<"), Compare(id_, "<")))

    def stays(condition: Condition, *order: tuple[Column, bool]) -> Shape:
        return Shape(STAYS, SELECTED, condition, order, limited=bool(order))

    def patients(condition: Condition) -> Shape:
        return Shape(PATIENTS, ("id",), condition)

    numbered = In(Column("digits", text_kind), 1)
    return {
        "always": stays(All(())),
        "count": Shape(STAYS, (), Any((In(state, 1), IsNull(state)))),
        "never": stays(Any(())),
        "one-row": Shape(STAYS, SELECTED, In(id_, 1), limited=True),
        "first-page": stays(NotNull(began), *newest),
        "few-rows": Shape(
            STAYS, SELECTED, In(patient, 1), newest, limited=True, nulls_last=True
        ),
        "next-page": stays(All((Compare(began, "<="), past, In(state, 1))), *newest),
        "without-key": stays(All((IsNull(began), Compare(id_, "<"))), *newest),
        "codes-counted": Shape(STAYS, (), In(state, 1), limited=True, grouped=state),
        "oldest-first": stays(Compare(began, ">="), (began, False), (id_, False)),
        "by-text-id": stays(Compare(text_id, ">"), (text_id, False)),
        "in-codes": stays(In(state, 2)),
        "not-in-codes": stays(NotIn(state, 2)),
        "in-other-type": stays(All((In(other, 1), NotIn(other, 1)))),
        "ends-in-blanks": Shape(STAYS, (), EndsInBlanks(text_id)),
        "merged-patient": stays(
            InOrReplaced(patient, 2, PATIENTS, id_, merged, NotNull(merged))
        ),
        "of-second-select": patients(InRows(id_, NUMBERS, patient, numbered)),
        "of-second-select-by-text-id": patients(
            InRows(text_id, NUMBERS, Column("patient", text_kind), numbered)
        ),
        "merged-patient-by-text": stays(
            InOrReplaced(patient, 1, PATIENTS, text_id, text_merged, NotNull(merged))
        ),
        "of-second-select-by-number": patients(
            InRows(text_id, NUMBERS, patient, numbered)
        ),
        "of-second-select-by-text": patients(InRows(id_, NUMBERS, text_id, numbered)),
        "of-second-select-by-uuid": patients(InRows(text_id, NUMBERS, uuid, numbered)),
        "name-starts": patients(Matches(name, StringMatch.STARTS_WITH, folded=False)),
        "folding-name-starts": patients(
            Matches(folding, StringMatch.STARTS_WITH, folded=False)
        ),
        "folding-text-id": stays(Compare(folding, ">"), (folding, False)),
        "name-is": patients(Matches(name, StringMatch.EXACT, folded=False)),
        "folded-name-contains": patients(
            Matches(name, StringMatch.CONTAINS, folded=True)
        ),
    }


def compiled(database: str, shape: Shape) -> Statement:
    """Return a shape in the SQL of one database, whether its driver is there or not."""
    driver, style = DRIVERS[database]
    compiler: Compiler = make_url(f"{driver}://").get_dialect()(paramstyle=style)  # type: ignore[arg-type]
    return compile_shape(shape, compiler, dialect_named(database).idiom)


def main() -> None:
    """Write all files."""
    for database in DRIVERS:
        folder = GOLDEN / database
        folder.mkdir(parents=True, exist_ok=True)
        for name, shape in shapes(database).items():
            text = compiled(database, shape).text
            (folder / f"{name}.sql").write_text(f"{text}\n", "utf-8")


if __name__ == "__main__":
    main()
