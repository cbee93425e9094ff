"""`encounters mapping new` from answers of an HTTP API that somebody saved."""

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from adapters.contract import ResourceType
from adapters.mapping.load import load_mapping
from adapters.mapping.model import SourceMapping
from app.cli import main
from app.tools.starting.answers import read_answer
from app.tools.starting.standing_in import store
from demo.doors import Key
from demo.hospital import generate
from demo.http import application
from demo.pas import hospital

KINDS = ("sejours", "patients", "etablissements")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with an answer of each list of the API of group A."""
    folder = tmp_path_factory.mktemp("saved")
    pas = hospital(generate(1000, 1))
    client = application(lambda: pas, Key("k"), paging=False).test_client()
    for kind in KINDS:
        answer = client.get(f"/{kind}?nb=300", headers={"X-Cle-Api": "k"})
        (folder / f"{kind}.json").write_bytes(answer.data)
    return folder


def options(folder: Path, *more: str) -> list[str]:
    stays, patients, houses = (str(folder / f"{kind}.json") for kind in KINDS)
    files = ["--from", stays, "--patient", patients, "--organization", houses]
    return ["mapping", "new", *files, *more]


@pytest.fixture(scope="module")
def file(saved: Path) -> Path:
    """Return the file that `new` makes of them."""
    made = saved / "new.yaml"
    assert main(options(saved, "--out", str(made))) == 0
    return made


@pytest.fixture(scope="module")
def mapping(file: Path) -> SourceMapping:
    return load_mapping(file, {"PAS_URL": "http://pas.example.org"})


def test_a_state_of_the_file_is_asked_about_with_its_codes(file: Path) -> None:
    assert "# ? of patients nothing reads dossier (A: " in file.read_text()


def test_the_file_passes(file: Path) -> None:
    assert main(["mapping", "check", str(file)]) == 0


def test_fields_and_formats_are_those_of_the_shipped_mapping(
    mapping: SourceMapping,
) -> None:
    """Every guess that differs from group A's own file is one of these."""
    shipped = load_mapping(
        Path("mappings/group-a/group-a.yaml"),
        {"PAS_URL": "http://pas.example.org", "PAS_KEY": "k"},
    )
    for kind, known in shipped.resources.items():
        ours = mapping.resources[kind].fields
        lacking = {"visit_number_system", "active"}
        assert known.fields.keys() - ours.keys() <= lacking
        for slot in (known.fields.keys() & ours.keys()) - lacking:
            assert ours[slot].columns == known.fields[slot].columns, slot
            mine, theirs = ours[slot].time, known.fields[slot].time
            assert (mine and mine.format) == (theirs and theirs.format), slot
    items = mapping.resources[ResourceType.PATIENT].items["names"]
    names = [
        {slot: of.columns[0] for slot, of in item.fields.items() if of.columns}
        for item in items
    ]
    assert names == [
        {"family": "noms.naissance", "given": "noms.prenoms"},
        {"family": "noms.utilise", "given": "noms.prenomUtilise"},
    ]


def test_what_no_answer_says_is_a_question(file: Path) -> None:
    text = " ".join(file.read_text("utf-8").replace("#", " ").split())
    for question in (
        "? how is it shown who asks?",
        "? does an error come with status 200?",
        "? can it go on after the first rows?",
        "? stays that are cancelled or deleted must be left out by the API itself",
        "? what can it be asked for?",
        "? the parameter of the page size",
        "? by whose clock is each time written, the wall's or UTC?",
    ):
        assert question in text
    assert "url: {env: PAS_URL}" in text


def test_a_null_where_other_rows_have_an_object_is_no_field(tmp_path: Path) -> None:
    rows = [
        {"id": 1, "patient": {"ipp": 7}, "uf": None, "avis": None, "soins": None},
        {
            "id": 2,
            "patient": {"ipp": 8},
            "uf": {"code": "U1"},
            "avis": None,
            "soins": [1],
        },
    ]
    (tmp_path / "sejours.json").write_text(json.dumps({"resultats": rows}))
    read = read_answer(tmp_path / "sejours.json")
    assert read.fields == ("id", "patient.ipp", "avis", "uf.code")
    assert [row.get("uf.code") for row in read.rows] == [None, "U1"]


@pytest.mark.parametrize(
    ("name", "end", "is_told"),
    [("majUtc", "", True), ("maj", "Z", True), ("maj", "", False)],
    ids=["name", "text", "neither"],
)
def test_last_updated_is_written_where_its_zone_is_told(
    name: str, end: str, is_told: bool, tmp_path: Path
) -> None:
    rows = [
        {
            "id": day,
            "patient": {"ipp": day},
            "etat": "S",
            "dateEntree": f"2024-05-{day:02}T08:00:00",
            name: f"2024-05-{day:02}T10:{day:02}:00{end}",
        }
        for day in range(1, 29)
    ]
    people = [{"ipp": row["id"], "nom": "Roche", "sexe": "F"} for row in rows]
    for file, of in (("sejours", rows), ("patients", people)):
        (tmp_path / f"{file}.json").write_text(json.dumps({"resultats": of}))
    asked = ["--patient", str(tmp_path / "patients.json"), "--out"]
    made = tmp_path / "new.yaml"
    main(
        ["mapping", "new", "--from", str(tmp_path / "sejours.json"), *asked, str(made)]
    )
    text = made.read_text("utf-8")
    assert ("    last_updated:" in text) is is_told
    assert ("    # last_updated:" in text) is not is_told


def test_a_list_of_numbers_in_each_row_becomes_items(
    file: Path, mapping: SourceMapping
) -> None:
    (numbers,) = mapping.resources[ResourceType.PATIENT].items["identifiers"]
    assert (numbers.rows, numbers.fields["value"].columns) == ("numeros", ("valeur",))
    text = file.read_text("utf-8")
    assert "- rows: numeros\n" in text
    assert "only_if: {from: domaine, in: [IPP-CHU, IPP-CHB]}" in text
    assert "numeros is a list" not in text


def test_no_value_of_a_person_is_written_or_stored(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(options(saved)) == 0
    told = capsys.readouterr()
    stored = tmp_path / "stored.sqlite"
    store(stored, {"p": (read_answer(saved / "patients.json"), frozenset())})
    with closing(sqlite3.connect(stored)) as connection:
        kept = {
            str(cell)
            for table in ("p", "numeros")
            for row in connection.execute(f"SELECT * FROM {table}")
            for cell in row
        }
    people = json.loads((saved / "patients.json").read_text("utf-8"))["resultats"]
    stays = json.loads((saved / "sejours.json").read_text("utf-8"))["resultats"]
    values = {v for p in people for v in (*p["noms"].values(), p["dateNaissance"]) if v}
    values -= {"01/01/1900"}
    # What an answer calls the id of a patient is one of the numbers.
    ids = {str(person["id"]) for person in people}
    values |= {v for p in people for n in p["numeros"] if (v := n["valeur"])} - ids
    assert len(values) > 100
    assert not values & kept
    values |= {stay["numVenue"] for stay in stays}
    assert not [value for value in values if value in told.out + told.err]


ROW = {"id": 1, "ipp": "7", "etat": "S", "dateEntree": "2024-01-02 10:00:00"}


def made(tmp_path: Path, answer: Any, name: str = "stays.json") -> Path:
    file = tmp_path / name
    file.write_text(json.dumps(answer))
    return file


@pytest.mark.parametrize(
    ("answer", "rows", "total"),
    [
        ({"total": 3, "data": {"rows": [ROW]}}, "data.rows", "total"),
        (
            {"page": {"count": 9, "size": 1}, "items": [ROW], "tags": []},
            "items",
            "page.count",
        ),
        ([ROW], ".", ""),
        ({"hits": [ROW, {**ROW, "id": 2}], "n": 1}, "hits", ""),
    ],
    ids=["nested", "named", "bare", "too-small"],
)
def test_where_rows_and_total_stand(
    answer: Any, rows: str, total: str, tmp_path: Path
) -> None:
    read = read_answer(made(tmp_path, answer))
    assert (read.rows_path, read.total) == (rows, total)


def test_a_list_alone_and_without_states_makes_a_file_that_passes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row: Mapping[str, Any] = {
        "id": "a",
        "entree": "02/01/2024",
        "noms": [{"nom": "X"}],
        "code.x": 1,
    }
    file, out = made(tmp_path, [row]), tmp_path / "out.yaml"
    # No patients: something is left to mend.
    assert main(["mapping", "new", "--from", str(file), "--out", str(out)]) == 1
    assert main(["mapping", "check", str(out)]) == 0
    text = out.read_text("utf-8")
    assert "status:     finished  # ? no field looks like a state" in text
    assert "noms is a list: an item with rows: noms reads it" in text
    assert 'start:      {from: entree, format: "%d/%m/%Y", at: "00:00"}' in text
    assert "where does the number of all rows stand?" in text
    assert "no table looks like patients" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nonsense", "is not JSON: is it the answer itself?"),
        ('{"id": 1}', "has no list of rows: save the answer of a search"),
        ('{"ids": [1, 2]}', "has no list of rows"),
        (None, "cannot be read: No such file or directory"),
    ],
    ids=["no-json", "one-row", "no-rows", "no-file"],
)
def test_what_is_no_answer_is_said(
    text: str | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "stays.json"
    if text is not None:
        file.write_text(text)
    assert main(["mapping", "new", "--from", str(file)]) == 2
    told = capsys.readouterr()
    assert said in told.err
    assert told.out == ""


def test_tables_cannot_be_named_in_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = made(tmp_path, [ROW])
    assert main(["mapping", "new", "--from", str(file), "--stay", "sejour"]) == 2
    assert "saved answers are one file each" in capsys.readouterr().err
