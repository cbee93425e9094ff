"""Every search parameter is known in each place that has to know it."""

from collections.abc import Iterable, Mapping

import pytest

from adapters.contract import Criterion, ResourceType
from adapters.inspection import criterion_of
from adapters.memory import CAPABILITIES, FaultyRow, resource_type_of
from adapters.parameters import SEARCH_PARAMETERS
from adapters.testing.harness import FOUND
from adapters.testing.hospital import EDGES

NAMED = [(kind, name) for kind, of in SEARCH_PARAMETERS.items() for name in of]

ASKED: Mapping[ResourceType, Iterable[Criterion]] = {
    kind: [each for _, criteria, _ in cases for each in criteria]
    for kind, cases in FOUND.items()
}
"""What the suite that every adapter passes asks, by what is searched."""


@pytest.mark.parametrize("kind", ResourceType)
def test_the_model_of_a_hospital_offers_all(kind: ResourceType) -> None:
    here = "adapters/memory.py (and adapters/matching.py) lacks one"
    assert set(CAPABILITIES[kind].parameters) == set(SEARCH_PARAMETERS[kind]), here


@pytest.mark.parametrize(("kind", "name"), NAMED)
def test_every_adapter_is_asked_by_it(kind: ResourceType, name: str) -> None:
    here = "the contract suite has no search by it"
    assert name in {criterion.parameter for criterion in ASKED[kind]}, here


@pytest.mark.parametrize(("kind", "name"), NAMED)
def test_a_source_that_is_looked_at_is_asked_by_it(
    kind: ResourceType, name: str
) -> None:
    here = "adapters/inspection.py makes nothing of a row that has a value"
    records = [r for r in EDGES.records() if not isinstance(r, FaultyRow)]
    held = [record for record in records if resource_type_of(record) is kind]
    assert any(criterion_of(name, record) for record in held), here
