"""`encounters mapping check --live` on an HTTP API: each planted defect is found."""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from adapters.testing.hospital import Hospital, OrganizationRow, PatientRow, StayRow
from app.cli import main
from demo.pas import FRACTION
from tests.hospital_http import SECRETS, Api, answer, serving
from tests.hospital_http_mapping import http_mapping_text

SOUND = Hospital(
    stays=tuple(
        StayRow(
            n,
            patient=n,
            kind=("HC", "URG")[n % 2],
            began=f"2024-05-{n % 28 + 1:02} 08:{n:02}:00",
            ended=f"2024-06-{n % 28 + 1:02} 09:00:00",
            visit=f"V{n}",
            unit=f"U{n % 3}",
            changed=f"2024-06-{n % 28 + 1:02} 10:00:00",
        )
        for n in range(1, 31)
    ),
    patients=tuple(
        PatientRow(
            n,
            used_name=f"Ljungqvist{n}",
            birth_name=f"Ljungqvist{n}",
            given=f"Siri{n}",
            sex="2",
            born=f"19{n + 30}-01-02",
            changed="2024-06-01 10:00:00",
            numbers=((f"N{n}", "urn:oid:1.2"),),
        )
        for n in range(1, 31)
    ),
    organizations=(
        OrganizationRow("H1", "General", "750000001", "2024-06-01 10:00:00"),
    ),
)


class Defect(NamedTuple):
    """A change of the mapping file, and what has to be told of it."""

    told: str
    at: str
    old: str
    new: str
    severity: str = "error"
    source: str = ""


DEFECTS = {
    "a path that no row has": Defect(
        "no row of the list has 'uf.cod'; did you mean 'uf.code'?",
        "functional_unit:",
        "uf.code",
        "uf.cod",
        source="uf.cod",
    ),
    "a path within a list that no row has": Defect(
        "no row of the list has 'valer'; did you mean 'valeur'?",
        "value: {from: valer}",
        "value: {from: valeur}",
        "value: {from: valer}",
        source="valer",
    ),
    "a code that no entry names": Defect(
        "codes.states names no 'S' (30 rows): such rows cannot be served",
        "states:",
        "'S': 'finished', ",
        "",
        source="etat",
    ),
    "a parameter that the API leaves out": Defect(
        "'class' does not filter: the list holds a row that was not asked for",
        "class: {from: typeSejour",
        "class: {send: types,",
        "class: {send: typ,",
        source="typeSejour",
    ),
    "a parameter that brings the stays of anybody": Defect(
        "'patient' does not filter: the list holds a row that was not asked for",
        "patient_id: {from: patient.ipp}",
        "patient: {send: ipp,",
        "patient: {send: pip,",
        source="patient.ipp",
    ),
    "a parameter that nobody can see is left out": Defect(
        "'name' brings as many rows as no filter: does the API know",
        "family: {from: noms.utilise}",
        "name: {send: nom,",
        "name: {send: mon,",
        severity="warning",
        source="noms.utilise",
    ),
    "a filter on another time": Defect(
        "'date' brings no row, though the list has one with the value",
        "start: {from: dateEntree",
        "date: {from: entreeDu, before: entreeAvant",
        "date: {from: entreeAvant, before: entreeDu",
        source="dateEntree",
    ),
    "rows that are not to be served": Defect(
        "rows of the list are hidden or removed",
        "encounter:",
        "'S': 'finished'",
        "'S': 'hidden'",
    ),
    "rows that end before they start": Defect(
        "30 of 30 rows looked at cannot be served: ends before it starts",
        "end: {from",
        "start: {from: dateEntree",
        "start: {from: maj",
        source="dateSortie",
    ),
    "a last change whose clock nobody named": Defect(
        "nothing says by whose clock it is written: it is read in Europe/Paris",
        "last_updated:",
        f', format: "{FRACTION}", time_zone: UTC}}',
        f', format: "{FRACTION}"}}',
        severity="warning",
        source="maj",
    ),
    "a paging parameter that the API leaves out": Defect(
        "the second page is the first one again",
        "path: /sejours,",
        "paging: {offset: debut}",
        "paging: {offset: depart}",
        source="depart",
    ),
    "an upper bound that the API leaves out": Defect(
        "'date' does not filter by 'avantle' alone",
        "start: {from: dateEntree",
        "date: {from: entreeDu, before: entreeAvant",
        "date: {from: entreeDu, before: avantle",
        source="dateEntree",
    ),
    "a lower bound that the API leaves out": Defect(
        "'birthdate' does not filter by 'depuis' alone",
        "birth_date: {from: dateNaissance",
        "{from: neDu,",
        "{from: depuis,",
        source="dateNaissance",
    ),
    "several values that the API takes otherwise": Defect(
        "'_id' brings no row of one of two values: does the API take several so",
        "id: {from",
        "_id: {send: ids, several: comma}",
        "_id: {send: ids, several: repeat}",
        source="id",
    ),
    "an order that the API does not know": Defect(
        "the rows of 'date' come in another order: does the API know",
        "sort: {send: tri",
        "{date: entree, -date: -entree,",
        "{date: -entree, -date: -entree,",
        source="-entree",
    ),
    "an order that the API fails at": Defect(
        "'-date' is not answered: the source answered 500",
        "sort: {send: tri",
        "{date: entree, -date: -entree,",
        "{date: entree, -date: -debut,",
        source="-debut",
    ),
    "a bound that the API fails at": Defect(
        "'date' is not answered: the source answered 500",
        "start: {from: dateEntree",
        ', format: "%d/%m/%Y %H:%M:%S"}\n    identifier',
        "}\n    identifier",
        source="dateEntree",
    ),
    "a row that cannot be read": Defect(
        "read finds nothing by the id of a row of the list",
        "id: {from: id}",
        '"/sejours/{id}"',
        '"/sejours/x{id}"',
        source="id",
    ),
}


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    served = Api(SOUND)
    with serving(served) as url:
        for name, value in {"PAS_URL": url, **SECRETS}.items():
            monkeypatch.setenv(name, value)
        yield served


@pytest.fixture
def look(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., list[dict[str, str]]]:
    def looked(
        old: str = "", new: str = "", *more: tuple[str, str]
    ) -> list[dict[str, str]]:
        text = http_mapping_text(SOUND, source=", timeout_seconds: 60")
        for before, after in ((old, new), *more):
            assert before in text
            text = text.replace(before, after, 1)
        (tmp_path / "hospital.yaml").write_text(text)
        main(["mapping", "check", "--live", "--json", str(tmp_path / "hospital.yaml")])
        told = capsys.readouterr()
        assert told.err == ""
        assert "Ljungqvist" not in told.out
        found: list[dict[str, str]] = json.loads(told.out)["findings"]
        return found

    return looked


@pytest.mark.usefixtures("api")
def test_nothing_is_wrong_with_a_sound_api(
    look: Callable[..., list[dict[str, str]]],
) -> None:
    found = look()
    assert [one["text"] for one in found if one["severity"] != "note"] == []
    notes = [one["text"] for one in found if one["element"] == "Encounter"]
    assert notes == [
        "the first 30 rows were looked at, of 2,000 that were asked for at once; types,"
        " indexes and all other rows are not told by an API"
    ]


@pytest.mark.usefixtures("api")
@pytest.mark.parametrize("defect", DEFECTS.values(), ids=DEFECTS.keys())
def test_a_defect_is_told_at_its_line(
    defect: Defect, tmp_path: Path, look: Callable[..., list[dict[str, str]]]
) -> None:
    found = look(defect.old, defect.new)
    told = [one for one in found if defect.told in one["text"]]
    assert len(told) == 1, [one["text"] for one in found]
    lines = (tmp_path / "hospital.yaml").read_text().splitlines()
    assert defect.at in lines[int(told[0]["line"]) - 1]
    assert told[0]["severity"] == defect.severity
    assert told[0]["source"] == defect.source


@pytest.mark.usefixtures("api")
@pytest.mark.parametrize(
    ("only_if", "is_told"), [("[urn:oid:1.9]", False), ("[urn:oid:1.2]", True)]
)
def test_codes_of_items_that_do_not_count_are_not_told(
    only_if: str, is_told: bool, look: Callable[..., list[dict[str, str]]]
) -> None:
    found = look(
        "value: {from: valeur}\n",
        "value: {from: valeur}\n"
        "        use: {from: domaine, codes: uses}\n"
        f"        only_if: {{from: domaine, in: {only_if}}}\n",
        ("codes:\n", "codes:\n  uses: {table: {X: usual}}\n"),
    )
    told = [one["text"] for one in found if "codes.uses names no" in one["text"]]
    assert bool(told) is is_told
    if is_told:
        assert told[0].startswith("codes.uses names no 'urn:oid:1.2' (30 rows)")


def test_a_filter_is_tried_with_a_value_that_can_be_asked_for(
    look: Callable[..., list[dict[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The newest stays have no class: they become what no code of the API stands for.
    stays = tuple(
        stay._replace(kind=None) if stay.id in (27, 26) else stay
        for stay in SOUND.stays
    )
    with serving(Api(replace(SOUND, stays=stays))) as url:
        monkeypatch.setenv("PAS_URL", url)
        found = look("class: {send: types,", "class: {send: typ,")
    told = [one["text"] for one in found if "'class'" in one["text"]]
    assert told == [
        "'class' does not filter: the list holds a row that was not asked for"
    ]


@pytest.mark.usefixtures("api")
def test_ends_that_stand_for_none(
    look: Callable[..., list[dict[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    far = "2999-12-31 00:00:00"
    stays = tuple(stay._replace(ended=far) for stay in SOUND.stays)
    with serving(Api(replace(SOUND, stays=stays))) as url:
        monkeypatch.setenv("PAS_URL", url)
        found = look()
    (one,) = [one for one in found if "stand for none" in one["text"]]
    assert one["text"].startswith("30 rows end on 2999-12-31")
    assert one["source"] == "dateSortie"
    assert '"31/12/2999 00:00' in one["remedy"]


def test_a_refused_page_size_is_told_once_at_its_line(
    api: Api, tmp_path: Path, look: Callable[..., list[dict[str, str]]]
) -> None:
    api.strange = lambda request: (
        None
        if "nb" in request.args or request.path.count("/") > 1
        else answer({"erreur": "nb"}, 400)
    )
    found = look(
        "path: /sejours, rows: resultats, count: nb,",
        "path: /sejours, rows: resultats, count: nbr,",
    )
    (one,) = [one for one in found if one["severity"] == "error"]
    assert one["element"] == "Encounter.list.count"
    assert one["source"] == "nbr"
    assert (
        one["text"] == "the source answered 400: does the API know the parameter 'nbr'?"
    )
    lines = (tmp_path / "hospital.yaml").read_text().splitlines()
    assert "list: {path: /sejours" in lines[int(one["line"]) - 1]


@pytest.mark.parametrize("most", [20, 100])
def test_an_api_that_keeps_rows_back_is_told(
    api: Api,
    tmp_path: Path,
    look: Callable[..., list[dict[str, str]]],
    most: int,
) -> None:
    api.most = most
    counted = "counting: {path: /sejours/nombre, total: nombre}"
    found = look("total: nombre", counted, ("{offset: debut}", "{page: page}"))
    told = [one for one in found if "the others are never served" in one["text"]]
    assert [one["element"] for one in told] == ["Encounter.list"] * (most < 30)
    lines = (tmp_path / "hospital.yaml").read_text().splitlines()
    assert all("list: {path: /sejours" in lines[int(one["line"]) - 1] for one in told)


@pytest.mark.parametrize(
    ("paging", "is_told"),
    [("page: page", True), ("offset: debut", False), ("next: suite.lien", False)],
)
def test_an_api_whose_pages_are_small_is_told(
    api: Api, look: Callable[..., list[dict[str, str]]], paging: str, is_told: bool
) -> None:
    api.most = 20
    found = look("{offset: debut}", f"{{{paging}}}")
    told = [one for one in found if "a search with more (_count)" in one["text"]]
    assert [one["element"] for one in told] == ["Encounter.list"] * is_told
    text = "gives 20 rows where 30 are due"
    assert all(one["text"].startswith(text) for one in told)
    assert all(one["severity"] == "warning" for one in told)


def test_an_api_that_refuses_so_many_rows_is_asked_for_fewer(
    api: Api, look: Callable[..., list[dict[str, str]]]
) -> None:
    api.strange = lambda request: (
        answer({"erreur": "nb"}, 400) if request.args.get("nb") == "2000" else None
    )
    found = look()
    assert "error" not in {one["severity"] for one in found}
    assert any(
        "30 rows were looked at, of 100 that were asked for" in one["text"]
        for one in found
    )


def test_a_read_that_is_refused_is_told_at_its_line(
    api: Api, tmp_path: Path, look: Callable[..., list[dict[str, str]]]
) -> None:
    api.strange = lambda request: (
        answer({}, 418) if request.path.startswith("/sejours/") else None
    )
    (one,) = [one for one in look() if one["severity"] == "error"]
    assert (one["element"], one["text"]) == (
        "Encounter.read",
        "the source answered 418",
    )
    lines = (tmp_path / "hospital.yaml").read_text().splitlines()
    assert 'read: {path: "/sejours/{id}"}' in lines[int(one["line"]) - 1]


@pytest.mark.parametrize("status", [401, 403])
def test_a_file_that_shows_nobody_is_told_so_once(
    status: int, api: Api, tmp_path: Path, look: Callable[..., list[dict[str, str]]]
) -> None:
    api.strange = lambda _: answer({}, status)
    (one,) = look()
    assert one["element"] == "source"
    assert "the file sends neither headers nor auth" in one["text"]
    lines = (tmp_path / "hospital.yaml").read_text().splitlines()
    assert lines[int(one["line"]) - 1].startswith("source:")


def test_who_is_refused_looks_no_further(
    api: Api, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api.guard = lambda _: False
    file = tmp_path / "hospital.yaml"
    shown = ", headers: {X-Key: {env: PAS_KEY}}"
    file.write_text(http_mapping_text(SOUND, source=shown))
    assert main(["mapping", "check", "--live", str(file)]) == 2
    assert capsys.readouterr().err == (
        f"{file}: the source cannot be looked at: the source refuses who asks; is it up,"
        " and are address and account right?\n"
    )


SHOWN = {
    "the token server refuses who asks": "oauth2: {token_url: 'URL/token', client_id: c,"
    " client_secret: {env: PAS_PASSWORD}}",
    "the login was refused (401)": "session: {path: /session, form: {u: {env: PAS_USER}},"
    " token: t, header: X-Session}",
}


@pytest.mark.parametrize(("said", "auth"), SHOWN.items())
def test_who_gets_no_token_looks_no_further(
    said: str, auth: str, api: Api, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api.strange = lambda _: answer({"error": "invalid_client"}, 401)
    file = tmp_path / "hospital.yaml"
    shown = f", auth: {{{auth.replace('URL', os.environ['PAS_URL'])}}}"
    file.write_text(http_mapping_text(SOUND, source=shown))
    assert main(["mapping", "check", "--live", str(file)]) == 2
    assert f"cannot be looked at: {said}; is it up" in capsys.readouterr().err
