"""An adapter that a hospital has written itself, found by the path of its class.

Its code is not ours: whatever it raises while it is loaded becomes a problem of the
mapping file, at the line that names it, with the error itself as the cause.
"""

import inspect
import traceback
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TypeVar

from adapters.contract import (
    Adapter,
    AdapterError,
    Capabilities,
    ResourceCapabilities,
    ResourceType,
    SortKey,
)
from adapters.mapping.model import ResourceMapping, SourceMapping
from adapters.mapping.problems import MappingError, MappingProblem, did_you_mean

Loaded = TypeVar("Loaded")


def open_own(mapping: SourceMapping) -> Adapter:
    """Return the adapter whose class `source.kind` names, made from the mapping.

    Raises MappingError where there is no such class, where it is no adapter, and where
    it offers less or more than the sections of the file list.
    """
    maker = _maker(mapping)
    adapter = _kept(mapping, "cannot be made", lambda: maker(mapping))
    if faults := tuple(_faults(adapter)):
        raise _refused(mapping, f"is no adapter: {'; '.join(faults)}")
    capabilities = _kept(mapping, "tells no capabilities", lambda: adapter.capabilities)
    if not _are_capabilities(capabilities):
        said = "its capabilities must be ResourceCapabilities by ResourceType"
        raise _refused(mapping, f"is no adapter: {said}")
    if problems := tuple(_differences(mapping.resources, capabilities)):
        raise MappingError(problems)
    return adapter


def _maker(mapping: SourceMapping) -> Callable[[SourceMapping], Adapter]:
    path, _, name = mapping.source.kind.partition(":")
    module = _kept(mapping, "cannot be imported", lambda: import_module(path))
    classes = [n for n, value in vars(module).items() if inspect.isclass(value)]
    if name not in classes:
        text = f"cannot be found: {path} has no class '{name}'"
        raise _refused(mapping, text + did_you_mean(name, classes))
    maker: Callable[[SourceMapping], Adapter] = getattr(module, name)
    return maker


def _kept(mapping: SourceMapping, what: str, call: Callable[[], Loaded]) -> Loaded:
    """Return what the hospital's code gives, or raise MappingError for what it raises."""
    try:
        return call()
    except (AdapterError, ImportError, SyntaxError) as error:
        raise _refused(mapping, f"{what}: {error}") from error
    except Exception as error:
        # Its text may hold whatever the class was given: secrets, for one.
        place = traceback.extract_tb(error.__traceback__)[-1]
        at = f"{type(error).__name__} in {place.filename}, line {place.lineno}"
        raise _refused(mapping, f"{what}: {at}") from error


def _refused(mapping: SourceMapping, text: str) -> MappingError:
    source = mapping.source
    said = f"'{source.kind}' {text}"
    return MappingError([MappingProblem(source.mark, "source.kind", said)])


def _faults(adapter: object) -> Iterator[str]:
    """Yield what keeps an object from being an `Adapter`, as far as it can be seen."""
    for name, said in vars(Adapter).items():
        if name.startswith("_"):
            continue
        if inspect.getattr_static(adapter, name, None) is None:
            yield f"it has no '{name}'"
        elif inspect.isfunction(said):
            names = tuple(inspect.signature(said).parameters)[1:]
            if not _takes(getattr(adapter, name), names):
                yield f"'{name}' does not take ({', '.join(names)})"


def _takes(method: object, names: tuple[str, ...]) -> bool:
    if not callable(method):
        return False
    try:
        inspect.signature(method).bind(*names)
    except TypeError:
        return False
    return True


def _are_capabilities(found: object) -> bool:
    return isinstance(found, Mapping) and all(
        isinstance(kind, ResourceType) and isinstance(able, ResourceCapabilities)
        for kind, able in found.items()
    )


def _differences(
    sections: Mapping[ResourceType, ResourceMapping], capabilities: Capabilities
) -> Iterator[MappingProblem]:
    """Yield where the class and the file do not say the same of what is offered."""
    stays = sections[ResourceType.ENCOUNTER]
    for kind in capabilities:
        if kind not in sections:
            text = f"the class serves {kind}: the file needs a section {kind.lower()}"
            yield MappingProblem(stays.mark, kind.lower(), text)
    for kind, section in sections.items():
        if kind not in capabilities:
            text = f"the class does not serve {kind}"
            yield MappingProblem(section.mark, kind.lower(), text)
            continue
        able = capabilities[kind]
        for part, listed, offered in (
            ("search", set(section.parameters), set(able.parameters)),
            ("sort", _told(section.sorts), _told(able.sorts)),
        ):
            for text in _unequal(part, listed, offered):
                yield MappingProblem(section.mark, f"{kind.lower()}.{part}", text)


def _told(sorts: tuple[SortKey, ...]) -> set[str]:
    """Return sort keys as texts; by id every list can be put in order."""
    return {str(key) for key in sorts} - {str(SortKey.ID)}


def _unequal(part: str, listed: set[str], offered: set[str]) -> Iterator[str]:
    for name in sorted(listed - offered):
        yield f"'{name}' is listed, and the class does not offer it"
    for name in sorted(offered - listed):
        yield f"the class offers '{name}': list it under {part}, or let it be left out"
