"""What the service depends on: one table of checks, for `/ready` and `encounters doctor`.

A check yields results. Of those that a worker runs, `/ready` and the log have the text of
every error; `doctor` prints all of them, with their details and what to do.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from secrets import token_hex

import redis

from adapters.contract import Adapter
from adapters.registry import problems_of
from app.config import Settings
from app.jwks import KeySource
from app.observability import AUDIT_FREE
from app.redis_client import REDIS_ERRORS, connect

LEAST_METRICS_BYTES, SCANT_METRICS_BYTES = 1024**2, 16 * 1024**2
"""With fewer bytes left, metrics of a new process may find no room; or soon will not."""

SCANT_AUDIT_BYTES = 1_600_000_000
"""What a million audit events of reads and small pages take."""


class Status(StrEnum):
    """What a result means; what is fine, and a note, needs nobody to act."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"
    OK = "ok"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One result of a check, without hosts, accounts, secrets and rows of patients.

    `text` is the same at each look, for `/ready` and the log. `detail` replaces it on an
    operator's terminal, where it says more; `remedy` is what to do.
    """

    status: Status
    text: str
    remedy: str = ""
    detail: str = ""

    @property
    def is_wrong(self) -> bool:
        """Whether somebody has to act."""
        return self.status in (Status.ERROR, Status.WARNING)


Results = Iterator[CheckResult]
fine = partial(CheckResult, Status.OK)
note = partial(CheckResult, Status.NOTE)
warning = partial(CheckResult, Status.WARNING)
error = partial(CheckResult, Status.ERROR)


@dataclass(frozen=True, slots=True)
class ServiceCheck:
    """The check of one part; the service is not ready without a part that is `required`."""

    name: str
    run: Callable[[], Iterable[CheckResult]]
    required: bool = True


def checks_of(settings: Settings, keys: KeySource | None) -> Iterator[ServiceCheck]:
    """Yield the checks that a worker and `doctor` share, but for those of the sources.

    Without Redis reads go on (decision 25), and without room for metrics all does.
    """
    store = partial(check_redis, connect(settings.redis_url))
    yield ServiceCheck("redis", store, required=False)
    metrics = Path(os.environ.get("PROMETHEUS_MULTIPROC_DIR") or tempfile.gettempdir())
    room = partial(
        check_room,
        metrics,
        "metrics",
        least=LEAST_METRICS_BYTES,
        scant=SCANT_METRICS_BYTES,
    )
    yield ServiceCheck("counts", room, required=False)
    if keys:
        yield ServiceCheck("identity", partial(check_keys, keys))
    if settings.audit_file:
        audit = partial(check_audit, settings.audit_file)
        yield ServiceCheck("audit", audit, required=settings.audit_failure == "refuse")


def check_source(*adapters: Adapter) -> Results:
    """Check that a source answers, and has everything that the mapping names."""
    problems = [problem for adapter in adapters for problem in problems_of(adapter)]
    # Where nobody answers, each section reports the same.
    for problem in dict.fromkeys(problems):
        remedy = "correct the mapping or the source"
        if problem.outage:
            remedy = "check its address, its account and firewalls"
        status = Status.ERROR if problem.serious else Status.WARNING
        yield CheckResult(status, problem.text, remedy)
    if not problems:
        yield fine("answers, and has everything that the mapping names")


def check_redis(client: redis.Redis) -> Results:
    """Check that Redis stores pages."""
    key = f"page:check-{token_hex(8)}"
    try:
        with client.pipeline(transaction=False) as pipeline:
            pipeline.hset(key, "page", "")
            pipeline.expire(key, 10)
            pipeline.delete(key)
            pipeline.execute()
    except REDIS_ERRORS as failure:
        text = f"stores no pages ({type(failure).__name__}): further pages get 503"
        remedy = "ENCOUNTERS_REDIS_URL: name the master; check its account and memory"
        yield error(text, f"{remedy}, and firewalls")
    else:
        yield fine("stores pages")


def check_keys(keys: KeySource) -> Results:
    """Check that there are keys for tokens."""
    if keys.current():
        yield fine("has keys to verify tokens")
    else:
        text = "the key set cannot be fetched: no token can be checked (503)"
        yield error(text, "check its setting, or ENCOUNTERS_ISSUER, and firewalls")


def check_audit(file: Path) -> Results:
    """Check that audit events can be written: else every request may be refused.

    Nothing is opened: a file that root creates is not writable for the service.
    """
    file = Path(os.path.realpath(file))
    place = file if file.exists() else file.parent
    with suppress(OSError):
        AUDIT_FREE.set(shutil.disk_usage(place).free)
    yield from check_room(place, "audit events", least=1, scant=SCANT_AUDIT_BYTES)


def check_room(place: Path, purpose: str, *, least: int, scant: int) -> Results:
    """Check that this account may write to `place`, and that it has free bytes.

    Fewer than `least` are an error, fewer than `scant` a warning.
    """
    remedy = "free space, or check the owner (TMPDIR, ENCOUNTERS_AUDIT)"
    try:
        free = shutil.disk_usage(place).free
    except OSError as failure:
        yield error(f"{purpose} cannot be written ({failure.strerror})", remedy)
        return
    # Without the number: whenever it changed, the log would report it anew.
    detail = f"{free / 1024**3:.1f} GiB free for {purpose}"
    if not os.access(place, os.W_OK):
        yield error(f"{purpose} cannot be written by this account", remedy)
    elif free < least:
        yield error(f"there is no space for {purpose}", remedy, detail)
    elif free < scant:
        yield warning(f"there is little space for {purpose}", remedy, detail)
    else:
        yield fine(f"there is space for {purpose}", detail=detail)
