"""The demo hospital over HTTP: its searches, its files, and group A's mapping on it."""

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from werkzeug.test import Client

from adapters.contract import EncounterRecord, SourceDataError
from adapters.http.adapter import HttpAdapter
from adapters.mapping.load import load_mapping
from demo import tables
from demo.hospital import generate
from demo.http import (
    KEY_HEADER,
    LOGIN,
    SESSION_HEADER,
    USER,
    Access,
    Pas,
    application,
    hospital,
    read_folder,
)
from demo.people import Row
from tests.hospital_http import SECRETS, serving
from tests.hospital_server import demo_http
from tests.live import ROOT
from toolkit.contract.harness import (
    ORGANIZATION,
    ask,
)

MAPPING = ROOT / "mappings" / "group-a" / "group-a.yaml"
KEY = SECRETS["PAS_KEY"]
UNSERVED = ("A", "AN", "X", "SUP")

STAYS = [{"id": 7, "etat": "E", "uf": None}, {"id": 8}, {"id": 9}]


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return list(generate(1000, 1))


@pytest.fixture(scope="module")
def pas(rows: list[Row]) -> Pas:
    return hospital(rows)


def of(rows: list[Row], table: Any) -> list[dict[str, Any]]:
    return [row for of_table, row in rows if of_table is table]


def _adapter(url: str, key: str = KEY) -> HttpAdapter:
    return HttpAdapter(load_mapping(MAPPING, {"PAS_URL": url, "PAS_KEY": key}))


def test_group_a_reads_all_stays_the_newest_first(rows: list[Row], pas: Pas) -> None:
    served = [row for row in of(rows, tables.SEJOUR) if row["etat"] not in UNSERVED]
    with serving(application({"": pas}.get, Access(KEY), paging=False)) as url:
        adapter = _adapter(url)
        assert adapter.count(ask()) == len(served)
        page = adapter.search(ask(count=20))
        adapter.close()
    assert (len(page.rows), page.more) == (20, True)
    entered = (s["date_entree"] for s in served if s["date_entree"])
    left = iter(sorted(entered, reverse=True)[:20])
    records = [row for row in page.rows if isinstance(row, EncounterRecord)]
    starts = [record.start.replace(tzinfo=None) for record in records if record.start]
    assert len(starts) == len(records)
    assert all(start in left for start in starts), "not in the order of entry"
    # A national number is shown of a qualified identity only.
    identities = of(rows, tables.IDENTITE)
    qualified = {row["patient_id"] for row in identities if row["statut"] == "QUAL"}
    numbers = of(rows, tables.IDENTIFIANT_PATIENT)
    numbered = {row["patient_id"] for row in numbers if row["domaine"] == "INS-NIR"}
    shown = {
        patient["id"]
        for patient in pas["patients"].values()
        if any(number["domaine"] == "INS-NIR" for number in patient["numeros"])
    }
    assert shown == numbered & qualified
    assert numbered - qualified


# Sessions


def test_key_and_login_are_needed(pas: Pas, tmp_path: Path) -> None:
    with serving(application({"": pas}.get, Access(KEY, 60))) as url:
        adapter = _with_login(tmp_path, url, KEY)
        assert adapter.read(ORGANIZATION, "2").id == "2"
        assert adapter.search(ask(count=3)).more
        adapter.close()
        # A refused login is no outage.
        _assert_refused(_with_login(tmp_path, url, "other"), r"\(403\)")
    # A session of no length has ended by the next request.
    with serving(application({"": pas}.get, Access(KEY, 0))) as url:
        _assert_refused(_with_login(tmp_path, url, KEY), "refuses the credentials")
    with serving(application({"": pas}.get, Access(KEY))) as url:
        _assert_refused(_adapter(url, "other"), "refuses the credentials")


def _assert_refused(adapter: HttpAdapter, says: str) -> None:
    with closing(adapter), pytest.raises(SourceDataError, match=says):
        adapter.search(ask())


def _with_login(directory: Path, url: str, password: str) -> HttpAdapter:
    """Return an adapter for group A with a login in place of the key."""
    login = f"""\
  auth:
    session:
      path: {LOGIN}
      body: {{utilisateur: {USER}, motDePasse: {{env: PAS_KEY}}}}
      token: jeton
      header: {SESSION_HEADER}
"""
    key = "  headers: {X-Cle-Api: {env: PAS_KEY}}\n"
    text = MAPPING.read_text("utf-8")
    assert key in text
    file = directory / "mapping.yaml"
    file.write_text(text.replace(key, login), "utf-8")
    return HttpAdapter(load_mapping(file, {"PAS_URL": url, "PAS_KEY": password}))


# Hospitals in files


def _write(directory: Path, name: str, content: Any) -> None:
    (directory / f"{name}.json").write_text(json.dumps(content), "utf-8")


def _get(client: Client, path: str, status: int = 200) -> Any:
    response = client.get(path, headers={KEY_HEADER: KEY})
    assert response.status_code == status, response.text
    return response.json


@pytest.fixture
def client(tmp_path: Path) -> Client:
    _write(tmp_path, "north", {"sejours": STAYS})
    return Client(application(lambda name: read_folder(tmp_path, name), Access(KEY)))


def test_each_hospital_is_below_its_name(tmp_path: Path, client: Client) -> None:
    _write(tmp_path, "south", {"patients": [{"id": 7}]})
    assert _get(client, "/north/sejours?nb=1")["nombre"] == 3
    assert _get(client, "/north/sejours/7")["etat"] == "E"
    assert _get(client, "/south/patients/7") == {"id": 7}
    assert _get(client, "/south/sejours?nb=1") == {"nombre": 0, "resultats": []}
    for path in ("/north/patients/7", "/north/lits?nb=1", "/west/sejours?nb=1"):
        _get(client, path, 404)
    for path in ("/north", "/", "/..%2fnorth/sejours?nb=1", "/../north/sejours?nb=1"):
        _get(client, path, 404)
    assert client.get("/north/sejours?nb=1").status_code == 401


def test_a_file_is_read_again_and_what_is_no_hospital_is_503(
    tmp_path: Path, client: Client
) -> None:
    for number in (0, 1, 2):
        _write(tmp_path, "now", {"sejours": [{"id": number}]})
        (row,) = _get(client, "/now/sejours?nb=9")["resultats"]
        assert row["id"] == number
    for content in ([], {"lits": []}, {"sejours": [{}]}, {"sejours": [7]}):
        _write(tmp_path, "now", content)
        _get(client, "/now/sejours?nb=9", 503)
    (tmp_path / "now.json").unlink()
    _get(client, "/now/sejours?nb=9", 404)


# As a process


@pytest.mark.system
def test_it_runs_as_a_process(tmp_path: Path) -> None:
    with demo_http(tmp_path, "--stays", "1000", "--no-paging") as url:
        adapter = _adapter(url)
        assert list(adapter.check()) == []
        assert adapter.search(ask(count=3)).more
        adapter.close()


@pytest.mark.system
def test_without_its_key_it_names_the_variable() -> None:
    environ = {k: v for k, v in os.environ.items() if k != "PAS_KEY"}
    for options, status in (([], 1), (["--help"], 0)):
        done = subprocess.run(
            [sys.executable, "-m", "demo.http", *options],
            env=environ,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == status
        assert "PAS_KEY" in done.stdout + done.stderr
