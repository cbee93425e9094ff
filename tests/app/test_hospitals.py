"""The whole service on an HTTP API, and on a database beside one."""

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import responses
from werkzeug import Request, Response

from app.logging import RedactingFormatter
from tests.adapters.test_federated_http import HOSPITAL, both_text
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


def test_a_source_of_days_is_asked_for_days(
    api: Api, served_by: Callable[..., Served]
) -> None:
    served = served_by()
    for value, says in (
        ("ge2024-03-14T10:00:00Z", "whole days"),
        ("2024-03-14T10", "le and YYYY, YYYY-MM, YYYY-MM-DD."),
    ):
        answer = served.post("Encounter/_search", {"date": value})
        assert says in refused(answer, 412, "value", "date")
    assert api.requests == []
    assert served.search("Encounter", {"date": "2024-03-14"})["total"] > 10
    # At the ends of the calendar too. One stay begins in 9999.
    every = served.search("Encounter", {"date": "ge1001"})["total"]
    for value, total in (("ge0001-01-01", every), ("lt9999-12-31", every - 1)):
        assert served.search("Encounter", {"date": value})["total"] == total > 30


def test_what_may_be_given_once_may_have_several_values(
    served_by: Callable[..., Served],
) -> None:
    served = served_by()
    for kind, name in (("Patient", "family"), ("Encounter", "identifier")):
        assert served.search(kind, {name: "Martin,V1"})["total"]
        twice = served.post(f"{kind}/_search", [(name, "Martin"), (name, "V1")])
        assert "once" in refused(twice, 412, "value", name)


def test_source_in_trouble(api: Api, served_by: Callable[..., Served]) -> None:
    for status, expected in ((500, 503), (429, 503), (403, 502)):
        served = served_by()
        api.strange = lambda _, status=status: answer({"erreur": "Canari"}, status)
        search = served.post("Encounter/_search", {})
        for response in (served.get("Encounter/1"), search):
            assert response.status_code == expected
            assert b"Canari" not in response.data


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


def test_group_a_does_not_page(served_by: Callable[..., Served]) -> None:
    served = served_by("", "group-a")
    bundle = served.search("Encounter", {"_count": "5"})
    assert (len(ids(bundle)), relations(bundle)) == (5, ["self"])
    assert bundle["total"] > 50
    assert [issue["severity"] for issue in issues(bundle)][:1] == ["information"]
    assert ids(served.follow(bundle, "self")) == ids(bundle)


def test_a_database_beside_an_api_that_is_away(
    make_service: MakeService,
    tmp_path: Path,
    keys: responses.RequestsMock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    api = Api(HOSPITAL)
    with serving(api) as url:
        keys.add_passthru(url)
        text = both_text().replace("url:\n      env: API_URL", f"url: {url}")
        database = f"url: sqlite:///{tmp_path / 'pas.db'}"
        text = text.replace("url:\n      env: PAS_URL", database)
        served = make_service(hospital=HOSPITAL, mapping=text)
        assert ids(served.search("Organization", {}))
        api.strange = lambda _: answer({"erreur": "Jeanne"}, 500)
        caplog.set_level(logging.WARNING)
        refused = served.post("Organization/_search", {})
        assert refused.status_code == 503
        assert "api" not in refused.text
        lines = [json.loads(RedactingFormatter().format(r)) for r in caplog.records]
        assert [line["source"] for line in lines if "source" in line] == ["api"]
        assert "Jeanne" not in caplog.text
        page = served.search("Encounter", {"_count": "5"})
        assert (len(page["entry"]), relations(page)) == (5, ["self", "next"])
