"""PostgREST and OData by templates: every search, page and total, and attacks that find nothing."""

import json
import re
from contextlib import contextmanager
from dataclasses import replace
from itertools import product

import pytest

from adapters.contract import (
    NotAskableError,
    NotFoundError,
    ReferenceCriterion,
    RowFault,
    Sort,
    SortKey,
    SourceDataError,
    Token,
    TokenCriterion,
)
from adapters.http.adapter import HttpAdapter
from adapters.mapping.load import load_mapping
from tests.adapters import http_cases
from tests.adapters.http_cases import URL, opened_at
from tests.hospital_http import serving
from tests.other_makes import (
    NEXT,
    PLAIN,
    SKIP,
    OData,
    PostgREST,
    flat_rows,
    mapping_of,
)
from toolkit.contract.harness import (
    NEWEST_FIRST,
    STAY,
    ask,
    dates,
    patient,
    rows_of,
    token,
    walk,
)

MODEL = PLAIN.model()
COLUMNS = {"id": "stay_id", "ipp": "patient_id", "start": "began", "end": "ended"}
OLDEST_FIRST = Sort(SortKey.DATE)
SORTS = (NEWEST_FIRST, OLDEST_FIRST)
FIRST = {
    "last": (False, False),
    "first": (True, True),
    "high": (False, True),
    "low": (True, False),
}
"""Whether rows without a start come first, upwards and downwards, by the mapping's word."""

LOWEST, HIGHEST = "1900-01-01T00:00:00", "9999-12-31T00:00:00"


@contextmanager
def opened(folder, make, paging=SKIP, nulls="low", absent="-"):
    api = make(flat_rows(PLAIN.stays))
    if isinstance(api, OData):
        api.first = FIRST[nulls]
    file = folder / "hospital.yaml"
    file.write_text(mapping_of(make, paging, nulls, absent), encoding="utf-8")
    with serving(api) as url:
        adapter = HttpAdapter(load_mapping(file, {"PAS_URL": url}))
        try:
            yield api, adapter
        finally:
            adapter.close()


def shown(page):
    return http_cases.rows_of(page, COLUMNS)


SEARCHES = (
    (),
    (token("_id", "1", "2"),),
    (patient("1", "3"),),
    (token("status", "finished"),),
    (token("class", "UNK", "IMP"),),
    (token("identifier", "V1", "V2"),),
    (dates("2024-03-14"),),
    (dates("ge2024-03-14"),),
    (dates("lt2024-03-14T10:00:00+01:00"),),
    (dates("ne2024-03-14"),),
    (
        *(token("status", "finished"), patient("1")),
        *(dates("ge2024-01-01"), dates("lt2025-01-01")),
    ),
)
MAKES = (
    (PostgREST, SKIP, "last", "-"),
    # It finds and sorts by a start that stands for none.
    *((OData, SKIP, "low", LOWEST), (OData, SKIP, "high", HIGHEST)),
    (OData, SKIP, "first", "-"),
    (OData, NEXT, "last", "-"),
)


@pytest.mark.parametrize(("make", "paging", "nulls", "absent"), MAKES)
def test_every_search_page_and_total_is_equal(tmp_path, make, paging, nulls, absent):
    with opened(tmp_path, make, paging, nulls, absent) as (api, adapter):
        for row in api.rows if absent != "-" else ():
            row["start"] = row["start"] or absent
        refusals = set()
        for criteria, sort in product(SEARCHES, SORTS):
            query = ask(*criteria, sort=sort)
            try:
                found = shown(adapter.search(query))
            except NotAskableError as refusal:
                refusals.add(refusal.parameter)
                continue
            expected = rows_of(MODEL.search(query))
            assert found == expected != [], criteria
            assert adapter.count(query) == len(expected)
            for size in (1, 7) if criteria == () else (2,):
                few = replace(query, count=size)
                pages = list(walk(adapter, few))
                assert [row for page in pages for row in shown(page)] == expected
                if paging == SKIP:
                    ahead = replace(few, before=pages[-1].first)
                    back = [shown(page) for page in walk(adapter, ahead, back=True)]
                    assert back == [shown(page) for page in pages[-2::-1]]
                    last = adapter.search(replace(few, from_end=True))
                    assert shown(last) == expected[-size:]
        # Two lists that do not follow each other, and a template without `excluding`.
        refused = {"date"} if paging == NEXT else set()
        assert refusals == ({"class"} if make is PostgREST else refused)
        assert adapter.read(STAY, "1").id == "1"


@pytest.mark.parametrize(("make", "paging"), [(PostgREST, SKIP), (OData, NEXT)])
def test_a_page_costs_one_call_and_knows_the_total(tmp_path, make, paging):
    rows = rows_of(MODEL.search(ask(sort=OLDEST_FIRST)))
    with opened(tmp_path, make, paging, "last") as (api, adapter):
        page = adapter.search(ask(sort=OLDEST_FIRST, count=5))
        assert (page.total, page.more, len(api.requests)) == (len(rows), True, 1)
        second = adapter.search(ask(sort=OLDEST_FIRST, count=5, after=page.last))
        assert (shown(second), len(api.requests)) == (rows[5:10], 2)


def test_a_row_that_is_found_by_an_absent_value_is_a_fault(tmp_path):
    """No bound leaves out what is no time; the others are served (decision 45)."""
    absent = "2024-03-00T00:00:00"
    with opened(tmp_path, PostgREST, absent=absent) as (api, adapter):
        query = ask(dates("ge2024-02-20"))
        others = shown(adapter.search(query))
        (row,) = (row for row in api.rows if row["id"] == 1)
        row["start"] = absent
        page = adapter.search(query)
        (fault,) = (found for found in page.rows if found.id == "1")
        assert isinstance(fault, RowFault)
        assert (fault.field, fault.column) == ("start", "start")
        assert len(page.rows) == len(others) == adapter.count(query)
        # What does not match otherwise is a row of another search.
        api.strange = [row]
        with pytest.raises(SourceDataError, match="does not match"):
            adapter.search(ask(token("_id", "2"), dates("ge2024-02-20")))


ATTACKS = (
    *("'", "''", '"', "\\", "\\'", '\\"', "1' or '1' eq '1", "' or 1 eq 1 or 'a' eq '", "-1"),
    *('1","2', '1") or ("', "1)", "1),id.gt.(0", "*", "%", "_", "1,2", "1&id=gt.0", "$top"),
    *("1&$filter=id gt 0", "1#", "1%26limit=1000", "%27 or id gt 0", "1;2", "1?limit=1000"),
    *("id", "ipp", "null", "1 or id gt 0", "eq.1", "1\n2", "1\x002", "\x7f", "a\tb", "1|2"),
    *("../1", "{value}", "{values}", "+1", "01", "1.0", "\u0661", "limit=1", str(2**63)),
    *("1 ", " 1", "V1' --", "state", "A','S", 'X","S', "\u2028", "é'"),
)  # fmt: skip


def _criteria(value):
    """Yield the searches of every template by a value, which few stays have."""
    for parameter in ("_id", "identifier", "service-provider._extension"):
        yield TokenCriterion(parameter, (Token(None, value),))
    yield TokenCriterion("identifier", (Token("urn:oid:1.2.250.1.999.1.1", value),))
    yield ReferenceCriterion("patient", (value,))
    # Beside a value that stays have.
    yield TokenCriterion("_id", (Token(None, "1"), Token(None, value)))
    yield ReferenceCriterion("patient", ("1", value))


@pytest.mark.parametrize("make", [PostgREST, OData])
def test_an_attack_finds_nothing_and_changes_nothing(tmp_path, make):
    with opened(tmp_path, make) as (api, adapter):
        known: dict[str, set[str]] = {}
        for value in ("1", *ATTACKS):
            for criterion in _criteria(value):
                api.requests.clear()
                query = ask(criterion)
                expected = rows_of(MODEL.search(query))
                assert shown(adapter.search(query)) == expected, (value, criterion)
                for request in api.requests:
                    key = f"{criterion.parameter} {len(criterion.values)}"
                    key += str(getattr(criterion.values[0], "system", ""))
                    assert known.setdefault(key, {*request.args}) == {*request.args}
                    assert request.path in ("/stays", "/Stays")
            api.requests.clear()
            if value != "1":
                with pytest.raises(NotFoundError):
                    adapter.read(STAY, value)


SENT = {
    "id eq '{value}'": ("V1", 'V"1', "é"),
    "id eq {value}": ("-1", "2.5"),
    "in.({values})": ("V1", "a:b/c.d-e"),
    "{value:int32}": ("0", "-1"),
}
REFUSED = {
    "id eq '{value}'": ("V'1", "a~b", "1\n2", "1\x00", "\u2028"),
    "id eq {value}": ("V1", "1 or 1", "1)", "\u0661"),
    "in.({values})": ("1),id.gt.(0", '1"', "1|2"),
    "{value:int32}": ("01", "1.0", "V1"),
}
"""Values by the template they are sent in, and those that it has no place for."""


@pytest.mark.parametrize("template", SENT)
def test_a_value_is_sent_in_its_place_or_not_at_all(tmp_path, source, template):
    source.get(f"{URL}/sejours", json={"resultats": [], "nombre": 0})
    query = f"_id: {{query: {json.dumps(f'f={template}')}}}"
    change = ('_id: {query: "ids={values}", separator: ","}', query)
    extra = ", quote: none, without: '~'"
    adapter = opened_at(URL, tmp_path, changes=(change,), source=extra)
    for value in (*SENT[template], *REFUSED[template]):
        source.calls.reset()
        adapter.search(ask(TokenCriterion("_id", (Token(None, value),))))
        sent = [call.request.params["f"] for call in source.calls]
        place = re.sub(r"\{.*\}", lambda _, value=value: value, template)
        assert sent == ([place] if value in SENT[template] else []), value
