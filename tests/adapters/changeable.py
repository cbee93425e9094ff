"""A hospital under test whose stays come, change and go."""

from collections.abc import Callable, Mapping

from adapters.contract import Adapter
from adapters.memory import MemoryAdapter
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
        *,
        columns: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(hospital, adapter, model, columns=columns)
        self.put_stay = put_stay
        self.delete_stay = delete_stay
