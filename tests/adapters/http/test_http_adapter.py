"""Answers of an HTTP source: each failure has its error, and none quotes the source."""

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Event
from types import SimpleNamespace

import pytest

from adapters import open_adapter
from adapters.contract import (
    GoneError,
    NotAskableError,
    NotFoundError,
    RowFault,
    SourceBusyError,
    SourceChangedError,
    SourceDataError,
    SourceTimedOutError,
    SourceUnavailableError,
    TooCostlyError,
)
from adapters.http import client
from adapters.mapping.load import load_mapping
from tests.adapters.http_cases import (
    ROWS,
    SECRET,
    STAY_1,
    URL,
    WORD,
    api_and_adapter,
    fails,
    opened_at,
)
from tests.hospital_http import Api, answer, http_mapping_text, serving
from toolkit.contract.harness import STAY, ask, dates, ids_of, patient, token
from toolkit.contract.hospital import EDGES

LIST, ONE = f"{URL}/sejours", f"{URL}/sejours/1"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(client, "_PAUSES", (0, 0))


@pytest.fixture
def adapter(tmp_path):
    opened = opened_at(URL, tmp_path)
    yield opened
    opened.close()


AWAY, WRONG = SourceUnavailableError, SourceDataError


STATUS = {
    500: (AWAY, AWAY, 1),
    **dict.fromkeys((429, 502, 503, 504), (AWAY, AWAY, 3)),
    # What no retry mends is told the integrator.
    **dict.fromkeys((301, 400, 401, 403), (WRONG, WRONG, 1)),
    404: (WRONG, NotFoundError, 1),
    410: (WRONG, GoneError, 1),
    # Values that are too long for the source are the client's.
    414: (NotAskableError, NotAskableError, 1),
}
"""By status the error of a search, that of a read, and how often a read is tried."""


@pytest.mark.parametrize("status", STATUS)
def test_each_status_has_its_error(adapter, source, status):
    searched, read, tries = STATUS[status]
    source.get(LIST, body=WORD, status=status, headers={"Location": URL})
    source.get(ONE, body=WORD, status=status, headers={"Location": URL})
    fails(searched, lambda: adapter.search(ask()))
    fails(searched, lambda: adapter.count(ask()))
    fails(read, lambda: adapter.read(STAY, "1"))
    assert source.assert_call_count(ONE, tries)


def test_an_id_is_that_of_the_row_and_leads_nowhere_else(adapter, source):
    source.get(f"{URL}/sejours/3", json=STAY_1)
    for id in ("3", ".", "..", "...", "a/b", "a?b", "é", ""):
        fails(NotFoundError, lambda id=id: adapter.read(STAY, id))


NONSENSE = (
    *("", "[7]", "<html>", '{"resultats": [', '{"erreur": "x"}', "NaN"),
    '{"resultats": [7], "nombre": 1}',
    '{"resultats": [], "nombre": null, "message": "base indisponible"}',
    # More rows than the total, and fewer.
    '{"resultats": [{"id": 1}, {"id": 2}], "nombre": 1}',
    '{"resultats": [], "nombre": 9}',
    '{"resultats": [{"uf": 7}], "nombre": 1}',
)


def test_answer_without_sense_is_told_the_integrator(adapter, source):
    for body in NONSENSE:
        source.upsert("GET", LIST, body=body)
        fails(SourceDataError, lambda: adapter.search(ask()))
    # One stay, twice: rows may have moved in between.
    source.upsert("GET", LIST, json={"resultats": 2 * [STAY_1], "nombre": 2})
    fails(SourceChangedError, lambda: adapter.search(ask()))
    rows = [{**STAY_1, "id": number} for number in range(5)]
    source.upsert("GET", LIST, json={"resultats": rows, "nombre": 5})
    # More rows than asked for.
    fails(SourceDataError, lambda: adapter.search(ask(count=4)))
    for body in ("", "[]", "<html>", "{}"):
        source.upsert("GET", ONE, body=body)
        fails(SourceDataError, lambda: adapter.read(STAY, "1"))


def test_a_number_that_cannot_be_read_to_its_last_digit_is_no_id(adapter, source):
    """Else the stays of two patients would be taken for those of one."""
    for name in ("id", "ipp"):
        row = json.dumps(STAY_1).replace(f'"{name}": 1', f'"{name}": 1{"0" * 19}1')
        body = f'{{"resultats": [{row}], "nombre": 1}}'
        source.upsert("GET", LIST, body=body)
        (fault,) = adapter.search(ask(patient("1" + 20 * "0"))).rows
        assert isinstance(fault, RowFault)


def test_a_read_has_its_own_shape(tmp_path, source):
    row = '{path: "/detail/{id}", row: "{id: no, patient: {ipp: qui}, etat: statut.code}"}'
    change = ('read: {path: "/sejours/{id}"}', f"read: {row}")
    adapter = opened_at(URL, tmp_path, changes=(change,))
    shape = {"no": 1, "qui": 1, "statut": {"code": "S"}}
    source.get(f"{URL}/detail/1", json=shape)
    record = adapter.read(STAY, "1")
    assert (record.id, record.patient_id, record.status) == ("1", "1", "finished")  # type: ignore[union-attr]
    source.upsert("GET", f"{URL}/detail/1", json={"resultats": []})
    fails(SourceDataError, lambda: adapter.read(STAY, "1"))


RULE = (
    ", error: {path: erreur.code, fine: [OK], not_found: [E404], unavailable: [E503]}"
)


ERRORS = (
    ("E404", NotFoundError),
    ("E503", SourceUnavailableError),
    ("E999", SourceDataError),
    (7, SourceDataError),
    ({"x": SECRET}, SourceDataError),
)


def test_error_with_status_200(tmp_path, source):
    adapter = opened_at(URL, tmp_path, source=RULE)
    for code, kind in ERRORS:
        body = {**STAY_1, "erreur": {"code": code, "texte": SECRET}}
        source.upsert("GET", ONE, json=body)
        fails(kind, lambda: adapter.read(STAY, "1"))
    for code in ("OK", "", None, False):
        source.upsert("GET", ONE, json={**STAY_1, "erreur": {"code": code}})
        assert adapter.read(STAY, "1").id == "1"


def alone(number):
    return ROWS[number : number + 1]


FILTERED = (
    (token("_id", "1"), alone(7)),
    (dates("2024-03-14"), alone(7)),
    (token("identifier", "V1"), alone(7)),
    # A survivor's stays are those of one patient for each who was asked for.
    (patient("2"), ROWS[15:22]),
)


def test_a_filter_that_the_source_passes_over_is_noticed(tmp_path):
    unmerged = ((", merged: true", ""),)
    cases = [(case, ()) for case in FILTERED] + [((patient("2"), alone(0)), unmerged)]
    for (criterion, rows), changes in cases:
        with api_and_adapter(tmp_path, changes=changes) as (api, adapter):
            assert ids_of(adapter.search(ask(criterion)))
            api.strange = lambda _, rows=rows: answer(
                {"resultats": rows, "nombre": len(rows)}
            )
            with pytest.raises(SourceDataError, match="does not match"):
                adapter.search(ask(criterion))


def test_a_hidden_row_is_never_shown(tmp_path):
    with (
        api_and_adapter(tmp_path, changes=(("sansEtats=A,X", "sansEtats=Z"),)) as (
            _,
            adapter,
        ),
        pytest.raises(SourceDataError, match="hidden"),
    ):
        adapter.search(ask())


def test_check_tells_what_is_wrong(adapter, source):
    source.get(LIST, json={"resultats": [{"numero": 1}], "nombre": 1})
    source.get(f"{URL}/patients", body="<html>")
    source.get(f"{URL}/etablissements", status=403)
    problems = list(adapter.check())
    assert "Encounter.id: no row" in problems[0].text
    assert [problem.outage for problem in problems] == [False, False, False]
    # A source that is down is told from one that refuses.
    source.upsert("GET", f"{URL}/etablissements", status=503)
    assert [problem.outage for problem in adapter.check()] == [False, False, True]


def test_all_requests_of_a_page_share_one_deadline(tmp_path, monkeypatch):
    clock = count(step=0.6)
    with api_and_adapter(tmp_path) as (api, adapter):
        api.most = 1
        fake = SimpleNamespace(monotonic=lambda: next(clock), sleep=None)
        monkeypatch.setattr(client, "time", fake)
        with pytest.raises(SourceTimedOutError):
            adapter.search(ask(count=50))
        assert len(api.requests) > 1


def test_a_slow_count_is_too_costly(tmp_path):
    limit = (("count_timeout_seconds: 30", "count_timeout_seconds: 0.2"),)
    ended = Event()
    with api_and_adapter(tmp_path, changes=limit) as (api, adapter):
        api.strange = lambda _: ended.wait(10) and None
        try:
            fails(TooCostlyError, lambda: adapter.count(ask()))
        finally:
            ended.set()


def test_calls_beyond_the_connections_find_the_source_busy(tmp_path):
    """Only the adapter that the service opens has this limit, and a breaker around it."""
    limits = ", connections: 1, wait_seconds: 0.1, timeout_seconds: 30"
    file = tmp_path / "hospital.yaml"
    file.write_text(http_mapping_text(EDGES, source=limits), encoding="utf-8")
    api, entered, ends = Api(EDGES), Event(), Event()

    def wait(_):
        entered.set()
        assert ends.wait(30)

    with serving(api) as url, ThreadPoolExecutor(1) as threads:
        adapter = open_adapter(load_mapping(file, {"PAS_URL": url}))
        api.strange = wait
        first = threads.submit(adapter.read, STAY, "1")
        try:
            assert entered.wait(30)
            for call in (adapter.search, adapter.count):
                with pytest.raises(SourceBusyError):
                    call(ask())
        finally:
            ends.set()
        assert first.result(30).id == "1"
        assert adapter.count(ask()) > 1
        adapter.close()
