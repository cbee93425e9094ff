"""The pages of docs/call say what the service does."""

import json
import re
from pathlib import Path

import pytest
import responses

from app.config import DEFAULT_SCOPES
from app.errors import FAULTY_ROW, OUTCOMES, STATUSES, UNEXPECTED
from tests.app import provider
from tests.demo.running import Demo
from tests.docs.commands import OUTPUTS, Answered, run_pages
from tests.docs.pages import CALL, blocks, door, section, table
from tests.live import ROOT
from tests.redis_server import RedisServer
from tests.serving import publish_keys, serve
from toolkit.contract.hospital import EDGES

PAGES = {page.stem: page.read_text("utf-8") for page in door(CALL)}
IN_THE_TABLES = {
    *OUTCOMES.values(),
    *STATUSES.values(),
    FAULTY_ROW,
    UNEXPECTED,
}
PROXY = re.findall(
    r"/errors/(\d+)[a-z-]* +'\"code\":\"([a-z-]+)\"",
    (ROOT / "deploy" / "compose" / "nginx.conf").read_text("utf-8"),
)
"""What the proxy returns by itself: status and issue code."""
DOCUMENTED = {
    (int(row[0]), row[1])
    for row in table(section(PAGES["errors"], "All errors"), "Status")
}


@pytest.fixture(scope="module")
def answered(demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> list[Answered]:
    """Return what the commands of the pages are answered."""
    return run_pages(door(CALL), demo, tmp_path_factory.mktemp("answers"))


def test_each_command_is_answered_as_the_page_says(answered: list[Answered]) -> None:
    wrong = [
        f"{each.page}:{each.line} was {each.was}: {each.command}"
        for each in answered
        if each.says != each.was
    ]
    assert not wrong, "\n".join(wrong)
    assert len(answered) > 50
    # The whole body that is shown is a real one.
    (shown,) = blocks(PAGES["errors"], "json")
    bodies = [json.loads(each.body) for each in answered if each.body]
    assert json.loads(shown.text) in bodies


def test_each_copy_of_the_page_is_written(answered: list[Answered], demo: Demo) -> None:
    assert answered
    written = {file.name for file in demo.directory.iterdir() if file.stat().st_size}
    assert set(OUTPUTS) <= written
    stays = (demo.directory / "stays.ndjson").read_text("utf-8").splitlines()
    assert len({json.loads(line)["id"] for line in stays}) == len(stays) > 100


def test_each_parameter_of_the_page_has_an_example() -> None:
    shown = "".join(block.text for block in blocks("".join(PAGES.values()), "sh"))
    for name, *_ in table(section(PAGES["search"], "Encounter"), "Parameter"):
        assert f"{name}=" in shown, name


def test_the_error_table_has_every_error_of_the_service() -> None:
    assert {(row.status, row.code.value) for row in IN_THE_TABLES} <= DOCUMENTED
    assert {(int(status), code) for status, code in PROXY} <= DOCUMENTED


def test_the_error_table_has_only_errors_that_occur(
    answered: list[Answered], redis_server: RedisServer, tmp_path: Path
) -> None:
    occurring = {(row.status, row.code.value) for row in IN_THE_TABLES}
    occurring |= {(int(status), code) for status, code in PROXY}
    for answer in answered:
        if found := re.fullmatch(r"([45]\d\d) ([a-z-]+)", answer.was):
            occurring.add((int(found.group(1)), found.group(2)))
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        publish_keys(mock)
        served = serve(EDGES, tmp_path, redis_server.url)
        expired = provider.bearer(provider.sign(exp=1))
        response = served.get("Encounter/1", Authorization=expired)
    (issue,) = response.get_json(force=True)["issue"]
    occurring.add((response.status_code, issue["code"]))
    assert occurring == DOCUMENTED


def test_scopes_are_those_of_the_service() -> None:
    scopes = {row[0] for row in table(PAGES["token"], "Scope")}
    assert scopes == set(re.findall(r"[A-Z_]+", DEFAULT_SCOPES))
