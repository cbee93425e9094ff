"""What the explorer reads in the CapabilityStatement is what the service offers."""

from pathlib import Path

import pytest

from adapters.contract import ResourceType
from adapters.mapping.profile import MAX_VALUES
from adapters.parameters import SEARCH_PARAMETERS
from explorer.offer import PublishedOffer
from explorer.words import RESOURCES
from tests.redis_server import RedisServer
from tests.serving import serve
from toolkit.contract.hospital import EDGES, UNIT_URL


@pytest.mark.parametrize("profile", ["full", "group-a", "group-b"])
def test_the_statement_says_what_forms_need(
    tmp_path: Path, redis_server: RedisServer, profile: str
) -> None:
    served = serve(EDGES, tmp_path, redis_server.url, profile=profile)
    statement = served.get("metadata").get_json(force=True)
    offer, service = PublishedOffer(statement), served.app.extensions["encounters"]
    assert offer.title == service.title
    assert str(offer.zone) == "Europe/Paris"
    offered = {k: o for k, o in service.offer.resources.items() if o.searchable}
    assert list(offer.searches) == [kind for kind in offered if kind in RESOURCES]
    for kind, search in offer.searches.items():
        meant = offered[ResourceType(kind)]
        assert search.most_count == meant.count_max
        assert list(search.includes) == list(meant.includes)
        sorts = [f"{way}{key}" for key in meant.sorts for way in ("", "-")]
        assert sorted(search.sorts) == (sorted(sorts) if meant.sortable else [])
        if meant.sortable:
            down = "-" if meant.default_sort.descending else ""
            assert search.usual_sort == f"{down}{meant.default_sort.key}"
        assert list(search.parameters) == list(meant.parameters)
        for name, parameter in search.parameters.items():
            row = SEARCH_PARAMETERS[ResourceType(kind)].get(name)
            values = meant.parameters[name].values
            assert parameter.most == (values if values < MAX_VALUES else None)
            assert parameter.extension == (UNIT_URL if row and row.extension else "")
