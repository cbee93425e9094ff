"""An adapter of an installed package, served: its stays by FHIR, its absence as 503."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import responses

from tests.own.conftest import Installed
from tests.own.kestrel.tests.filled import MAPPING, fill, holdable
from tests.redis_server import RedisServer
from tests.serving import Served, ids, publish_keys, serve
from toolkit.contract.hospital import EDGES, Hospital

FILE = "kestrel.db"


@pytest.fixture
def served(
    kestrel: Installed,
    tmp_path: Path,
    redis_server: RedisServer,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Served]:
    """Return a service whose source is the package's class."""
    fill(holdable(EDGES), tmp_path / FILE)
    # Last, as what is installed stands: the service itself is that of this tree.
    monkeypatch.setattr(sys, "path", [*sys.path, str(kestrel.site)])
    monkeypatch.setenv("KESTREL_FILE", str(tmp_path / FILE))
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        publish_keys(mock)
        yield serve(Hospital(), tmp_path, redis_server.url, mapping=MAPPING)


def test_stays_are_searched_walked_and_read(served: Served) -> None:
    asked = {"patient": "Patient/7", "_sort": "date", "_count": "1"}
    page = served.search("Encounter", asked)
    assert (page["total"], ids(page)) == (2, ["90"])
    following = served.follow(page, "next")
    assert ids(following) == ["91"]
    assert ids(served.follow(following, "previous")) == ["90"]
    stay = served.get("Encounter/90").get_json(force=True)
    assert stay["period"] == {"start": "2024-07-01T10:00:00+02:00"}
    assert stay["subject"] == {"reference": "Patient/8"}


def test_a_source_that_is_away_is_503(served: Served, tmp_path: Path) -> None:
    (tmp_path / FILE).unlink()
    answer = served.get("Encounter/90")
    assert answer.status_code == 503
    assert FILE not in answer.get_data(as_text=True)
