"""GNU Health served over HTTP: three tables as one list, walked both ways by its links."""

import lzma
from pathlib import Path

import pytest
import responses

from adapters.testing.hospital import Hospital
from tests.redis_server import RedisServer
from tests.serving import Served, ids, relations, serve

ROOT = Path(__file__).parents[2]


@pytest.fixture
def health(
    redis_server: RedisServer, tmp_path: Path, keys: responses.RequestsMock
) -> Served:
    """Return a service on the sample of GNU Health."""
    sample = ROOT / "tests" / "gnuhealth" / "sample.sqlite.xz"
    file = tmp_path / "gh.sqlite"
    file.write_bytes(lzma.decompress(sample.read_bytes()))
    mapping = ROOT / "mappings" / "gnuhealth" / "gnuhealth-5.0.yaml"
    text = mapping.read_text("utf-8").replace("{env: PAS_URL}", f"sqlite:///{file}")
    return serve(Hospital(), tmp_path, redis_server.url, mapping=text)


def test_pages_of_three_tables_lead_on_and_back(health: Served) -> None:
    page = health.search("Encounter", {"_count": "100", "_sort": "date"})
    assert page["total"] == 885
    pages = [page]
    while "next" in relations(pages[-1]):
        pages.append(health.follow(pages[-1], "next"))
    found = [id for each in pages for id in ids(each)]
    assert len(found) == len(set(found)) == 885
    assert {id[:4] for id in found} == {"inp-", "app-", "eva-"}
    for earlier in pages[-2::-1]:
        page = health.follow(pages[-1] if earlier is pages[-2] else page, "previous")
        assert ids(page) == ids(earlier)
    stay = page["entry"][0]["resource"]
    answer = health.get(f"Encounter/{stay['id']}")
    assert answer.get_json(force=True)["id"] == stay["id"]
