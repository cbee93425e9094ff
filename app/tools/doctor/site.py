"""The machine and the settings: files, disk, TLS, probes, the public address."""

import os
import shutil
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import requests

from app.identity import IdentityError, Provider
from app.operations.shared import MEMORY
from app.setting_readers import AUDIT_OFF, AUDIT_STDOUT
from app.setting_table import SETTINGS
from app.settings import PlainHttp, Settings
from app.tools.doctor.certificates import certificate
from app.tools.doctor.rounds import Check, Seen, error, fine, note, warning

SECONDS = 5.0
EVENT_BYTES = 16_000
"""What the audit event of a page of 100 stays takes."""

LEAST_EVENTS = 100_000
LEAST_MEMORY = 16 * 1024 * 1024

_GIB = 1024**3


def site_checks(settings: Settings) -> Iterator[Check]:
    """Yield what needs nobody else, and the two addresses of the service itself."""
    yield Check("settings", partial(_settings, settings))
    yield Check("disk", partial(_disk, settings))
    yield Check("public address", partial(_public, settings))
    if settings.operations_bind:
        yield Check("operations port", partial(_ready, settings.operations_bind))


def _settings(settings: Settings) -> Iterator[Seen]:
    yield fine("can be started with")
    if settings.plain_http is PlainHttp.LOOPBACK:
        text = "ENCOUNTERS_PLAIN_HTTP lets requests of this machine in without TLS"
        yield warning(text, "for trying out only: take it away")
    elif not settings.trusted_proxies and not os.environ.get("GUNICORN_CMD_ARGS"):
        text = (
            "no proxy is trusted and gunicorn has no certificate: all requests are 403"
        )
        yield error(text, "ENCOUNTERS_TRUSTED_PROXIES: the address of your TLS proxy")
    if not settings.operations_bind:
        text = "there are no probes and no metrics"
        yield note(text, "ENCOUNTERS_OPERATIONS_BIND=127.0.0.1:8001")
    for setting in SETTINGS:
        yield from _secret_file(f"{setting.name}_FILE", is_secret=setting.secret)


def _secret_file(name: str, *, is_secret: bool) -> Iterator[Seen]:
    path = os.environ.get(name, "").strip() if is_secret else ""
    if path and stat.S_IMODE(Path(path).stat().st_mode) & stat.S_IROTH:
        yield warning(
            f"everybody on this machine may read {name}", "chmod 0640, or 0400"
        )


def _disk(settings: Settings) -> Iterator[Seen]:
    if MEMORY.is_dir():
        left = shutil.disk_usage(MEMORY).free
        if left < LEAST_MEMORY:
            text = f"{MEMORY} has {left // 1024} KiB left: counts of metrics lie there"
            yield error(text, "make room, or give the container more (--shm-size=64m)")
    if settings.audit in {AUDIT_OFF, AUDIT_STDOUT}:
        yield fine("nothing is written to a disk")
    else:
        yield _audit(Path(os.path.realpath(settings.audit)))


def _audit(path: Path) -> Seen:
    """Look without opening: a file that root makes is none that the service may write."""
    place = path if path.exists() else path.parent
    remedy = "see ENCOUNTERS_AUDIT: its directory, its owner, its disk"
    try:
        left = shutil.disk_usage(place).free
    except OSError as refused:
        text = f"the audit file cannot be written ({refused.strerror})"
        return error(text, remedy)
    if not os.access(place, os.W_OK):
        return error("the audit file may not be written by this account", remedy)
    told = f"{left / _GIB:.1f} GiB left for audit events"
    if left < LEAST_EVENTS * EVENT_BYTES:
        return warning(
            f"{told}: fewer than {LEAST_EVENTS} pages", "make room, or rotate"
        )
    return fine(told)


def _public(settings: Settings) -> Iterator[Seen]:
    """Ask the service as its clients do, through the proxy."""
    metadata = Provider(f"{settings.base_url}/metadata", SECONDS)
    try:
        metadata.get()
    except IdentityError as refused:
        yield _through_proxy(str(refused), is_open=settings.open_metadata)
    else:
        yield fine("is answered by the service")
    finally:
        metadata.close()
    yield from certificate(settings.base_url, for_us=False)


def _through_proxy(told: str, *, is_open: bool) -> Seen:
    remedy = "see docs/operators.md, HTTPS"
    match told:
        case "status 401" if not is_open:
            return fine("is answered by the service")
        case "status 400":
            text = (
                "is answered by the proxy, which may want a client's certificate (400)"
            )
            return note(text, "curl --cert … --key … asks as a client does")
        case "status 403":
            text = "refuses what its proxy passes on (403): it takes it for plain HTTP"
            return error(
                text, f"ENCOUNTERS_TRUSTED_PROXIES, X-Forwarded-Proto: {remedy}"
            )
        case "status 502" | "status 503" | "status 504":
            text = f"is answered by the proxy alone ({told})"
            return error(text, "start the service; let the proxy find ENCOUNTERS_BIND")
        case _ if told.startswith("status"):
            text = f"is answered by somebody else ({told})"
            return error(text, f"ENCOUNTERS_BASE_URL and the proxy's paths: {remedy}")
    if told == "SSLError":
        text = "was not asked: its certificate is none that this machine takes"
        return note(text, "curl --cacert … asks in its place")
    text = f"cannot be reached from here ({told})"
    return note(text, "before the start, or where this machine may not, that is so")


def _ready(bind: str) -> Iterator[Seen]:
    host, _, port = bind.rpartition(":")
    here = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(host, host)  # noqa: S104
    with requests.Session() as session:
        session.trust_env = False
        try:
            answer = session.get(f"http://{here}:{port}/ready", timeout=SECONDS)
        except requests.RequestException:
            text = "nobody answers there"
            yield note(text, "before the start that is so; else see the service's log")
            return
    try:
        parts = answer.json()["parts"]
    except (ValueError, KeyError, TypeError):
        text = f"is answered by somebody else (status {answer.status_code})"
        yield error(text, "ENCOUNTERS_OPERATIONS_BIND: take a port that is free")
        return
    if answer.ok:
        yield fine("says that the service is ready")
    for name, part in parts.items():
        for problem in part["problems"]:
            remedy = "see the check of that part, and docs/runbook.md"
            yield error(f"{name}: {problem}", remedy)
