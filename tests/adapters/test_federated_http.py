"""Stays and patients from a database, organizations from an HTTP API, in one file."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import NamedTuple

import pytest
import yaml

from adapters import open_adapter
from adapters.contract import Adapter, Sort, SortKey, SourceUnavailableError
from adapters.mapping.load import load_mapping
from tests.adapters.group import SHARED
from tests.adapters.http_cases import rows_of
from tests.hospital_http import Api, answer, serving
from tests.hospital_http_mapping import http_mapping_text
from tests.hospital_sql import Tables, mapping_text
from toolkit.contract.harness import NEWEST_FIRST, ORGANIZATION, STAY, ask, walk
from toolkit.contract.hospital import EDGES, Ids

HOSPITAL = EDGES.with_ids(Ids.TEXTS)
BY_ID = Sort(SortKey.ID)


def both_text() -> str:
    """Return a mapping file whose sections come from two sources."""
    database, api = (
        yaml.load(text, yaml.BaseLoader)
        for text in (mapping_text(HOSPITAL), http_mapping_text(HOSPITAL))
    )
    whole = {key: database[key] for key in SHARED if key in database}
    whole |= {key: {**api[key], **database[key]} for key in ("constants", "codes")}
    whole["sources"] = {
        "pas": {"kind": "sql", "url": {"env": "PAS_URL"}, "may_write": "true"},
        "api": {"kind": "http", "url": {"env": "API_URL"}, "timeout_seconds": "30"},
    }
    for kind in ("encounter", "patient"):
        whole[kind] = {"source": "pas", **database[kind]}
    whole["organization"] = {"source": "api", **api["organization"]}
    return yaml.safe_dump(whole, sort_keys=False, allow_unicode=True)


class Both(NamedTuple):
    """The API, and the adapter of both."""

    api: Api
    adapter: Adapter


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    directory = tmp_path_factory.mktemp("both")
    url, api = f"sqlite:///{directory / 'pas.db'}", Api(HOSPITAL)
    file = directory / "both.yaml"
    file.write_text(both_text(), encoding="utf-8")
    with closing(Tables(url, HOSPITAL)), serving(api) as api_url:
        mapping = load_mapping(file, {"PAS_URL": url, "API_URL": api_url})
        with closing(open_adapter(mapping)) as adapter:
            yield Both(api, adapter)


def test_every_type_pages_as_its_source_does(both: Both) -> None:
    model = HOSPITAL.model()
    for kind, sort in ((STAY, NEWEST_FIRST), (ORGANIZATION, BY_ID)):
        query = ask(of=kind, sort=sort)
        expected = rows_of(model.search(query))
        assert both.adapter.count(query) == len(expected) > 1
        pages = list(walk(both.adapter, replace(query, count=2)))
        assert [row for page in pages for row in rows_of(page)] == expected
        ahead = replace(query, count=2, before=pages[-1].first)
        backwards = list(walk(both.adapter, ahead, back=True))
        assert [rows_of(page) for page in backwards] == [
            rows_of(page) for page in pages[-2::-1]
        ]
    able = both.adapter.capabilities
    assert [able[kind].keyset for kind in (STAY, ORGANIZATION)] == [True, False]


def test_an_api_that_is_away_is_needed_for_its_own_type_only(both: Both) -> None:
    both.api.requests.clear()
    both.api.strange = lambda _: answer({}, 500)
    try:
        assert both.adapter.search(ask()).rows
        assert both.api.requests == []
        with pytest.raises(SourceUnavailableError, match="source api: ") as caught:
            both.adapter.search(ask(of=ORGANIZATION, sort=BY_ID))
        assert caught.value.source == "api"
        problems = {
            (problem.source, problem.outage) for problem in both.adapter.check()
        }
        assert problems == {("api", True)}
    finally:
        both.api.strange = lambda _: None
