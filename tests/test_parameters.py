"""Every search parameter is known in each place that has to know it."""

import pytest

from adapters.contract import ResourceType
from adapters.matching import criterion_of
from adapters.memory import CAPABILITIES, FaultyRow, resource_type_of
from adapters.parameters import SEARCH_PARAMETERS
from tests.docs.pages import rewritten
from tests.docs.tables import TABLES
from toolkit.contract.harness import FOUND
from toolkit.contract.hospital import EDGES


def test_the_tables_of_the_pages_are_up_to_date():
    for file, name, part in TABLES:
        page = file.read_text("utf-8")
        assert page == rewritten(page, name, part()), "run: make tables"


@pytest.mark.parametrize("kind", ResourceType)
def test_each_parameter_is_known_where_it_has_to_be(kind):
    parameters = set(SEARCH_PARAMETERS[kind])
    here = "adapters/memory.py (and adapters/matching.py) lacks one"
    assert set(CAPABILITIES[kind].parameters) == parameters, here
    here = "toolkit/contract/harness.py: the contract suite has no search by it"
    searched = {each.parameter for _, criteria, _ in FOUND[kind] for each in criteria}
    assert parameters <= searched, here
    here = "adapters/matching.py makes nothing of a row that has a value"
    records = [
        record
        for record in EDGES.records()
        if not isinstance(record, FaultyRow) and resource_type_of(record) is kind
    ]
    for name in parameters:
        assert any(criterion_of(name, record) for record in records), (here, name)
