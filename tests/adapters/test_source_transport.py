"""Which addresses of hospital systems are reached by verified TLS, or need none."""

import pytest

from adapters.mapping.load import load_mapping
from adapters.transport import exposed_sources
from tests.adapters.mapping.good import HTTP, MINIMAL
from tests.certificates import certify

VARIABLES = ("PGHOST", "PGHOSTADDR", "PGSERVICE", "PGSSLMODE", "PGSSLROOTCERT")
MSSQL = "mssql://u:p@{}/pas?driver=ODBC+Driver+18+for+SQL+Server"

SAFE = [
    "sqlite:////var/pas.db",
    "postgresql:///pas",
    "postgresql://u:p@/pas?host=/run/postgresql",
    "postgresql://u:p@[::1]/pas",
    "postgresql://u:p@pas/pas?sslmode=verify-full",
    "postgresql://u:p@pas/pas?sslrootcert=system",
    "postgresql://u:p@/pas?host=a&host=b&sslmode=verify-full",
    "mariadb://u:p@127.0.0.1/pas",
    "mysql://u:p@/pas?unix_socket=/run/mysqld.sock",
    "mariadb://u:p@pas/pas?ssl_ca=CERTIFICATE&ssl_check_hostname=false",
    "mariadb://u:p@pas/pas?ssl_verify_cert=true&ssl_verify_identity=true",
    MSSQL.format("pas") + "&Encrypt=yes",
    MSSQL.format("pas") + "&Encrypt=strict&TrustServerCertificate=no",
    "mssql://?odbc_connect=Server%3Dtcp:pas,1433%3BEncrypt%3Dyes",
    "mssql://?odbc_connect=Server%3D.%5CPAS",
    "oracle://u:p@localhost:1521/?service_name=pas",
    "oracle://u:p@/?dsn=tcps://pas:2484/pas",
    "oracle://u:p@/?dsn=(DESCRIPTION=(ADDRESS=(PROTOCOL=TCPS)(HOST=pas)(PORT=2484)))",
]

EXPOSED = [
    "postgresql://u:p@pas/pas",
    "postgresql://u:p@10.0.0.1/pas?sslmode=require",
    "postgresql://u:p@/pas?host=localhost&host=pas",
    "postgresql://u:p@localhost/pas?hostaddr=10.0.0.1",
    "postgresql:///?service=pas",
    "mariadb://u:p@pas/pas",
    "mysql://u:p@pas/pas?ssl_disabled=true",
    MSSQL.format("pas"),
    MSSQL.format("pas") + "&Encrypt=yes&TrustServerCertificate=yes",
    "mssql://u:p@dsn",
    "mssql://?odbc_connect=Server%3Dpas%3BPWD%3D%7Bx;Encrypt=yes%7D",
    "oracle://u:p@pas:1521/?service_name=pas",
    "oracle://u:p@alias",
    "oracle://u:p@/?dsn=(DESCRIPTION=(ADDRESS=(PROTOCOL=TCPS))(ADDRESS=(PROTOCOL=TCP)))",
]


def kinds(directory, text, environ):
    """Return the kinds of the exposed sources of a mapping."""
    file = directory / "hospital.yaml"
    file.write_text(text, "utf-8")
    exposed = list(exposed_sources(load_mapping(file, environ)))
    assert all(each.remedy and "pas" not in each.remedy for each in exposed)
    return [each.kind for each in exposed]


@pytest.fixture
def directory(tmp_path, monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_a_database_without_verified_tls(directory):
    certificate = str(certify(directory, "cert"))
    for url in SAFE:
        environ = {"PAS_URL": url.replace("CERTIFICATE", certificate)}
        assert kinds(directory, MINIMAL, environ) == [], url
    for url in EXPOSED:
        assert kinds(directory, MINIMAL, {"PAS_URL": url}) == ["sql"], url


def test_variables_of_libpq_count(directory, monkeypatch):
    monkeypatch.setenv("PGHOST", "pas")
    assert kinds(directory, MINIMAL, {"PAS_URL": "postgresql:///pas"}) == ["sql"]
    monkeypatch.setenv("PGSSLMODE", "verify-full")
    assert kinds(directory, MINIMAL, {"PAS_URL": "postgresql:///pas"}) == []
    url = "postgresql:///pas?sslmode=prefer"
    assert kinds(directory, MINIMAL, {"PAS_URL": url}) == ["sql"]


def test_an_http_system_and_its_token_server(directory):
    for url, token_url, expected in (
        ("https://pas/api", "https://id/token", []),
        ("http://127.0.0.1/api", "http://localhost/token", []),
        ("http://pas/api", "https://id/token", ["http"]),
        ("https://pas/api", "http://id/token", ["http"]),
    ):
        auth = f"token_url: {token_url}, client_id: us, client_secret: {{env: KEY}}"
        text = HTTP.replace(
            "  headers: {X-Api-Key: {env: KEY}}", f"  auth: {{oauth2: {{{auth}}}}}"
        )
        assert kinds(directory, text, {"PAS_URL": url, "KEY": "k"}) == expected
