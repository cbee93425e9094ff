"""Certificates of those who are asked, and the authorities of the operator."""

import ssl
from threading import Thread

import pytest
from werkzeug.serving import make_server
from werkzeug.wrappers import Request, Response

from adapters.contract import SourceUnavailableError
from adapters.http.client import Deadline, HttpCall, HttpClient
from app.jwks import IdentityError, ProviderEndpoint
from tests.certificates import certify
from tests.hospital_http import serving
from tests.live import HOST, free_ports


@Request.application
def _api(_request: Request) -> Response:
    return Response('{"it": "answers"}', mimetype="application/json")


@pytest.fixture
def address(tmp_path):
    """Serve over TLS, with a certificate that nobody knows."""
    for name in ("hospital", "other"):
        certify(tmp_path, name)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "hospital.pem", tmp_path / "hospital.key")
    server = make_server(HOST, 0, _api, threaded=True, ssl_context=context)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"https://{HOST}:{server.port}"
    server.shutdown()
    thread.join()
    server.server_close()


def asked_as_provider(address: str) -> object:
    return ProviderEndpoint(address, 5).fetch()


def asked_as_source(address: str) -> object:
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


ASK = [asked_as_provider, asked_as_source]
AWAY = (IdentityError, SourceUnavailableError)


@pytest.mark.parametrize("ask", ASK)
def test_only_an_authority_that_is_named_is_believed(
    address, tmp_path, monkeypatch, ask
):
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "hospital.pem"))
    assert ask(address) == {"it": "answers"}
    # It is for others, and does not count.
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "hospital.pem"))
    for name in ("other.pem", "nowhere.pem", "hospital.key", ""):
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / name) if name else "")
        with pytest.raises(AWAY) as refused:
            ask(address)
        assert str(tmp_path) not in str(refused.value)
