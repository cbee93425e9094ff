"""A hospital behind the adapter under test, and what it should answer."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from adapters.contract import Adapter, ResourceType
from adapters.memory import MemoryAdapter
from adapters.testing.hospital import Hospital
from adapters.testing.offered import Offered


class Opened:
    """A hospital, the adapter that is opened on it, and the model of both.

    `columns` says the suite's name of a column (`state`) for the one that the adapter's
    faults name, where it has another. `model` is worked out where it is not given.
    """

    def __init__(
        self,
        hospital: Hospital,
        adapter: Adapter,
        model: MemoryAdapter | None = None,
        *,
        columns: Mapping[str, str] | None = None,
    ) -> None:
        self.hospital = hospital
        self.adapter = Offered(adapter, columns or {})
        self.model = model or hospital.model()

    def id(self, number: int) -> str:
        """Return the id of a row as clients see it."""
        return self.hospital.ids.text(number)

    def held(self, kind: ResourceType) -> frozenset[str]:
        """Return the ids of all rows of the hospital, those that are not served too."""
        hospital = self.hospital
        if kind is ResourceType.ORGANIZATION:
            return frozenset(row.code for row in hospital.organizations)
        rows = hospital.stays if kind is ResourceType.ENCOUNTER else hospital.patients
        return frozenset(self.id(row.id) for row in rows)


Open: TypeAlias = Callable[[Hospital], Opened]
"""Opens the adapter under test on a hospital, until the tests of the module are done."""
