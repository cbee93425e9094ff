"""GNU Health served over HTTP: three tables as one list, walked whole by its links.

Every answer is held to the STU3 schema and to the spec by the client (`Served`).
"""

import pytest
import responses

from adapters.contract import Adapter
from app import create_app
from tests.app import provider
from tests.app.answers import pages
from tests.gnuhealth.odd import FAULTS, SERVED
from tests.gnuhealth.samples import MAPPING, Sample
from tests.redis_server import RedisServer
from tests.serving import BASE_URL, Served, ids, issues
from tests.validity import validate

pytestmark = pytest.mark.extended

ALL = 885


def _served(sample: Sample, adapter: Adapter, redis: RedisServer) -> Served:
    """Return a service by the mapping file as it is, on one database."""
    settings = provider.settings(MAPPING, REDIS_URL=redis.url, BASE_URL=BASE_URL)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PAS_URL", sample.url)
        app = create_app(settings, adapter)
    app.testing = False
    return Served(app).as_client("client-1")


@pytest.fixture
def service(
    sample: Sample,
    health: Adapter,
    redis_server: RedisServer,
    keys: responses.RequestsMock,
) -> Served:
    """Return the service on the sample."""
    return _served(sample, health, redis_server)


def test_every_stay_is_walked_valid_and_leads_somewhere(service: Served) -> None:
    first = service.search("Encounter", {"_count": "60", "_sort": "date"})
    forwards = list(pages(service, first))
    assert [page["total"] for page in forwards] == [ALL] * 15
    found = [id for page in forwards for id in ids(page)]
    assert len(found) == len(set(found)) == ALL
    assert {id[:4] for id in found} == {"inp-", "app-", "eva-"}
    back = list(pages(service, forwards[-1], "previous"))
    assert [ids(page) for page in back] == [ids(page) for page in forwards[::-1]]
    stays = [entry["resource"] for page in forwards for entry in page["entry"]]
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


def test_each_table_is_read_by_id_and_numbers_are_searched(service: Served) -> None:
    for id in ("inp-1", "eva-2", "app-3"):
        (entry,) = service.search("Encounter", {"_id": id})["entry"]
        answer = service.get(f"Encounter/{id}")
        assert answer.get_json(force=True) == entry["resource"]
    for id in ("1", "inp-0", "app-501", "unit-1"):
        assert service.get(f"Encounter/{id}").status_code == 404
    # A number with a blank and a slash.
    number = "EVAL 2026/000002"
    (entry,) = service.search("Encounter", {"identifier": number})["entry"]
    assert entry["resource"]["id"] == "eva-2"
    assert entry["resource"]["identifier"][0]["value"] == number


def test_a_row_that_cannot_be_mapped_is_told(
    odd_sample: Sample,
    odd: Adapter,
    redis_server: RedisServer,
    keys: responses.RequestsMock,
) -> None:
    service = _served(odd_sample, odd, redis_server)
    first = service.search("Encounter", {"_count": "100"})
    walked = list(pages(service, first))
    found = [id for page in walked for id in ids(page)]
    assert first["total"] == ALL + len(SERVED) + len(FAULTS)
    assert len(set(found)) == len(found) == ALL + len(SERVED)
    assert len([issue for page in walked for issue in issues(page)]) == len(FAULTS)
    assert service.get("Encounter/inp-9002").status_code == 500
