"""What the files of deploy/ say, as data."""

from typing import Any

import yaml

from tests.live import ROOT

COMPOSE = ROOT / "deploy" / "compose"
KUBERNETES = ROOT / "deploy" / "kubernetes"
INSTANCES = ("encounters-1", "encounters-2")

OPERATORS_OWN = ("hospital", "tls", "secrets")
"""What the guide has its reader put into deploy/compose."""


def env_file(file: Any) -> dict[str, str]:
    """Return the variables of a file."""
    lines = file.read_text("utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and line[0] != "#")


def composed(name: str = "compose") -> Any:
    """Return a compose file."""
    return yaml.safe_load((COMPOSE / f"{name}.yaml").read_text("utf-8"))


def manifest(name: str) -> Any:
    """Return a manifest."""
    return yaml.safe_load((KUBERNETES / f"{name}.yaml").read_text("utf-8"))


def container() -> Any:
    """Return the container of a pod."""
    (only,) = manifest("statefulset")["spec"]["template"]["spec"]["containers"]
    return only


def most_tasks(workers: int, threads: int) -> int:
    """Return how many processes and threads there are while an instance reloads."""
    return 2 * workers * (4 * threads + 8) + 64


def most_bytes(workers: int) -> int:
    """Return the bytes of memory that it needs then (docs/run/capacity.md)."""
    return (150 * workers + 200) * 1024**2
