"""Pages of an HTTP source: by offset, number, link and token; lists that contradict themselves."""

from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from responses import matchers
from werkzeug import Response

from adapters.contract import Sort, SortKey, SourceDataError
from tests.adapters.http_cases import ROWS, URL, api_and_adapter, opened_at, rows_of
from tests.hospital_http import Api, answer, serving
from toolkit.contract.harness import STAY, ask, ids_of, patient, token, walk
from toolkit.contract.hospital import EDGES

MODEL = EDGES.model()
LIST = f"{URL}/sejours"
COUNTED = "counting: {path: /sejours/nombre, total: nombre}"
OFFSET, PAGE = "{offset: debut}", "{page: page}"
NEXT = "{next: suite.lien}"
TOKEN = "{token: {query: curseur, path: suite.curseur}}"
PAGINGS = (OFFSET, PAGE, NEXT, TOKEN)


def _everything():
    return rows_of(MODEL.search(ask()))


def test_numbered_pages_go_both_ways(tmp_path):
    with api_and_adapter(tmp_path, paging=PAGE, total=COUNTED) as (_, adapter):
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


def test_onward_pages_go_forwards(tmp_path):
    with api_and_adapter(tmp_path, paging=TOKEN, total=COUNTED) as (_, adapter):
        offered = adapter.capabilities[STAY]
        assert offered.paging
        assert (offered.backwards, offered.keyset) == (False, False)
        for size in (1, 7, 200):
            query = ask(token("status", "finished"), count=size)
            pages = list(walk(adapter, query))
            expected = rows_of(MODEL.search(ask(token("status", "finished"))))
            assert [row for page in pages for row in rows_of(page)] == expected


@pytest.mark.parametrize("total", ["total: nombre", COUNTED])
def test_source_that_cannot_page_gives_the_first_rows(tmp_path, total):
    with api_and_adapter(tmp_path, paging="", total=total) as (api, adapter):
        assert not adapter.capabilities[STAY].paging
        page = adapter.search(ask(count=10))
        assert (rows_of(page), page.more) == (_everything()[:10], True)
        whole = adapter.search(ask(patient("8"), count=2))
        assert (len(whole.rows), whole.more) == (2, False)
        assert not any("debut" in request.args for request in api.requests)


def test_a_last_page_leads_nowhere_however_it_says_so(tmp_path):
    """A cursor of 0 would be the first page again, and the walk without an end."""
    with api_and_adapter(tmp_path, paging=TOKEN) as (api, adapter):
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
IN_HEADERS = (
    ("{next: {header: Link}}", {"Link": LINKS}, ""),
    ("{next: {header: X-Next}}", {"x-next": "?s=2"}, "counting"),
    ("{token: {query: s, path: {header: X-Token}}}", {"X-Token": "2"}, ""),
    ("{next: \"liens[?rel=='next'].href | [0]\"}", {}, ""),
)
"""A way of paging, and the headers of its first page."""


@pytest.mark.parametrize(("paging", "headers", "counting"), IN_HEADERS)
def test_totals_links_and_tokens_come_from_headers(
    tmp_path, source, paging, headers, counting
):
    total = "total: {header: X-Total-Count}"
    if counting:
        total = f"counting: {{path: /nombre, {total}}}"
    adapter = opened_at(URL, tmp_path, paging=paging, total=total)
    links = [{"rel": "prev", "href": "x"}, {"rel": "next", "href": f"{LIST}?s=2"}]
    four = {"X-Total-Count": "4"}
    first, rest = {"resultats": ROWS[:2], "liens": links}, {"resultats": ROWS[2:4]}
    onward = matchers.query_param_matcher({"s": "2"}, strict_match=False)
    source.get(LIST, json=first, headers=headers | four)
    source.get(LIST, json=rest, headers=four, match=[onward])
    page = adapter.search(ask(count=2))
    assert page.more
    last = adapter.search(ask(count=2, after=page.last))
    assert (len(last.rows), last.more) == (2, False)
    if counting:
        source.get(f"{URL}/nombre", json={}, headers=four)
    assert (page.total is None) is bool(counting)
    assert (adapter.count(ask()) if counting else page.total) == 4


def test_a_total_that_is_no_number_of_rows_is_noticed(tmp_path, source):
    """FHIR has no such total, and -1 would end a walk early (decision 41)."""
    adapter = opened_at(URL, tmp_path)
    for total in (-1, 2**31, 1.5, True, "many"):
        source.upsert("GET", LIST, json={"resultats": [{}], "nombre": total})
        with pytest.raises(SourceDataError, match="not a number of rows"):
            adapter.search(ask())


def test_rows_without_an_id_are_invalid_and_end_no_walk(tmp_path):
    """Nobody else can leave them out of a list, which the API counts and cuts."""
    rows = [dict(row) for row in ROWS[:12]]
    for row, id in zip(rows[1::2], 2 * (None, "", 7), strict=True):
        row["id"] = id
        if id == 7:
            del row["id"]
    with api_and_adapter(tmp_path) as (api, adapter):

        def page(request):
            start, size = (int(request.args.get(name, 0)) for name in ("debut", "nb"))
            shown = rows[start : start + size]
            return answer({"resultats": shown, "nombre": len(rows)})

        api.strange = page
        for size in (1, 5):
            query = ask(sort=Sort(SortKey.DATE), count=size)
            ids = [id for found in walk(adapter, query) for id in ids_of(found)]
            assert ids[::2] == [str(row["id"]) for row in rows[::2]]
            assert {*ids[1::2]} == {"!id"}
            assert adapter.count(query) == len(rows)


SIZE = 2
ALL = 8


class Habit:
    """A list of eight stays, of which a test changes one habit.

    `start` maps the number of the first row that is requested to the one that is returned,
    `total` the number of all rows, `rows` and `links` those of a page.
    """

    def __init__(self, **habits):
        self.habits = habits
        self.requests = 0

    def __call__(self, request):
        self.requests += 1
        size, args = int(request.args["nb"]), request.args
        start = int(args.get("debut", args.get("curseur", 0)))
        if "page" in args:
            start = (int(args["page"]) - 1) * size
        start = self._changed("start", start)
        rows = self._changed("rows", ROWS[:ALL][start : start + size])
        body = {"resultats": rows, "nombre": self._changed("total", ALL, rows)}
        following = start + size
        if self._changed("links", following < ALL, following):
            link = f"{request.base_url}?nb={size}&curseur={following}"
            body["suite"] = {"lien": link, "curseur": following}
        return answer(body)

    def _changed(self, name, value, *more):
        return self.habits[name](value, *more) if name in self.habits else value


@contextmanager
def habit(folder, paging, **habits):
    with api_and_adapter(folder, paging=paging) as (api, adapter):
        api.strange = bad = Habit(**habits)
        yield bad, adapter


def pages_of(adapter):
    return list(walk(adapter, ask(count=SIZE)))


@pytest.mark.parametrize("paging", PAGINGS)
@pytest.mark.parametrize("period", [0, 2, 4, -1])
def test_a_list_that_turns_in_a_circle_is_502(tmp_path, paging, period):
    """It returns the first pages again in place of later ones, or begins a row too early."""
    turn = {"start": lambda start: start % period if period else 0}
    if paging in (NEXT, TOKEN):
        turn = {"links": lambda *_: True, "start": lambda n: n % (period or SIZE)}
    if period < 0:
        turn = {"start": lambda start: max(0, start - 1)}
    with habit(tmp_path, paging, **turn) as (api, adapter):
        with pytest.raises(SourceDataError, match="repeats"):
            pages_of(adapter)
        assert api.requests <= ALL / SIZE + 2


@pytest.mark.parametrize("paging", [NEXT, TOKEN])
def test_a_list_without_an_end_ends_by_its_total(tmp_path, paging):
    numbers = count(1000)

    def new_rows(rows):
        return [{**ROWS[0], "id": next(numbers)} for _ in range(SIZE)]

    endless: dict[str, Any] = {"links": lambda *_: True, "rows": new_rows}
    with habit(tmp_path, paging, **endless) as (api, adapter):
        with pytest.raises(SourceDataError, match="longer than its total"):
            pages_of(adapter)
        assert api.requests <= ALL / SIZE + 2
    # An empty page that leads on is the end where the total is reached.
    with habit(tmp_path, paging, links=lambda *_: True) as (api, adapter):
        page = adapter.search(ask(count=SIZE))
        while page.more:
            page = adapter.search(ask(count=SIZE, after=page.last))
        assert (page.rows, page.incomplete) == ((), False)
        assert api.requests == ALL / SIZE + 1
    # Without a total in its answers nothing says that it is the end.
    with api_and_adapter(tmp_path, paging=paging, total=COUNTED) as (imitated, adapter):
        imitated.strange = Habit(links=lambda *_: True, total=lambda *_: None)
        with pytest.raises(SourceDataError, match="has a next page"):
            pages_of(adapter)


@pytest.mark.parametrize("paging", PAGINGS)
def test_an_empty_page_where_the_total_promises_rows_is_502(tmp_path, paging):
    cut = {"start": lambda start: start if start < ALL / 2 else 1000}
    with (
        habit(tmp_path, paging, **cut, links=lambda _, n: n < ALL) as (_, adapter),
        pytest.raises(SourceDataError, match="shorter than its total"),
    ):
        pages_of(adapter)
    with (
        habit(tmp_path, paging, rows=lambda _: []) as (_, adapter),
        pytest.raises(SourceDataError, match="shorter than its total"),
    ):
        adapter.search(ask())


@pytest.mark.parametrize("paging", ["", PAGE, NEXT, TOKEN])
def test_a_list_that_ends_before_its_total_is_reported_on_its_last_page(
    tmp_path, paging
):
    total = {"total": lambda *_: ALL + 1}
    with habit(tmp_path, paging, **total) as (_, adapter):
        if not paging:
            assert adapter.search(ask(count=ALL + 1)).incomplete
            return
        query = ask(count=ALL // 2 + 1)
        pages = list(walk(adapter, query))
        assert [page.incomplete for page in pages] == [False, True]


@pytest.mark.parametrize("paging", [NEXT, TOKEN])
def test_a_difference_that_the_current_total_explains_is_none(tmp_path, paging):
    """Rows come and go while a client follows the pages."""
    for change in (-SIZE, SIZE):
        totals = iter([ALL, *[ALL + change] * ALL])
        shown = {"total": lambda *_, totals=totals: next(totals)}
        last = min(ALL, ALL + change)
        links = {"links": lambda _, following, last=last: following < last}
        with habit(tmp_path, paging, **shown, **links) as (_, adapter):
            pages = pages_of(adapter)
            assert not any(page.incomplete for page in pages)


EMPTY = (
    {"json": {"nombre": 0}},
    {"json": {"nombre": "0", "resultats": []}},
    {"json": {"nombre": 0, "resultats": {}}},
    {"json": {"nombre": None, "resultats": None}},
    {"body": "null"},
    {"body": b'\xef\xbb\xbf{"nombre": 0}'},
    {"body": "[]"},
    {"status": 204, "body": b""},
    {"json": {"erreur": {"code": "RIEN"}}},
)


@pytest.mark.parametrize("paging", ["", OFFSET, NEXT])
def test_an_empty_list_is_empty_however_it_is_written(tmp_path, source, paging):
    rule = ", error: {path: erreur.code, not_found: [RIEN]}"
    adapter = opened_at(URL, tmp_path, paging=paging, source=rule)
    for given in EMPTY:
        source.upsert("GET", f"{URL}/sejours", **given)
        page = adapter.search(ask(token("status", "planned")))
        assert (page.rows, page.more, page.incomplete) == ((), False, False)
        assert adapter.count(ask()) == 0
    # It is none where the total says otherwise, or where there is no total.
    for body in ({"nombre": 3, "resultats": None}, {"erreur": "x"}):
        source.upsert("GET", f"{URL}/sejours", json=body)
        with pytest.raises(SourceDataError):
            adapter.search(ask())


def test_the_total_may_be_in_content_range(tmp_path, source):
    adapter = opened_at(URL, tmp_path, total="total: {header: Content-Range}")
    rows = {"resultats": ROWS[:1]}
    source.get(LIST, json=rows, headers={"Content-Range": "items 0-0/1"})
    assert adapter.search(ask()).total == 1
    for value in ("0-0/*", ""):
        source.upsert("GET", LIST, json=rows, headers={"Content-Range": value})
        with pytest.raises(SourceDataError, match="total"):
            adapter.search(ask())
    # PostgREST answers so if the offset is beyond the end.
    source.upsert("GET", LIST, json={}, status=416, headers={"Content-Range": "*/0"})
    assert adapter.search(ask()).rows == ()


NAMES = "Zoë Lefèvre"


ENCODED = (
    ("utf-8", "application/json; charset=iso-8859-1", ""),
    ("latin-1", "application/json; charset=iso-8859-1", ""),
    ("cp1252", "application/json; charset=utf-8", "cp1252"),
    ("latin-1", "application/json", None),
    ("latin-1", "application/json; charset=no-such", None),
    ("latin-1", "application/json; charset=\0", None),
)
"""The encoding of an answer, its type, and the mapping's encoding; None if it is refused."""


@pytest.mark.parametrize(("written", "named", "encoding"), ENCODED)
def test_json_in_another_encoding(tmp_path, source, written, named, encoding):
    extra = f", encoding: {encoding}" if encoding else ""
    adapter = opened_at(URL, tmp_path, source=extra)
    text = f'{{"id": 1, "patient": {{"ipp": 1}}, "etat": "S", "uf": {{"code": "{NAMES}"}}}}'
    source.get(f"{URL}/sejours/1", body=text.encode(written), content_type=named)
    if encoding is None:
        with pytest.raises(SourceDataError):
            adapter.read(STAY, "1")
    else:
        assert adapter.read(STAY, "1").functional_unit == NAMES  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("hosts", "is_followed"),
    [("[]", False), ("[other.example, 'localhost:1']", False), ("[HOST]", True)],
)
def test_links_to_other_hosts_are_followed_if_the_file_names_them(
    tmp_path, hosts, is_followed
):
    api = Api(EDGES)

    def elsewhere(request):
        text = api.page(request).get_data(as_text=True)
        return Response(text.replace("127.0.0.1", "localhost"))

    api.strange = elsewhere
    with serving(api) as url:
        host = url.replace("http://127.0.0.1", "LOCALHOST")
        source = f", hosts: {hosts.replace('HOST', repr(host))}"
        adapter = opened_at(url, tmp_path, paging=NEXT, source=source)
        query = ask(count=SIZE)
        if is_followed:
            total = adapter.count(query)
            assert sum(len(page.rows) for page in walk(adapter, query)) == total
            assert api.requests[-1].host == host.lower()
        else:
            with pytest.raises(SourceDataError, match="another server"):
                adapter.search(query)
        adapter.close()
