"""The whole service on an HTTP API, and on a database beside one."""

import json
from collections.abc import Callable, Iterator

import pytest
import responses
from werkzeug import Request, Response

from tests.app.answers import pages, refused
from tests.app.conftest import MakeService
from tests.hospital_http import Api, answer, serving
from tests.hospital_http_mapping import OFFSET, http_mapping_text
from tests.serving import Served, ids, issues, link, relations
from toolkit.contract.hospital import EDGES


@pytest.fixture
def api(keys: responses.RequestsMock) -> Iterator[Api]:
    made = Api(EDGES)
    with serving(made) as url:
        keys.add_passthru(url)
        made.url = url  # type: ignore[attr-defined]
        yield made


@pytest.fixture
def served_by(api: Api, make_service: MakeService) -> Callable[..., Served]:
    """Return a function that serves the hospital behind the API, by its way of paging."""

    def made(paging: str = OFFSET, profile: str = "full") -> Served:
        text = http_mapping_text(EDGES, paging=paging)
        days = text.replace(' %H:%M:%S}"}', '}", step: day}')
        days = days.replace(' %H:%M:%S}"', '}"')
        mapping = days.replace("{env: PAS_URL}", f"'{api.url}'")  # type: ignore[attr-defined]
        return make_service(mapping=mapping, profile=profile)

    return made


def test_walk_both_ways_or_forwards_only(served_by: Callable[..., Served]) -> None:
    served = served_by()
    first = served.search("Encounter", {"status": "finished", "_count": "10"})
    every = list(pages(served, first))
    found = [id for page in every for id in ids(page)]
    assert len(found) == len(set(found)) > 30
    assert first["total"] == sum(1 for s in EDGES.stays if s.state in ("S", "C"))
    back = list(pages(served, every[-1], "previous"))
    assert [ids(page) for page in back] == [ids(page) for page in every[::-1]]
    served = served_by("{next: suite.lien}")
    every = list(pages(served, served.search("Encounter", {"_count": "10"})))
    assert len(every) > 5
    assert all("previous" not in relations(page) for page in every)
    assert "exactly once" not in served.get("metadata").text


def test_a_list_that_ends_before_its_total_is_reported_on_its_last_page(
    api: Api, served_by: Callable[..., Served]
) -> None:
    served = served_by("{next: suite.lien}")

    def promise_more(request: Request) -> Response:
        body = json.loads(api.page(request).get_data())
        return answer({**body, "nombre": body["nombre"] + 1})

    api.strange = promise_more
    bundles = list(pages(served, served.search("Encounter", {"_count": "40"})))
    *others, last = [[(i["severity"], i["code"]) for i in issues(b)] for b in bundles]
    assert ("warning", "incomplete") in last
    assert not any(("warning", "incomplete") in found for found in others)
    # A list that turns in a circle is no walk at all.
    api.strange = lambda request: answer(
        {
            "resultats": json.loads(api.page(request).get_data())["resultats"][:1],
            "nombre": 9,
            "suite": {"lien": f"{request.base_url}?nb=1&again=1"},
        }
    )
    first = served.search("Encounter", {"_count": "1"})
    refused(served.get(link(first, "next")), 502, "exception")
