"""The adapter for a kind of source: one of ours, or a custom adapter by the path of its class.

The code of a custom adapter is not ours: whatever it raises while it is loaded becomes a
problem of the mapping file, at the line that names it.
"""

import inspect
import traceback
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, TypeVar

from adapters.contract import (
    Adapter,
    AdapterError,
    Capabilities,
    Problem,
    ResourceCapabilities,
    ResourceType,
    SortKey,
)
from adapters.mapping.model import Mark, ResourceMapping, SourceMapping, is_own
from adapters.mapping.problems import MappingError, MappingProblem

KINDS = {
    "sql": ("adapters.sql.adapter", "SqlAdapter"),
    "http": ("adapters.http.adapter", "HttpAdapter"),
}
"""Modules are loaded when a mapping needs them, so that others need no driver."""

Loaded = TypeVar("Loaded")


def open_adapter(mapping: SourceMapping) -> Adapter:
    """Return the adapter for the sources of a mapping, each behind a circuit breaker.

    Raises MappingError if the mapping names a class that is not an adapter.
    """
    if mapping.parts:
        return _open_federated(mapping)
    return _Source(mapping.name, mapping).adapter(mapping)


def open_source(mapping: SourceMapping, beside: Adapter | None = None) -> Adapter:
    """Return the adapter for the one source of a mapping, without a circuit breaker.

    It shares the connections of `beside`, another adapter of ours on the same source.
    Raises MappingError if the mapping names a class that is not an adapter.
    """
    kind = mapping.source.kind
    if is_own(kind):
        return _open_custom(mapping)
    module, name = KINDS.get(kind, KINDS["sql"])
    adapter: Adapter = getattr(import_module(module), name)(mapping, beside)
    return adapter


def read_in(mapping: SourceMapping) -> None:
    """Load the modules and drivers that `open_adapter` needs, before workers are forked.

    A custom adapter is not loaded: its code may be replaced. Raises AdapterError.
    """
    import_module("adapters.resilience")
    if mapping.parts:
        import_module("adapters.federated")
    for part in [part.mapping for part in mapping.parts] or [mapping]:
        if not is_own(part.source.kind):
            # It sends nothing yet.
            open_source(part).close()


class _Source:
    """One source behind a circuit breaker and a limit on concurrent calls."""

    def __init__(self, name: str, mapping: SourceMapping) -> None:
        # Here and below, so that reading a mapping file loads no libraries.
        from adapters.resilience import Breaker, Bulkhead

        source = mapping.source
        self._breaker = Breaker(name)
        self._bulkhead: Bulkhead | None = None
        if source.kind == "http" or is_own(source.kind):
            # The pool of a database limits its connections itself.
            self._bulkhead = Bulkhead(source.connections, source.wait_seconds)
        self._first: Adapter | None = None

    def adapter(self, mapping: SourceMapping) -> Adapter:
        """Return an adapter of this source; all of them share its connections."""
        from adapters.resilience import GuardedAdapter

        adapter = open_source(mapping, self._first)
        self._first = self._first or adapter
        return GuardedAdapter(adapter, self._breaker, self._bulkhead)


def _open_federated(mapping: SourceMapping) -> Adapter:
    """Return the adapter that searches all parts of a mapping as one system."""
    from adapters.federated import FederatedAdapter, Part

    sources: dict[Mark, _Source] = {}
    parts = []
    for part in mapping.parts:
        mark = part.mapping.source.mark
        if mark not in sources:
            sources[mark] = _Source(part.name, part.mapping)
        patient = part.section.fields.get("patient_id")
        parts.append(
            Part(
                name=part.name,
                kind=part.kind,
                adapter=sources[mark].adapter(part.mapping),
                prefix=part.section.fields["id"].prefix,
                patients=patient.prefix if patient else "",
                lacks=part.lacks,
                systems=part.section.systems,
            )
        )
    return FederatedAdapter(parts, mapping.fingerprint)


def _open_custom(mapping: SourceMapping) -> Adapter:
    """Return the custom adapter whose class `source.kind` names.

    Raises MappingError if there is no such class, if it is not an adapter, and if it
    offers less or more than the sections of the file list.
    """
    path, _, name = mapping.source.kind.partition(":")
    module = _call(mapping, "cannot be imported", lambda: import_module(path))
    custom: Any = getattr(module, name, None)
    if not isinstance(custom, type):
        text = f"cannot be found: {path} has no class '{name}'"
        raise _refusal(mapping, text)
    adapter: Adapter = _call(mapping, "cannot be created", lambda: custom(mapping))
    members = [member for member in vars(Adapter) if not member.startswith("_")]
    missing = [
        member
        for member in members
        if inspect.getattr_static(adapter, member, None) is None
    ]
    if missing:
        raise _refusal(mapping, f"is not an adapter: it lacks {', '.join(missing)}")
    capabilities = _call(mapping, "has no capabilities", lambda: adapter.capabilities)
    if not isinstance(capabilities, Mapping) or not all(
        isinstance(kind, ResourceType) and isinstance(capability, ResourceCapabilities)
        for kind, capability in capabilities.items()
    ):
        text = "its capabilities must be ResourceCapabilities by ResourceType"
        raise _refusal(mapping, f"is not an adapter: {text}")
    if problems := tuple(_differences(mapping.resources, capabilities)):
        raise MappingError(problems)
    return adapter


def _call(mapping: SourceMapping, what: str, call: Callable[[], Loaded]) -> Loaded:
    """Return what custom code returns; raises MappingError for whatever it raises.

    `what` says which step failed.
    """
    try:
        return call()
    except (AdapterError, ImportError, SyntaxError) as error:
        raise _refusal(mapping, f"{what}: {error}") from error
    except Exception as error:
        raise _refusal(mapping, f"{what}: {_described(error)}") from error


def _described(error: Exception) -> str:
    """Return the type and place of an error, not its text, which may contain secrets."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {frame.filename}, line {frame.lineno}"


def problems_of(adapter: Adapter) -> tuple[Problem, ...]:
    """Return what the check of an adapter reports; one that fails itself is a problem."""
    try:
        return tuple(adapter.check())
    except AdapterError as error:
        return (Problem(str(error)),)
    except Exception as error:  # noqa: BLE001 - a custom adapter may raise anything
        return (Problem(f"the check of the adapter failed: {_described(error)}"),)


def _refusal(mapping: SourceMapping, text: str) -> MappingError:
    """Return the error of a custom adapter, placed at `source.kind`."""
    source = mapping.source
    problem = MappingProblem(source.mark, "source.kind", f"'{source.kind}' {text}")
    return MappingError([problem])


def _differences(
    sections: Mapping[ResourceType, ResourceMapping], capabilities: Capabilities
) -> Iterator[MappingProblem]:
    """Yield a problem for each search that only the class offers, or only the file lists."""
    encounter_mark = sections[ResourceType.ENCOUNTER].mark
    # Every list can be ordered by id.
    by_id = {SortKey.ID}
    for kind in dict.fromkeys((*capabilities, *sections)):
        section = sections.get(kind)
        if section is None:
            text = f"the class serves {kind}: the file needs a section {kind.lower()}"
            yield MappingProblem(encounter_mark, kind.lower(), text)
            continue
        capability = capabilities.get(kind)
        if capability is None:
            text = f"the class does not serve {kind}"
            yield MappingProblem(section.mark, kind.lower(), text)
            continue
        for key, listed, offered in (
            ("search", {*section.parameters}, {*capability.parameters}),
            ("sort", {*section.sorts} - by_id, {*capability.sorts} - by_id),
        ):
            for name in sorted(listed ^ offered):
                text = f"the class offers '{name}', which is not listed"
                if name in listed:
                    text = f"'{name}' is listed, but the class does not offer it"
                yield MappingProblem(section.mark, f"{kind.lower()}.{key}", text)
