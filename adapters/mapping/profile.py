"""Profiles: what a deployment offers, however much more its mapping could (spec 4.1)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType
from typing import Any

from marshmallow import ValidationError
from marshmallow.utils import get_value

from adapters.contract import ResourceType
from adapters.mapping.elements import SECTIONS
from adapters.mapping.faults import readable
from adapters.mapping.kept import Reader, from_disk, is_there
from adapters.mapping.model import Mark, SourceMapping
from adapters.mapping.nodes import Table, place, plain
from adapters.mapping.parameters import PARAMETERS
from adapters.mapping.problems import MappingError, MappingProblem
from adapters.mapping.shapes import KeyFault, Part, Shape, Text, Whole, YesNo
from adapters.mapping.text import read_text

PROFILES = ("full", "group-a", "group-b")

MAX_VALUES = 100
"""How many values a parameter takes when nothing else is said (decision 3)."""

_FEWER: Mapping[str, int] = MappingProxyType(
    {"_id": 10, "date": 10, "_count": 1, "_sort": 1}
)


@dataclass(frozen=True, slots=True)
class ParameterLimits:
    """How many values one parameter takes, comma and repetition counted together."""

    values: int


@dataclass(frozen=True, slots=True)
class ResourceProfile:
    """What is offered of one resource type.

    Reading by id always is; searching when there are parameters. `unfiltered_search`
    tells whether a search may have no criterion at all (decision 9).
    """

    parameters: Mapping[str, ParameterLimits]
    count_default: int
    count_max: int
    unfiltered_search: bool


@dataclass(frozen=True, slots=True)
class Profile:
    """A named set of what deployments offer; a missing resource type is not offered."""

    name: str
    paging: bool
    resources: Mapping[ResourceType, ResourceProfile]


class CountShape(Shape):
    """The page size."""

    default = Whole(1, 100)
    max = Whole(1, 100)


class ParameterShape(Shape):
    """One search parameter."""

    values = Whole(1, 100)


def _resource_shape(kind: ResourceType) -> type[Shape]:
    keys: dict[str, Any] = {name: Part(ParameterShape) for name in _names(kind)}
    keys |= {"count": Part(CountShape), "unfiltered_search": YesNo()}
    return type(f"{kind}Profile", (Shape,), keys)


def _names(kind: ResourceType) -> tuple[str, ...]:
    return (*PARAMETERS[kind], "_count", "_sort")


class ProfileShape(Shape):
    """A whole profile file."""

    profile = Text(required=True)
    paging = YesNo(required=True)
    count = Part(CountShape)
    encounter = Part(_resource_shape(ResourceType.ENCOUNTER), required=True)
    patient = Part(_resource_shape(ResourceType.PATIENT))
    organization = Part(_resource_shape(ResourceType.ORGANIZATION))


def load_profile(name: str, beside: Path, read: Reader = from_disk) -> Profile:
    """Return a profile by its name, or by the path of a file as seen from `beside`.

    Raises MappingError with every problem of the file.
    """
    path = profile_path(name, beside)
    if not profile_is_there(name, beside, read):
        raise MappingError([_missing(path)])
    ours = name in PROFILES
    held = path.read_bytes() if ours else read(beside / name)
    return _read(held, name if ours else str(path))


@lru_cache(maxsize=4)
def _read(held: bytes, file: str) -> Profile:
    """Return what a file says; the rules of a mapping ask for it, and so does who serves."""
    root = read_text(held, file)
    try:
        data = ProfileShape().load(plain(root))
    except ValidationError as error:
        raise MappingError(
            _problem(root, keys, text) for keys, text in readable(error)
        ) from error
    profile = _profile(data)
    if problems := [
        _problem(root, (kind.lower(), "count"), text)
        for kind, text in _impossible_counts(profile)
    ]:
        raise MappingError(problems)
    return profile


def is_profile(root: Table) -> bool:
    """Tell whether a file is a profile: a mapping file says nothing of paging at its top."""
    return {"profile", "paging"} <= set(root.entries) and "mapping" not in root.entries


def profile_of(mapping: SourceMapping) -> Profile:
    """Return the profile that a mapping names. Raises MappingError."""
    return load_profile(mapping.profile, mapping.profile_directory, mapping.read)


def profile_is_there(name: str, beside: Path, read: Reader) -> bool:
    """Tell whether a profile is one of ours, or a file."""
    return name in PROFILES or is_there(beside / name, read)


def profile_path(name: str, beside: Path) -> Traversable:
    """Return where a profile stands: a name of ours, or a path from `beside`."""
    if name in PROFILES:
        return resources.files("mappings") / "profiles" / f"{name}.yaml"
    return beside / name


def _profile(data: Mapping[str, Any]) -> Profile:
    return Profile(
        name=data["profile"],
        paging=data["paging"],
        resources=MappingProxyType(
            {
                kind: _resource(kind, data[key], data.get("count", {}))
                for key, kind in SECTIONS.items()
                if key in data
            }
        ),
    )


def _resource(
    kind: ResourceType, section: Mapping[str, Any], shared: Mapping[str, int]
) -> ResourceProfile:
    own = section.get("count", {})
    usual = 100 if kind is ResourceType.ORGANIZATION else 10
    # A dot in a name is a path to marshmallow, when it loads and when it is asked.
    limits = {name: get_value(section, name, None) for name in _names(kind)}
    return ResourceProfile(
        parameters=MappingProxyType(
            {
                name: ParameterLimits(part.get("values", _FEWER.get(name, MAX_VALUES)))
                for name, part in limits.items()
                if part is not None
            }
        ),
        count_default=own.get("default", shared.get("default", usual)),
        count_max=own.get("max", shared.get("max", 100)),
        unfiltered_search=section.get(
            "unfiltered_search", kind is not ResourceType.PATIENT
        ),
    )


def _impossible_counts(profile: Profile) -> Iterator[tuple[ResourceType, str]]:
    for kind, found in profile.resources.items():
        if found.count_default > found.count_max:
            text = f"the default {found.count_default} is above the maximum"
            yield kind, f"{text} {found.count_max}"


def _problem(root: Table, keys: tuple[str | int, ...], text: str) -> MappingProblem:
    mark = place(root, keys, isinstance(text, KeyFault))
    return MappingProblem(mark, ".".join(map(str, keys)), text)


def _missing(path: Traversable) -> MappingProblem:
    text = f"there is no such profile; ours are {', '.join(PROFILES)}"
    return MappingProblem(Mark(str(path), 1, 1), "profile", text)
