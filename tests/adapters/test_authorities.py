"""Certificates of those who are asked, and the authorities of the operator."""

import ssl
from functools import partial

import pytest
from werkzeug.wrappers import Request, Response

from adapters.contract import SourceUnavailableError
from adapters.http.client import Deadline, HttpCall, HttpClient
from app.jwks import IdentityError, ProviderEndpoint
from tests.certificates import certify
from tests.hospital_http import serving
from tests.live import HOST, free_ports


@Request.application
def _api(_request):
    return Response('{"it": "answers"}', mimetype="application/json")


@pytest.fixture
def address(tmp_path):
    """Serve over TLS, with a certificate that nobody knows."""
    for name in ("hospital", "other"):
        certify(tmp_path, name)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "hospital.pem", tmp_path / "hospital.key")
    with serving(_api, context) as url:
        yield url


def asked_as_source(address):
    client = HttpClient(address)
    try:
        return client.send(HttpCall("POST", "/"), {}, Deadline(5)).json()
    finally:
        client.close()


def test_the_error_names_the_part_of_a_connection_that_failed(
    address, tmp_path, monkeypatch
):
    plain = address.replace("https:", "http:")
    with serving(_api) as unencrypted:
        for url, authorities, word in (
            ("http://no-such-host.invalid", "hospital.pem", "host name"),
            (f"http://{HOST}:{free_ports()}", "hospital.pem", "port"),
            (unencrypted.replace("http:", "https:"), "hospital.pem", "TLS"),
            (plain, "hospital.pem", "no complete answer"),
            (address, "other.pem", "certificate"),
            (address.replace(HOST, "localhost"), "hospital.pem", "certificate"),
            (address, "nowhere.pem", "SSL_CERT_FILE"),
            (address, "hospital.key", "SSL_CERT_FILE"),
        ):
            monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / authorities))
            with pytest.raises(SourceUnavailableError) as failed:
                asked_as_source(url)
            assert word in str(failed.value), url
            assert ("SSL_CERT_FILE" in str(failed.value)) is (
                word in ("certificate", "SSL_CERT_FILE")
            )
            for secret in (HOST, "invalid", str(tmp_path)):
                assert secret not in str(failed.value)


def test_the_identity_provider_needs_an_authority_that_is_named(
    address, tmp_path, monkeypatch
):
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "hospital.pem"))
    assert (
        asked_as_source(address)
        == ProviderEndpoint(address, 5).fetch()
        == {"it": "answers"}
    )
    # It is for others, and does not count.
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "hospital.pem"))
    for name in ("other.pem", "nowhere.pem", ""):
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / name) if name else "")
        for ask, away in (
            (ProviderEndpoint(address, 5).fetch, IdentityError),
            (partial(asked_as_source, address), SourceUnavailableError),
        ):
            with pytest.raises(away) as refused:
                ask()
            assert str(tmp_path) not in str(refused.value)
