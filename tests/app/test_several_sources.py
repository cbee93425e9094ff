"""A database beside an HTTP API, served as one list."""

import json
import logging
from pathlib import Path

import pytest
import responses

from adapters.testing.stays import EDGES
from app.operations.logs import JsonFormatter
from tests.adapters.test_federated_http import group_text
from tests.hospital_http import Api, answer, serving
from tests.hospital_http_mapping import OFFSET
from tests.redis_server import RedisServer
from tests.serving import ids, issues, relations, serve


def test_a_database_and_an_api_as_one_list_and_one_of_them_away(
    redis_server: RedisServer,
    tmp_path: Path,
    keys: responses.RequestsMock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    api = Api(EDGES)
    with serving(api) as url:
        keys.add_passthru(url)
        text = group_text(EDGES, OFFSET)
        text = text.replace("env: NORTH_URL", "env: ENCOUNTERS_NORTH")
        text = text.replace("url:\n      env: SOUTH_URL", f"url: {url}")
        north = f"url: sqlite:///{tmp_path / 'pas.db'}"
        text = text.replace("url:\n      env: ENCOUNTERS_NORTH", north)
        served = serve(EDGES, tmp_path, redis_server.url, mapping=text)
        page = served.search("Encounter", {"_count": "30"})
        assert page["total"] == 2 * sum(
            row.state not in ("A", "X") for row in EDGES.stays
        )
        assert relations(page) == ["self"]
        assert {id[:2] for id in ids(page)} == {"n-", "s-"}
        assert len(ids(page)) + len(issues(page)) >= 30
        for entry in page["entry"][:-1]:
            read = served.get(f"Encounter/{entry['resource']['id']}")
            assert entry["resource"] == read.get_json(force=True)
        api.strange = lambda _: answer({"erreur": "Jeanne"}, 500)
        caplog.set_level(logging.WARNING)
        refused = served.post("Encounter/_search", {"patient": "Patient/s-1"})
        assert refused.status_code == 503
        assert "south" not in refused.text
        lines = [json.loads(JsonFormatter().format(r)) for r in caplog.records]
        assert [line["source"] for line in lines if "source" in line] == ["south"]
        assert "Jeanne" not in caplog.text
        assert ids(served.search("Encounter", {"patient": "Patient/n-1"}))
