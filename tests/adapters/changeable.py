"""A hospital under test whose stays come, change and go."""

from collections.abc import Callable

from adapters.contract import Adapter, ResourceType
from adapters.memory import MemoryAdapter, MemoryRow
from toolkit.contract.harness import Opened
from toolkit.contract.hospital import Hospital, StayRow


class Changeable(Opened):
    """A hospital behind an adapter, and how its stays are changed."""

    def __init__(
        self,
        hospital: Hospital,
        adapter: Adapter,
        model: MemoryAdapter,
        put_stay: Callable[[StayRow], None],
        delete_stay: Callable[[int], None],
    ) -> None:
        super().__init__(hospital, adapter, model)
        self._put_stay = put_stay
        self._delete_stay = delete_stay

    def put(self, row: StayRow) -> None:
        """Put a stay into the source and the model."""
        self._put_stay(row)
        self.model.put(self.served(row))

    def delete(self, number: int) -> None:
        """Take a stay away from both."""
        self._delete_stay(number)
        self.model.delete(ResourceType.ENCOUNTER, self.id(number))

    def served(self, row: StayRow) -> MemoryRow:
        """Return a stay as the adapter should see it."""
        return self.hospital.stay(row)
