"""json-server 0.17 from npm, a list API that nobody here wrote, without a shim."""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests
import urllib3

from adapters.contract import Limit, NotAskableError, Sort, SortKey
from adapters.http.adapter import HttpAdapter
from adapters.mapping.load import load_mapping
from adapters.testing.harness import (
    NEWEST_FIRST,
    STAY,
    ask,
    dates,
    patient,
    token,
    walk,
)
from tests.adapters.http.test_plain_api import MODEL, expected, shown
from tests.live import HOST, free_ports
from tests.npm import npm_install
from tests.plain_api import PLAIN, plain_mapping_text, plain_rows

VERSION = "json-server@0.17.4"
SEARCHES: tuple[Any, ...] = (
    token("_id", "1", "2"),
    patient("1", "3"),
    token("status", "finished"),
    token("class", "IMP", "AMB"),
    dates("2024-03-14"),
    dates("ne2024-03-14"),
    dates("lt2024-03-14T10:00:00+01:00"),
)


@pytest.fixture(scope="module")
def json_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("json-server")
    node, port = npm_install(folder, VERSION), str(free_ports())
    data = folder / "db.json"
    data.write_text(json.dumps({"stays": plain_rows(PLAIN.stays)}), encoding="utf-8")
    program = folder / "node_modules" / ".bin" / "json-server"
    command = [node, str(program), "--quiet", "--host", HOST, "--port", port, str(data)]
    process = subprocess.Popen(command)
    try:
        url = f"http://{HOST}:{port}"
        with requests.Session() as session:
            until = urllib3.Retry(connect=60, backoff_factor=0.1, backoff_max=0.5)
            session.mount(url, requests.adapters.HTTPAdapter(max_retries=until))
            assert session.get(f"{url}/stays?_limit=1", timeout=30).status_code == 200
        yield url
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture
def adapter(json_server: str, tmp_path: Path) -> Iterator[HttpAdapter]:
    file = tmp_path / "plain.yaml"
    file.write_text(plain_mapping_text(), encoding="utf-8")
    opened = HttpAdapter(load_mapping(file, {"PAS_URL": json_server}))
    yield opened
    opened.close()


@pytest.mark.parametrize("sort", [NEWEST_FIRST, Sort(SortKey.DATE)], ids=str)
def test_every_stay_and_every_search_is_equal(adapter: HttpAdapter, sort: Sort) -> None:
    pages = list(walk(adapter, ask(sort=sort, count=7)))
    assert [row for page in pages for row in shown(page)] == expected(sort=sort)
    back = replace(ask(sort=sort, count=7), before=pages[-1].first)
    before = list(walk(adapter, back, back=True))
    assert [shown(page) for page in before] == [shown(page) for page in pages[-2::-1]]
    for criterion in SEARCHES:
        rows = expected(criterion, sort=sort)
        assert shown(adapter.search(ask(criterion, sort=sort))) == rows
        assert adapter.count(ask(criterion)) == len(rows)


def test_reads_are_equal_and_what_cannot_be_compared_is_refused(
    adapter: HttpAdapter,
) -> None:
    assert adapter.read(STAY, "1").id == MODEL.read(STAY, "1").id
    with pytest.raises(NotAskableError) as caught:
        adapter.search(ask(token("class", "UNK")))
    assert caught.value.limit is Limit.CODE
