"""Decisions 21 and 22: tokens, scopes, clients, and the challenges of 401 and 403."""

from tests.app import provider
from tests.app.answers import body, refused
from tests.serving import Served, ids, link, relations

NEEDS = {
    "Encounter/1": "ENCOUNTER_READ",
    "Encounter?_id=1": "ENCOUNTER_SEARCH",
    "Patient/1": "PATIENT_READ",
    "Patient?_id=1": "PATIENT_SEARCH",
    "Organization/H1": "ORGANIZATION_READ",
    "Organization?_id=H1": "ORGANIZATION_READ",
}


def _with(served, token):
    return Served(served.app, {"Authorization": f"Bearer {token}"})


def _claiming(served, **claims):
    return _with(served, provider.sign(**claims))


def test_without_a_token_401_requests_one(served):
    """Decision 21. SEC-01."""
    for headers in ({}, {"Authorization": "Basic dXM6aHVzaA=="}):
        for path in (*NEEDS, "Bundle?_id=x"):
            answer = Served(served.app, headers).get(path)
            refused(answer, 401, "login", "Authorization")
            # No error attribute: the credentials were not wrong (RFC 6750, 3.1).
            assert answer.headers["WWW-Authenticate"] == 'Bearer realm="encounters"'
    token = provider.sign()
    anonymous = Served(served.app)
    for answer in (
        anonymous.get(f"Encounter/1?access_token={token}"),
        anonymous.post("Encounter/_search", {"access_token": token}),
    ):
        refused(answer, 401, "login", "Authorization")


def test_a_bad_token_is_401(served):
    """Decision 21; which tokens are bad: test_auth.py. SEC-02."""
    for claims, code in (({"iss": None}, "unknown"), ({"exp": 1}, "expired")):
        answer = _claiming(served, **claims).get("Encounter/1")
        refused(answer, 401, code, "Authorization")
        assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"]


def test_a_missing_scope_is_named(served):
    """Decisions 20 and 21. SEC-03."""
    answer = served.as_client("c", "PATIENT_READ").get("Encounter/1")
    text = refused(answer, 403, "processing", "Authorization")
    assert "insufficient scope" in text
    challenge = answer.headers["WWW-Authenticate"]
    assert challenge.startswith("Bearer ")
    assert 'error="insufficient_scope"' in challenge
    assert 'scope="ENCOUNTER_READ"' in challenge


def test_an_opaque_token_is_introspected(make_service, keys):
    """Decisions 21 and 22."""
    served = make_service(
        KEY_SET_URL=None,
        INTROSPECTION_URL=provider.INTROSPECTION_URL,
        INTROSPECTION_CLIENT_ID="encounters",
        INTROSPECTION_CLIENT_SECRET="hush",
    )
    introspecting = _with(served, "opaque-token-of-client-1")
    claims = {"active": True, "client_id": "client-1", "scope": provider.SCOPE}
    keys.post(provider.INTROSPECTION_URL, json=claims)
    first = introspecting.search("Encounter", {"_count": "2"})
    assert relations(introspecting.follow(first, "next"))
    keys.upsert("POST", provider.INTROSPECTION_URL, json={"active": False})
    other = _with(served, "another-token")
    refused(other.get("Encounter/1"), 401, "unknown", "Authorization")
    keys.upsert("POST", provider.INTROSPECTION_URL, status=500)
    answer = other.get("Encounter/1")
    refused(answer, 503, "transient")
    assert int(answer.headers["Retry-After"]) > 0


def test_each_interaction_requires_its_own_scope(served):
    """Decision 22: PATIENT_GAM_SEARCH stands for all five."""
    for path, needed in NEEDS.items():
        for scope in {*NEEDS.values(), "patient_gam_search", ""}:
            answer = served.as_client("c", scope).get(path)
            assert answer.status_code == (200 if needed == scope else 403)
        assert served.as_client("c", "PATIENT_GAM_SEARCH").get(path).status_code == 200


def test_what_a_scope_stands_for_is_a_setting(make_service):
    """Decision 22."""
    served = make_service(SCOPES="STAYS=ENCOUNTER_READ ENCOUNTER_SEARCH")
    for scope, path, status in (
        ("STAYS", "Encounter/1", 200),
        ("STAYS", "Patient/1", 403),
        ("PATIENT_GAM_SEARCH", "Encounter/1", 403),
    ):
        assert served.as_client("c", scope).get(path).status_code == status


def test_a_renewed_token_is_the_same_client(served):
    """Decisions 22 and 37: a token about somebody else is another client's."""
    one = _claiming(served, client_id="one", jti="1")
    first = one.search("Encounter", {"_count": "2"})
    for claims, status in (
        ({"client_id": "one", "azp": "x", "sub": None, "jti": "2"}, 200),
        ({"client_id": None, "azp": "one", "sub": "one"}, 200),
        ({"client_id": None, "sub": "one"}, 200),
        ({"client_id": "one", "sub": "y"}, 404),
        ({"client_id": "two", "azp": "one", "sub": "one"}, 404),
        ({"client_id": None, "azp": "two", "sub": "one"}, 404),
    ):
        for relation in ("self", "next"):
            answer = _claiming(served, **claims).get(link(first, relation))
            assert answer.status_code == status


def test_metadata_is_open_and_shows_no_patient(served, make_service):
    """Decision 22: a setting closes it."""
    answer = Served(served.app).get("metadata")
    assert body(answer)["resourceType"] == "CapabilityStatement"
    for text in ("Martin", "V1", "Hôpital de l"):
        assert text not in answer.text
    closed = make_service(OPEN_METADATA="false")
    refused(Served(closed.app).get("metadata"), 401, "login", "Authorization")
    assert body(closed.get("metadata"))["resourceType"] == "CapabilityStatement"
    assert ids(closed.search("Encounter", {"_id": "1"})) == ["1"]


def test_a_client_that_may_not_read_learns_nothing(served):
    """Decision 22. SEC-04."""
    reader = served.as_client("c", "PATIENT_READ")
    answers = [reader.get(f"Encounter/{id}") for id in (1, 51, 50, 37, 987654)]
    assert {answer.status_code for answer in answers} == {403}
    assert len({answer.get_data() for answer in answers}) == 1


def test_scopes_are_checked_before_a_page_is_looked_up(served):
    """Decision 32: with a search scope, another client's page is 404 (decision 14)."""
    next_page = link(served.search("Encounter", {"_count": "1"}), "next")
    made_up = f"Bundle?_id={'a' * 32}"
    reader = served.as_client("c", "PATIENT_READ ENCOUNTER_READ")
    for path in (next_page, made_up, "Bundle?_id=x", "Bundle"):
        text = refused(reader.get(path), 403, "processing", "Authorization")
        assert "ENCOUNTER_SEARCH" in text
    searcher = served.as_client("c", "PATIENT_SEARCH")
    for path in (next_page, made_up):
        assert searcher.get(path).status_code == 404


def test_a_page_requires_the_scope_of_its_search(served):
    """Decisions 14 and 32; decision 9 for Organization."""
    for kind, some, needed in (
        ("Encounter", "1,2", "ENCOUNTER_SEARCH"),
        ("Patient", "1,2", "PATIENT_SEARCH"),
        ("Organization", "H1,H2", "ORGANIZATION_READ"),
    ):
        client = served.as_client("c", needed)
        first = client.search(kind, {"_id": some, "_count": "1"})
        for scope in {*NEEDS.values()}:
            for relation in ("self", "next"):
                answer = served.as_client("c", scope).get(link(first, relation))
                assert answer.status_code == (200 if scope == needed else 403)
