"""Every walker and the sync client against one fault server: one table, equal results."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
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
    assert done.returncode == case.code, (case.name, done.stderr)
    assert case.requests in (None, len(served.requests)), (case.name, served.requests)
    assert served.tokens == case.tokens, case.name
    assert "Traceback" not in done.stderr


def test_walkers(command: Sequence[str], tmp_path: Path) -> None:
    def walk(case: Case) -> None:
        out = tmp_path / case.name / "stays.ndjson"
        out.parent.mkdir()
        with serving(service(case)) as served:
            environ = served.environ(**case.environ)
            done = run(command, environ, str(out), "Encounter", "class=IMP")
        check(case, served, done)
        is_written = case.code in WRITTEN
        assert [*out.parent.iterdir()] == [out] * is_written, case.name
        if is_written:
            rows = ids(out)
            assert sorted(set(rows)) == expected(case), case.name
            numbers = f"{len(rows)} rows, {len(set(rows))} ids"
            total = "total 25" if served.counting else "total unknown"
            last = f"{numbers}, {len(case.invalid)} invalid, {total}"
            assert done.stderr.splitlines()[-1] == last, case.name

    each_case(walk)


@pytest.mark.parametrize("is_full", [True, False], ids=["full", "update"])
def test_sync(is_full: bool, tmp_path: Path) -> None:
    def synchronize(case: Case) -> None:
        copy, kind = tmp_path / f"{case.name}.sqlite", "Encounter"
        # Its first request is for the CapabilityStatement.
        faults = {number + 1: fault for number, fault in case.faults.items()}
        requests = case.requests and case.requests + 1
        tokens = case.tokens + (case.server.get("expires_in") == 0)
        served = service(replace(case, faults={}))
        with serving(served):
            whole = served.hospital
            if not is_full:
                served.hospital = replace(filled(1), now=whole.now)
                done = run(SYNC, served.environ(), str(copy), kind)
                assert done.returncode == COMPLETE
            served.hospital, served.faults, served.tokens = whole, faults, 0
            served.requests.clear()
            options = ["--full"] if is_full else []
            environ = served.environ(**case.environ)
            done = run(SYNC, environ, str(copy), *options, kind)
        check(replace(case, requests=requests, tokens=tokens), served, done)
        if case.code in WRITTEN:
            assert sorted(id for _, id in copied(copy)) == expected(case), case.name

    each_case(synchronize)


def each_case(run_case: Callable[[Case], None]) -> None:
    """Run all cases, a few at a time; fail with the first that fails."""
    with ThreadPoolExecutor(4) as threads:
        for _ in threads.map(run_case, CASES):
            pass


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
    for sent in (
        {"date": "ge2024-03-30T08:15:00+01:00", "name:exact": "Noël & fils, é=1"},
        {},
    ):
        arguments = [f"{name}={value}" for name, value in sent.items()]
        with serving(FaultServer(filled(3))) as served:
            environ = served.environ(AUDIENCE="", SCOPE="")
            done = run(command, environ, str(tmp_path / "out"), "Encounter", *arguments)
        assert done.returncode == COMPLETE, done.stderr
        assert served.searches["s1"] == {**sent, "type": "Encounter"}


def test_usage(command: Sequence[str]) -> None:
    for arguments, missing in (
        (("out",), []),
        (("out", "Encounter"), ["BASE", "TOKEN_URL"]),
    ):
        environ = FaultServer(filled(1)).environ(**dict.fromkeys(missing, ""))
        done = run(command, environ, *arguments)
        assert (done.returncode, done.stdout) == (USAGE, "")
        usage, *lines = done.stderr.splitlines()
        assert usage.startswith("usage: ")
        assert " ".join(lines).split()[2:] == missing


def test_a_refused_token_is_shown(command: Sequence[str], tmp_path: Path) -> None:
    with serving(FaultServer(filled(1))) as served:
        environ = served.environ(TOKEN_URL=f"{served.base}/Encounter/none")
        done = run(command, environ, str(tmp_path / "out"), "Encounter")
    assert done.returncode == REFUSED
    assert "401" in done.stderr


def test_a_walker_is_one_short_file() -> None:
    for language in NEEDED:
        (file,) = (CLIENTS / language).glob("walk.*")
        assert len(file.read_text("utf-8").splitlines()) <= 200


def test_the_tables_of_the_page_are_those_of_the_cases() -> None:
    rows = [row[0] for row in table(README, "When")]
    assert list(dict.fromkeys(rows)) == rows
    assert {case.behaviour for case in CASES} == set(rows)
    codes = {int(row[0]) for row in table(README, "Exit code")}
    assert codes == {case.code for case in CASES} | {USAGE}
