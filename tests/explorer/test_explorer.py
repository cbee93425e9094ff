"""The explorer: login, searches, the tabs, and that it gives nothing away."""

import csv
import html
import io
import json
import re
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import responses
from joserfc.jwk import OctKey

from app.errors import OUTCOMES
from explorer.explorer import HEADERS
from explorer.failures import TEXTS
from tests.app import provider
from tests.explorer.conftest import CLIENT_ID, TOKEN, URL, Browser
from toolkit.contract.hospital import CANARIES, EDGES, Hospital

Explore = Callable[..., Browser]

STAYS = {"name": "Dupres", "status": ["planned", "in-progress", "finished"]}
"""A form that finds the stays of patient 1: 19, of which two rows cannot be mapped."""

NIGHT = {"name": "Latour", "admission_from": "27/10/2024", "admission_to": "2024-10-27"}
"""A form that finds the three stays of patient 3 that began in the night of a clock change."""


def events(service):
    """Return the audit events of a service so far."""
    file = Path(service.app.extensions["encounters"].settings.audit)
    return [json.loads(line) for line in file.read_text().splitlines()]


@contextmanager
def audited(service, count):
    """Hold what happens within to a number of audit events."""
    before = len(events(service))
    yield
    assert len(events(service)) == before + count


def sealed(page, kind="who"):
    """Return the addresses of the patients of a table, or of another class of links."""
    links = re.findall(
        rf'class="(?:c-)?{kind}"[^>]*?(?:><a)? href="(/see/[^"]+)"', page
    )
    return [html.unescape(link) for link in links]


def starts(page):
    """Return when the stays of a table began."""
    return re.findall(r'data-label="Admission"><time datetime="([^"]+)"', page)


def path_of(place):
    """Return the path of a result, for what can be done with it."""
    return place.partition("?")[0]


# ------------------------------------------------------------------------------- login


def test_a_page_leads_to_the_login_first(visitor):
    for path in ("/", "/search/Encounter", "/results/x", "/see/x"):
        response = visitor.get(path)
        assert (response.status_code, response.headers["Location"]) == (303, "/login")


def test_the_login_uses_pkce_state_nonce_timeouts_and_verified_tls(visitor):
    visitor.log_in()
    # The service fetches the keys of access tokens, too.
    calls = [c for c in visitor.provider.calls if c.request.url != provider.KEY_SET_URL]
    assert len(calls) >= 3
    for call in calls:
        assert call.request.req_kwargs["timeout"] == 2
        assert call.request.req_kwargs["verify"]
    sent = visitor.begin_login()
    assert sent["code_challenge_method"] == "S256"
    assert sent["redirect_uri"] == f"{URL}/login/done"
    assert sent["client_id"] == CLIENT_ID
    assert all(len(sent[n]) >= 20 for n in ("state", "nonce", "code_challenge"))


def test_the_cookie_is_opaque_and_for_this_host_alone(visitor):
    response = visitor.log_in()
    (cookie,) = (
        c for c in response.headers.getlist("Set-Cookie") if "Expires" not in c
    )
    assert cookie.startswith("__Host-explorer=")
    for part in ("Secure", "HttpOnly", "SameSite=Lax", "Path=/"):
        assert part in cookie
    assert "." not in visitor.cookie(), "a token has dots"
    assert "Camille" in visitor.get("/").text
    # One that was planted before the login is worth nothing afterwards.
    visitor.begin_login()
    planted = visitor.cookie()
    visitor.log_in()
    visitor.steal(planted)
    assert not visitor.is_logged_in()


def test_redis_holds_nothing_that_can_be_read_and_nothing_after_the_logout(
    visitor, redis_server
):
    with redis_server.client() as client:
        before = {*client.scan_iter("explorer:*")}
        visitor.log_in()
        cookie, place = visitor.cookie(), visitor.place("Patient", name="Serincanari")
        visitor.place("Patient", name="Martin")
        added = {*client.scan_iter("explorer:*")} - before
        assert len(added) >= 4, "a session, two results and their list"
        for key in added:
            assert cookie.encode() not in key
            stored = client.dump(key)
            assert not any(w.encode() in stored for w in (*CANARIES, "camille"))
            assert 0 < client.ttl(key) <= 15 * 60
        visitor.post("/logout")
        assert {*client.scan_iter("explorer:*")} <= before
    visitor.steal(cookie)
    assert not visitor.is_logged_in()
    assert visitor.get(place).status_code == 401


def test_a_login_that_another_browser_began_is_refused(visitor):
    attacker = Browser(visitor.app, visitor.provider)
    path = f"/login/done?code=right&state={attacker.begin_login()['state']}"
    assert visitor.get(path).status_code == 404
    visitor.begin_login()
    refused = visitor.get(path)
    assert refused.status_code == 403
    assert TOKEN not in [call.request.url for call in visitor.provider.calls]
    assert TEXTS[403][1] not in refused.text, "no scope is missing"
    assert not visitor.is_logged_in()


FALSE_TOKENS = [
    (provider.rsa(), "RS256", {"nonce": "of another login"}),
    (provider.rsa(), "RS256", {"aud": "another client"}),
    (provider.rsa(), "RS256", {"iss": "https://other.example.org/"}),
    (provider.rsa(), "RS256", {"exp": 1_000_000_000}),
    (provider.rsa(), "RS256", {"sub": None}),
    (provider.rsa("another"), "RS256", {}),
    (OctKey.generate_key(256), "HS256", {}),
]


@pytest.mark.parametrize(("signer", "algorithm", "claims"), FALSE_TOKENS)
def test_an_id_token_for_something_or_by_somebody_else_is_refused(
    visitor, signer, algorithm, claims
):
    begun = visitor.begin_login()
    about = {"sub": "camille", "aud": CLIENT_ID, "nonce": begun["nonce"], **claims}
    id_token = provider.sign(signer, algorithm, {"kid": "rsa-1"}, **about)
    assert visitor.end_login(begun, id_token=id_token).status_code == 403
    assert not visitor.is_logged_in()


NO_METADATA: list[dict[str, Any]] = [
    {"status": 500},
    {"json": []},
    {"json": {"issuer": "https://other.example.org/"}},
    {"json": {"issuer": provider.ISSUER, "authorization_endpoint": "http://a.b"}},
    {"status": 302, "headers": {"Location": "https://evil.example"}},
]


def test_nobody_logs_in_while_the_provider_is_away_or_refuses(visitor):
    address = f"{provider.ISSUER}.well-known/openid-configuration"
    refusal = {"json": {"error": "invalid_grant"}, "status": 400}
    visitor.provider.upsert(responses.POST, TOKEN, **refusal)
    for query in ("error=access_denied", "code=x"):
        state = visitor.begin_login()["state"]
        response = visitor.get(f"/login/done?{query}&state={state}")
        assert response.status_code == 403
    for metadata in NO_METADATA:
        visitor.provider.upsert(responses.GET, address, **metadata)
        response = visitor.get("/login/start")
        assert response.status_code == 503, metadata
        assert TEXTS[503][1] in response.text


def test_no_address_from_a_request_is_followed(visitor):
    evil = "&next=https://evil.example&redirect_uri=https://evil.example"
    response = visitor.end_login(visitor.begin_login(), more=evil)
    assert response.headers["Location"] == "/"
    for path in ("//evil.example/?lang=fr", "/%2Fevil.example/login?lang=fr"):
        assert not visitor.get(path).headers.get("Location", "").startswith("//")
    response = visitor.get("/login?lang=fr")
    assert response.headers["Location"] == "/login"
    assert '<html lang="fr">' in visitor.get("/login").text


def test_logins_are_limited_by_address(visitor):
    statuses = {visitor.get("/login/start").status_code for _ in range(40)}
    assert statuses == {303, 429}


def test_a_form_waits_for_the_login_and_is_shown_again(camille):
    form = {"name": "Serincanari", "status": "finished"}
    csrf, before = camille.csrf(), camille.cookie()
    camille.post("/logout")
    camille.steal(before)
    page = camille.post("/search/Encounter", csrf=csrf, **form)
    assert page.status_code == 401
    assert "Serincanari" not in page.text
    assert camille.log_in().headers["Location"] == "/"
    shown = camille.get("/").text
    assert 'value="Serincanari"' in shown
    assert re.search(r'value="finished" checked', shown)
    assert "Serincanari" not in camille.get("/").text, "once"
    # A long one does not wait.
    camille.steal(before)
    assert camille.post("/find", csrf=csrf, q="x" * 9000).status_code == 401
    camille.log_in()
    assert "xxx" not in camille.get("/").text


# ----------------------------------------------------------------------------- attacks


def test_every_form_needs_the_token_of_its_session(camille):
    for token in ("", "0" * 36):
        for path in ("/search/Encounter", "/logout", "/see/x", "/find"):
            assert camille.post(path, csrf=token).status_code == 403


def test_every_page_has_the_headers(camille):
    for path in ("/login", "/search/Encounter", "/none", "/static/explorer.css"):
        response = camille.get(path)
        for name, value in HEADERS:
            if path.startswith("/static") and name == "Cache-Control":
                continue
            assert response.headers.getlist(name) == [value], path
    assert "unsafe" not in dict(HEADERS)["Content-Security-Policy"]
    camille.url = "https://attacker.example"
    assert camille.get("/login").status_code == 400, "another host"


def test_the_first_page_is_small(camille):
    paths = re.findall(r'(?:src|href)="(/static/[^"]+)"', camille.get("/").text)
    options = {"headers": {"Accept-Encoding": "gzip"}, "buffered": True}
    sizes = [len(camille.http.get(path, URL, **options).data) for path in paths]
    assert min(sizes) > 0
    assert sum(sizes) < 60_000


def test_a_result_is_of_no_use_to_anybody_else_nor_for_ever(camille, redis_server):
    mine = camille.place(**STAYS)
    other = Browser(camille.app, camille.provider)
    other.log_in("dominique")
    path = path_of(mine)
    change = f"/search/Encounter?result={path.removeprefix('/results/')}"
    for place in (mine, change, sealed(camille.get(mine).text)[0]):
        assert other.get(place).status_code == 404
        assert camille.get(place).status_code == 200
    assert other.post(f"{path}/export", format="csv").status_code == 404
    with redis_server.client() as client:
        for key in client.scan_iter("explorer:*:results"):
            client.delete(*client.smembers(key))
    for address in (mine, f"{path}/again", change, f"{path}/next"):
        assert camille.get(address).status_code == 404, "after a quarter of an hour"
    mine = camille.place(**STAYS)
    # Nor with another login of the same person.
    camille.log_in()
    assert camille.get(mine).status_code == 404


def test_criteria_never_stand_in_an_address(camille):
    place = camille.place("Patient", name="Serincanari")
    page = camille.get(place).text + camille.get("/").text
    addresses = [place, *re.findall(r'(?:href|action)="([^"]+)"', page)]
    for word in (*CANARIES, "Patient/14"):
        assert not any(word in address for address in addresses)


HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"


def assert_harmless(*pages):
    for page in pages:
        assert "<script>alert" not in page
        assert "<img" not in page


def test_a_column_cannot_write_into_a_page(explore):
    """XSS through every column of the hospital, in every tab and page."""
    names = {"used_name": HOSTILE, "birth_name": HOSTILE, "given": HOSTILE}
    browser = explore(
        Hospital(
            tuple(r._replace(visit=HOSTILE, unit=HOSTILE) for r in EDGES.stays[:3]),
            (EDGES.patients[0]._replace(**names, numbers=((HOSTILE, None),) * 4),),
            (EDGES.organizations[0]._replace(title=HOSTILE, finess=HOSTILE),),
        )
    )
    pages = []
    for kind, form in (("Encounter", {}), ("Patient", {"born": "28/02/1950"})):
        place = browser.place(kind, **form)
        tabs = ["json", "timeline"] if kind == "Encounter" else ["json"]
        pages += [browser.get(place.replace("=table", f"={tab}")).text for tab in tabs]
        page = browser.get(place).text
        links = re.findall(r'href="(/see/[^"]+)"', page)
        shown = [browser.get(html.unescape(address)).text for address in links]
        houses = re.findall(r'<dd><a href="(/see/[^"]+)"', "".join(shown))
        pages += [page, *shown, *(browser.get(html.unescape(a)).text for a in houses)]
    assert sum("&lt;script&gt;" in page for page in pages) >= 9
    assert_harmless(*pages)


@pytest.mark.parametrize("kind", ["Encounter", "Patient"])
def test_a_parameter_cannot_write_into_a_page(camille, kind):
    """XSS through every field of every form, and through addresses."""
    names = set(re.findall(r'name="([\w.-]+)"', camille.get(f"/search/{kind}").text))
    for name in names - {"csrf"}:
        for path in (f"/search/{kind}", "/find", "/read"):
            response = camille.post(path, **{name: HOSTILE, "q": HOSTILE})
            page = response.text
            if response.status_code == 303:
                page = camille.get(response.headers["Location"]).text
            assert_harmless(page)
    assert_harmless(camille.get("/").text)
    place = camille.place(kind, **({"name": "L"} if kind == "Patient" else {}))
    for query in ("&lang=", "&tab="):
        assert_harmless(camille.get(place + query + HOSTILE).text)


# ---------------------------------------------------------------------------- searches


@pytest.mark.parametrize("profile", ["full", "group-a"])
def test_the_form_has_what_is_offered(explore, profile):
    browser = explore(profile=profile)
    is_full = profile == "full"
    page = browser.get("/search/Encounter").text
    for name in ("ipp", "admission.from", "class", "status", "visit", "ward"):
        assert (f'name="{name}"' in page) is is_full, name
    assert ('name="patient"' in page) is not is_full
    assert ("In hospital now" in browser.get("/").text) is is_full
    page = browser.search(**STAYS if is_full else {"patient": "1"})
    for kind in ("who", "visit"):
        shown = browser.get(sealed(page, kind)[0]).text
        assert "Martin Jean Paul" in shown


@pytest.mark.parametrize(
    ("scope", "has_names"),
    [("ENCOUNTER_SEARCH ENCOUNTER_READ", False), ("PATIENT_GAM_SEARCH", True)],
)
def test_names_are_for_who_may_see_them(visitor, scope, has_names):
    visitor.log_in(scope=f"openid {scope}")
    page = visitor.search(admission_from="2024-10-27", admission_to="2024-10-27")
    assert ("Latour" in page) is has_names
    stay = visitor.get(sealed(page, "visit")[0])
    assert (stay.status_code, "Latour" in stay.text) == (200, has_names)
    visitor.log_in(scope="openid PATIENT_READ")
    refused = visitor.post("/search/Encounter", status="finished")
    assert refused.status_code == 403
    assert TEXTS[403][1] in refused.text


def test_pages_go_on_and_back(camille):
    first = camille.search(**STAYS)
    assert "2 rows cannot be shown" in first
    assert re.search(r"1–\d+ of 19", first)
    (step,) = re.findall(r'rel="next" href="([^"]+)"', first)
    second = camille.follow(step)
    assert not re.search(r"[^\d]1–\d+ of 19", second)
    assert set(starts(first)).isdisjoint(starts(second))
    (back,) = re.findall(r'rel="prev" href="([^"]+)"', second)
    assert starts(camille.follow(back)) == starts(first)
    assert camille.get(step.replace("next", "last")).status_code == 404


def test_a_list_is_sorted_by_its_heads(camille):
    page = camille.search(**NIGHT)
    assert page.count("Latour Éléonore") == page.count("born 29 Feb 2000") == 3
    assert 'aria-sort="descending"' in page
    (address,) = re.findall(r'href="(/results/[^"]+sort=date)"', page)
    turned = camille.follow(address)
    assert starts(turned) == sorted(starts(page))
    assert 'aria-sort="ascending"' in turned


def test_a_stay_leads_to_its_neighbours_and_back(camille):
    page = camille.search(**STAYS)
    address, places = sealed(page, "visit")[0], []
    while address:
        response = camille.get(html.unescape(address))
        while response.status_code == 303:
            response = camille.get(response.headers["Location"])
        places += re.findall(r"<span>(\d+) of 19</span>", response.text)
        address = "".join(re.findall(r'rel="next" href="([^"]+)"', response.text))
        assert "Back to 19 stays" in response.text
    assert places == [str(number) for number in range(1, 18)]


@pytest.mark.parametrize(
    ("language", "form", "words"),
    [
        ("en", {"admission_to": "12/31/2024"}, "31 Dec 2024"),
        ("fr", {"admission_to": "31/11/2026"}, "31/12/2024"),
        ("en", {"ipp": "Serin"}, "as a name"),
        ("en", {"admission_from": "2/1/2024", "admission_to": "1/1/2024"}, ""),
    ],
)
def test_a_fault_is_shown_at_its_field(service, camille, language, form, words):
    camille.get(f"/?lang={language}")
    name, value = [*form.items()][-1]
    id = name.replace("_", ".")
    with audited(service, 0):
        response = camille.post("/search/Encounter", **form)
    assert response.status_code == 422
    (field,) = re.findall(rf'<input id="{id}"[^>]+>', response.text)
    assert 'aria-invalid="true"' in field
    assert f'value="{value}"' in field
    assert f'<a href="#{id}">' in response.text
    assert words in response.text
    for technical in ("criterion", "ge2024", "http.", "search/"):
        assert technical not in re.sub(r"<[^>]+>", "", response.text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("LATOUR 29/02/2000", "29 Feb 2000"),
        ("2000-02-29", "29 Feb 2000"),
        ("29 Feb 2000 latour", "latour"),
        ("000 001 251", "000001251"),
        ("CANARI-V-1", "CANARI-V-1"),
    ],
)
def test_the_box_reads_what_people_write(camille, text, words):
    assert "Read as" in camille.post("/read", q=text).text
    found = camille.post("/find", q=text)
    assert words in camille.get(found.headers["Location"]).text


def test_a_box_with_a_day_that_is_none_shows_one(camille):
    refused = camille.post("/find", q="latour 31/02/2000")
    assert refused.status_code == 422
    assert "31 Dec 2024" in refused.text
    assert camille.post("/find", q="  ").status_code == 422


def test_a_number_of_both_has_two_headings(explore):
    stay = EDGES.stays[0]._replace(visit="0042")
    browser = explore(Hospital((stay,), EDGES.patients, EDGES.organizations))
    page = browser.get(browser.post("/find", q="0042").headers["Location"]).text
    assert "As a visit number: 1 stay" in page
    assert "As a patient number: 2 patients" in page


def test_no_result_says_which_condition_excludes_most(service, camille):
    place = camille.place(**NIGHT, status="planned", **{"class": "EMER"})
    assert "No stays" in camille.get(place).text
    # The condition on patients is counted by a search for patients and one for stays.
    with audited(service, 3):
        page = camille.post(f"{path_of(place)}/widen")
    assert page.text.count("Without “") >= 3


def test_conditions_are_taken_away_one_by_one(camille):
    page = camille.search(**NIGHT, **{"class": "IMP"})
    links = re.findall(r'href="(/results/[^"]+/again[?]without=(\w+))"', page)
    addresses = {name: address for address, name in links}
    assert [*addresses] == ["name", "admission", "class"]
    wider = camille.follow(addresses["admission"])
    assert len(starts(wider)) > len(starts(page)) == 3
    (change,) = set(re.findall(r'href="(/search/\w+[?]result=[^"]+)"', page))
    form = camille.get(change).text
    assert re.search(r'name="name" value="Latour"', form)
    assert re.search(r'value="IMP" checked', form)
    assert re.search(r'name="admission.from" value="27/10/2024"', form)
    assert re.search(r'name="admission.to" value="2024-10-27" [^>]*type="date"', form)


def test_recent_searches_name_nobody(camille):
    camille.place("Patient", name="Serincanari")
    camille.place(**NIGHT, visit="CANARI-V-1")
    camille.place(status="in-progress", ward="0123")
    page = camille.get("/").text
    (listed,) = re.findall(r'<ul class="list">(.*?)</ul>', page, re.DOTALL)
    assert not any(word in listed for word in (*CANARIES, "Latour"))
    assert "27 Oct 2024" in listed
    assert len(re.findall('href="/recent/', listed)) == 3
    assert "Status: in progress" in listed
    address = re.findall(r'href="(/recent/[^"]+)"', listed)[-1]
    assert "Serincanari" in camille.follow(address)


def test_every_status_of_the_service_has_words():
    shown_to_people = {answer.status for answer in OUTCOMES.values()} - {406, 415}
    assert shown_to_people | {429, 500} <= set(TEXTS)


def test_a_patient_page_has_every_stay_and_hides_numbers(service, camille):
    address = sealed(camille.search("Patient", name="Serincanari"))[0]
    patient = camille.get(address).text
    assert "<title>Serincanari Canarinette" in patient
    banner = patient.partition("</section>")[0]
    assert "CANARI-0042" not in banner
    assert "0042" in banner
    # Looking at another period or at the next part of the list is no new search.
    with audited(service, 0):
        for view in ("period=3", "period=", "page=1"):
            assert camille.get(f"{address}&{view}").status_code == 200
    with audited(service, 1):
        whole = camille.post(f"{address}&page=1").text
    assert "CANARI-0042" in whole.partition("</section>")[0]


# ------------------------------------------------------------------------------- files


def exported(browser, format, place):
    return browser.post(f"{path_of(place)}/export", format=format)


def test_a_whole_result_is_exported_page_by_page(explore, tmp_path):
    file = tmp_path / "audit.jsonl"
    stays = [EDGES.stays[0]._replace(id=str(n), visit=None) for n in range(250)]
    browser = explore(
        Hospital(tuple(stays), EDGES.patients, EDGES.organizations),
        AUDIT=str(file),
        AUDIT_KEY="k" * 32,
    )
    place = browser.place(name="Dupres", status="finished")
    for format in ("csv", "ndjson", "json"):
        before = len(file.read_text().splitlines())
        response = exported(browser, format, place)
        assert len(file.read_text().splitlines()) == before + 3
        lines = response.text.splitlines()
        if format == "csv":
            assert len(lines) == 251
            continue
        resources = [json.loads(line) for line in lines]
        if format == "json":
            resources = [entry["resource"] for entry in resources[0]["entry"]]
        assert len({resource["id"] for resource in resources}) == 250
        assert "dupres" not in response.headers["Content-Disposition"].lower()
    assert exported(browser, "xml", place).status_code == 404
    printed = browser.post(f"{path_of(place)}/all").headers["Location"]
    assert "1–250 of 250" in browser.get(printed).text


def test_csv_is_for_the_spreadsheet_of_the_language_and_no_formula(explore):
    stay = EDGES.stays[0]._replace(visit="=cmd|' /C calc'!A0")
    browser = explore(Hospital((stay,), EDGES.patients, EDGES.organizations))
    for language, mark in (("en", ","), ("fr", ";")):
        browser.get(f"/?lang={language}")
        place = browser.place(status="finished")
        columns = {"column": ["visit", "start"]}
        response = browser.post(f"{path_of(place)}/columns", **columns)
        (cookie,) = response.headers.getlist("Set-Cookie")
        assert cookie.startswith("columns-Encounter=start.visit;")
        text = exported(browser, "csv", place).get_data().decode("utf-8-sig")
        head, row = csv.reader(io.StringIO(text), delimiter=mark)
        assert len(head) == len(row) == 4
        assert row[0] == "Martin Jean Paul"
        assert row[3].startswith("'=")
    assert "/2024" in row[2]


@pytest.mark.parametrize(
    ("settings", "rows"),
    [({"EXPLORER_EXPORT_ROWS": "7"}, 7), ({"EXPLORER_EXPORT_SCOPE": "EXPORT"}, 0)],
)
def test_an_operator_limits_exports(explore, settings, rows):
    browser = explore(**settings)
    place = browser.place(**STAYS)
    assert ("/export" in browser.get(place).text) is (rows > 0)
    file = exported(browser, "ndjson", place)
    assert file.status_code == (200 if rows else 404)
    if rows:
        assert len(file.text.splitlines()) == rows


# ------------------------------------------------------------------------------- audit


def test_the_audit_trail_names_the_person(service, camille):
    camille.get(sealed(camille.search("Patient", name="Latour"))[0])
    last = events(service)[-3:]
    assert {e["agent"][0]["userId"]["value"] for e in last} == {f"{CLIENT_ID}/camille"}
    assert all("Patient/3" in json.dumps(event) for event in last)


def test_looking_at_a_result_is_one_event(service, camille):
    form = {"status": STAYS["status"], "admission_from": "2000-01-01"}
    with audited(service, 1):
        path = path_of(camille.place(**form))
        for tab in ("table", "timeline", "json"):
            assert camille.get(f"{path}?tab={tab}").status_code == 200
        camille.post(f"{path}/columns", column="start")
        (change,) = re.findall(
            r'href="(/search/\w+[?]result=[^"]+)"', camille.get(path).text
        )
        assert camille.get(change).status_code == 200
    with audited(service, 1):
        camille.follow(f"{path}/next")


def test_a_reason_is_asked_for_and_recorded(explore, tmp_path):
    file = tmp_path / "audit.jsonl"
    browser = explore(EXPLORER_REASON="true", AUDIT=str(file), AUDIT_KEY="k" * 32)
    assert browser.get("/search/Encounter").headers["Location"] == "/reason"
    csrf = re.findall(r'name="csrf" value="(\w+)"', browser.get("/reason").text)[0]
    assert browser.post("/reason", csrf=csrf, reason="ward round").status_code == 303
    place = browser.place(**STAYS)
    last = json.loads(file.read_text().splitlines()[-1])
    assert last["purposeOfEvent"] == [{"text": "ward round"}]
    # The next login has given none: every page asks again.
    browser.log_in()
    path = path_of(place)
    for page in (place, f"{path}/again", f"{path}/next"):
        assert browser.get(page).headers["Location"] == "/reason", page
