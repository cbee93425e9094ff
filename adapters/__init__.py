"""Hospital systems behind one door (`contract.py`)."""

from typing import TYPE_CHECKING

from adapters.mapping.checks import is_own

if TYPE_CHECKING:
    from adapters.contract import Adapter
    from adapters.listener import Listener
    from adapters.mapping.model import SourceMapping


def open_adapter(
    mapping: "SourceMapping", listener: "Listener | None" = None
) -> "Adapter":
    """Return the adapter for the sources that a mapping names, each one guarded.

    Raises MappingError where the mapping names a class that is no adapter.
    """
    # Here, so that who only reads mapping files loads no database library.
    from adapters.guarded import Guard, guarded
    from adapters.lanes import Lane
    from adapters.listener import Deaf

    listener = listener or Deaf()
    if mapping.parts:
        from adapters.federated import open_federated

        return open_federated(mapping, listener)
    source, room = mapping.source, None
    if is_own(source.kind):
        room = Lane(source.connections, source.wait_seconds)
    guard = Guard(mapping.name, listener, room=room)
    return guarded(open_source(mapping), guard)


def open_source(mapping: "SourceMapping") -> "Adapter":
    """Return the adapter for the one source of a mapping, by its kind.

    Raises MappingError where the mapping names a class that is no adapter.
    """
    if mapping.source.kind == "http":
        from adapters.http import HttpAdapter

        return HttpAdapter(mapping)
    if is_own(mapping.source.kind):
        from adapters.own import open_own

        return open_own(mapping)
    from adapters.sql import SqlAdapter

    return SqlAdapter(mapping)


def read_in(mapping: "SourceMapping") -> None:
    """Have this process read the code that `open_adapter` needs: libraries, drivers.

    A hospital's own class is left: it may be replaced. Raises AdapterError.
    """
    import adapters.guarded

    if mapping.parts:
        import adapters.federated  # noqa: F401
    for each in [part.mapping for part in mapping.parts] or [mapping]:
        if not is_own(each.source.kind):
            # Nothing is asked of it.
            open_source(each).close()
