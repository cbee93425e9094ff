"""The demo hospital over HTTP, and the mapping of group A on its older release."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from werkzeug.datastructures import Headers

from adapters.contract import (
    NotFoundError,
    RowFault,
    SourceDataError,
)
from adapters.http import HttpAdapter
from adapters.mapping.load import load_mapping
from adapters.mapping.model import SourceMapping
from adapters.mapping.profile import load_profile
from adapters.testing.asking import (
    ORGANIZATION,
    PATIENT,
    STAY,
    ask,
    dates,
    patient,
    text,
)
from app.capabilities import Offer, compute_offer
from demo.doors import KEY_HEADER, LOGIN, SESSION_HEADER, USER, Key, Sessions
from demo.hospital import generate
from demo.http import application
from demo.pas import Pas, hospital
from demo.rows import Patient, Sejour
from tests.hospital_http import SECRETS, serving
from tests.hospital_server import demo_http
from tests.live import ROOT

MAPPING = ROOT / "mappings" / "group-a" / "group-a.yaml"
KEY = SECRETS["PAS_KEY"]
SMALL = ("--stays", "1000")
UNSERVED = ("A", "AN", "X", "SUP")


@pytest.fixture(scope="module")
def rows() -> list[object]:
    return list(generate(1000, 1))


@pytest.fixture(scope="module")
def pas(rows: list[object]) -> Pas:
    return hospital(rows)  # type: ignore[arg-type]


@pytest.fixture(scope="module", params=[False, True], ids=["statuses", "all-200"])
def group_a(request: pytest.FixtureRequest, pas: Pas) -> Iterator[HttpAdapter]:
    api = application(lambda: pas, Key(KEY), paging=False, errors_as_200=request.param)
    with serving(api) as url:
        adapter = _adapter(url)
        yield adapter
        adapter.close()


def _adapter(url: str, key: str = KEY) -> HttpAdapter:
    return HttpAdapter(load_mapping(MAPPING, {"PAS_URL": url, "PAS_KEY": key}))


def _stays(rows: list[object]) -> list[Sejour]:
    found = [row for row in rows if isinstance(row, Sejour)]
    return [row for row in found if row.etat not in UNSERVED]


def test_all_stays_are_counted_and_the_newest_come_first(
    group_a: HttpAdapter, rows: list[object]
) -> None:
    stays = _stays(rows)
    assert group_a.count(ask()) == len(stays)
    page = group_a.search(ask(count=20))
    assert (len(page.rows), page.more) == (20, True)
    newest = sorted((s.date_entree for s in stays if s.date_entree), reverse=True)
    faults = [row for row in page.rows if isinstance(row, RowFault)]
    starts = [row.start.replace(tzinfo=None) for row in page.rows if row not in faults]  # type: ignore[union-attr]
    left = iter(newest[:20])
    assert len(starts) + len(faults) == 20
    assert all(start in left for start in starts), "not in the order of entry"


def test_stays_of_a_day_and_of_a_patient(
    group_a: HttpAdapter, rows: list[object]
) -> None:
    stay = next(s for s in _stays(rows) if s.date_entree and s.etat == "S")
    assert stay.date_entree is not None
    day = stay.date_entree.date()
    of_day = [s for s in _stays(rows) if s.date_entree and s.date_entree.date() == day]
    assert group_a.count(ask(dates(day.isoformat()))) == len(of_day)
    own = [s for s in _stays(rows) if s.patient_id == stay.patient_id]
    assert group_a.count(ask(patient(str(stay.patient_id)))) == len(own)
    assert group_a.read(STAY, str(stay.sejour_id)).id == str(stay.sejour_id)


def test_a_merged_patient_leads_to_the_survivor(
    group_a: HttpAdapter, rows: list[object]
) -> None:
    merged = next(r for r in rows if isinstance(r, Patient) and r.fusion_vers)
    record = group_a.read(PATIENT, str(merged.patient_id))
    assert record.replaced_by == str(merged.fusion_vers)  # type: ignore[union-attr]
    of_old = group_a.count(ask(patient(str(merged.patient_id))))
    assert of_old == group_a.count(ask(patient(str(merged.fusion_vers))))


def test_patients_by_name_and_houses_by_id(group_a: HttpAdapter) -> None:
    found = group_a.search(ask(text("name", "martin"), of=PATIENT, count=5))
    assert found.rows
    assert group_a.read(ORGANIZATION, "2").id == "2"
    with pytest.raises(NotFoundError):
        group_a.read(ORGANIZATION, "99")


def test_the_key_is_needed(pas: Pas) -> None:
    for as_200 in (False, True):
        with serving(application(lambda: pas, Key(KEY), errors_as_200=as_200)) as url:
            adapter = _adapter(url, "other")
            with pytest.raises(SourceDataError, match="refuses who asks"):
                adapter.search(ask())
            adapter.close()


def test_what_group_a_offers(group_a: HttpAdapter) -> None:
    profile = load_profile("group-a", MAPPING.parent)
    offer: Offer = compute_offer(profile, group_a.capabilities)
    assert not offer.paging
    offered = {kind: set(each.parameters) for kind, each in offer.resources.items()}
    assert offered == {
        STAY: {"patient", "date", "_id"},
        PATIENT: {"name", "_id"},
        ORGANIZATION: set(),
    }
    assert offer.resources[STAY].order.startswith("newest entry first")


def test_a_session_is_opened_by_who_knows_the_password() -> None:
    door = Sessions(KEY, 60)
    assert door.open({"utilisateur": USER, "motDePasse": "other"}) is None
    assert door.open({"motDePasse": KEY}) is None
    assert door.open([]) is None
    token = door.open({"utilisateur": USER, "motDePasse": KEY})
    assert token is not None
    assert door.lets_in(Headers({SESSION_HEADER: token}))
    assert not door.lets_in(Headers({SESSION_HEADER: "other"}))
    assert not door.lets_in(Headers())
    assert not door.lets_in(Headers({KEY_HEADER: KEY}))


def connection_to(url: str) -> HTTPConnection:
    return HTTPConnection(urlsplit(url).netloc, timeout=60)


def test_it_runs_as_a_process(tmp_path: Path) -> None:
    with demo_http(tmp_path, *SMALL, "--no-paging") as url:
        adapter = _adapter(url)
        assert list(adapter.check()) == []
        assert adapter.search(ask(count=3)).more
        adapter.close()


def test_a_connection_serves_one_request_after_another(tmp_path: Path) -> None:
    key = {KEY_HEADER: KEY}
    with demo_http(tmp_path, *SMALL) as url, closing(connection_to(url)) as asked:
        asked.connect()
        opened = asked.sock
        for method, path, body, headers, status in (
            ("GET", "/sejours?nb=2", None, key, 200),
            # What nobody reads of a request is no part of the next one.
            ("POST", "/sejours", b"GET /sejours?nb=1 HTTP/1.1", key, 405),
            ("HEAD", "/sejours?nb=2", None, key, 200),
            ("GET", "/sejours?nb=2", None, {}, 401),
            ("GET", "/sejours?nb=2", None, key, 200),
        ):
            asked.request(method, path, body, headers)
            answer = asked.getresponse()
            assert (answer.status, bool(answer.read())) == (status, method != "HEAD")
            assert asked.sock is opened
        # Without a body: the server closes, and would refuse what still comes.
        asked.putrequest("POST", "/sejours")
        asked.putheader("Transfer-Encoding", "chunked")
        asked.endheaders()
        assert asked.getresponse().status == 411
        assert asked.sock is None


def test_without_its_key_it_says_where_the_key_goes() -> None:
    environ = {k: v for k, v in os.environ.items() if k != "PAS_KEY"}
    command = [sys.executable, "-m", "demo.http", "--no-paging"]
    for options, status in (((), 1), (("--help",), 0)):
        told = subprocess.run(
            [*command, *options],
            env=environ,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert told.returncode == status
        said = told.stdout + told.stderr
        assert "PAS_KEY" in said
        assert KEY_HEADER in said


def test_a_session_that_ends_is_opened_again(tmp_path: Path) -> None:
    with demo_http(tmp_path, *SMALL, "--session", "1") as url:
        adapter = HttpAdapter(_with_login(tmp_path, url, KEY))
        assert list(adapter.check()) == []
        for _ in range(3):
            assert adapter.read(ORGANIZATION, "2").id == "2"
            time.sleep(1.1)  # longer than a session
        assert adapter.search(ask(count=3)).more
        adapter.close()


def test_a_login_that_is_refused_is_no_outage(tmp_path: Path) -> None:
    with demo_http(tmp_path, *SMALL, "--session", "1") as url:
        adapter = HttpAdapter(_with_login(tmp_path, url, "other"))
        with pytest.raises(SourceDataError, match=r"the login was refused \(403\)"):
            adapter.search(ask())
        adapter.close()


def _with_login(directory: Path, url: str, password: str) -> SourceMapping:
    """Return the mapping of group A with a login in place of the key."""
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
    return load_mapping(file, {"PAS_URL": url, "PAS_KEY": password})
