"""What names mean, which column they make likely, how times are written, what codes become."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from adapters.contract import ResourceType
from adapters.sql.catalogue import read_catalogue
from adapters.sql.database import Database
from adapters.sql.samples import CodeCount
from adapters.sql.tables import Catalogue, Holds, Table, TableColumn
from app.tools.starting.codes import entries
from app.tools.starting.guesses import instead, slots
from app.tools.starting.personal import may_show
from app.tools.starting.references import References
from app.tools.starting.select import Select
from app.tools.starting.times import Writing, sorted_by_sql, writing_of
from app.tools.starting.unseen import unseen_writing
from app.tools.starting.words import MEANINGS, common_words, meaning

STAY, PATIENT, _ = ResourceType


@pytest.mark.parametrize(
    ("name", "meanings"),
    [
        ("date_entree", "DATE ENTRY"),
        ("dateEntree", "DATE ENTRY"),
        ("DT_ENTREE", "DATE ENTRY"),
        ("SEJDTENT", "STAY DATE ENTRY"),
        ("SEJHRSOR", "STAY TIME EXIT"),
        ("PATNOMNA", "PATIENT FAMILY BIRTH"),
        ("PATPRENO", "PATIENT GIVEN"),
        ("Date d'entrée", "DATE ENTRY"),
        ("N° séjour", "NUMBER STAY"),
        ("Prénom", "GIVEN"),
        ("hospitalization_date", "DATE ENTRY"),
        ("HOSP_DISCH_TIME", "INPATIENT EXIT TIME"),
        ("nom_naissance_recherche", "FAMILY BIRTH SEARCH"),
        ("unite_fonctionnelle", "UNIT"),
        ("nda", "VISITNO"),
        ("zzyzx", ""),
    ],
)
def test_names_have_meanings(name: str, meanings: str) -> None:
    assert meaning(name).known == frozenset(meanings.split())


def test_each_word_is_one_that_a_name_can_hold() -> None:
    assert all(
        word.isascii() and word.isalnum() and word.islower() for word in MEANINGS
    )


def test_a_mark_of_the_vendor_says_nothing() -> None:
    names = ["acme_sejour", "acme_patient", "acme_lit", "journal"]
    assert common_words(names) == {"acme"}
    assert common_words(["sejour_a", "sejour_b", "sejour_c"]) == frozenset()


def column(name: str, holds: Holds = Holds.TEXT, comment: str = "") -> TableColumn:
    return TableColumn(name, name, "?", holds, comment=comment)


def table(name: str, *columns: TableColumn) -> Table:
    return Table(name, name, name, None, columns)


def chosen(kind: ResourceType, *tables: Table) -> dict[str, str]:
    references = References(Catalogue("sqlite", tables, ()))
    return {slot: c.name for slot, c in slots(tables[0], kind, references).items()}


def test_strange_words_end_a_guess() -> None:
    person = table(
        "patient",
        column("nom_medecin"),
        column("commune_naissance"),
        column("date_creation", Holds.LOCAL_TIME),
        column("nom"),
    )
    assert chosen(PATIENT, person) == {"family": "nom", "created": "date_creation"}


def test_the_type_of_a_column_counts() -> None:
    stay = table(
        "sejour",
        column("date_entree", Holds.FLAG),
        column("entree", Holds.LOCAL_TIME),
        column("sortie", Holds.INTEGER),
    )
    assert chosen(STAY, stay) == {"start": "entree"}


def test_the_word_of_the_table_goes_before_another_one() -> None:
    visit = table("evaluation", column("visit_type"), column("evaluation_type"))
    assert chosen(STAY, visit) == {"class": "evaluation_type"}
    references = References(Catalogue("sqlite", (visit,), ()))
    rivals = instead(visit, STAY, references)
    assert [c.name for c in rivals["class"]] == ["visit_type"]


def test_a_comment_speaks_for_a_name_that_says_nothing() -> None:
    stay = table(
        "sejour",
        column("zq01", Holds.LOCAL_TIME, "Date d'entrée"),
        column("zq02", Holds.LOCAL_TIME, "Date de sortie"),
    )
    assert chosen(STAY, stay) == {"start": "zq01", "end": "zq02"}


# ------------------------------------------------------------------ references


@pytest.fixture
def linked() -> References:
    def keyed(name: str, key: str, *others: str) -> Table:
        columns = (
            column(key, Holds.INTEGER),
            *(column(o, Holds.INTEGER) for o in others),
        )
        return Table(name, name, name, None, columns, primary_key=(key,))

    tables = (
        keyed("stay", "id", "bed", "patient_id", "doctor"),
        keyed("hospital_bed", "id", "ward"),
        keyed("hospital_ward", "id", "unit"),
        keyed("hospital_unit", "id"),
        keyed("patient", "patient_id"),
        keyed("identity", "patient_id"),
    )
    return References(Catalogue("sqlite", tables, ()))


def of(references: References, name: str) -> dict[str, str]:
    found = references.of(table(name))
    return {column: reference.target.name for column, reference in found.items()}


def test_names_lead_where_no_key_is_declared(linked: References) -> None:
    assert of(linked, "stay") == {"bed": "hospital_bed", "patient_id": "patient"}
    assert of(linked, "identity") == {"patient_id": "patient"}
    assert of(linked, "patient") == {}


def test_the_way_to_a_unit_is_the_shortest(linked: References) -> None:
    way = linked.path(table("stay"), [table("hospital_unit")], None)
    assert [step.column for step in way] == ["bed", "ward", "unit"]
    around = linked.path(
        table("stay"), [table("hospital_unit")], table("hospital_ward")
    )
    assert around == ()


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("'a', 'b'", "which nothing keeps unique: has it one row for each"),
        ("'a', 'a'", "which 1 row repeats: which of them counts?"),
    ],
    ids=["by-chance", "repeated"],
)
def test_a_join_that_may_repeat_an_id_is_asked_about(
    keys: str, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "joined.sqlite"
    first, second = keys.split(", ")
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE stay (id INTEGER PRIMARY KEY, unit TEXT)")
        connection.execute("CREATE TABLE unit (code TEXT, name TEXT)")
        connection.execute(f"INSERT INTO unit VALUES ({first}, 'x'), ({second}, 'y')")
        connection.commit()
    with closing(Database(f"sqlite:///{file}", 5, 1)) as opened:
        tables = read_catalogue(opened).by_name
        select = Select(tables["stay"])
        select.join_at(0, "unit", tables["unit"], "code")
        (question,) = select.doubts(opened)
    assert question.startswith("unit is joined by code, ")
    assert said in question


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        ("sejour statut", True),
        ("sejour type_sejour", True),
        ("identite sexe_naissance", True),
        ("identifiant_patient type_identifiant", True),
        ("adresse type_adresse", True),
        ("patient statut_ins", True),
        ("type_venue libelle", True),
        ("visit_type name", True),
        ("employe libelle", False),
        ("sejour libelle", False),
        ("identite_nom nom_usage", False),
        ("adresse adresse_usuelle", False),
        ("patient nom", False),
        ("patient nom_actif", False),
        ("patient code_ipp", False),
        ("patient numero", False),
        ("patient deces_commentaire", False),
        ("patient date_naissance", False),
        ("classe_medecin nom", False),
    ],
)
def test_whose_values_may_be_asked_for(names: str, shown: bool) -> None:
    table, name = names.split()
    column = TableColumn(name, name, "TEXT", Holds.TEXT)
    assert may_show(Table(table, table, table, None, (column,)), column) is shown


def test_a_comment_tells_where_a_name_says_nothing() -> None:
    column = TableColumn("ZZ1", "ZZ1", "TEXT", Holds.TEXT, comment="Nom de naissance")
    assert not may_show(Table("T", "T", "T", None, (column,)), column)


# ------------------------------------------------------------------ times


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(sqlite3.connect(tmp_path / "times.sqlite")) as connection:
        connection.execute("CREATE TABLE t (c)")
        connection.commit()
    with closing(Database(f"sqlite:///{tmp_path / 'times.sqlite'}", 5, 1)) as opened:
        yield opened


def written(database: Database, tmp_path: Path, *values: object) -> tuple[object, ...]:
    with closing(sqlite3.connect(tmp_path / "times.sqlite")) as connection:
        connection.executemany(
            "INSERT INTO t VALUES (?)", [(value,) for value in values]
        )
        connection.commit()
    (found,) = read_catalogue(database).tables
    seen = writing_of(database, found, found.columns[0])
    unseen = unseen_writing(database, found, found.columns[0], is_typed=False)
    both = (_said(seen), _said(unseen))
    assert both[0] == both[1], "values that are read, and shapes that are counted"
    return both[0]


def _said(writing: Writing) -> tuple[object, ...]:
    it = sorted_by_sql(writing)
    return it.format, it.has_clock, bool(it.rearranged), it.absent, bool(it.question)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["2024-03-30 08:15:00"], ("", True, False, (), False)),
        (["2024-03-30"], ("", False, False, (), False)),
        (["2024-03-30T08:15:00"], ("%Y-%m-%dT%H:%M:%S", True, False, (), False)),
        (["20240330"], ("%Y%m%d", False, False, (), False)),
        ([20240330, 20240331], ("%Y%m%d", False, False, (), False)),
        (["20240330", "99999999"], ("%Y%m%d", False, False, ("99999999",), False)),
        (["30/03/2024"], ("", False, True, (), False)),
        (["30/03/2024 08:15"], ("%Y-%m-%d %H:%M", True, True, (), False)),
        (["30/03/2024", "31/12/2999"], ("", False, True, ("2999-12-31",), False)),
        (["03/04/2024"], ("", False, True, (), True)),
        (
            ["2024-03-30 08:15:00", "2999-12-31 00:00:00"],
            ("", True, False, ("2999-12-31 00:00:00",), False),
        ),
        (["yesterday", "today"], ("", True, False, (), True)),
    ],
    ids=[
        "iso",
        "day",
        "with-t",
        "digits",
        "numbers",
        "nines",
        "french",
        "french-clock",
        "far-day",
        "day-or-month",
        "far-time",
        "words",
    ],
)
def test_how_times_are_written(
    database: Database,
    tmp_path: Path,
    values: list[object],
    expected: tuple[object, ...],
) -> None:
    assert written(database, tmp_path, *values) == expected


# ------------------------------------------------------------------ codes


@pytest.mark.parametrize(
    ("slot", "code", "french", "made"),
    [
        ("status", "SORTI", True, "finished"),
        ("status", "Sorti: mort", True, "finished"),
        ("status", "Annulé", True, "hidden"),
        ("status", "no_show", False, "hidden"),
        ("class", "HDJ", True, "AMB"),
        ("class", "E", False, "EMER"),
        ("class", "E", True, "AMB"),
        ("gender", "2", True, "female"),
        ("yes", "O", True, "true"),
        ("identifier_type", "IPP-CHU", True, "PI"),
        ("identifier_type", "passport", False, ""),
    ],
)
def test_what_codes_become(slot: str, code: str, french: bool, made: str) -> None:
    (entry,) = entries(slot, [CodeCount(code, 1)], french=french)
    assert entry.made == made


def test_a_letter_means_another_thing_in_another_language() -> None:
    counts = [CodeCount("S", 9), CodeCount("A", 1), CodeCount("Q7", 1)]
    french = [entry.made for entry in entries("status", counts, french=True)]
    assert french == ["finished", "hidden", ""]
    english = [entry.made for entry in entries("status", counts, french=False)]
    assert english == ["finished", "in-progress", ""]


def test_most_stays_are_over() -> None:
    counts = [CodeCount("S", 60), CodeCount("P", 5), CodeCount("Z", 2)]
    made = [entry.made for entry in entries("status", counts, french=False)]
    assert made == ["finished", "planned", ""]
    sure = entries("status", [CodeCount("booked", 9)], french=False)
    assert sure[0].made == "planned"
