"""docs/clients.md says what the service does."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import responses

from adapters.mapping.profile import MAX_VALUES, PROFILES, load_profile
from adapters.parameters import RESULT_PARAMETERS
from app.config import DEFAULT_SCOPES
from app.errors import FAULTY_ROW, OUTCOMES, STATUSES, UNEXPECTED, IssueCode
from tests.app import provider
from tests.docs.commands import Answered, run_page
from tests.docs.pages import CLIENTS, DECISIONS, blocks, section, table, words
from tests.docs.running import OUTPUTS, Demo
from tests.live import ROOT
from tests.redis_server import RedisServer
from tests.serving import publish_keys, serve
from toolkit.contract.hospital import EDGES

PAGE = CLIENTS.read_text("utf-8")
ERRORS = section(PAGE, "Handle errors")
IN_THE_TABLES = {
    *OUTCOMES.values(),
    *STATUSES.values(),
    FAULTY_ROW,
    UNEXPECTED,
}
PROXY = re.findall(
    r"/errors/(\d+)[a-z-]* +'\"code\":\"([a-z-]+)\",\"diagnostics\":\"([^\"]+)\"'",
    (ROOT / "deploy" / "compose" / "nginx.conf").read_text("utf-8"),
)
"""What the proxy says by itself: status, issue code and text."""
DOCUMENTED = {(int(row[0]), row[1]) for row in table(ERRORS, "Status")}


@pytest.fixture(scope="module")
def answered(demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> list[Answered]:
    """Return what the commands of the page are answered."""
    return run_page(CLIENTS, demo, tmp_path_factory.mktemp("answers"))


def test_each_command_is_answered_as_the_page_says(answered: list[Answered]) -> None:
    wrong = [
        f"{CLIENTS.name}:{each.line} was {each.was}: {each.command}"
        for each in answered
        if each.says != each.was
    ]
    assert not wrong, "\n".join(wrong)
    assert len(answered) > 60
    # The whole body that is shown is a real one.
    (shown,) = blocks(ERRORS, "json")
    bodies = [json.loads(each.body) for each in answered if each.body]
    assert json.loads(shown.text) in bodies


def test_each_copy_of_the_page_is_written(answered: list[Answered], demo: Demo) -> None:
    assert answered
    written = {file.name for file in demo.directory.iterdir() if file.stat().st_size}
    assert set(OUTPUTS) <= written
    stays = (demo.directory / "stays.ndjson").read_text("utf-8").splitlines()
    assert len({json.loads(line)["id"] for line in stays}) == len(stays) > 100


def test_each_parameter_of_the_page_has_an_example() -> None:
    shown = "".join(block.text for block in blocks(PAGE, "sh"))
    for name, *_ in table(section(PAGE, "Encounter"), "Parameter"):
        assert f"{name}=" in shown, name


def test_the_error_table_has_every_error_of_the_service() -> None:
    assert {(row.status, row.code.value) for row in IN_THE_TABLES} <= DOCUMENTED
    assert {(int(status), code) for status, code, _ in PROXY} <= DOCUMENTED


def test_each_issue_code_of_the_service_is_on_the_page() -> None:
    told = {
        row[1] for row in table(section(PAGE, "The answer to a search"), "Severity")
    }
    assert told == {"not-supported", "value", "exception", "incomplete"}
    assert set(_codes_of_the_service()) <= {code for _, code in DOCUMENTED} | told


def _codes_of_the_service() -> Iterator[str]:
    for file in (ROOT / "app").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in IssueCode.__members__:
                yield IssueCode[node.attr].value


def test_each_error_has_an_example(answered: list[Answered]) -> None:
    shown = {each.was for each in answered}
    texts = {f"{status} {code}" for status, code, _ in _texts()}
    wanted = {f"{status} {code}" for status, code in DOCUMENTED}
    assert wanted == {each for each in shown | texts if each >= "4" and "," not in each}


def _texts() -> Iterator[tuple[int, str, str]]:
    (listed,) = blocks(ERRORS, "text")
    for line in listed.text.splitlines():
        status, code, text = line.split(maxsplit=2)
        yield int(status), code, text


def test_texts_of_errors_are_those_of_the_service(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    known = {(row.status, row.code.value, row.text) for row in IN_THE_TABLES}
    known |= {(int(status), code, text) for status, code, text in PROXY}
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        publish_keys(mock)
        served = serve(EDGES, tmp_path, redis_server.url)
        old = provider.bearer(provider.sign(exp=1))
        expired = served.get("Encounter/1", Authorization=old)
        plain = served.http.get("/fhir/v3/Encounter/1", base_url="http://localhost")
    for response in (expired, plain):
        (issue,) = response.get_json(force=True)["issue"]
        known.add((response.status_code, issue["code"], issue["diagnostics"]))
    assert set(_texts()) <= known


def test_the_promise_is_the_one_of_decision_12() -> None:
    decided = DECISIONS.read_text("utf-8")
    found = re.search(r"\*a\s+(stay that exists.*?)\.\*", decided, re.DOTALL)
    assert found is not None
    assert f"A {words(found.group(1))}." in words(section(PAGE, "Paging"))


def test_scopes_are_those_of_the_service() -> None:
    scopes = {row[0] for row in table(section(PAGE, "Get a token"), "Scope")}
    assert scopes == set(re.findall(r"[A-Z_]+", DEFAULT_SCOPES))


def test_groups_offer_what_their_profiles_say() -> None:
    rows = table(section(PAGE, "Groups A and B"), "Parameter")
    profiles = [load_profile(name, ROOT) for name in PROFILES]
    for name, *cells in rows:
        kind, parameter = name.split()
        for profile, cell in zip(profiles, cells, strict=True):
            offered = {str(k): v for k, v in profile.resources.items()}[kind]
            number = offered.parameters.get(parameter)
            shown = {None: "no", 1: "1 value", 10: "10 values", MAX_VALUES: "yes"}
            single = parameter in RESULT_PARAMETERS and number == 1
            assert cell == ("yes" if single else shown[number]), (name, profile.name)
    full = {
        f"{kind} {parameter}"
        for kind, resource in profiles[0].resources.items()
        for parameter in resource.parameters
    }
    assert {row[0] for row in rows} == full
