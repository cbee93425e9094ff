"""Two hospitals as one, one in a database and one behind an HTTP API."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapters import open_adapter
from adapters.contract import (
    Adapter,
    Sort,
    SortKey,
    SourceDataError,
    SourceUnavailableError,
)
from adapters.mapping.load import load_mapping
from app.logging import describe_error
from tests.adapters.group import PREFIXES, SHARED, GroupModel
from tests.adapters.http_cases import rows_of
from tests.hospital_http import Api, answer, serving
from tests.hospital_http_mapping import OFFSET, http_mapping_text
from tests.hospital_sql import Tables, mapping_text
from toolkit.contract.harness import (
    NEWEST_FIRST,
    STAY,
    ask,
    patient,
    token,
    walk,
)
from toolkit.contract.hospital import EDGES, Hospital, Ids

NEVER = "2024-03-31 02:30:00"
SOUTH = replace(EDGES, stays=tuple(row for row in EDGES.stays if row.began != NEVER))
OLDEST_FIRST = Sort(SortKey.DATE)
ORDERS = (
    NEWEST_FIRST,
    OLDEST_FIRST,
    Sort(SortKey.LAST_UPDATED),
    Sort(SortKey.LAST_UPDATED, descending=True),
)
REFERENCES = ("patient_id", "organization_id", "replaced_by")


def group_text(hospital: Hospital, paging: str, profile: str = "group-a") -> str:
    """Return one mapping file for both: the north by SQL, the south by HTTP."""
    files = [
        yaml.load(text, yaml.BaseLoader)
        for text in (
            mapping_text(hospital),
            http_mapping_text(hospital, paging=paging),
        )
    ]
    whole = {key: files[0][key] for key in SHARED if key in files[0]}
    whole |= {key: {**files[1][key], **files[0][key]} for key in ("constants", "codes")}
    whole["profile"] = profile
    whole["sources"] = {
        "north": {"kind": "sql", "url": {"env": "NORTH_URL"}, "may_write": "true"},
        "south": {
            "kind": "http",
            "url": {"env": "SOUTH_URL"},
            "timeout_seconds": "30",
            "count_timeout_seconds": "30",
            "connections": "2",
        },
    }
    for kind in ("encounter", "patient", "organization"):
        north, south = (file[kind] for file in files)
        listed = {key: north.pop(key) for key in ("search", "sort")}
        entries = [
            {"source": "north", "prefix": "n-", **_referring(north, "north")},
            {"source": "south", "prefix": "s-", **_referring(south, "south")},
        ]
        whole[kind] = {"sources": entries, **listed}
    return yaml.safe_dump(whole, sort_keys=False, allow_unicode=True)


def _referring(section: dict[str, Any], name: str) -> dict[str, Any]:
    for slot in REFERENCES:
        if slot in section["fields"]:
            section["fields"][slot]["source"] = name
    return section


class Two:
    """A database and an API, opened as one in the variant that a test wants."""

    def __init__(self, stack: ExitStack, directory: Path, ids: Ids) -> None:
        self.hospitals = (EDGES.with_ids(ids), SOUTH.with_ids(ids))
        self.api = Api(self.hospitals[1])
        self.model = GroupModel(self.hospitals)
        self._stack, self._directory = stack, directory
        north = f"sqlite:///{directory / 'north.db'}"
        tables = Tables(north, self.hospitals[0])
        stack.callback(tables.close)
        south = stack.enter_context(serving(self.api))
        self.environ = {"NORTH_URL": north, "SOUTH_URL": south}

    def opened(
        self,
        *,
        paging: str = OFFSET,
        profile: str = "group-a",
        changes: tuple[tuple[str, str], ...] = (),
    ) -> Adapter:
        text = group_text(self.hospitals[0], paging, profile)
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        file = self._directory / "group.yaml"
        file.write_text(text, encoding="utf-8")
        adapter = open_adapter(load_mapping(file, self.environ))
        self._stack.callback(adapter.close)
        return adapter


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    with ExitStack() as stack:
        yield Two(stack, tmp_path_factory.mktemp("group"), Ids.TEXTS)


@pytest.fixture(
    scope="module", params=["", OFFSET, "{page: page}", "{next: suite.lien}"]
)
def adapter(request: pytest.FixtureRequest, two: Two) -> Adapter:
    """Return both as one, the API with each of its ways to page."""
    return two.opened(paging=request.param)


def test_first_rows_of_both_in_one_order(adapter: Adapter, two: Two) -> None:
    for sort in ORDERS:
        expected = rows_of(two.model.search(ask(sort=sort)))
        assert adapter.count(ask(sort=sort)) == len(expected)
        for size in (1, 7, len(expected), len(expected) + 1):
            page = adapter.search(ask(sort=sort, count=size))
            assert rows_of(page) == expected[:size]
            assert page.more is (size < len(expected))
            # A search of several sources has its first page only.
            assert page.last is None
    able = adapter.capabilities[STAY]
    assert (able.keyset, able.paging, able.backwards) == (False, True, True)
    assert able.unpaged == ("s-",)
    assert set(able.sorts) == {SortKey.DATE, SortKey.LAST_UPDATED}


def test_an_api_that_gives_less_at_once_is_asked_on(two: Two) -> None:
    """A page that ends early would be filled up with rows that come later."""
    adapter = two.opened(paging="{next: suite.lien}")
    expected = rows_of(two.model.search(ask()))
    two.api.most = 4
    try:
        assert rows_of(adapter.search(ask(count=30))) == expected[:30]
    finally:
        two.api.most = 1000


def test_prefixes_are_never_sent(two: Two) -> None:
    adapter = two.opened()
    number = two.hospitals[1].ids.text(1)
    assert adapter.read(STAY, f"s-{number}").id == f"s-{number}"
    two.api.requests.clear()
    adapter.search(ask(patient(f"n-{number}")))
    adapter.search(ask(token("_id", f"s-{number}"), patient(f"s-{number}")))
    adapter.count(ask(patient(f"s-{number}")))
    assert [r.args.get("ipp") for r in two.api.requests] == [number, number]
    assert two.api.requests[0].args["ids"] == number


def test_a_search_that_concerns_one_source_has_all_its_pages(two: Two) -> None:
    adapter = two.opened(profile="full")
    for prefix, sort in product(PREFIXES, ORDERS[:2]):
        ids = [prefix + two.hospitals[0].ids.text(number) for number in (1, 2, 3, 8)]
        query = ask(patient(*ids), sort=sort)
        expected = rows_of(two.model.search(query))
        assert len(expected) > 20
        pages = list(walk(adapter, replace(query, count=3)))
        assert [row for page in pages for row in rows_of(page)] == expected
        ahead = replace(query, count=3, before=pages[-1].first)
        backwards = list(walk(adapter, ahead, back=True))
        assert [rows_of(page) for page in backwards] == [
            rows_of(page) for page in pages[-2::-1]
        ]


def test_the_total_of_an_answer_is_not_counted_again(two: Two) -> None:
    adapter = two.opened()
    two.api.requests.clear()
    assert adapter.search(ask(count=5)).total == adapter.count(ask())
    # One for the page; the count itself asks once more.
    assert len(two.api.requests) == 2


def test_a_source_that_is_away_is_needed_only_where_it_is_concerned(two: Two) -> None:
    """By the systems of identifiers, as by the ids of patients."""
    adapter = two.opened()
    two.api.strange = lambda _: answer({}, 500)
    try:
        for _ in range(6):
            with pytest.raises(SourceUnavailableError):
                adapter.search(ask())
        # The breaker is open by now: the API is not asked any more.
        asked = len(two.api.requests)
        with pytest.raises(SourceUnavailableError):
            adapter.search(ask())
        assert len(two.api.requests) == asked
        number = two.hospitals[0].ids.text(3)
        assert adapter.search(ask(patient(f"n-{number}"))).rows
        assert adapter.search(ask(token("identifier", "urn:oid:9|V1"))).rows == ()
        with pytest.raises(SourceUnavailableError):
            adapter.search(ask(token("identifier", "V1")))
    finally:
        two.api.strange = lambda _: None


def test_an_api_that_sorts_otherwise_is_noticed(two: Two) -> None:
    adapter = two.opened(changes=(("date: entree", "date: -entree"),))
    said = "source south: the list is not in the order"
    with pytest.raises(SourceDataError, match=said) as caught:
        adapter.search(ask(sort=OLDEST_FIRST))
    # What the log has of it: the place that noticed, and a text without the source.
    assert caught.value.reason == said.removeprefix("source south: ") + " of the search"
    *_, place = describe_error(caught.value)["places"]  # type: ignore[misc]
    assert place.startswith("adapters.http.")


def test_an_api_that_fails_is_never_a_shorter_list(two: Two) -> None:
    for status, kind in ((500, SourceUnavailableError), (200, SourceDataError)):
        adapter = two.opened()
        two.api.strange = lambda _, s=status: answer({"erreur": "Jeanne"}, s)
        try:
            for question in (adapter.search, adapter.count):
                with pytest.raises(kind, match="source south: ") as caught:
                    question(ask())
                assert "Jeanne" not in str(caught.value)
            found = {(p.source, p.outage, p.text[:14]) for p in adapter.check()}
            assert found == {("south", status == 500, "source south: ")}
            number = two.hospitals[0].ids.text(1)
            assert adapter.read(STAY, f"n-{number}").id == f"n-{number}"
        finally:
            two.api.strange = lambda _: None
