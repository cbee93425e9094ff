"""GNU Health served over HTTP: three tables as one list, walked whole by its links.

Every answer is held to the STU3 schema and to the spec by the client (`Served`).
"""

from collections.abc import Iterator
from typing import Any

import pytest
import responses

from adapters.contract import Adapter
from app import create_app
from tests.app import provider
from tests.gnuhealth.odd import FAULTS, SERVED
from tests.gnuhealth.samples import MAPPING, Sample
from tests.redis_server import RedisServer
from tests.serving import BASE_URL, Served, ids, issues, relations
from tests.validity import validate

ALL = 885


@pytest.fixture(autouse=True)
def provider_at_hand(keys: responses.RequestsMock) -> None:
    """Let the identity provider publish its keys."""


def _served(sample: Sample, adapter: Adapter, redis: RedisServer) -> Served:
    """Return a service by the mapping file as it is, on one database."""
    settings = provider.settings(MAPPING, REDIS_URL=redis.url, BASE_URL=BASE_URL)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PAS_URL", sample.url)
        app = create_app(settings, adapter)
    app.testing = False
    return Served(app).as_client("client-1")


@pytest.fixture
def service(sample: Sample, health: Adapter, redis_server: RedisServer) -> Served:
    """Return the service on the sample."""
    return _served(sample, health, redis_server)


def _pages(service: Served, first: Any, relation: str) -> Iterator[Any]:
    yield first
    page = first
    while relation in relations(page):
        page = service.follow(page, relation)
        yield page


def _resources(pages: list[Any]) -> list[Any]:
    return [entry["resource"] for page in pages for entry in page.get("entry", ())]


def test_all_stays_are_walked_forwards_and_back(service: Served) -> None:
    first = service.search("Encounter", {"_count": "60", "_sort": "date"})
    pages = list(_pages(service, first, "next"))
    assert [page["total"] for page in pages] == [ALL] * 15
    found = [id for page in pages for id in ids(page)]
    assert len(found) == len(set(found)) == ALL
    assert {id[:4] for id in found} == {"inp-", "app-", "eva-"}
    back = list(_pages(service, pages[-1], "previous"))
    assert [ids(page) for page in back] == [ids(page) for page in pages[::-1]]


def test_every_resource_is_valid_and_leads_somewhere(service: Served) -> None:
    first = service.search("Encounter", {"_count": "100"})
    stays = _resources(list(_pages(service, first, "next")))
    assert {stay["resourceType"] for stay in stays} == {"Encounter"}
    for stay in stays:
        validate(stay)
    subjects = {stay["subject"]["reference"] for stay in stays}
    providers = {stay["serviceProvider"]["reference"] for stay in stays}
    for reference in sorted(subjects | providers):
        answer = service.get(reference)
        assert answer.status_code == 200
        validate(answer.get_json(force=True))
    assert len(subjects) > 150
    assert providers == {"Organization/1", "Organization/2"}


def test_each_table_is_read_by_id(service: Served) -> None:
    for id in ("inp-1", "eva-2", "app-3"):
        page = service.search("Encounter", {"_id": id})
        (entry,) = page["entry"]
        answer = service.get(f"Encounter/{id}")
        assert answer.get_json(force=True) == entry["resource"]
    for id in ("1", "inp-0", "app-501", "unit-1"):
        assert service.get(f"Encounter/{id}").status_code == 404


def test_number_with_blank_and_slash_is_searched(service: Served) -> None:
    page = service.search("Encounter", {"identifier": "EVAL 2026/000002"})
    assert ids(page) == ["eva-2"]
    (stay,) = _resources([page])
    assert stay["identifier"][0]["value"] == "EVAL 2026/000002"


def test_a_row_that_cannot_be_mapped_is_told(
    odd_sample: Sample, odd: Adapter, redis_server: RedisServer
) -> None:
    service = _served(odd_sample, odd, redis_server)
    first = service.search("Encounter", {"_count": "100"})
    pages = list(_pages(service, first, "next"))
    found = [id for page in pages for id in ids(page)]
    assert first["total"] == ALL + len(SERVED) + len(FAULTS)
    assert len(set(found)) == len(found) == ALL + len(SERVED)
    assert len([issue for page in pages for issue in issues(page)]) == len(FAULTS)
    assert service.get("Encounter/inp-9002").status_code == 500
