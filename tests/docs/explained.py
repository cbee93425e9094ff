"""What the adapter sends to the demo hospital for one page, without values."""

import re
from pathlib import Path

from adapters import open_adapter
from adapters.contract import (
    Group,
    Position,
    ResourceType,
    SearchQuery,
    Sort,
    SortKey,
)
from adapters.mapping.load import load_mapping
from demo.hospital import LEAST_STAYS, fill
from tests.live import ROOT

MAPPING = ROOT / "mappings" / "demo" / "demo.yaml"

_TAIL = re.compile(r"\bWHERE [^\n]*(?:\n(?!SELECT\b)[^\n]+)*")


def statements(directory: Path) -> list[str]:
    """Return the statements of a page after a stay, from their WHERE on, a line each."""
    url = f"sqlite:///{directory / 'pas.sqlite'}"
    fill(url, stays=LEAST_STAYS)
    adapter = open_adapter(load_mapping(MAPPING, {"PAS_URL": url}))
    query = SearchQuery(
        ResourceType.ENCOUNTER,
        (),
        Sort(SortKey.DATE, descending=True),
        10,
        after=Position(Group.KEYED, "2024-06-11 08:00:00", 301),
    )
    try:
        sent = adapter.explain(query)
    finally:
        adapter.close()
    return [" ".join(tail.split()) for tail in _TAIL.findall(sent)]
