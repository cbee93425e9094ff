"""docs/change/paging.md shows what is really sent, from the WHERE on."""

import re
from contextlib import closing
from pathlib import Path

from adapters import open_adapter
from adapters.contract import Group, Position, ResourceType, SearchQuery, Sort, SortKey
from adapters.mapping.load import load_mapping
from demo.hospital import LEAST_STAYS, fill
from tests.docs.pages import CHANGE, blocks
from tests.live import ROOT


def test_the_statements_are_those_of_the_adapter(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'pas.sqlite'}"
    fill(url, stays=LEAST_STAYS)
    mapping = load_mapping(ROOT / "mappings/demo/demo.yaml", {"PAS_URL": url})
    sort = Sort(SortKey.DATE, descending=True)
    after = Position(Group.KEYED, "2024-06-11 08:00:00", 301)
    with closing(open_adapter(mapping)) as adapter:
        query = SearchQuery(ResourceType.ENCOUNTER, (), sort, 10, after=after)
        sent = adapter.explain(query)
    tails = re.findall(r"\bWHERE [^\n]*(?:\n(?!SELECT\b)[^\n]+)*", sent)
    page = (CHANGE / "paging.md").read_text("utf-8")
    (shown,) = blocks(page, "sql")
    assert [part.split() for part in shown.text.split("\n\n")] == [
        tail.split() for tail in tails
    ]
