"""`encounters mapping check --live` on an HTTP API: each planted defect is found."""

import json
import os
import random
import threading
from dataclasses import replace

import pytest
import yaml

from tests.hospital_http import Api, answer, http_mapping_text
from tests.other_makes import NEXT, SKIP, OData, flat_rows, mapping_of
from tests.toolkit.live_hospital import checked, defects, findings_of, written
from toolkit.confirm import beside
from toolkit.contract.hospital import Hospital, OrganizationRow, PatientRow, StayRow

DEFECTS = defects("http")
TIME = "2024-06-01 10:00:00"

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


@pytest.fixture
def api(serve):
    return serve(Api(SOUND))


@pytest.fixture
def check(api, tmp_path, capsys):
    """Return what changes the mapping file and returns the findings."""
    text = http_mapping_text(SOUND, source=", timeout_seconds: 60")

    def run(*changes):
        findings = checked(written(tmp_path, *changes, text=text), capsys)
        # Of the file as a whole: its identifiers are those of examples.
        return [one for one in findings if one["element"]]

    return run


def errors(findings):
    return [one for one in findings if one["severity"] == "error"]


def test_screens_confirm_an_api_too(api, tmp_path, mapping):
    file = written(tmp_path, text=http_mapping_text(SOUND))
    assert mapping("confirm", file).status == 0
    stay = yaml.safe_load(beside(file).read_text("utf-8"))["stays"][0]
    beside(file).write_text(f"stays: [{{id: {stay['id']}, start: 1999-01-01 10:00}}]\n")
    (one,) = errors(mapping("check", "--live", "--json", file).document["findings"])
    assert one["element"] == "Encounter.period.start"


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_is_found(name, tmp_path, check):
    findings = check(*DEFECTS[name]["changes"])
    assert findings_of(DEFECTS[name], tmp_path / "hospital.yaml", findings)


def test_a_filter_is_tried_with_a_value_that_can_be_searched(check, serve):
    # The newest stays have no class: they become what no code of the API stands for.
    stays = tuple(
        stay._replace(kind=None) if stay.id in (27, 26) else stay
        for stay in SOUND.stays
    )
    serve(Api(replace(SOUND, stays=stays)))
    findings = check(('class: {query: "types=', 'class: {query: "typ='))
    assert [o["severity"] for o in findings if "'class'" in o["text"]] == ["error"]


@pytest.mark.parametrize(
    ("paging", "first", "nulls"),
    [
        (SKIP, "high", "high"),
        (SKIP, "high", "last"),
        (SKIP, "last", "high"),
        (NEXT, "high", "last"),
    ],
)
def test_rows_without_the_key_where_the_file_does_not_say(
    paging, first, nulls, serve, tmp_path, capsys
):
    stays = list(SOUND.stays)
    stays += [StayRow(n, state="P", changed=TIME) for n in range(31, 61)]
    api = OData(flat_rows(stays))
    api.first = (False, first == "high")
    serve(api)
    file = written(tmp_path, text=mapping_of(OData, paging, nulls))
    findings = checked(file, capsys)
    expected = set() if first == nulls else {"Encounter.sort"}
    assert {one["element"] for one in errors(findings)} == expected
    assert all("'-date'" in one["text"] for one in errors(findings))


COUNTING = ("total: nombre", "counting: {path: /sejours/nombre, total: nombre}")
BY_PAGE = ("{offset: debut}", "{page: page}")


@pytest.mark.parametrize("most", [20, 100])
def test_an_api_that_keeps_rows_back_is_found(api, check, most):
    api.most = most
    findings = [o for o in check(COUNTING, BY_PAGE) if o["element"] == "Encounter.list"]
    assert bool(findings) is (most < 30)


def test_a_list_that_cannot_be_counted_in_time_is_a_warning(api, check):
    over = threading.Event()
    api.strange = lambda request: (
        answer({}) if request.path.endswith("/nombre") and over.wait() else None
    )
    limits = ("timeout_seconds: 60", "timeout_seconds: 60, count_timeout_seconds: 0.5")
    try:
        findings = check(COUNTING, BY_PAGE, limits)
    finally:
        over.set()
    severities = [o["severity"] for o in findings if o["element"] == "Encounter.list"]
    assert severities == ["warning"]


def of_the_page(rows, _):
    return {"nombre": len(rows)}


def capped(rows, total):
    return {"nombre": min(12, total), "resultats": rows[:12]}


def in_another_order(rows, _):
    return {"resultats": random.sample(rows, len(rows))}


def without_a_row(*_):
    return {"resultats": [], "nombre": 0, "message": "Canari"}


def on_another_host(*_):
    return {"suite": {"lien": "https://other.example/sejours?page=2"}}


@pytest.mark.parametrize(
    ("habit", "paging", "element", "word"),
    [
        (of_the_page, "offset: debut", "Encounter.list.total", "total"),
        (of_the_page, "next: suite.lien", "Encounter.list.total", "total"),
        (capped, "page: page", "Encounter.list.total", "total"),
        (capped, "next: suite.lien", "Encounter.list.total", "longer"),
        (in_another_order, "offset: debut", "Encounter.list", "order"),
        (without_a_row, "offset: debut", "Encounter", ", message. "),
        (on_another_host, "next: suite.lien", "Encounter.list", "hosts"),
    ],
)
def test_a_bad_habit_of_a_list_is_an_error(habit, paging, element, word, api, check):
    def strange(request):
        if request.path != "/sejours":
            return None
        body = json.loads(api.page(request).get_data())
        return answer(body | habit(body["resultats"], body["nombre"]))

    api.strange = strange
    api.most = 10 if paging.startswith("next") else 1000
    wrong = errors(check(("{offset: debut}", f"{{{paging}}}")))
    assert any(one["element"] == element and word in one["text"] for one in wrong), (
        wrong
    )
    assert "Canari" not in str(wrong)


@pytest.mark.parametrize(
    ("refused", "status", "element", "line"),
    [
        ("/sejours/", 418, "Encounter.read", 'read: {path: "/sejours/{id}"}'),
        ("/sejours/", 404, "Encounter.id", ""),
        ("/sejours", 400, "Encounter.list", "list: {path: /sejours"),
        ("/", 403, "source", "source:"),
    ],
)
def test_what_is_refused_is_one_error_at_its_line(
    refused, status, element, line, api, tmp_path, check
):
    api.strange = lambda request: (
        answer({}, status) if request.path.startswith(refused) else None
    )
    (one,) = errors(check())
    assert one["element"] == element
    lines = (tmp_path / "hospital.yaml").read_text().splitlines()
    assert line in lines[int(one["line"]) - 1]


def test_an_api_that_refuses_so_many_rows_is_asked_for_fewer(api, check):
    api.strange = lambda request: (
        answer({"erreur": "nb"}, 400) if request.args.get("nb") == "2000" else None
    )
    findings = check()
    assert {one["severity"] for one in findings} == {"note"}
    assert any("30 rows" in one["text"] for one in findings)


@pytest.mark.parametrize(
    "credentials",
    [
        "headers: {X-Key: {env: PAS_KEY}}",
        "auth: {oauth2: {token_url: 'URL/token', client_id: c,"
        " client_secret: {env: PAS_PASSWORD}}}",
        "auth: {session: {path: /session, form: {u: {env: PAS_USER}}, token: t,"
        " header: X-Session}}",
    ],
    ids=["headers", "oauth2", "session"],
)
def test_credentials_that_are_refused_cannot_check(credentials, api, tmp_path, mapping):
    api.strange = lambda _: answer({"error": "invalid_client"}, 401)
    file = tmp_path / "hospital.yaml"
    source = f", {credentials.replace('URL', os.environ['PAS_URL'])}"
    file.write_text(http_mapping_text(SOUND, source=source))
    printed = mapping("check", "--live", file)
    assert printed.status == 2
    assert printed.err.startswith(f"{file}: ")
