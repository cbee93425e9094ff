"""The mapping of a plain list API on json-server itself, from npm."""

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from adapters.contract import NotFoundError
from adapters.http.adapter import HttpAdapter
from adapters.mapping.load import load_mapping
from tests.adapters.http.test_plain_api import MODEL, OLDEST_FIRST, SEARCHES, shown
from tests.live import HOST, free_ports
from tests.npm import npm_install
from tests.plain_api import LINKED, OFFSET, PLAIN, plain_mapping_text, plain_rows
from toolkit.contract.harness import NEWEST_FIRST, STAY, ask, rows_of, token, walk

pytestmark = pytest.mark.extended

PACKAGE = "json-server@0.17.4"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("json-server")
    node, port = npm_install(folder, PACKAGE), free_ports()
    file = folder / "db.json"
    file.write_text(json.dumps({"stays": plain_rows(PLAIN.stays)}), encoding="utf-8")
    program = folder / "node_modules" / "json-server" / "lib" / "cli" / "bin.js"
    options = ["--host", HOST, "--port", str(port), "--read-only", str(file)]
    url = f"http://{HOST}:{port}"
    with subprocess.Popen(
        [node, str(program), *options], stdout=subprocess.DEVNULL, cwd=folder
    ) as process:
        try:
            ends = time.monotonic() + 60
            while not _answers(url):
                assert process.poll() is None
                assert time.monotonic() < ends
                time.sleep(0.1)
            yield url
        finally:
            process.terminate()


def _answers(url: str) -> bool:
    try:
        return requests.get(f"{url}/stays?_limit=1", timeout=5).ok
    except requests.ConnectionError:
        return False


@pytest.mark.parametrize("paging", [OFFSET, LINKED])
def test_every_search_page_and_total_is_equal(
    tmp_path: Path, address: str, paging: str
) -> None:
    file = tmp_path / "hospital.yaml"
    nulls = "high" if paging == OFFSET else "last"
    text = plain_mapping_text(paging=paging, nulls=nulls)
    if paging == LINKED:
        # It links pages that are requested by number.
        text = text.replace("status_ne=X", "status_ne=X&_page=1")
    file.write_text(text, encoding="utf-8")
    adapter = HttpAdapter(load_mapping(file, {"PAS_URL": address}))
    sorts = (NEWEST_FIRST, OLDEST_FIRST) if paging == OFFSET else (OLDEST_FIRST,)
    for sort in sorts:
        expected = rows_of(MODEL.search(ask(sort=sort)))
        pages = list(walk(adapter, ask(sort=sort, count=7)))
        assert [row for page in pages for row in shown(page)] == expected
        assert pages[0].total in (None, len(expected))
        for criterion in SEARCHES if paging == OFFSET else ():
            query = ask(criterion, sort=sort)
            assert shown(adapter.search(query)) == rows_of(MODEL.search(query))
    for attack in ("1&id=2", "1#", "id", "_start=0", "%31", "01"):
        assert adapter.search(ask(token("_id", attack))).rows == ()
        with pytest.raises(NotFoundError):
            adapter.read(STAY, attack)
    adapter.close()
