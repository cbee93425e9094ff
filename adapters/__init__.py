"""Hospital systems behind one door (`contract.py`)."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adapters.contract import Adapter
    from adapters.mapping.model import SourceMapping


def open_adapter(mapping: "SourceMapping") -> "Adapter":
    """Return the adapter for the kind of source that a mapping names, or for several."""
    # Here, so that who only reads mapping files loads no database library.
    if mapping.parts:
        from adapters.federated import open_federated

        return open_federated(mapping)
    if mapping.source.kind == "http":
        from adapters.http import HttpAdapter

        return HttpAdapter(mapping)
    from adapters.sql import SqlAdapter

    return SqlAdapter(mapping)
