"""What the explorer reads in the CapabilityStatement is what the service offers."""

from pathlib import Path
from typing import Any

import pytest

from adapters.contract import Limit, ResourceType
from adapters.mapping.profile import MAX_VALUES
from adapters.parameters import ParameterType
from app.offer import OfferedParameter
from explorer.offer import Offer, Parameter
from tests.redis_server import RedisServer
from tests.serving import serve
from toolkit.contract.hospital import EDGES, UNIT_URL


@pytest.mark.parametrize("profile", ["full", "group-a", "group-b"])
def test_the_statement_says_what_forms_need(
    tmp_path: Path, redis_server: RedisServer, profile: str
) -> None:
    served = serve(EDGES, tmp_path, redis_server.url, profile=profile)
    statement = served.get("metadata").get_json(force=True)
    offer, service = Offer.of(statement), served.app.extensions["encounters"]
    assert offer.title == service.title
    offered = {k: o for k, o in service.offer.resources.items() if o.searchable}
    assert list(offer.searches) == list(offered)
    for kind, search in offer.searches.items():
        meant = offered[ResourceType(kind)]
        assert search.usual_count == str(meant.count_default)
        assert search.most_count == str(meant.count_max)
        assert search.can_skip_total is meant.uncounted
        if meant.sortable:
            down = "-" if meant.default_sort.descending else ""
            assert search.usual_sort == f"{down}{meant.default_sort.key}"
            assert search.sorts == [*meant.sorts]
        else:
            assert search.sorts == []
        assert list(search.parameters) == list(meant.parameters)
        for name, parameter in search.parameters.items():
            check_parameter(kind, parameter, meant.parameters[name])


def check_parameter(kind: str, read: Parameter, meant: OfferedParameter) -> None:
    """Check what was read of a parameter against what the service takes."""
    row = meant.row
    assert read.type == row.type
    assert read.most == (meant.values if meant.values < MAX_VALUES else None)
    assert read.extension == (UNIT_URL if row.extension else "")
    if row.type is ParameterType.DATE:
        assert set(read.prefixes) == set(meant.capability.prefixes)
        assert read.has_days is (meant.capability.finest is Limit.DAY)
    if row.type is ParameterType.STRING:
        assert len(read.modifiers) == len(meant.capability.matches) - 1
    assert read.text.startswith(row.documentation)
    for limit in ("Prefixes", "Modifiers", "values", "extension url is", "whole days"):
        assert limit not in read.text, meant.name


def test_a_statement_without_limits_has_forms_all_the_same() -> None:
    search: Any = {"code": "search-type"}
    listed = [{"name": "date", "type": "date"}, {"name": "colour", "type": "token"}]
    encounter = {"type": "Encounter", "interaction": [search], "searchParam": listed}
    other = {"type": "Observation", "interaction": [search]}
    offer = Offer.of(
        {
            "implementation": {"description": "A hospital"},
            "rest": [{"resource": [encounter, other]}],
        }
    )
    (read,) = offer.searches.values()
    assert list(read.parameters) == ["date", "colour"]
    assert (read.parameters["date"].prefixes, read.parameters["date"].most) == (
        [],
        None,
    )
    assert (read.sorts, read.usual_count) == ([], "")
