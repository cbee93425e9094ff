"""`encounters mapping check --live` on an HTTP API: each planted defect is found."""

import json
import os
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from werkzeug import Request, Response

from app.cli import main
from tests.hospital_http import SECRETS, Api, answer, http_mapping_text, serving
from tests.other_makes import NEXT, SKIP, OData, flat_rows, mapping_of
from tests.toolkit.live_hospital import (
    Findings,
    checked,
    defects,
    findings_of,
    written,
)
from toolkit.confirm import beside
from toolkit.contract.hospital import Hospital, OrganizationRow, PatientRow, StayRow

DEFECTS = defects("http")
TIME = "2024-06-01 10:00:00"
Check = Callable[..., Findings]
Capture = pytest.CaptureFixture[str]

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
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    served = Api(SOUND)
    with serving(served) as url:
        for name, value in {"PAS_URL": url, **SECRETS}.items():
            monkeypatch.setenv(name, value)
        yield served


@pytest.fixture
def check(tmp_path: Path, capsys: Capture) -> Check:
    """Return what changes the mapping file and returns the findings."""
    text = http_mapping_text(SOUND, source=", timeout_seconds: 60")

    def run(*changes: tuple[str, str]) -> Findings:
        findings = checked(written(tmp_path, *changes, text=text), capsys)
        # Of the file as a whole: its identifiers are those of examples.
        return [one for one in findings if one["element"]]

    return run


def line_of(one: dict[str, str], folder: Path) -> str:
    return (folder / "hospital.yaml").read_text().splitlines()[int(one["line"]) - 1]


@pytest.mark.usefixtures("api")
def test_nothing_is_wrong_with_a_sound_api(check: Check) -> None:
    findings = check()
    assert {one["severity"] for one in findings} == {"note"}
    assert any("30 rows" in one["text"] for one in findings)


@pytest.mark.usefixtures("api")
def test_screens_confirm_an_api_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, text=http_mapping_text(SOUND))
    assert main(["mapping", "confirm", str(file)]) == 0
    questions = yaml.safe_load(beside(file).read_text("utf-8"))
    stay = questions["stays"][0]
    beside(file).write_text(f"stays: [{{id: {stay['id']}, start: 1999-01-01 10:00}}]\n")
    capsys.readouterr()
    main(["mapping", "check", "--live", "--json", str(file)])
    found = json.loads(capsys.readouterr().out)["findings"]
    (one,) = [one for one in found if one["severity"] == "error"]
    assert one["element"] == "Encounter.period.start"


@pytest.mark.usefixtures("api")
@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_is_found(name: str, tmp_path: Path, check: Check) -> None:
    findings = check(*DEFECTS[name]["changes"])
    assert findings_of(DEFECTS[name], tmp_path / "hospital.yaml", findings)


def test_a_filter_is_tried_with_a_value_that_can_be_searched(
    check: Check, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The newest stays have no class: they become what no code of the API stands for.
    stays = tuple(
        stay._replace(kind=None) if stay.id in (27, 26) else stay
        for stay in SOUND.stays
    )
    with serving(Api(replace(SOUND, stays=stays))) as url:
        monkeypatch.setenv("PAS_URL", url)
        findings = check(('class: {query: "types=', 'class: {query: "typ='))
    assert [o["severity"] for o in findings if "'class'" in o["text"]] == ["error"]


@pytest.mark.parametrize(
    ("first", "nulls"), [("high", "high"), ("high", "last"), ("last", "high")]
)
@pytest.mark.parametrize("paging", [SKIP, NEXT])
def test_rows_without_the_key_where_the_file_does_not_say(
    tmp_path: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
    first: str,
    nulls: str,
    paging: str,
) -> None:
    if paging == NEXT and nulls == "high":
        pytest.skip("only numbered pages can be put into another order")
    stays = list(SOUND.stays)
    stays += [StayRow(n, state="P", changed=TIME) for n in range(31, 61)]
    api = OData(flat_rows(stays))
    api.first = (False, first == "high")
    with serving(api) as url:
        monkeypatch.setenv("PAS_URL", url)
        text = mapping_of(OData, paging, nulls)
        findings = checked(written(tmp_path, text=text), capsys)
    errors = [one for one in findings if one["severity"] == "error"]
    expected = set() if first == nulls else {"Encounter.sort"}
    assert {one["element"] for one in errors} == expected
    assert all("'-date'" in one["text"] for one in errors)


def test_a_refused_page_size_is_one_error_at_its_line(
    api: Api, tmp_path: Path, check: Check
) -> None:
    api.strange = lambda request: (
        None
        if "nb" in request.args or request.path.count("/") > 1
        else answer({"erreur": "nb"}, 400)
    )
    old = "path: /sejours, rows: resultats, count: nb,"
    findings = check((old, old.replace("nb,", "nbr,")))
    (one,) = [one for one in findings if one["severity"] == "error"]
    assert one["element"] == "Encounter.list"
    assert "list: {path: /sejours" in line_of(one, tmp_path)


@pytest.mark.parametrize("most", [20, 100])
def test_an_api_that_keeps_rows_back_is_found(
    api: Api, check: Check, most: int
) -> None:
    api.most = most
    counted = "counting: {path: /sejours/nombre, total: nombre}"
    changes = ("total: nombre", counted), ("{offset: debut}", "{page: page}")
    findings = [o for o in check(*changes) if o["element"] == "Encounter.list"]
    assert bool(findings) is (most < 30)


def test_a_list_that_cannot_be_counted_in_time_is_a_warning(
    api: Api, check: Check
) -> None:
    over = threading.Event()

    def slow(request: Request) -> Response | None:
        return answer({}) if request.path.endswith("/nombre") and over.wait() else None

    api.strange = slow
    counted = "counting: {path: /sejours/nombre, total: nombre}"
    limits = "timeout_seconds: 60, count_timeout_seconds: 0.5"
    try:
        findings = check(
            ("total: nombre", counted),
            ("{offset: debut}", "{page: page}"),
            ("timeout_seconds: 60", limits),
        )
    finally:
        over.set()
    severities = [o["severity"] for o in findings if o["element"] == "Encounter.list"]
    assert severities == ["warning"]


def list_of(change: Callable[[dict[str, object], Request], None]) -> Check:
    """Return what answers lists of stays changed, and all else as it is."""

    def strange(api: Api) -> Callable[[Request], Response | None]:
        def answered(request: Request) -> Response | None:
            if request.path != "/sejours":
                return None
            body = json.loads(api.page(request).get_data())
            change(body, request)
            return answer(body)

        return answered

    return strange


def _rows(body: dict[str, object]) -> list[object]:
    rows = body["resultats"]
    assert isinstance(rows, list)
    return rows


def of_the_page(body: dict[str, object], _: Request) -> None:
    body["nombre"] = len(_rows(body))


def capped(body: dict[str, object], _: Request) -> None:
    body["nombre"] = min(12, int(str(body["nombre"])))
    body["resultats"] = _rows(body)[:12]


def in_another_order(body: dict[str, object], _: Request) -> None:
    rows = _rows(body)
    random.shuffle(rows)


def without_a_row(body: dict[str, object], _: Request) -> None:
    body |= {"resultats": [], "nombre": 0, "message": "Canari"}


def on_another_host(body: dict[str, object], _: Request) -> None:
    if "suite" in body:
        body["suite"] = {"lien": "https://other.example/sejours?page=2"}


HABITS = (
    (of_the_page, "", "Encounter.list.total", "total"),
    (of_the_page, "next: suite.lien", "Encounter.list.total", "total"),
    (capped, "", "Encounter.list.total", "total"),
    (capped, "page: page", "Encounter.list.total", "total"),
    (capped, "next: suite.lien", "Encounter.list.total", "longer"),
    (in_another_order, "", "Encounter.list", "order"),
    (without_a_row, "", "Encounter", ", message. "),
    (on_another_host, "next: suite.lien", "Encounter.list", "hosts"),
)
"""A bad habit, the paging of the file, and the element and a word of its error."""


@pytest.mark.parametrize(("habit", "paging", "element", "word"), HABITS)
def test_a_bad_habit_of_a_list_is_an_error(
    habit: Callable[..., None],
    paging: str,
    element: str,
    word: str,
    api: Api,
    check: Check,
) -> None:
    api.strange = list_of(habit)(api)
    api.most = 10 if paging.startswith("next") else 1000
    changes = (("{offset: debut}", f"{{{paging}}}"),) if paging else ()
    errors = [one for one in check(*changes) if one["severity"] == "error"]
    assert any(one["element"] == element and word in one["text"] for one in errors), (
        errors
    )
    assert "Canari" not in str(errors)


def test_an_api_that_refuses_so_many_rows_is_asked_for_fewer(
    api: Api, check: Check
) -> None:
    api.strange = lambda request: (
        answer({"erreur": "nb"}, 400) if request.args.get("nb") == "2000" else None
    )
    findings = check()
    assert {one["severity"] for one in findings} == {"note"}
    assert any("30 rows" in one["text"] for one in findings)


def test_a_read_that_is_refused_is_an_error_at_its_line(
    api: Api, tmp_path: Path, check: Check
) -> None:
    api.strange = lambda request: (
        answer({}, 418) if request.path.startswith("/sejours/") else None
    )
    (one,) = [one for one in check() if one["severity"] == "error"]
    assert one["element"] == "Encounter.read"
    assert 'read: {path: "/sejours/{id}"}' in line_of(one, tmp_path)


@pytest.mark.parametrize("status", [404, 410])
def test_a_row_of_the_list_that_cannot_be_read_is_an_error(
    api: Api, check: Check, status: int
) -> None:
    api.strange = lambda request: (
        answer({}, status) if request.path.startswith("/sejours/") else None
    )
    (one,) = [one for one in check() if one["severity"] == "error"]
    assert one["element"] == "Encounter.id"


@pytest.mark.parametrize("status", [401, 403])
def test_a_file_without_credentials_is_one_error_at_its_source(
    status: int, api: Api, tmp_path: Path, check: Check
) -> None:
    api.strange = lambda _: answer({}, status)
    (one,) = check()
    assert one["element"] == "source"
    assert line_of(one, tmp_path).startswith("source:")


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
def test_credentials_that_are_refused_cannot_check(
    credentials: str, api: Api, tmp_path: Path, capsys: Capture
) -> None:
    api.strange = lambda _: answer({"error": "invalid_client"}, 401)
    file = tmp_path / "hospital.yaml"
    source = f", {credentials.replace('URL', os.environ['PAS_URL'])}"
    file.write_text(http_mapping_text(SOUND, source=source))
    assert main(["mapping", "check", "--live", str(file)]) == 2
    assert capsys.readouterr().err.startswith(f"{file}: ")
