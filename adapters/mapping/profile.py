"""Profiles: what a deployment offers, however much more its mapping could (spec 4.1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from types import MappingProxyType

from adapters.contract import ResourceType
from adapters.mapping.model import ReadFile, SourceMapping, from_disk
from adapters.mapping.problems import MappingError, MappingProblem
from adapters.mapping.schema import problems_of
from adapters.mapping.slots import SECTIONS
from adapters.mapping.yaml import Table, parse_file, place
from adapters.parameters import RESULT_PARAMETERS, profile_parameters

PROFILES = ("full", "group-a", "group-b")

MAX_VALUES = 100
"""How many values a parameter accepts by default (decision 3)."""

_DEFAULT_VALUES: Mapping[str, int] = MappingProxyType(
    {"_id": 10, "date": 10, **dict.fromkeys(RESULT_PARAMETERS, 1)}
)


@dataclass(frozen=True, slots=True)
class ResourceProfile:
    """What is offered of one resource type.

    `parameters` is how many values each accepts, comma and repetition counted together.
    Reading by id is always offered, searching if there are parameters. `unfiltered_search`
    is whether a search may have no criterion at all (decision 9).
    """

    parameters: Mapping[str, int]
    count_default: int
    count_max: int
    unfiltered_search: bool


@dataclass(frozen=True, slots=True)
class Profile:
    """A named set of what deployments offer; a missing resource type is not offered."""

    name: str
    paging: bool
    resources: Mapping[ResourceType, ResourceProfile]


def load_profile(name: str, beside: Path, read: ReadFile = from_disk) -> Profile:
    """Return a profile by its name, or by the path of a file relative to `beside`.

    Raises MappingError with every problem of the file.
    """
    if name in PROFILES:
        path = Path(str(resources.files("mappings"))) / "profiles" / f"{name}.yaml"
        root = parse_file(path)
    else:
        root = parse_file(beside / name, read)
    if problems := [problem for problem, _ in problems_of(root, "ProfileFile")]:
        raise MappingError(problems)
    offered = {
        kind: _resource(kind, root.table(key), root.table("count"))
        for key, kind in SECTIONS.items()
        if key in root
    }
    for kind, resource in offered.items():
        if resource.count_default > resource.count_max:
            mark = place(root, (kind.lower(), "count"))
            text = f"the default {resource.count_default} is above the maximum {resource.count_max}"
            raise MappingError([MappingProblem(mark, f"{kind.lower()}.count", text)])
    paging = root.text("paging") == "true"
    return Profile(root.text("profile"), paging, MappingProxyType(offered))


def profile_of(mapping: SourceMapping) -> Profile:
    """Return the profile that a mapping names. Raises MappingError."""
    return load_profile(mapping.profile, mapping.profile_directory, mapping.read)


def _resource(kind: ResourceType, section: Table, shared: Table) -> ResourceProfile:
    """Return what a profile offers of a resource type; `shared` are the counts of all types."""
    count = {**shared.all_texts(), **section.table("count").all_texts()}
    default_count = 100 if kind is ResourceType.ORGANIZATION else 10
    default_unfiltered = "false" if kind is ResourceType.PATIENT else "true"
    limits = {
        name: int(
            section.table(name).text("values") or _DEFAULT_VALUES.get(name, MAX_VALUES)
        )
        for name in profile_parameters(kind)
        if name in section
    }
    return ResourceProfile(
        parameters=MappingProxyType(limits),
        count_default=int(count.get("default", default_count)),
        count_max=int(count.get("max", 100)),
        unfiltered_search=(
            section.text("unfiltered_search", default_unfiltered) == "true"
        ),
    )
