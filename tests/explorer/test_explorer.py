"""The explorer: login, searches, the tabs, and that it gives nothing away."""

import csv
import html
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import responses
from joserfc.jwk import OctKey

from app.errors import OUTCOMES
from explorer.explorer import HEADERS
from explorer.failures import ADVICE
from tests.app import provider
from tests.explorer.conftest import CLIENT_ID, TOKEN, URL, Browser
from tests.redis_server import RedisServer
from tests.serving import Served, explorer_of, serve
from toolkit.contract.hospital import CANARIES, EDGES, UNIT_URL, Hospital


def events(file: Path) -> list[dict[str, object]]:
    """Return the audit events so far."""
    return [json.loads(line) for line in file.read_text().splitlines()]


def audit_of(service: Served) -> Path:
    """Return the audit file of a service."""
    return Path(service.app.extensions["encounters"].settings.audit)


def sealed(page: str) -> list[str]:
    """Return the addresses of the resources of a table."""
    return re.findall(r'href="(/see/[^"]+)"', page)


def ids(page: str) -> list[str]:
    """Return the ids of a table."""
    return re.findall(r"<tr><td><a [^>]+>(\d+)</a></td>", page)


# ------------------------------------------------------------------------------- login


def test_a_page_leads_to_the_login_first(visitor: Browser) -> None:
    for path in ("/", "/search/Encounter", "/results/x", "/see/x"):
        response = visitor.get(path)
        assert (response.status_code, response.headers["Location"]) == (303, "/login")


def test_the_login_uses_pkce_state_and_nonce(visitor: Browser) -> None:
    asked = visitor.begin_login()
    assert asked["code_challenge_method"] == "S256"
    assert asked["redirect_uri"] == f"{URL}/login/done"
    assert asked["client_id"] == CLIENT_ID
    assert min(map(len, (asked["state"], asked["nonce"], asked["code_challenge"]))) > 20


def test_the_cookie_is_opaque_and_for_this_host_alone(visitor: Browser) -> None:
    response = visitor.log_in()
    (cookie,) = (
        c for c in response.headers.getlist("Set-Cookie") if "Expires" not in c
    )
    assert cookie.startswith("__Host-explorer=")
    for part in ("Secure", "HttpOnly", "SameSite=Lax", "Path=/"):
        assert part in cookie
    assert "." not in visitor.cookie(), "a token has dots"
    assert "Camille" in visitor.get("/search/Encounter").text


def test_redis_holds_no_token_that_can_be_read(
    camille: Browser, redis_server: RedisServer
) -> None:
    """Each use begins the idle time anew; the token's end is the last."""
    camille.get("/search/Encounter")
    with redis_server.client() as client:
        keys = list(client.scan_iter("explorer:*"))
        assert keys
        for key in keys:
            assert camille.cookie().encode() not in key
            assert b"camille" not in client.dump(key)
            assert 0 < client.ttl(key) <= 15 * 60


def test_redis_holds_results_until_the_logout(
    visitor: Browser, redis_server: RedisServer
) -> None:
    with redis_server.client() as client:
        before = {*client.scan_iter("explorer:*")}
        visitor.log_in()
        place = visitor.place("Patient", family="Serincanari")
        visitor.place("Patient", _id="1")
        added = {*client.scan_iter("explorer:*")} - before
        stored = [client.dump(key) for key in added]
        assert len(stored) >= 4, "a session, two results, and what names them"
        assert not any(canary.encode() in raw for raw in stored for canary in CANARIES)
        assert all(0 < client.ttl(key) <= 15 * 60 for key in added)
        cookie = visitor.cookie()
        visitor.post("/logout")
        left = {*client.scan_iter("explorer:*")} - before
        assert all(b":logins:" in key for key in left)
    visitor.steal(cookie)
    assert visitor.get(place).status_code == 303


def test_a_result_that_is_no_longer_stored_is_not_there(
    camille: Browser, redis_server: RedisServer
) -> None:
    place = camille.place(patient="1")
    path = place.partition("?")[0]
    with redis_server.client() as client:
        for key in client.scan_iter("explorer:*:results"):
            client.delete(*client.smembers(key))
    for address in (place, f"{path}/page.csv", f"{path}/change", f"{path}/next"):
        assert camille.get(address).status_code == 404


def test_a_login_that_another_browser_began_is_refused(
    service: Served, visitor: Browser
) -> None:
    """Login CSRF: the address of an attacker's own login does nothing here."""
    attacker = Browser(visitor.app, visitor.provider)
    asked = attacker.begin_login()
    attacker.answer("mallory", "openid", nonce=asked["nonce"])
    path = f"/login/done?code=right&state={asked['state']}"
    assert visitor.get(path).status_code == 404
    visitor.begin_login()
    refused = visitor.get(path)
    assert refused.status_code == 403
    assert TOKEN not in [call.request.url for call in visitor.provider.calls]
    assert ADVICE[403] not in refused.text, "no scope is missing"
    assert not visitor.is_logged_in()


def test_a_session_is_new_after_the_login(visitor: Browser) -> None:
    """Session fixation: an id that was there before is worth nothing afterwards."""
    visitor.begin_login()
    planted = visitor.cookie()
    visitor.log_in()
    assert visitor.cookie() != planted
    other = Browser(visitor.app, visitor.provider)
    other.steal(planted)
    assert not other.is_logged_in()


def test_an_id_token_for_something_else_is_refused(visitor: Browser) -> None:
    for claims in (
        {"nonce": "of another login"},
        {"aud": "another client"},
        {"iss": "https://other.example.org/"},
        {"exp": 1_000_000_000},
        {"sub": None},
    ):
        assert visitor.log_in(**claims).status_code == 403, claims
        assert not visitor.is_logged_in()


def test_an_id_token_that_somebody_else_signed_is_refused(visitor: Browser) -> None:
    secret = OctKey.generate_key(256)
    for signer, header in (
        (provider.rsa("another"), {}),
        (provider.rsa("another"), {"kid": "rsa-1"}),
        (secret, {"kid": "rsa-1", "alg": "HS256"}),
    ):
        asked = visitor.begin_login()
        alg = header.get("alg", "RS256")
        about = {"sub": "camille", "aud": CLIENT_ID, "nonce": asked["nonce"]}
        signed = provider.sign(signer, alg, header, **about)
        visitor.answer("camille", "openid", id_token=signed)
        path = f"/login/done?code=right&state={asked['state']}"
        assert visitor.get(path).status_code == 403
        assert not visitor.is_logged_in()


@pytest.mark.parametrize(
    "metadata",
    [
        {"status": 500},
        {"body": "no JSON"},
        {"json": []},
        {"json": {"issuer": "https://other.example.org/"}},
        {"json": {"issuer": provider.ISSUER}},
        {"json": {"issuer": provider.ISSUER, "authorization_endpoint": "http://a.b"}},
        {"status": 302, "headers": {"Location": "https://evil.example"}},
    ],
    ids=str,
)
def test_nobody_logs_in_while_the_provider_is_away(
    visitor: Browser, metadata: dict[str, Any]
) -> None:
    address = f"{provider.ISSUER}.well-known/openid-configuration"
    visitor.provider.upsert(responses.GET, address, **metadata)
    response = visitor.get("/login/start")
    assert response.status_code == 503
    assert ADVICE[503] in response.text


def test_calls_to_the_provider_have_a_timeout_and_verified_tls(
    visitor: Browser,
) -> None:
    visitor.log_in()
    # The service fetches the keys of access tokens, too.
    calls = [c for c in visitor.provider.calls if c.request.url != provider.KEY_SET_URL]
    assert len(calls) >= 3
    for call in calls:
        assert call.request.req_kwargs["timeout"] == 2
        assert call.request.req_kwargs["verify"]


def test_a_provider_that_refuses_is_told(visitor: Browser) -> None:
    refusal = {"json": {"error": "invalid_grant"}, "status": 400}
    visitor.provider.upsert(responses.POST, TOKEN, **refusal)
    for answer in ("error=access_denied", "code=x"):
        state = visitor.begin_login()["state"]
        response = visitor.get(f"/login/done?{answer}&state={state}")
        assert response.status_code == 403


def test_the_login_leads_nowhere_else(visitor: Browser) -> None:
    """Open redirect: no address from a request is followed."""
    asked = visitor.begin_login()
    visitor.answer("camille", "openid", nonce=asked["nonce"])
    response = visitor.get(
        f"/login/done?code=right&state={asked['state']}&next=https://evil.example"
        "&redirect_uri=https://evil.example"
    )
    assert response.headers["Location"] == "/"


def test_who_logs_out_is_out(camille: Browser) -> None:
    cookie = camille.cookie()
    assert camille.post("/logout").status_code == 303
    camille.steal(cookie)
    assert not camille.is_logged_in()
    # A form of a session that has ended leads to the login.
    response = camille.post("/search/Encounter", csrf="0" * 36, patient="1")
    assert (response.status_code, response.headers["Location"]) == (303, "/login")


def test_logins_are_limited_by_address(visitor: Browser) -> None:
    statuses = {visitor.get("/login/start").status_code for _ in range(40)}
    assert statuses == {302, 429}


# ----------------------------------------------------------------------------- attacks


def test_every_form_needs_the_token_of_its_session(camille: Browser) -> None:
    for token in ("", "0" * 36):
        for path in ("/search/Encounter", "/logout", "/see/x/stays"):
            assert camille.post(path, csrf=token).status_code == 403


def test_every_page_has_the_headers(camille: Browser) -> None:
    for path in ("/login", "/search/Encounter", "/none", "/static/explorer.css"):
        response = camille.get(path)
        for name, value in HEADERS:
            if path.startswith("/static") and name == "Cache-Control":
                continue
            assert response.headers.getlist(name) == [value], path
    assert "unsafe" not in dict(HEADERS)["Content-Security-Policy"]


def test_another_host_is_not_served(visitor: Browser) -> None:
    visitor.url = "https://attacker.example"
    assert visitor.get("/login").status_code == 400


def test_a_result_is_of_no_use_to_anybody_else(camille: Browser) -> None:
    mine = camille.place(patient="1")
    other = Browser(camille.app, camille.provider)
    other.log_in("dominique")
    path = mine.partition("?")[0]
    changed, table, see = (
        f"{path}/change",
        f"{path}/page.csv",
        sealed(camille.get(mine).text)[0],
    )
    for place in (mine, changed, table, see):
        assert other.get(place).status_code == 404
        assert camille.get(place).status_code == 200
    # Nor with another login of the same person.
    camille.log_in()
    assert camille.get(mine).status_code == 404


def test_criteria_never_stand_in_an_address(camille: Browser) -> None:
    place = camille.place("Patient", family="Serincanari")
    page = camille.get(place).text
    addresses = [place, *re.findall(r'(?:href|action)="([^"]+)"', page)]
    for canary in CANARIES:
        assert not any(canary in address for address in addresses)
    assert not any("Patient/14" in address for address in addresses)


HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"


def test_a_column_cannot_write_into_a_page(explore: Callable[..., Browser]) -> None:
    """XSS through every column of the hospital, in every tab and page."""
    names = {"used_name": HOSTILE, "birth_name": HOSTILE, "given": HOSTILE}
    browser = explore(
        Hospital(
            tuple(r._replace(visit=HOSTILE, unit=HOSTILE) for r in EDGES.stays[:3]),
            (EDGES.patients[0]._replace(**names, numbers=((HOSTILE, None),)),),
            (EDGES.organizations[0]._replace(title=HOSTILE, finess=HOSTILE),),
        )
    )
    browser.log_in()
    pages = []
    for kind in ("Encounter", "Patient", "Organization"):
        place = browser.place(kind, **{"_id": "1,H1"})
        for tab in ("table", "timeline", "json", "request"):
            pages.append(browser.get(place.replace("tab=table", f"tab={tab}")).text)
        pages += [browser.get(address).text for address in sealed(pages[-4])]
    assert sum("&lt;script&gt;" in page for page in pages) >= 9
    for page in pages:
        assert "<script>alert" not in page
        assert "<img" not in page


@pytest.mark.parametrize("kind", ["Encounter", "Patient", "Organization"])
def test_a_parameter_cannot_write_into_a_page(camille: Browser, kind: str) -> None:
    """XSS through every field of every form, and through addresses."""
    names = set(re.findall(r'name="([\w.-]+)"', camille.get(f"/search/{kind}").text))
    for name in names - {"csrf"}:
        response = camille.post(f"/search/{kind}", **{name: HOSTILE})
        page = (
            response.text
            if response.status_code != 303
            else camille.get(response.headers["Location"]).text
        )
        assert "<script>alert" not in page, name
        assert "<img" not in page, name
    place = camille.place(kind, **{"_id": "1"})
    for query in ("&column=", "&tab="):
        assert "<script>alert" not in camille.get(place + query + HOSTILE).text


# ---------------------------------------------------------------------------- searches


@pytest.mark.parametrize("profile", ["full", "group-a"])
def test_the_form_has_what_is_offered(
    explore: Callable[..., Browser], profile: str
) -> None:
    browser = explore(profile=profile)
    browser.log_in()
    page = browser.get("/search/Encounter").text
    for name in ("patient", "date.0", "_count"):
        assert f'name="{name}"' in page
    for name in ("date.1", "class", "status", "identifier", "_sort"):
        assert (f'name="{name}"' in page) is (profile == "full"), name
    assert "/see/" in browser.search(patient="1")


def test_pages_go_on_and_back(camille: Browser) -> None:
    dated = {"date__0": "2024-10-27", "date__0__prefix": "eq"}
    first = camille.search(patient="3", _count="2", _sort="date", **dated)
    assert ids(first) == ["31", "30"]
    (step,) = re.findall(r'href="([^"]+)" rel="next"', first)
    second = camille.follow(step)
    assert ids(second) == ["32"]
    (back,) = re.findall(r'href="([^"]+)" rel="prev"', second)
    assert ids(camille.follow(back)) == ["31", "30"]
    assert camille.get(step.replace("next", "last")).status_code == 404


def test_an_error_shows_the_form_and_what_to_do(camille: Browser) -> None:
    response = camille.post("/search/Encounter", date__0="2024-13", patient="1")
    assert response.status_code == 412
    assert ADVICE[412] in response.text
    assert 'value="2024-13"' in response.text


def test_a_ward_is_searched_by_its_code(camille: Browser) -> None:
    """The service takes it behind the url of the extension, which nobody types."""
    field = "service-provider._extension"
    unit = next(stay.unit for stay in EDGES.stays if stay.unit)
    page = camille.search(**{field: unit})
    assert f"<code>{field}={UNIT_URL}|{unit}</code>" in page
    assert ids(page)
    assert not ids(camille.search(**{field: f"https://other.example.org|{unit}"}))


def test_too_many_requests_are_told(explore: Callable[..., Browser]) -> None:
    visitor = explore(CLIENT_REQUESTS_PER_MINUTE="1")
    visitor.log_in()
    # A new minute may begin once: of four in a row two are in one.
    answers = [visitor.post("/search/Encounter", patient="1") for _ in range(4)]
    refused = [answer.text for answer in answers if answer.status_code == 429]
    assert refused
    assert all(ADVICE[429] in text for text in refused)


def test_an_error_of_the_pages_has_the_request_id(camille: Browser) -> None:
    response = camille.get("/see/none")
    assert response.status_code == 404
    assert f"request id {response.headers['X-Request-Id']}" in response.text


def test_every_status_of_the_service_has_advice() -> None:
    shown_to_people = {answer.status for answer in OUTCOMES.values()} - {406, 415}
    assert shown_to_people | {429, 500} <= set(ADVICE)


def test_the_json_tab_has_the_exact_bytes(camille: Browser) -> None:
    text = camille.get(camille.place(patient="1", tab="json")).text
    (shown,) = re.findall(r'<pre class="raw"><code>(.*?)</code>', text, re.DOTALL)
    body = html.unescape(shown)
    assert json.loads(body)["resourceType"] == "Bundle"
    assert f"({len(body.encode())})" in text


def test_csv_has_the_columns_and_no_formula(explore: Callable[..., Browser]) -> None:
    stay = EDGES.stays[0]._replace(visit="=cmd|' /C calc'!A0")
    browser = explore(Hospital((stay,), EDGES.patients, EDGES.organizations))
    browser.log_in()
    path = browser.place(patient="1").partition("?")[0]
    file = browser.get(f"{path}/page.csv?column=number&column=status").get_data()
    rows = list(csv.reader(io.StringIO(file.decode("utf-8-sig"))))
    assert rows[0] == ["Visit number", "Status"]
    assert rows[1][0].startswith("'=")


def test_the_request_tab_has_the_search_and_no_token(camille: Browser) -> None:
    page = camille.get(camille.place(patient="1", _count="3", tab="request")).text
    for language in ("curl", "Python", "JavaScript", ".http"):
        assert f"<h2>{language}</h2>" in page
    assert page.count("patient") >= 4
    assert "eyJ" not in page, "an access token"


def test_the_timeline_shows_overlaps_and_open_ends(camille: Browser) -> None:
    page = camille.get(camille.place(patient="1", tab="timeline")).text
    assert len(set(re.findall(r'<rect x="[\d.]+" y="(\d+)"', page))) > 1
    assert "<path" in page
    assert "<table>" in page, "the text alternative"


def test_a_patient_leads_to_the_stays(camille: Browser) -> None:
    patient = sealed(camille.search("Patient", **{"_id": "3"}))[0]
    assert "Éléonore" in camille.get(patient).text
    place = camille.post(f"{patient}/stays").headers["Location"]
    assert "tab=timeline" in place
    assert camille.get(place).status_code == 200


def test_a_search_can_be_changed(camille: Browser) -> None:
    dated = {"date__0": "2024", "date__0__prefix": "ge"}
    place = camille.place(patient="3", status="finished", **dated)
    page = camille.get(f"{place.partition('?')[0]}/change").text
    assert re.search(r'name="patient" value="3"', page)
    assert re.search(r'value="finished" checked', page)
    assert re.search(r'name="date.0" value="2024"', page)


# ------------------------------------------------------------------------------- audit


def test_the_audit_trail_names_the_person(service: Served, camille: Browser) -> None:
    camille.get(sealed(camille.search("Patient", **{"_id": "3"}))[0])
    last = events(audit_of(service))[-2:]
    assert {e["agent"][0]["userId"]["value"] for e in last} == {f"{CLIENT_ID}/camille"}
    assert all("Patient/3" in json.dumps(event) for event in last)


def test_looking_at_a_result_is_one_event(service: Served, camille: Browser) -> None:
    """A search is one, its next page another; tabs, CSV and the form again are none."""
    camille.get("/")
    before = len(events(audit_of(service)))
    place = camille.place(patient="1", _count="2")
    path = place.partition("?")[0]
    for tab in ("table", "timeline", "json", "request"):
        assert camille.get(f"{path}?tab={tab}").status_code == 200
    assert camille.get(f"{path}/page.csv").status_code == 200
    assert camille.get(f"{path}/change").status_code == 200
    assert len(events(audit_of(service))) == before + 1
    camille.follow(f"{path}/next")
    assert len(events(audit_of(service))) == before + 2


def test_a_reason_is_asked_for_and_recorded(
    explore: Callable[..., Browser], tmp_path: Path
) -> None:
    file = tmp_path / "audit.jsonl"
    browser = explore(EXPLORER_REASON="true", AUDIT=str(file), AUDIT_KEY="k" * 32)
    browser.log_in()
    assert browser.get("/search/Encounter").headers["Location"] == "/reason"
    csrf = re.findall(r'name="csrf" value="(\w+)"', browser.get("/reason").text)[0]
    assert browser.post("/reason", csrf=csrf, reason="ward round").status_code == 303
    place = browser.place(patient="1")
    assert events(file)[-1]["purposeOfEvent"] == [{"text": "ward round"}]
    # The next login has given none: every page asks again.
    browser.log_in()
    path = place.partition("?")[0]
    for page in (place, f"{path}/page.csv", f"{path}/change", f"{path}/next"):
        assert browser.get(page).headers["Location"] == "/reason", page


def test_a_scope_that_is_missing_is_refused_and_told(visitor: Browser) -> None:
    visitor.log_in(scope="openid PATIENT_READ")
    response = visitor.post("/search/Encounter", patient="1")
    assert response.status_code == 403
    assert ADVICE[403] in response.text


def test_without_a_provider_a_token_is_pasted(
    tmp_path: Path, redis_server: RedisServer, identity_provider: responses.RequestsMock
) -> None:
    local = {"EXPLORER_BIND": "127.0.0.1:8003", "PLAIN_HTTP": "loopback"}
    served = serve(EDGES, tmp_path, redis_server.url, **local)
    url, address = "http://127.0.0.1:8003", "127.0.0.1"
    browser = Browser(explorer_of(served), identity_provider, url, address)

    def paste(token: str) -> int:
        page = browser.get("/login").text
        csrf = re.findall(r'name="csrf" value="(\w+)"', page)[0]
        return browser.post("/login/token", csrf=csrf, token=token).status_code

    assert paste("nonsense") == paste(provider.sign(exp=1)) == 401
    assert not browser.is_logged_in()
    assert paste(provider.sign(client_id="me")) == 303
    assert "Access token</li>" in browser.get("/search/Encounter").text
