"""Made-up tokens: 401 or 403, and never a fault of ours, whatever they are made of."""

import base64
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from hypothesis import example, given
from hypothesis import strategies as st

from tests.app import provider
from tests.attacks.made_up import JSON, TEXTS, tried
from tests.serving import Served

pytestmark = pytest.mark.extended

ODD = st.sampled_from(
    [
        *(None, True, [], {}, [[]], ["RS256"], {"a": 1}, "", "none", "RS256 ", "rs256"),
        *(0, -1, 1e308, float("nan"), float("inf"), 2**70, "\0", "é", "a" * 5000),
        *("rsa-1", "RSA-1", ["b64"], ["exp"], ["crit"], {"kty": "oct", "k": "AA"}),
    ]
)
_HEADERS = "alg kid typ cty crit b64 zip jku jwk x5u x5c epk"
_CLAIMS = "iss aud sub client_id azp scope scp permissions exp nbf iat jti cnf act"


def _some(names: str) -> st.SearchStrategy[dict[str, Any]]:
    values = ODD | JSON
    return st.dictionaries(st.sampled_from(names.split()), values, max_size=4)


HEADERS, CLAIMS = _some(_HEADERS), _some(_CLAIMS)


def asked(served: Served, authorization: str) -> int:
    """Ask with an Authorization header; return the status."""
    return served.get("Encounter/1", Authorization=authorization).status_code


def part(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def signed(header: Any, payload: bytes) -> str:
    """Return a token with a right signature around anything."""
    whole = {"alg": "RS256", "kid": "rsa-1", **header}
    text = f"{part(json.dumps(whole).encode())}.{part(payload)}"
    key = provider.rsa().private_key
    return f"{text}.{part(key.sign(text.encode(), PKCS1v15(), SHA256()))}"


@tried(25)
@given(
    st.sampled_from(["", "Bearer ", "bearer ", "Bearer  ", "Basic ", "Bearer\t"]), TEXTS
)
@example("Bearer ", "")
@example("Bearer ", "." * 5000)
@example("Bearer ", "a" * 100_000)
@example("Bearer ", "..")
@example("Bearer ", "\x00")
@example("Bearer ", "ÿ.ÿ.ÿ")
def test_whatever_stands_in_the_header_is_401(
    served: Served, scheme: str, text: str
) -> None:
    latin = text.encode("latin-1", "ignore").decode("latin-1")
    line = "".join(sign for sign in latin if sign not in "\r\n")
    assert asked(served, scheme + line) == 401


@tried(25)
@given(HEADERS, st.booleans())
def test_nonsense_in_the_header_of_a_token_is_401(
    served: Served, header: dict[str, Any], right: bool
) -> None:
    payload = json.dumps(provider.claims()).encode()
    token = signed(header, payload)
    if not right:
        token = token[:-8] + "AAAAAAAA"
    assert asked(served, f"Bearer {token}") in ((200, 401) if right else (401,))


@tried(25)
@given(CLAIMS)
def test_nonsense_in_the_claims_of_a_signed_token_lets_nobody_in(
    served: Served, changed: dict[str, Any]
) -> None:
    payload = json.dumps({**provider.claims(), **changed}).encode()
    status = asked(served, f"Bearer {signed({}, payload)}")
    assert status in (200, 401, 403)
    # Whoever a token is not for, or whose time is over or unknown, is not let in.
    for name in ("iss", "exp"):
        if name in changed and not isinstance(changed[name], (str, int, float)):
            assert status == 401


PAYLOADS = (
    *(b"", b"{", b"[]", b'"x"', b"1", b"null", b"NaN", b"\xff\xfe\x00"),
    b"[" * 100_000,
    b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    json.dumps(provider.claims()).encode()[:-1] + b',"exp":0}',
    b'{"exp":' + b"9" * 10_000 + b"}",
    b'{"sub":"\\ud800"}',
)


def test_a_signed_payload_that_is_no_object_of_claims_is_401(served: Served) -> None:
    for payload in PAYLOADS:
        assert asked(served, f"Bearer {signed({}, payload)}") == 401, payload[:40]


def test_a_clients_odd_name_does_no_harm(served: Served) -> None:
    for client in ("\ud800", "\0", "a" * 100_000, "é", " ", "x\ny"):
        payload = json.dumps({**provider.claims(), "client_id": client}).encode()
        bearer = f"Bearer {signed({}, payload)}"
        assert asked(served, bearer) in (200, 401)
        found = served.post("Encounter/_search", {"_count": "3"}, Authorization=bearer)
        assert found.status_code in (200, 401)
