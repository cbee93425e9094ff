"""The word lists beside these modules, as texts."""

from functools import cache
from importlib import resources
from typing import Any

from adapters.mapping.nodes import plain
from adapters.mapping.text import read_text


@cache
def data(name: str) -> Any:
    """Return one of the YAML files of this directory as dicts of texts."""
    file = resources.files(__package__) / f"{name}.yaml"
    return plain(read_text(file.read_bytes(), file.name))
