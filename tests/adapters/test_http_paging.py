"""Ways to page, to filter and to show who asks, against a real HTTP server."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from werkzeug import Request

from adapters.contract import (
    Limit,
    NotAskableError,
    Prefix,
    SourceDataError,
    StringMatch,
)
from adapters.mapping.problems import MappingError
from adapters.testing.asking import (
    PATIENT,
    STAY,
    ask,
    dates,
    ids_of,
    patient,
    text,
    token,
    walk,
)
from adapters.testing.hospital import VISIT_SYSTEMS
from adapters.testing.stays import EDGES
from tests.adapters.http_cases import api_and_adapter, opened_at, rows_of
from tests.hospital_http import SECRETS, answer
from tests.hospital_http_rows import stay

MODEL = EDGES.model()
COUNTED = "counting: {path: /sejours/nombre, total: nombre}"
BOTH_WAYS = ("{offset: debut}", "{page: page}", "{page: page, first: 1}")
FORWARDS = ("{next: suite.lien}", "{token: {send: curseur, path: suite.curseur}}")
TOTALS = ("total: nombre", COUNTED)


def _everything() -> list[Any]:
    return rows_of(MODEL.search(ask()))


@pytest.mark.parametrize("total", TOTALS)
@pytest.mark.parametrize("paging", BOTH_WAYS)
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


@pytest.mark.parametrize("total", TOTALS)
@pytest.mark.parametrize("paging", FORWARDS)
def test_onward_pages_go_forwards(tmp_path: Path, paging: str, total: str) -> None:
    with api_and_adapter(tmp_path, paging=paging, total=total) as (_, adapter):
        offered = adapter.capabilities[STAY]
        assert (offered.paging, offered.backwards, offered.keyset) == (
            True,
            False,
            False,
        )
        for size in (1, 7, 200):
            query = ask(token("status", "finished"), count=size)
            pages = list(walk(adapter, query))
            expected = rows_of(MODEL.search(ask(token("status", "finished"))))
            assert [row for page in pages for row in rows_of(page)] == expected


@pytest.mark.parametrize("paging", BOTH_WAYS[:2])
def test_the_last_page_is_found(tmp_path: Path, paging: str) -> None:
    with api_and_adapter(tmp_path, paging=paging) as (_, adapter):
        page = adapter.search(replace(ask(count=5), from_end=True))
        assert rows_of(page) == _everything()[-5:]
        assert page.more
        # Its rows are those of no page of the API's own, nor are those before it.
        before = adapter.search(ask(count=5, before=page.first))
        assert rows_of(before) == _everything()[-10:-5]


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


def test_post_sends_a_form(tmp_path: Path) -> None:
    change = (("rows: resultats", "rows: resultats, method: post"),)
    with api_and_adapter(tmp_path, changes=change) as (api, adapter):
        assert rows_of(adapter.search(ask())) == _everything()
        assert (api.requests[-1].method, api.requests[-1].query_string) == ("POST", b"")


def test_what_no_row_can_match_is_not_asked(tmp_path: Path) -> None:
    with api_and_adapter(tmp_path) as (api, adapter):
        for criteria in (
            (token("status", "hidden"),),
            (token("_id", "1"), token("_id", "2")),
            (dates("ge2024-05-01"), dates("lt2024-04-01")),
            (token("_id"),),
            (token("_id", "1" * 65),),
            (token("identifier", "V1\0"),),
            (token("identifier", "V1\ud800"),),
        ):
            assert adapter.search(ask(*criteria)).rows == ()
            assert adapter.count(ask(*criteria)) == 0
        assert api.requests == []


# ------------------------------------------------- lists that do not hold what they say

ROWS = [stay(EDGES, each) for each in EDGES.stays]


@pytest.mark.parametrize("rows", [ROWS[:3], []], ids=["few", "none"])
@pytest.mark.parametrize("paging", ["", BOTH_WAYS[1], *FORWARDS])
def test_a_list_that_ends_before_its_total_is_noticed(
    tmp_path: Path, paging: str, rows: list[Any]
) -> None:
    with api_and_adapter(tmp_path, paging=paging) as (api, adapter):
        api.strange = lambda _: answer({"resultats": rows, "nombre": len(ROWS)})
        for placed in (False, True):
            with pytest.raises(SourceDataError, match="shorter than its total"):
                adapter.search(replace(ask(), placed=placed))


@pytest.mark.parametrize("paging", FORWARDS)
def test_a_list_in_parts_that_ends_before_its_total_is_noticed(
    tmp_path: Path, paging: str
) -> None:
    with api_and_adapter(tmp_path, paging=paging) as (api, adapter):
        api.most = 4
        # The third part tells no way on.
        api.strange = lambda _: (
            answer({"resultats": ROWS[8:12], "nombre": len(ROWS)})
            if len(api.requests) == 3
            else None
        )
        with pytest.raises(SourceDataError, match="shorter than its total"):
            adapter.search(replace(ask(count=40), placed=True))


@pytest.mark.parametrize("paging", FORWARDS)
def test_a_page_that_leads_nowhere_new_is_noticed(tmp_path: Path, paging: str) -> None:
    """A client would follow such links without an end."""
    with api_and_adapter(tmp_path, paging=paging) as (api, adapter):
        rows = ROWS[:2]
        api.strange = lambda request: answer(
            {
                "resultats": rows,
                "nombre": len(ROWS),
                "suite": {"lien": f"{request.base_url}?same=1", "curseur": "same"},
            }
        )
        query = ask(count=2)
        onward = replace(query, after=adapter.search(query).last)
        with pytest.raises(SourceDataError, match="the same page"):
            adapter.search(onward)
        rows = []
        with pytest.raises(SourceDataError, match="an empty page leads on"):
            adapter.search(query)


@pytest.mark.parametrize("paging", FORWARDS)
def test_where_nothing_matches_there_is_no_way_on(tmp_path: Path, paging: str) -> None:
    with api_and_adapter(tmp_path, paging=paging) as (api, adapter):
        api.strange = lambda _: answer({"resultats": [], "nombre": 0})
        page = adapter.search(ask())
        assert (page.rows, page.more, page.first, page.last) == ((), False, None, None)


@pytest.mark.parametrize("end", [None, False, 0, 0.0, ""], ids=str)
def test_a_last_page_leads_nowhere_however_it_says_so(
    tmp_path: Path, end: object
) -> None:
    """A cursor of 0 would be the first page again, and the walk without an end."""
    with api_and_adapter(tmp_path, paging=FORWARDS[1]) as (api, adapter):
        first = {"resultats": ROWS[:2], "nombre": 4, "suite": {"curseur": 2}}
        last = {"resultats": ROWS[2:4], "nombre": 4, "suite": {"curseur": end}}
        api.strange = lambda request: answer(
            last if request.args.get("curseur") == "2" else first
        )
        query = ask(count=2)
        last_page = adapter.search(replace(query, after=adapter.search(query).last))
        assert (len(last_page.rows), last_page.more) == (2, False)


@pytest.mark.parametrize("total", TOTALS)
def test_an_api_that_heeds_no_offset_is_noticed(tmp_path: Path, total: str) -> None:
    with api_and_adapter(tmp_path, total=total) as (api, adapter):
        api.strange = lambda request: answer(
            {"resultats": ROWS[: min(4, int(request.args["nb"]))], "nombre": len(ROWS)}
        )
        with pytest.raises(SourceDataError, match="holds a row twice"):
            adapter.search(ask(count=10))


# ----------------------------------------------------------- what can be asked

BOTH = ("entreeDu", "entreeAvant")
BOUNDS = 'date: {from: entreeDu, before: entreeAvant, format: "%d/%m/%Y %H:%M:%S"}'
SECONDS = ((BOUNDS, "date: {from: entreeDu, before: entreeAvant}"),)
DAYS = ((BOUNDS, "date: {from: entreeDu, before: entreeAvant, step: day}"),)
DAYS_IN_UTC = ((BOUNDS, "date: {from: entreeDu, step: day, time_zone: UTC}"),)
ONE = (("_id: {send: ids, several: comma}", "_id: {send: ids}"),)
SYSTEMS = tuple(VISIT_SYSTEMS.values())
FORM = "%Y-%m-%dT%H:%M:%S"
OFFSETS = (
    (BOUNDS, f'date: {{from: entreeDu, until: entreeAvant, format: "{FORM}%z"}}'),
)
IN_UTC = ((BOUNDS, f'date: {{from: entreeDu, format: "{FORM}", time_zone: UTC}}'),)
OFFSETS_IN_UTC = (
    (BOUNDS, f'date: {{from: entreeDu, format: "{FORM}%z", time_zone: UTC}}'),
)
UNTIL = ((BOUNDS, "date: {from: entreeDu, until: entreeAvant, step: minute}"),)


@pytest.mark.parametrize(
    ("changes", "asked", "sent"),
    [
        (DAYS, "2024-03-14", {"entreeDu": "2024-03-14", "entreeAvant": "2024-03-15"}),
        (DAYS, "gt2024-03", {"entreeDu": "2024-04-01"}),
        (DAYS, "le2024-03-14", {"entreeAvant": "2024-03-15"}),
        (DAYS, "ge2024-03-14T23:00Z", {"entreeDu": "2024-03-15"}),
        (DAYS_IN_UTC, "ge2024-03-14T00:00:00Z", {"entreeDu": "2024-03-14"}),
        (UNTIL, "lt2024-03-14T10:00", {"entreeAvant": "2024-03-14T09:59"}),
        (SECONDS, "ge2024-10-27T01:30Z", {"entreeDu": "2024-10-27T03:00:00"}),
        ((), "ge2024-10-27T01:30Z", {"entreeDu": "27/10/2024 03:00:00"}),
        (
            OFFSETS,
            "2024-10-27T02:30:00+01:00",
            {
                "entreeDu": "2024-10-27T02:30:00+0100",
                "entreeAvant": "2024-10-27T02:30:00+0100",
            },
        ),
        (IN_UTC, "ge2024-10-27T02:30:00+01:00", {"entreeDu": "2024-10-27T01:30:00"}),
        (
            OFFSETS_IN_UTC,
            "ge2024-10-27T02:30:00+01:00",
            {"entreeDu": "2024-10-27T01:30:00+0000"},
        ),
    ],
)
def test_bounds_are_written_as_the_source_takes_them(
    tmp_path: Path, changes: Any, asked: str, sent: dict[str, str]
) -> None:
    with api_and_adapter(tmp_path, changes=changes) as (api, adapter):
        api.strange = lambda _: answer({"resultats": [], "nombre": 0})
        adapter.search(ask(dates(asked)))
        (request,) = api.requests
        assert {k: v for k, v in request.args.items() if k in BOTH} == sent


@pytest.mark.parametrize(
    ("changes", "criterion", "limit"),
    [
        (DAYS, dates("ge2024-03-14T10:00:00+01:00"), Limit.DAY),
        (DAYS, dates("2024-03-14T00:00"), Limit.DAY),
        (DAYS_IN_UTC, dates("ge2024-03-14"), Limit.OTHER_DAYS),
        (DAYS_IN_UTC, dates("ge2024-03-14T10:00:00+01:00"), Limit.DAY),
        (UNTIL, dates("ge2024-03-14T10:00:30+01:00"), Limit.MINUTE),
        ((), dates("ne2024-03-14"), Limit.PREFIX),
        ((), dates("2024-03-14", "2024-05"), Limit.ONE_VALUE),
        (ONE, token("_id", "1", "2"), Limit.ONE_VALUE),
        ((), token("identifier", *(f"{s}|V1" for s in SYSTEMS)), Limit.ONE_VALUE),
        ((), token("class", "UNK"), Limit.CODE),
        ((), token("identifier", "|1"), Limit.SYSTEM),
        ((), token("identifier", "a,b"), Limit.SIGN),
    ],
)
def test_what_cannot_be_asked_is_refused(
    tmp_path: Path, changes: Any, criterion: Any, limit: Limit
) -> None:
    with api_and_adapter(tmp_path, changes=changes) as (api, adapter):
        for call in (adapter.search, adapter.count, adapter.explain):
            with pytest.raises(NotAskableError) as caught:
                call(ask(criterion))
            assert caught.value.limit is limit
            assert caught.value.parameter == criterion.parameter
        assert api.requests == []


@pytest.mark.parametrize(
    ("values", "sent"),
    [
        # Patient 7 was merged into 8, as the source alone knows.
        ((("7",), ("8",)), None),
        ((("7", "2"), ("8", "2")), None),
        ((("7",), ("8", "7")), "7"),
        ((("8", "7"), ("7", "8")), "8,7"),
    ],
)
def test_patients_who_may_be_one_are_not_taken_for_two(
    tmp_path: Path, values: tuple[tuple[str, ...], ...], sent: str | None
) -> None:
    with api_and_adapter(tmp_path) as (api, adapter):
        query = ask(*(patient(*each) for each in values))
        if sent is None:
            with pytest.raises(NotAskableError) as caught:
                adapter.search(query)
            assert caught.value.limit is Limit.ONCE
            assert api.requests == []
        else:
            assert ids_of(adapter.search(query)) == ["91", "90"]
            assert api.requests[0].args["ipp"] == sent


def test_capabilities_say_what_can_be_asked(tmp_path: Path) -> None:
    change = ((BOUNDS, "date: {from: entreeDu}"),)
    adapter = opened_at("http://pas.invalid", tmp_path, changes=change)
    able = adapter.capabilities
    assert able[STAY].parameters["date"].prefixes == {Prefix.GE, Prefix.GT}
    assert able[PATIENT].parameters["name"].matches == frozenset(StringMatch)


def test_one_system_of_all_visit_numbers_is_never_sent(tmp_path: Path) -> None:
    own = (
        "visit_number_system: {from: etablissement.id, codes: systems}",
        "visit_number_system: {value: 'urn:oid:1.2.3'}",
    )
    with api_and_adapter(tmp_path, changes=(own,)) as (api, adapter):
        api.strange = lambda _: answer({"resultats": [], "nombre": 0})
        for other in ("urn:oid:1.2.4|V1", "|V1"):
            assert adapter.count(ask(token("identifier", other))) == 0
        assert api.requests == []
        for value in ("V1", "urn:oid:1.2.3|V1"):
            adapter.search(ask(token("identifier", value)))
        sent = [set(request.args) & {"venues", "etabs"} for request in api.requests]
        assert sent == [{"venues"}, {"venues"}]
        assert [request.args["venues"] for request in api.requests] == ["V1", "V1"]


def test_several_values_repeat_the_parameter(tmp_path: Path) -> None:
    change = (
        (
            "status: {send: etats, several: comma}",
            "status: {send: etats, several: repeat}",
        ),
    )
    with api_and_adapter(tmp_path, changes=change) as (api, adapter):
        api.strange = lambda _: answer({"resultats": [], "nombre": 0})
        adapter.search(ask(token("status", "finished", "planned")))
        assert api.requests[0].args.getlist("etats") == ["S", "C", "P"]


@pytest.mark.parametrize(
    "criterion",
    [token("_id", "1"), token("status", "planned"), dates("2024-03-14"),
     token("class", "AMB"), token("identifier", "V1")],
)  # fmt: skip
def test_a_filter_that_the_source_passes_over_is_noticed(
    tmp_path: Path, criterion: Any
) -> None:
    with api_and_adapter(tmp_path) as (api, adapter):
        page = {"resultats": [stay(EDGES, EDGES.stays[7])], "nombre": 1}
        api.strange = lambda _: answer(page)
        with pytest.raises(SourceDataError, match="not asked for"):
            adapter.search(ask(criterion))


def test_the_stays_of_another_patient_are_noticed(tmp_path: Path) -> None:
    change = (("several: comma, merged: true", "several: comma"),)
    with api_and_adapter(tmp_path, changes=change) as (api, adapter):
        assert ids_of(adapter.search(ask(patient("2"))))
        api.strange = lambda _: answer(
            {"resultats": [stay(EDGES, EDGES.stays[0])], "nombre": 1}
        )
        with pytest.raises(SourceDataError, match="not asked for"):
            adapter.search(ask(patient("2")))


@pytest.mark.parametrize("asked", [("2",), ("2", "8")], ids=len)
def test_the_stays_of_anybody_are_no_answer_for_a_patient_who_may_be_merged(
    tmp_path: Path, asked: tuple[str, ...]
) -> None:
    """A survivor's stays are those of one patient for each who was asked for."""
    with api_and_adapter(tmp_path) as (api, adapter):
        assert ids_of(adapter.search(ask(patient(*asked))))
        api.strange = lambda _: answer({"resultats": ROWS[15:22], "nombre": 7})
        with pytest.raises(SourceDataError, match="not asked for"):
            adapter.search(ask(patient(*asked)))


def test_a_hidden_row_is_never_shown(tmp_path: Path) -> None:
    with (
        api_and_adapter(tmp_path, changes=(('"A,X"', '"Z"'),)) as (_, adapter),
        pytest.raises(SourceDataError, match="not to be served"),
    ):
        adapter.search(ask())


# ---------------------------------------------------------------- who asks


def _bearer(api: Any) -> Callable[[Request], bool]:
    return lambda r: r.headers.get("Authorization") == f"Bearer {api.sessions[-1]}"


def _session(api: Any) -> Callable[[Request], bool]:
    return lambda r: r.headers.get("X-Session") == f"Session {api.sessions[-1]}"


@pytest.mark.parametrize(
    ("source", "guard"),
    [
        (
            "headers: {X-Api-Key: {env: PAS_KEY}}",
            lambda _: lambda r: r.headers.get("X-Api-Key") == SECRETS["PAS_KEY"],
        ),
        (
            "auth: {basic: {user: {env: PAS_USER}, password: {env: PAS_PASSWORD}}}",
            lambda _: (
                lambda r: (
                    r.authorization is not None
                    and r.authorization.password == SECRETS["PAS_PASSWORD"]
                )
            ),
        ),
        (
            "auth: {oauth2: {token_url: 'URL/token', client_id: c, "
            "client_secret: {env: PAS_PASSWORD}, scope: lire, audience: pas}}",
            _bearer,
        ),
        (
            "auth: {session: {path: /session, body: {nom: {env: PAS_USER}}, "
            "token: jeton.valeur, header: X-Session, format: 'Session {token}'}}",
            _session,
        ),
        (
            "auth: {session: {path: /session, form: {nom: {env: PAS_USER}}, "
            "token: jeton.valeur, header: X-Session, format: 'Session {token}'}}",
            _session,
        ),
    ],
)
def test_the_source_is_shown_who_asks(
    tmp_path: Path, source: str, guard: Callable[[Any], Callable[[Request], bool]]
) -> None:
    from tests.hospital_http import Api, serving

    api = Api(EDGES)
    api.guard = guard(api)
    with serving(api) as url:
        adapter = opened_at(url, tmp_path, source=f", {source.replace('URL', url)}")
        assert adapter.read(STAY, "1").id == "1"
        # A token that the source has forgotten is renewed, once.
        api.sessions.append("other")
        assert adapter.read(STAY, "2").id == "2"
        logins = [r for r in api.requests if r.path in ("/session", "/token")]
        assert len(logins) == (2 if "sess" in source or "oauth2" in source else 0)
        api.guard = lambda _: False
        with pytest.raises(SourceDataError, match="refuses who asks"):
            adapter.read(STAY, "1")
        adapter.close()


def test_a_profile_with_pages_wants_a_list_with_pages(tmp_path: Path) -> None:
    with pytest.raises(MappingError, match=r"encounter.list.*has further pages"):
        opened_at(
            "http://pas.invalid", tmp_path, paging="",
            changes=(("profile: group-a", "profile: full"),),
        )  # fmt: skip


def test_texts_reach_patients(tmp_path: Path) -> None:
    with api_and_adapter(tmp_path) as (_, adapter):
        assert ids_of(adapter.search(ask(text("name", "tour"), of=PATIENT))) == ["2"]
