"""Hospital systems behind one interface (`contract.py`)."""

from adapters.registry import open_adapter, open_source, read_in

__all__ = ["open_adapter", "open_source", "read_in"]
