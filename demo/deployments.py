"""The deployments that the demo can serve: the whole service, group A, group B."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from demo.state import DemoDirectory, DemoError

PROJECT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Deployment:
    """A mapping on the made-up hospital; `over_http` says how the hospital is reached.

    `group` is empty for the whole service. The groups have no further pages.
    """

    group: str = ""
    over_http: bool = False

    @property
    def name(self) -> str:
        """Its name under `mappings/`, and that of the directory of a group."""
        return f"group-{self.group}" if self.group else "demo"

    @property
    def mapping(self) -> Path:
        """Its mapping file."""
        return PROJECT / "mappings" / self.name / f"{self.name}.yaml"

    @property
    def command(self) -> str:
        """What starts it."""
        return f"make run GROUP={self.group}" if self.group else "make run"

    def directory(self, root: Path) -> DemoDirectory:
        """Return where it keeps what it holds; each group has a directory of its own."""
        own = root / self.name if self.group else root
        return DemoDirectory(own, self.command)


DEPLOYMENTS: Mapping[str, Deployment] = MappingProxyType(
    {
        each.group: each
        for each in (Deployment(), Deployment("a", True), Deployment("b"))
    }
)
"""By group."""


def deployment(group: str) -> Deployment:
    """Return the deployment of a group; DemoError when there is no such group."""
    try:
        return DEPLOYMENTS[group.strip().lower()]
    except KeyError:
        raise DemoError(
            f"There is no group {group!r}: choose a or b, or none for the whole service."
        ) from None
