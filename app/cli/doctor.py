"""`encounters doctor`: checks everything that a deployment depends on, and says what to do.

It runs the checks of `/ready` (`app.server.checks`) with their details, and what only a
person at a terminal needs. All checks run at the same time, so that one that hangs delays
no other. Results name settings, never their values: no host, account or secret is printed.
Paths, tables and columns of the mapping are, as in `mapping check`.
"""

import json
import logging
import os
import secrets
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import redis
import requests
from joserfc import jws
from joserfc.errors import JoseError

from adapters import open_source
from adapters.contract import AdapterError
from adapters.http.session import isolated
from adapters.mapping.document import read_layers, variables_in
from adapters.mapping.load import load_mapping
from adapters.mapping.model import SourceMapping, from_disk
from adapters.mapping.problems import MappingError
from adapters.mapping.profile import profile_of
from adapters.transport import WITHOUT_TLS, exposed_sources, is_plain
from app.auth import Authenticator, BadTokenError, Introspection, claim_of
from app.config import SETTINGS, Settings, SettingsError
from app.console import FINDINGS, FINE, CannotRunError, aligned, print_json
from app.errors import UnavailableError
from app.jwks import (
    Address,
    IdentityError,
    KeySource,
    provider_addresses,
    provider_at,
    usable_keys,
)
from app.redis_client import (
    OPTIONS,
    SentinelAddress,
    connect,
    is_exposed,
    is_sentinel,
)
from app.server.checks import (
    CheckResult,
    Results,
    ServiceCheck,
    check_source,
    checks_of,
    error,
    fine,
    note,
    warning,
)
from app.server.reload import example_faults
from app.tls import refused_sources, remedy_of

TIMEOUT_SECONDS = 5.0
_ALLOWED = f"{WITHOUT_TLS}: ENCOUNTERS_UNVERIFIED_TLS allows it"


def run(*, seconds: float, token: Path | None, as_json: bool) -> int:
    """Run all checks, or that of a token in a file, and print their results."""
    try:
        settings = Settings.from_environ(os.environ)
    except SettingsError as fault:
        raise CannotRunError(f"{fault}\nNothing was checked.") from fault
    # What the service would log of a failure is a result here.
    logging.getLogger().addHandler(logging.NullHandler())
    checks: Iterable[ServiceCheck] = checks_of_deployment(settings)
    if token is not None:
        check_token = partial(_check_token, settings, _text_of(token))
        checks = [ServiceCheck("token", check_token)]
    ended = run_at_once(checks, seconds)
    if as_json:
        print_json({"checks": [check.as_json() for check in ended]})
    else:
        print(*aligned([row for check in ended for row in check.rows()]), sep="\n")
    is_wrong = any(result.is_wrong for check in ended for result in check.results)
    return FINDINGS if is_wrong else FINE


class Running(threading.Thread):
    """A check that runs; a daemon thread that hangs does not keep us from exiting."""

    def __init__(self, check: ServiceCheck) -> None:
        super().__init__(daemon=True)
        self.check = check
        self.results: list[CheckResult] = []
        self.is_complete = False

    def run(self) -> None:
        """Run the check and keep each result as it comes."""
        for result in self.check.run():
            self.results.append(result)
        self.is_complete = True

    def rows(self) -> Iterator[Sequence[str]]:
        """Yield a row for each result, and below it what to do."""
        for result in self.results:
            yield self.check.name, result.status, result.detail or result.text
            yield from (("", "→", line) for line in result.remedy.splitlines())

    def as_json(self) -> dict[str, object]:
        """Return the name of the check and its results."""
        results = [
            {"text": r.detail or r.text, "remedy": r.remedy, "severity": r.status}
            for r in self.results
        ]
        return {"check": self.check.name, "results": results}


def run_at_once(checks: Iterable[ServiceCheck], seconds: float) -> list[Running]:
    """Run checks in parallel; one that does not end in time has an error."""
    threads = [Running(check) for check in checks]
    deadline = time.monotonic() + seconds
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
        text = ""
        if thread.is_alive():
            text = f"did not finish within {seconds:g} seconds: see its log, or raise --seconds"
        elif not thread.is_complete:
            text = "this check itself failed; its traceback is above"
        if text:
            thread.results.append(error(text, "report it if it persists"))
    return threads


def checks_of_deployment(settings: Settings) -> Iterator[ServiceCheck]:
    """Yield the checks of a deployment: those of `/ready`, with details, and our own."""
    yield ServiceCheck("settings", partial(_check_settings, settings))
    yield ServiceCheck("public address", partial(_check_public_address, settings))
    yield from _mapping_checks(settings)
    key_set, introspection = provider_addresses(settings)
    keys = KeySource(settings, key_set) if key_set else None
    details: dict[str, Callable[[], Results]] = {
        "redis": partial(_redis_details, settings.redis_url)
    }
    if key_set:
        details["identity"] = partial(_key_set_details, settings, key_set)
    for check in checks_of(settings, keys):
        if more := details.get(check.name):
            check = replace(check, run=partial(_in_turn, check.run, more))
        yield check
    if introspection:
        run = partial(_check_introspection, settings, introspection)
        yield ServiceCheck("introspection", run)


def _in_turn(*runs: Callable[[], Iterable[CheckResult]]) -> Results:
    for run in runs:
        yield from run()


# Settings, and the service's own addresses


def _check_settings(settings: Settings) -> Results:
    yield fine("are valid")
    if settings.plain_http == "loopback":
        text = "ENCOUNTERS_PLAIN_HTTP accepts requests of this machine without TLS"
        yield warning(text, "only for trials: remove it")
    elif not settings.trusted_proxies and not settings.bind.startswith("unix:"):
        text = "no proxy is trusted: all requests get 403"
        yield error(text, "ENCOUNTERS_TRUSTED_PROXIES: the address of your TLS proxy")
    if settings.token_url is None:
        text = "discovery does not name where clients get tokens"
        yield note(text, "ENCOUNTERS_TOKEN_URL")
    if not settings.operations_bind:
        text = "there are no probes and no metrics"
        yield note(text, "ENCOUNTERS_OPERATIONS_BIND=127.0.0.1:8001")
    yield from _check_files(setting.name for setting in SETTINGS if setting.secret)


def _check_files(names: Iterable[str]) -> Results:
    """Warn of files of secrets that everybody may read."""
    for name in names:
        file = os.environ.get(f"{name}_FILE", "")
        if file and stat.S_IMODE(Path(file).stat().st_mode) & stat.S_IROTH:
            text = f"everybody on this machine may read {name}_FILE"
            yield warning(text, "chmod 0640, or 0400")


_START = "start the service; check ENCOUNTERS_BASE_URL, ENCOUNTERS_BIND and the proxy"
_ANSWERS = {
    200: fine("the service answers"),
    400: note(
        "the proxy answers, and may require a client certificate (400)",
        "test with curl --cert … --key …",
    ),
    403: error(
        "requests from the proxy are refused (403): they count as plain HTTP",
        "ENCOUNTERS_TRUSTED_PROXIES, X-Forwarded-Proto: docs/run/proxy.md, HTTPS",
    ),
}


def _check_public_address(settings: Settings) -> Results:
    """Request /metadata as a client does, through the proxy."""
    url = f"{settings.base_url}/metadata"
    try:
        with isolated(requests.Session()) as session:
            answer = session.get(url, timeout=TIMEOUT_SECONDS, allow_redirects=False)
    except requests.exceptions.SSLError:
        text = "its certificate is not valid for this machine"
        remedy = "renew it, or name your own authority by SSL_CERT_FILE"
        yield note(text, f"{remedy}: docs/run/tls.md")
    except requests.RequestException as failure:
        text = f"cannot be reached from here ({type(failure).__name__})"
        yield note(text, "fine before the start, or if this machine has no access")
    else:
        status = answer.status_code
        if status == 401 and not settings.open_metadata:
            # The service refuses a request without a token: it answers.
            yield _ANSWERS[200]
        elif status in _ANSWERS:
            yield _ANSWERS[status]
        else:
            yield error(f"only the proxy answers (status {status})", _START)


# Mapping and sources


def _mapping_checks(settings: Settings) -> Iterator[ServiceCheck]:
    """Yield the check of the mapping and, if it is valid, one for each of its sources."""
    try:
        mapping = load_mapping(settings.mapping, os.environ)
        profile_of(mapping)
    except MappingError as failure:
        problems = [error(str(p), "correct the mapping") for p in failure.problems]
        yield ServiceCheck("mapping", lambda: problems)
        return
    yield ServiceCheck("mapping", partial(_check_mapping, settings))
    sources: dict[str, list[SourceMapping]] = {}
    for part in mapping.parts:
        sources.setdefault(part.name, []).append(part.mapping)
    for name, parts in (sources or {"": [mapping]}).items():
        run = partial(_check_source, parts, settings)
        yield ServiceCheck(f"source {name}".rstrip(), run)


def _check_mapping(settings: Settings) -> Results:
    yield fine("is valid")
    yield from _check_files({*variables_in(read_layers(settings.mapping))})
    for fault in example_faults(settings, from_disk):
        yield error(fault, "the service does not start")


def _check_source(parts: list[SourceMapping], settings: Settings) -> Results:
    """Check a source as `/ready` does, then whether it is reached with TLS."""
    try:
        with ExitStack() as opened:
            adapters = [opened.enter_context(closing(open_source(p))) for p in parts]
            yield from check_source(*adapters)
    except (AdapterError, MappingError) as failure:
        yield error(str(failure), "correct the mapping")
    refused = {*refused_sources(settings, parts[0])}
    for exposed in exposed_sources(parts[0]):
        if exposed in refused:
            text = f"{WITHOUT_TLS}: the service does not start"
            yield error(text, remedy_of(exposed))
        else:
            yield warning(_ALLOWED, exposed.remedy)


# Redis


def _redis_details(url: str) -> Results:
    if is_exposed(url):
        text = "has no TLS: its password is sent in clear"
        yield warning(text, "ENCOUNTERS_REDIS_URL: rediss://…")
    if is_sentinel(url):
        yield from check_sentinels(SentinelAddress.read(url))
    with suppress(redis.RedisError), connect(url) as client:
        # Managed services may leave out any of these.
        info = client.info()
        policy = info.get("maxmemory_policy")
        if not info.get("maxmemory"):
            text = "has no maxmemory: other data in it may use up the machine's memory"
            yield note(text, "CONFIG SET maxmemory …: docs/run/capacity.md")
        elif policy not in {None, "noeviction"}:
            text = f"drops pages when it is full ({policy}): searches end with 410"
            yield warning(text, "CONFIG SET maxmemory-policy noeviction")


def check_sentinels(address: SentinelAddress) -> Results:
    """Ask each sentinel itself: the library passes over those that refuse or are away."""
    sentinels = address.sentinel(**OPTIONS).sentinels
    for number, sentinel in enumerate(sentinels, 1):
        name = f"sentinel {number} of {len(sentinels)}"
        try:
            sentinel.ping()
        except (redis.AuthenticationError, redis.ResponseError):
            text = f"{name} refuses the user or the password"
            yield error(
                text, "ENCOUNTERS_REDIS_URL: …?sentinel_password=, empty for none"
            )
        except redis.RedisError as failure:
            text = f"{name} does not answer ({type(failure).__name__})"
            yield warning(text, "check its address and firewalls")
        else:
            yield fine(f"{name} answers")


# Identity provider


def _key_set_details(settings: Settings, address: Address) -> Results:
    """Yield why there is no key set."""
    try:
        usable_keys(provider_at(address, settings).fetch())
    except IdentityError as failure:
        yield note(str(failure))
    yield from _link_of(address)


def _check_introspection(settings: Settings, address: Address) -> Results:
    """Introspect an invented token, as the service does."""
    try:
        Introspection(address, settings).claims(secrets.token_urlsafe())
    except BadTokenError:
        yield fine("accepts the service, and rejects an invented token")
    except UnavailableError as failure:
        remedy = "401 and 403: ENCOUNTERS_INTROSPECTION_CLIENT_ID and …_SECRET"
        text = f"tokens cannot be introspected ({failure.__cause__}): they get 503"
        yield error(text, f"{remedy}; else its address and firewalls")
    else:
        text = "accepts an invented token"
        yield error(text, "do not use it: everybody would have access")
    yield from _link_of(address)


def _text_of(file: Path) -> str:
    try:
        return file.read_text("ascii").strip()
    except (OSError, ValueError) as failure:
        raise CannotRunError("The file of the token cannot be read.") from failure


_LINES = "deploy/providers.env"
_COMPARE = (
    "compare it with ENCOUNTERS_ISSUER, ENCOUNTERS_AUDIENCE and ENCOUNTERS_CLIENT_CLAIMS: "
    f"{_LINES}"
)


def _check_token(settings: Settings, token: str) -> Results:
    """Yield what the service reads of a token, its client and scopes, or why it is refused."""
    authenticator = Authenticator(settings)
    claims = _unverified_claims(token)
    try:
        claims = authenticator.claims(token)
        client = authenticator.client(token, claims)
    except BadTokenError as refusal:
        yield from _claims_read(settings, claims)
        yield error(f"is refused (401): {refusal}", _COMPARE)
    except UnavailableError:
        text = "cannot be checked: the identity provider does not answer (503)"
        yield error(text, "encounters doctor, without --token")
    else:
        yield from _claims_read(settings, claims)
        yield fine(f"its client is {client.id}")
        if client.scopes:
            yield fine(f"its scopes are {', '.join(sorted(client.scopes))}")
        else:
            remedy = f"ENCOUNTERS_SCOPE_CLAIMS, ENCOUNTERS_SCOPES: {_LINES}"
            yield error("it has no known scope: its requests get 403", remedy)


def _unverified_claims(token: str) -> dict[str, Any]:
    """Return the claims of a signed token, whoever signed it; none of an opaque one."""
    try:
        claims = json.loads(jws.extract_compact(token.encode()).payload)
    except (JoseError, ValueError, TypeError, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}


def _claims_read(settings: Settings, claims: dict[str, Any]) -> Results:
    """Yield the claims that count, in ASCII: a token is not trusted to be printed."""
    checked = ("iss", "aud", "exp", "nbf", "iat", "sub")
    expressions = (*checked, *settings.client_claims, *settings.scope_claims)
    for expression in dict.fromkeys(expressions):
        value = claim_of(claims, expression)
        if value is not None:
            yield note(f"{expression}: {json.dumps(value)}")


def _link_of(address: Address) -> Results:
    """Warn of an address of the provider that is reached without TLS."""
    with suppress(IdentityError):
        if is_plain(address() if callable(address) else address):
            yield warning(_ALLOWED, "use an https:// address")
