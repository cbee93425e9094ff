"""Pages of an HTTP source: by offset, number, link and token; lists that contradict themselves."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import responses
from responses import matchers

from adapters.contract import Sort, SortKey, SourceDataError
from tests.adapters.http_cases import ROWS, URL, api_and_adapter, opened_at, rows_of
from tests.hospital_http import answer
from toolkit.contract.harness import STAY, ask, ids_of, patient, token, walk
from toolkit.contract.hospital import EDGES

MODEL = EDGES.model()
LIST = f"{URL}/sejours"
COUNTED = "counting: {path: /sejours/nombre, total: nombre}"
BOTH_WAYS = ("{offset: debut}", "{page: page}", "{page: page, first: 1}")
FORWARDS = ("{next: suite.lien}", "{token: {query: curseur, path: suite.curseur}}")
TOTALS = ("total: nombre", COUNTED)


def _everything() -> list[Any]:
    return rows_of(MODEL.search(ask()))


@pytest.mark.parametrize(
    ("paging", "total"), [*zip(BOTH_WAYS, (*TOTALS, TOTALS[0]), strict=True)]
)
def test_numbered_pages_go_both_ways(tmp_path: Path, paging: str, total: str) -> None:
    with api_and_adapter(tmp_path, paging=paging, total=total) as (_, adapter):
        assert adapter.capabilities[STAY].backwards
        assert adapter.count(ask()) == len(_everything())
        for size in (1, 7, len(_everything()), 200):
            pages = list(walk(adapter, ask(count=size)))
            assert [row for page in pages for row in rows_of(page)] == _everything()
            ahead = ask(count=size, before=pages[-1].first)
            back = [rows_of(page) for page in walk(adapter, ahead, back=True)]
            assert back == [rows_of(page) for page in pages[-2::-1]]
        page = adapter.search(replace(ask(count=5), from_end=True))
        assert rows_of(page) == _everything()[-5:]
        assert page.more
        # Its rows are those of no page of the API's own, nor are those before it.
        before = adapter.search(ask(count=5, before=page.first))
        assert rows_of(before) == _everything()[-10:-5]


@pytest.mark.parametrize(("paging", "total"), [*zip(FORWARDS, TOTALS, strict=True)])
def test_onward_pages_go_forwards(tmp_path: Path, paging: str, total: str) -> None:
    with api_and_adapter(tmp_path, paging=paging, total=total) as (_, adapter):
        offered = adapter.capabilities[STAY]
        assert offered.paging
        assert (offered.backwards, offered.keyset) == (False, False)
        for size in (1, 7, 200):
            query = ask(token("status", "finished"), count=size)
            pages = list(walk(adapter, query))
            expected = rows_of(MODEL.search(ask(token("status", "finished"))))
            assert [row for page in pages for row in rows_of(page)] == expected


@pytest.mark.parametrize("total", TOTALS)
def test_source_that_cannot_page_gives_the_first_rows(
    tmp_path: Path, total: str
) -> None:
    with api_and_adapter(tmp_path, paging="", total=total) as (api, adapter):
        assert not adapter.capabilities[STAY].paging
        page = adapter.search(ask(count=10))
        assert (rows_of(page), page.more) == (_everything()[:10], True)
        whole = adapter.search(ask(patient("8"), count=2))
        assert (len(whole.rows), whole.more) == (2, False)
        assert not any("debut" in request.args for request in api.requests)


def test_a_last_page_leads_nowhere_however_it_says_so(tmp_path: Path) -> None:
    """A cursor of 0 would be the first page again, and the walk without an end."""
    with api_and_adapter(tmp_path, paging=FORWARDS[1]) as (api, adapter):
        first = {"resultats": ROWS[:2], "nombre": 4, "suite": {"curseur": 2}}
        last: dict[str, Any] = {"resultats": ROWS[2:4], "nombre": 4}
        api.strange = lambda request: answer(
            last if request.args.get("curseur") == "2" else first
        )
        query = ask(count=2)
        for end in (None, False, 0, 0.0, ""):
            last["suite"] = {"curseur": end}
            page = adapter.search(replace(query, after=adapter.search(query).last))
            assert (len(page.rows), page.more) == (2, False)


LINKS = '<https://x.example/?a=1>; rel="prev", </api/sejours?s=2>; rel="next last"'


@pytest.mark.parametrize(
    ("paging", "headers"),
    [
        ("{next: {header: Link}}", {"Link": LINKS}),
        ("{next: {header: X-Next}}", {"x-next": "?s=2"}),
        ("{token: {query: s, path: {header: X-Token}}}", {"X-Token": "2"}),
        ("{next: \"liens[?rel=='next'].href | [0]\"}", {}),
    ],
)
@pytest.mark.parametrize(
    "total",
    [
        "total: {header: X-Total-Count}",
        "counting: {path: /nombre, total: {header: X-Total-Count}}",
    ],
)
def test_totals_links_and_tokens_come_from_headers(
    tmp_path: Path,
    source: responses.RequestsMock,
    paging: str,
    headers: dict[str, str],
    total: str,
) -> None:
    adapter = opened_at(URL, tmp_path, paging=paging, total=total)
    links = [{"rel": "prev", "href": "x"}, {"rel": "next", "href": f"{LIST}?s=2"}]
    count = {"X-Total-Count": "4"}
    onward = matchers.query_param_matcher({"s": "2"}, strict_match=False)
    rest = {"resultats": ROWS[2:4]}
    source.get(
        LIST, json={"resultats": ROWS[:2], "liens": links}, headers=headers | count
    )
    source.get(LIST, json=rest, headers=count, match=[onward])
    source.get(f"{URL}/nombre", json={}, headers=count)
    source.assert_all_requests_are_fired = False
    page = adapter.search(ask(count=2))
    assert page.more
    assert (adapter.count(ask()) if page.total is None else page.total) == 4
    assert (page.total is None) is total.startswith("counting")
    last = adapter.search(ask(count=2, after=page.last))
    assert (len(last.rows), last.more) == (2, False)


def test_a_total_that_is_no_number_of_rows_is_noticed(
    tmp_path: Path, source: responses.RequestsMock
) -> None:
    """FHIR has no such total, and -1 would end a walk early (decision 41)."""
    adapter = opened_at(URL, tmp_path)
    for total in (-1, 2**31, 1.5, True, "many"):
        source.upsert("GET", LIST, json={"resultats": [{}], "nombre": total})
        with pytest.raises(SourceDataError, match="not a number of rows"):
            adapter.search(ask())


@pytest.mark.parametrize("total", TOTALS)
def test_an_api_that_heeds_no_offset_is_noticed(tmp_path: Path, total: str) -> None:
    with api_and_adapter(tmp_path, total=total) as (api, adapter):
        api.strange = lambda request: answer(
            {"resultats": ROWS[: min(4, int(request.args["nb"]))], "nombre": len(ROWS)}
        )
        with pytest.raises(SourceDataError, match="row twice"):
            adapter.search(ask(count=10))


def test_rows_without_an_id_are_invalid_and_end_no_walk(tmp_path: Path) -> None:
    """Nobody else can leave them out of a list, which the API counts and cuts."""
    without = {"id": None}, {"id": ""}, {}
    rows = [
        without[n // 2 % 3] | {name: row[name] for name in row if name != "id"}
        if n % 2
        else row
        for n, row in enumerate(ROWS[:12])
    ]
    with api_and_adapter(tmp_path) as (api, adapter):

        def page(request: Any) -> Any:
            start, size = (int(request.args.get(name, 0)) for name in ("debut", "nb"))
            return answer(
                {"resultats": rows[start : start + size], "nombre": len(rows)}
            )

        api.strange = page
        for size in (1, 5):
            query = ask(sort=Sort(SortKey.DATE), count=size)
            ids = [id for found in walk(adapter, query) for id in ids_of(found)]
            assert ids[::2] == [str(row["id"]) for row in rows[::2]]
            assert {*ids[1::2]} == {"!id"}
            assert adapter.count(query) == len(rows)
