"""Every walker and the sync client against one fault server: one table, equal results."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.clients.cases import (
    CASES,
    COMPLETE,
    INCOMPLETE,
    PAGE_SIZE,
    REFUSED,
    STAYS,
    USAGE,
    Case,
)
from tests.clients.fault_server import FaultServer, Page, serving
from tests.clients.hospital import State, filled
from tests.clients.running import (
    CLIENTS,
    NEEDED,
    SYNC,
    Done,
    copied,
    ids,
    run,
    walker,
)
from tests.docs.pages import table

README = (CLIENTS / "README.md").read_text("utf-8")
WRITTEN = (COMPLETE, INCOMPLETE)
"""The exit codes with which a walker leaves its file."""


@pytest.fixture(scope="module", params=NEEDED)
def command(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Sequence[str]:
    """Return the command of each walker."""
    return walker(request.param, tmp_path_factory.mktemp("walker"))


def service(case: Case) -> FaultServer:
    """Return the service of a case."""
    hospital = filled(STAYS)
    for id in case.invalid:
        hospital.change("Encounter", id, state=State.INVALID)
    return FaultServer(hospital, case.faults, PAGE_SIZE, **case.server)


def expected(case: Case) -> list[str]:
    """Return the ids that a client has in the end."""
    return sorted({str(id) for id in range(1, STAYS + 1)} - case.missing)


def check(case: Case, served: FaultServer, done: Done) -> None:
    """Check the exit code, the requests and the tokens of a client."""
    assert done.returncode == case.code, done.stderr
    assert case.requests in (None, len(served.requests)), served.requests
    assert served.tokens == case.tokens
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_walkers(command: Sequence[str], case: Case, tmp_path: Path) -> None:
    out = tmp_path / "stays.ndjson"
    with serving(service(case)) as served:
        environ = served.environ(**case.environ)
        done = run(command, environ, str(out), "Encounter", "class=IMP")
    check(case, served, done)
    assert out.exists() == (case.code in WRITTEN)
    assert [*tmp_path.iterdir()] == [out] * out.exists()
    if out.exists():
        rows = ids(out)
        assert sorted(set(rows)) == expected(case)
        numbers = f"{len(rows)} rows, {len(set(rows))} ids, {len(case.invalid)} invalid"
        total = "total 25" if served.counting else "total unknown"
        assert done.stderr.splitlines()[-1] == f"{numbers}, {total}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("is_full", [True, False], ids=["full", "update"])
def test_sync(case: Case, is_full: bool, tmp_path: Path) -> None:
    copy, kind = tmp_path / "copy.sqlite", "Encounter"
    # Its first request is for the CapabilityStatement.
    faults = {number + 1: fault for number, fault in case.faults.items()}
    requests = case.requests and case.requests + 1
    tokens = case.tokens + (case.server.get("expires_in") == 0)
    served = service(replace(case, faults={}))
    with serving(served):
        whole = served.hospital
        if not is_full:
            served.hospital = replace(filled(1), now=whole.now)
            assert run(SYNC, served.environ(), str(copy), kind).returncode == COMPLETE
        served.hospital, served.faults, served.tokens = whole, faults, 0
        served.requests.clear()
        options = ["--full"] if is_full else []
        environ = served.environ(**case.environ)
        done = run(SYNC, environ, str(copy), *options, kind)
    check(replace(case, requests=requests, tokens=tokens), served, done)
    if case.code in WRITTEN:
        assert sorted(id for _, id in copied(copy)) == expected(case)


def test_the_other_host_of_a_link_gets_no_request(
    command: Sequence[str], tmp_path: Path
) -> None:
    with serving(FaultServer(filled(1))) as other:

        def lead_away(page: dict[str, object], _: FaultServer) -> None:
            link = {"relation": "next", "url": f"{other.base}/Bundle?_id=s1"}
            page["link"] = [link]

        with serving(FaultServer(filled(3), {1: Page(lead_away)})) as served:
            done = run(command, served.environ(), str(tmp_path / "out"), "Encounter")
    assert done.returncode == REFUSED, done.stderr
    assert other.requests == []


def test_parameters_are_sent_as_they_are(
    command: Sequence[str], tmp_path: Path
) -> None:
    sent = {"date": "ge2024-03-30T08:15:00+01:00", "name:exact": "Noël & fils, é=1"}
    with serving(FaultServer(filled(3))) as served:
        arguments = [f"{name}={value}" for name, value in sent.items()]
        done = run(
            command, served.environ(), str(tmp_path / "out"), "Encounter", *arguments
        )
    assert done.returncode == COMPLETE, done.stderr
    assert served.searches["s1"] == {**sent, "type": "Encounter"}


def test_a_search_without_parameters(command: Sequence[str], tmp_path: Path) -> None:
    with serving(FaultServer(filled(3))) as served:
        environ = served.environ(AUDIENCE="", SCOPE="")
        done = run(command, environ, str(tmp_path / "out"), "Encounter")
    assert done.returncode == COMPLETE, done.stderr
    assert len(ids(tmp_path / "out")) == 3


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [(("out",), ()), (("out", "Encounter"), ("BASE", "TOKEN_URL"))],
    ids=["argument", "settings"],
)
def test_usage(
    command: Sequence[str], arguments: Sequence[str], missing: Sequence[str]
) -> None:
    environ = FaultServer(filled(1)).environ(**dict.fromkeys(missing, ""))
    done = run(command, environ, *arguments)
    assert (done.returncode, done.stdout) == (USAGE, "")
    usage, *lines = done.stderr.splitlines()
    assert usage.startswith("usage: ")
    assert " ".join(lines).split()[2:] == [*missing]


def test_a_refused_token_is_shown(command: Sequence[str], tmp_path: Path) -> None:
    with serving(FaultServer(filled(1))) as served:
        environ = served.environ(TOKEN_URL=f"{served.base}/Encounter/none")
        done = run(command, environ, str(tmp_path / "out"), "Encounter")
    assert done.returncode == REFUSED
    assert "401" in done.stderr


@pytest.mark.parametrize("language", NEEDED)
def test_a_walker_is_one_short_file(language: str) -> None:
    (file,) = (CLIENTS / language).glob("walk.*")
    assert len(file.read_text("utf-8").splitlines()) <= 200


def test_each_row_of_the_table_has_a_case() -> None:
    rows = [row[0] for row in table(README, "When")]
    assert list(dict.fromkeys(rows)) == rows
    assert {case.behaviour for case in CASES} == set(rows)


def test_the_exit_codes_are_on_the_page() -> None:
    rows = {int(row[0]) for row in table(README, "Exit code")}
    assert rows == {case.code for case in CASES} | {USAGE}
