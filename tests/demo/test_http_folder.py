"""Hospitals of a folder behind the demo's HTTP API: read anew, and told when they are none."""

import json
import logging
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from werkzeug.test import Client

from demo.doors import KEY_HEADER, LOGIN, USER, Key, Sessions
from demo.folder import Folder, HospitalFileError, read_hospital
from demo.http import folder_application

KEY = "k-1"
STAYS = [
    {"id": 7, "etat": "E", "dateEntree": "30/03/2024 08:15:00"},
    {"id": 8, "etat": "S", "dateEntree": "01/01/1900 00:00:00", "uf": None},
    {"id": 9, "dateEntree": "31/03/2024 08:15:00.5", "uf": {"code": "0123"}},
]


def _write(directory: Path, name: str, held: Any) -> None:
    aside = directory / f"{name}.new"
    aside.write_text(json.dumps(held), "utf-8")
    aside.replace(directory / f"{name}.json")


def _ask(client: Client, path: str, status: int = 200) -> Any:
    answer = client.get(path, headers={KEY_HEADER: KEY})
    assert answer.status_code == status, answer.text
    return answer.json


def _ids(client: Client, path: str) -> list[int]:
    return [row["id"] for row in _ask(client, path)["resultats"]]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    _write(tmp_path, "north", {"sejours": STAYS})
    with closing(Folder(tmp_path)) as opened:
        yield opened


@pytest.fixture
def client(folder: Folder) -> Client:
    return Client(folder_application(folder, Key(KEY)))


def test_each_hospital_stands_below_its_name(tmp_path: Path, client: Client) -> None:
    _write(tmp_path, "south", {"patients": [{"id": 7}]})
    assert _ask(client, "/north/sejours?nb=1")["nombre"] == 3
    assert _ask(client, "/north/sejours/7")["etat"] == "E"
    assert _ask(client, "/south/patients/7") == {"id": 7}
    assert _ask(client, "/south/sejours?nb=1") == {"nombre": 0, "resultats": []}
    for path in ("/north/patients/7", "/north/lits?nb=1", "/west/sejours?nb=1"):
        _ask(client, path, 404)
    for path in ("/north", "/", "/..%2fnorth/sejours?nb=1", "/../north/sejours?nb=1"):
        _ask(client, path, 404)
    assert client.get("/north/sejours?nb=1").status_code == 401


def test_a_file_that_is_replaced_is_read_anew(tmp_path: Path, client: Client) -> None:
    _write(tmp_path, "now", {"sejours": [{"id": 0}]})
    assert _ids(client, "/now/sejours?nb=9") == [0]
    for number in range(200):
        # Other files of the same size, often within one tick of the file system's clock.
        for id in (number % 7, number % 9):
            _write(tmp_path, "now", {"sejours": [{"id": id}]})
        assert _ids(client, "/now/sejours?nb=9") == [number % 9]
    (tmp_path / "now.json").unlink()
    _ask(client, "/now/sejours?nb=9", 404)


def test_files_that_are_replaced_are_closed(tmp_path: Path, client: Client) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        _write(tmp_path, "north", {"sejours": STAYS})
        _ask(client, "/north/sejours/7")
    assert len(os.listdir("/proc/self/fd")) <= before + 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "not JSON"),
        ("\xff", "not JSON"),
        ("[]", "rows by kind"),
        ('{"lits": []}', "lits: no kind of rows"),
        ('{"sejours": {}}', "sejours: no kind of rows, or no list"),
        ('{"sejours": [{"id": 1}, {}]}', "sejours, row 2 has no id"),
        ('{"sejours": [7]}', "sejours, row 1 has no id"),
        ('{"sejours": [{"id": 1, "maj": "2024-03-30"}]}', "a time that none can read"),
        ('{"sejours": [{"id": 1, "dateEntree": 5}]}', "a time that none can read"),
    ],
)
def test_a_file_without_a_hospital_is_told_and_not_served(
    tmp_path: Path,
    client: Client,
    caplog: pytest.LogCaptureFixture,
    text: str,
    told: str,
) -> None:
    with pytest.raises(HospitalFileError, match=told):
        read_hospital(text.encode("latin-1"))
    (tmp_path / "west.json").write_bytes(text.encode("latin-1"))
    with caplog.at_level(logging.ERROR):
        assert _ask(client, "/west/sejours?nb=1", 503) == {"erreur": {"code": "PANNE"}}
    assert "west: " in caplog.text
    assert told in caplog.text
    _write(tmp_path, "west", {"sejours": [{"id": 1}]})
    assert _ids(client, "/west/sejours?nb=1") == [1]


def test_a_session_is_opened_below_a_name(folder: Folder) -> None:
    client = Client(folder_application(folder, Sessions(KEY, 60)))
    login = {"utilisateur": USER, "motDePasse": KEY}
    token = client.post(f"/north{LOGIN}", json=login).json["jeton"]  # type: ignore[index]
    assert client.get("/north/sejours/7", headers={"X-Session": token}).json


@pytest.mark.parametrize(
    "asked", ["", "nb=x", "nb=1&tri=lit", "nb=1&entreeDu=2024-03-30", "nb=1&debut=x",
              "nb=1&entreeDu=30/03/2024,31/03/2024"],
)  # fmt: skip
def test_what_the_api_does_not_understand_is_refused(
    client: Client, asked: str
) -> None:
    assert _ask(client, f"/north/sejours?{asked}", 400)["erreur"]["code"] == "DEMANDE"


def test_the_older_release_neither_sorts_nor_goes_on(folder: Folder) -> None:
    client = Client(folder_application(folder, Key(KEY), paging=False))
    assert _ids(client, "/north/sejours?nb=2&tri=id&debut=1") == [9, 7]
