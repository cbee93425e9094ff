"""`encounters doctor`: checks everything that a deployment depends on.

All checks run at the same time, so that one that hangs delays no other. Findings name
settings, never their values: no host, account or secret is printed. Paths, tables and
columns of the mapping are, as in `mapping check`.
"""

import os
import secrets
import shutil
import socket
import ssl
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlsplit

import redis
import requests

from adapters import open_source
from adapters.contract import AdapterError
from adapters.encryption import WITHOUT_TLS, exposed_sources, is_plain
from adapters.http.session import isolated
from adapters.mapping.document import read_layers, variables_in
from adapters.mapping.load import load_mapping
from adapters.mapping.model import SourceConfig, SourceMapping
from adapters.mapping.problems import MappingError
from adapters.sql.engine import COUNTS, Database
from app.config import (
    AUDIT_OFF,
    AUDIT_STDOUT,
    SETTINGS,
    Settings,
    SettingsError,
)
from app.console import FINDINGS, FINE, CannotRunError, aligned, print_json
from app.jwks import Address, IdentityError, provider_addresses, usable_keys
from app.redis_client import connect, is_exposed
from app.tls import refused_sources, remedy_of
from toolkit.check import check as check_file
from toolkit.checks.runner import Check, Outcome, run_at_once
from toolkit.findings import Finding, Severity

CERTIFICATE_DAYS = 21
"""A certificate that expires within so many days is a warning."""

CLOCK_SECONDS = 5.0
"""How far two clocks may differ without a warning, the network delay included."""

TIMEOUT_SECONDS = 5.0
LEAST_DISK_BYTES = 1_600_000_000
"""What a million audit events of reads and small pages take."""

LEAST_METRICS_BYTES = 16 * 1024**2
_MEND = "correct the mapping or the source"
_AWAY = "check its address, its account and firewalls"
_ALLOWED = f"{WITHOUT_TLS}: ENCOUNTERS_UNVERIFIED_TLS allows it"
_GIB, _DAY = 1024**3, 86400

Findings: TypeAlias = Iterator[Finding]

_fine = Finding.about
_note = partial(Finding.about, severity=Severity.NOTE)
_warning = partial(Finding.about, severity=Severity.WARNING)
_error = partial(Finding.about, severity=Severity.ERROR)


def run(*, seconds: float, as_json: bool) -> int:
    """Run all checks and print their findings."""
    try:
        settings = Settings.from_environ(os.environ)
    except SettingsError as error:
        raise CannotRunError(f"{error}\nNothing was checked.") from error
    outcomes = run_at_once(checks_of(settings), seconds)
    if as_json:
        print_json({"checks": [_as_json(outcome) for outcome in outcomes]})
    else:
        print_outcomes(outcomes)
    is_wrong = any(each.is_wrong for outcome in outcomes for each in outcome.findings)
    return FINDINGS if is_wrong else FINE


def _as_json(outcome: Outcome) -> dict[str, object]:
    findings = [
        {"text": each.statement, "remedy": each.remedy, "severity": each.severity}
        for each in outcome.findings
    ]
    return {"check": outcome.check.subject, "seen": findings}


def print_outcomes(outcomes: Iterable[Outcome]) -> None:
    """Print a line for each finding, and below it what to do."""
    rows: list[Sequence[str]] = []
    for outcome in outcomes:
        for each in outcome.findings:
            rows.append((outcome.check.subject, each.severity, each.statement))
            rows += [("", "→", line) for line in each.remedy.splitlines()]
    if rows:
        print(*aligned(rows), sep="\n")


def checks_of(settings: Settings) -> Iterator[Check]:
    """Yield the checks of a deployment."""
    yield Check("settings", partial(_check_settings, settings))
    yield Check("disk", partial(_check_disk, settings))
    yield Check("public address", partial(_check_public_address, settings))
    yield from _mapping_checks(settings)
    yield Check("redis", partial(_check_redis, settings))
    key_set, introspection = provider_addresses(settings)
    for subject, address, ask in (
        ("key set", key_set, _check_key_set),
        ("introspection", introspection, _check_introspection),
    ):
        if address:
            check = partial(_check_provider, address, partial(ask, settings))
            yield Check(subject, check)


# Settings, disk, and the service's own addresses


def _check_settings(settings: Settings) -> Findings:
    yield _fine("are valid")
    if settings.plain_http == "loopback":
        text = "ENCOUNTERS_PLAIN_HTTP accepts requests of this machine without TLS"
        yield _warning(text, "only for trying out: remove it")
    elif not settings.trusted_proxies and not settings.bind.startswith("unix:"):
        text = "no proxy is trusted: all requests get 403"
        yield _error(text, "ENCOUNTERS_TRUSTED_PROXIES: the address of your TLS proxy")
    if not settings.operations_bind:
        text = "there are no probes and no metrics"
        yield _note(text, "ENCOUNTERS_OPERATIONS_BIND=127.0.0.1:8001")
    yield from _check_files(setting.name for setting in SETTINGS if setting.secret)


def _check_files(names: Iterable[str]) -> Findings:
    """Warn of files of secrets that everybody may read."""
    for name in names:
        file = os.environ.get(f"{name}_FILE", "")
        if file and stat.S_IMODE(Path(file).stat().st_mode) & stat.S_IROTH:
            text = f"everybody on this machine may read {name}_FILE"
            yield _warning(text, "chmod 0640, or 0400")


def _check_disk(settings: Settings) -> Findings:
    yield _writable(Path(tempfile.gettempdir()), "metrics", LEAST_METRICS_BYTES)
    if settings.audit not in {AUDIT_OFF, AUDIT_STDOUT}:
        # Without opening it: a file created by root is not writable for the service.
        audit = Path(os.path.realpath(settings.audit))
        audit = audit if audit.exists() else audit.parent
        yield _writable(audit, "the audit file", LEAST_DISK_BYTES)


def _writable(path: Path, name: str, least: int) -> Finding:
    remedy = f"check owner and disk of {name} (TMPDIR, ENCOUNTERS_AUDIT)"
    try:
        free = shutil.disk_usage(path).free
    except OSError as error:
        return _error(f"{name} cannot be written ({error.strerror})", remedy)
    if not os.access(path, os.W_OK):
        return _error(f"{name} cannot be written by this account", remedy)
    text = f"{free / _GIB:.1f} GiB free for {name}"
    return _warning(text, remedy) if free < least else _fine(text)


def _request(method: str, url: str, **options: Any) -> requests.Response:
    options = {"timeout": TIMEOUT_SECONDS, "allow_redirects": False, **options}
    with isolated(requests.Session()) as session:
        return session.request(method, url, **options)


def _check_public_address(settings: Settings) -> Findings:
    """Request /metadata as a client does, through the proxy."""
    try:
        status = _request("GET", f"{settings.base_url}/metadata").status_code
    except requests.RequestException as error:
        text = f"cannot be reached from here ({type(error).__name__})"
        yield _note(text, "fine before the start, or if this machine has no access")
    else:
        yield _of_status(status, is_open=settings.open_metadata)
    yield from check_certificate(settings.base_url, for_us=False)


def _of_status(status: int, *, is_open: bool) -> Finding:
    if status == requests.codes.ok or (status == 401 and not is_open):
        return _fine("the service answers")
    if status == 400:
        text = "the proxy answers, and may require a client certificate (400)"
        return _note(text, "test with curl --cert … --key …")
    if status == 403:
        text = "requests from the proxy are refused (403): they count as plain HTTP"
        remedy = "ENCOUNTERS_TRUSTED_PROXIES, X-Forwarded-Proto: docs/operators.md"
        return _error(text, f"{remedy}, HTTPS")
    remedy = (
        "start the service; check ENCOUNTERS_BASE_URL, ENCOUNTERS_BIND and the proxy"
    )
    return _error(f"only the proxy answers (status {status})", remedy)


# Certificates

_OTHER_HOST = "is for another host", "use a name of the certificate in the setting"
_OTHER_CA = (
    "is of an unknown authority",
    "send the whole chain; set SSL_CERT_FILE for own authorities",
)
_UNTRUSTED = {10: ("has expired", "renew it"), 62: _OTHER_HOST, 64: _OTHER_HOST}
"""What OpenSSL's codes mean (X509_V_ERR_…): its own texts may contain the host."""


def check_certificate(url: str, cafile: str = "", *, for_us: bool = True) -> Findings:
    """Check the certificate of an https address; one not `for_us` may have an own CA."""
    parts = urlsplit(url)
    if parts.scheme != "https":
        return
    try:
        context = ssl.create_default_context(cafile=cafile or None)
        address = (parts.hostname or "", parts.port or 443)
        with (
            socket.create_connection(address, TIMEOUT_SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=parts.hostname) as secure,
        ):
            certificate = secure.getpeercert() or {}
    except ssl.SSLCertVerificationError as error:
        text, remedy = _UNTRUSTED.get(error.verify_code, _OTHER_CA)
        is_theirs = remedy == _OTHER_CA[1] and not for_us
        severity = Severity.NOTE if is_theirs else Severity.ERROR
        yield Finding.about(f"its certificate {text}", remedy, severity)
    except OSError as error:
        yield _note(f"its certificate cannot be checked ({type(error).__name__})")
    else:
        ends = ssl.cert_time_to_seconds(str(certificate["notAfter"]))
        days = int((ends - time.time()) // _DAY)
        if days < CERTIFICATE_DAYS:
            yield _warning(f"its certificate expires in {days} days", "renew it")
        else:
            yield _fine(f"its certificate is valid for {days} days")


# Mapping and sources


def _mapping_checks(settings: Settings) -> Iterator[Check]:
    try:
        mapping = load_mapping(settings.mapping, os.environ)
    except MappingError as error:
        problems = [_error(str(p), "correct the mapping") for p in error.problems]
        yield Check("mapping", lambda: problems)
        return
    yield Check("mapping", partial(_check_mapping, settings.mapping))
    sources: dict[str, list[SourceMapping]] = {}
    for part in mapping.parts:
        sources.setdefault(part.name, []).append(part.mapping)
    for name, parts in (sources or {"": [mapping]}).items():
        subject = f"source {name}".rstrip()
        yield Check(subject, partial(_check_source, parts, settings))


def _check_mapping(file: Path) -> Findings:
    yield _fine("fits its format and its profile")
    yield from _check_files({*variables_in(read_layers(file))})
    yield from check_file(file)


def _check_source(parts: list[SourceMapping], settings: Settings) -> Findings:
    """Check a source as a start of the service does, then its limits."""
    problems = dict(_problems(parts))
    for text, is_away in problems.items():
        yield _error(text, _AWAY if is_away else _MEND)
    if not problems:
        yield _fine("answers, and has everything that the mapping names")
    source = parts[0].source
    if source.kind == "sql" and not any(problems.values()):
        yield from _check_database(source, settings)
    if source.kind == "http":
        yield from check_certificate(source.url)
    refused = {*refused_sources(settings, parts[0])}
    for exposed in exposed_sources(parts[0]):
        if exposed in refused:
            text = f"{WITHOUT_TLS}: the service does not start"
            yield _error(text, remedy_of(exposed))
        else:
            yield _warning(_ALLOWED, exposed.remedy)


def _problems(parts: Iterable[SourceMapping]) -> Iterator[tuple[str, bool]]:
    """Yield what keeps a source from being served, and whether it is away."""
    try:
        for part in parts:
            with closing(open_source(part)) as adapter:
                yield from ((each.text, each.outage) for each in adapter.check())
    except (AdapterError, MappingError) as error:
        yield str(error), True


def _check_database(source: SourceConfig, settings: Settings) -> Findings:
    started = time.monotonic()
    try:
        with closing(Database(source.url, source.timeout_seconds, 1)) as database:
            status = database.server_status()
            seconds = time.monotonic() - started
    except AdapterError as error:
        yield _error(f"does not report its state: {error}", _MEND)
        return
    if status is None:
        yield _note("this kind of database reports no version and limits")
        return
    yield _fine(f"{status.version}, connects in {seconds:.2f} s")
    needed = settings.workers * (source.connections + COUNTS)
    need = f"this instance needs up to {needed}"
    remedy = "fewer ENCOUNTERS_WORKERS or source.connections, or more there"
    if status.own_most is not None and status.own_most < needed:
        text = f"the account may have {status.own_most} connections"
        yield _error(f"{text}, {need}", remedy)
    others = (status.used or 0) - (status.own_used or 0)
    if status.most is not None and others + needed > status.most:
        text = f"allows {status.most} connections, others use {others}"
        yield _error(f"{text}, {need}", remedy)


# Redis


def _check_redis(settings: Settings) -> Findings:
    yield from _check_redis_address(settings.redis_url)
    try:
        with connect(settings.redis_url) as client:
            key = f"page:doctor-{secrets.token_hex(8)}"
            with client.pipeline(transaction=False) as pipeline:
                pipeline.hset(key, "page", "")
                pipeline.expire(key, 10)
                pipeline.delete(key)
                pipeline.execute()
            yield _fine("stores pages")
            yield from _check_redis_info(client.info())
    except redis.RedisError as error:
        text = f"stores no pages ({type(error).__name__}): further pages get 503"
        remedy = "ENCOUNTERS_REDIS_URL: name the master; check its account and memory"
        yield _error(text, f"{remedy}, and firewalls")


def _check_redis_address(url: str) -> Findings:
    parts = urlsplit(url)
    if parts.scheme == "rediss":
        (cafile,) = parse_qs(parts.query).get("ssl_ca_certs", [""])
        https = f"https://{parts.hostname}:{parts.port or 6379}"
        yield from check_certificate(https, cafile)
    if is_exposed(url):
        text = "is reached without TLS: pages are encrypted, its password is not"
        yield _warning(text, "ENCOUNTERS_REDIS_URL: rediss://…")


def _check_redis_info(info: Mapping[str, Any]) -> Findings:
    # Managed services may leave out any of these.
    version, policy = info.get("redis_version", ""), info.get("maxmemory_policy")
    limit, used = int(info.get("maxmemory", 0)), int(info.get("used_memory", 0))
    yield _fine(f"Redis {version}, {used / 1024**2:.1f} MiB in use")
    if not limit:
        text = "has no maxmemory: other data in it may use up the machine's memory"
        yield _note(text, "CONFIG SET maxmemory …: docs/operators.md, Capacity")
    elif policy not in {None, "noeviction"}:
        text = f"drops pages when it is full ({policy}): page walks end with 410"
        yield _warning(text, "CONFIG SET maxmemory-policy noeviction")
    if limit and used > 0.8 * limit:
        yield _warning(f"is {used / limit:.0%} full", "raise maxmemory")
    if not info.get("aof_enabled"):
        yield _note("pages end with a restart of Redis", "CONFIG SET appendonly yes")


# Identity provider


def _check_provider(address: Address, ask: Callable[[str], Findings]) -> Findings:
    """Yield what an address of the provider answers, and how it is reached."""
    url = reason = ""
    try:
        url = address if isinstance(address, str) else address()
        yield from ask(url)
    except requests.HTTPError as error:
        reason = f"status {error.response.status_code}"
    except IdentityError as error:
        reason = str(error)
    except (requests.RequestException, ValueError, AttributeError) as error:
        reason = type(error).__name__
    if reason:
        text = f"does not answer ({reason}): tokens cannot be checked (503)"
        yield _error(text, "check its setting, or ENCOUNTERS_ISSUER, and firewalls")
    if url and is_plain(url):
        yield _warning(_ALLOWED, "use an https:// address")
    yield from check_certificate(url)


def _check_key_set(settings: Settings, url: str) -> Findings:
    response = _request("GET", url, timeout=settings.identity_timeout_seconds)
    response.raise_for_status()
    yield _fine(f"usable keys: {len(usable_keys(response.json()))}")
    if date := response.headers.get("Date"):
        # The header has whole seconds.
        ahead = parsedate_to_datetime(date).timestamp() + 0.5 - time.time()
        text = f"its clock is {ahead:+.0f} seconds from ours"
        remedy = "synchronize both machines (chronyc tracking, timedatectl)"
        if abs(ahead) > settings.leeway_seconds:
            limit = f"more than ENCOUNTERS_LEEWAY_SECONDS ({settings.leeway_seconds:g})"
            yield _error(f"{text}, {limit}: tokens may be refused", remedy)
        elif abs(ahead) > CLOCK_SECONDS:
            yield _warning(text, remedy)
        else:
            yield _fine("its clock agrees with ours")


def _check_introspection(settings: Settings, url: str) -> Findings:
    account = settings.introspection_client_id, settings.introspection_client_secret
    response = _request(
        "POST",
        url,
        data={"token": secrets.token_urlsafe(), "token_type_hint": "access_token"},
        auth=(account[0] or "", account[1] or ""),
        timeout=settings.identity_timeout_seconds,
    )
    if response.status_code in {401, 403}:
        text = f"refuses the service (status {response.status_code})"
        yield _error(text, "see ENCOUNTERS_INTROSPECTION_CLIENT_ID and …_SECRET")
        return
    response.raise_for_status()
    if response.json().get("active") is False:
        yield _fine("accepts the service, and rejects an invented token")
    else:
        text = "accepts an invented token"
        yield _error(text, "do not use it: everybody would have access")
