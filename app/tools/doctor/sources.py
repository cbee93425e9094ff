"""The mapping, and each hospital system that it names."""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import partial
from urllib.parse import urlsplit

from adapters import open_source
from adapters.contract import AdapterError
from adapters.mapping.load import load_mapping
from adapters.mapping.model import SourceConfig, SourceMapping
from adapters.mapping.problems import MappingError
from adapters.sql.database import COUNTS, Database
from adapters.sql.dialects.vitals import Vitals
from app.setting_readers import is_loopback
from app.settings import Settings
from app.tools.checking import check
from app.tools.doctor.certificates import certificate
from app.tools.doctor.clocks import compared
from app.tools.doctor.rounds import Check, Seen, error, fine, note, warning
from app.tools.report import Severity

CLOSE_SECONDS = 0.01
"""How exactly a database keeps the time-out of a statement."""

_UP = "is it up, are address and account right, does a firewall stand between?"


def mapping_checks(
    settings: Settings, clock: Callable[[], float] = time.time
) -> Iterator[Check]:
    """Yield the check of the mapping file, and one for each source of a good one."""
    try:
        mapping = load_mapping(settings.mapping, os.environ)
    except MappingError as refused:
        yield Check("mapping", partial(_refused, refused))
        return
    yield Check("mapping", partial(_mapping, settings))
    for name, parts in _sources(mapping).items():
        subject = f"source {name}" if mapping.parts else "source"
        yield Check(subject, partial(_source, parts, settings, clock))


def _sources(mapping: SourceMapping) -> dict[str, list[SourceMapping]]:
    """Return what is read from each source, by its name."""
    found: dict[str, list[SourceMapping]] = {}
    for part in mapping.parts:
        found.setdefault(part.name, []).append(part.mapping)
    return found or {mapping.name: [mapping]}


def _refused(refused: MappingError) -> Iterator[Seen]:
    for problem in refused.problems:
        yield error(str(problem), "nothing is started or loaded until it is mended")


def _mapping(settings: Settings) -> Iterator[Seen]:
    yield fine("fits its format and its profile")
    for finding in check(settings.mapping):
        if finding.severity is Severity.NOTE:
            yield note(str(finding).replace("note: ", "", 1))
        else:
            yield warning(str(finding), finding.remedy)


def _source(
    parts: list[SourceMapping], settings: Settings, clock: Callable[[], float]
) -> Iterator[Seen]:
    source, problems = parts[0].source, _problems(parts)
    for text, outage in problems.items():
        yield error(text, _UP if outage else "mend the mapping or the source")
    if any(problems.values()):
        return
    if not problems:
        yield fine("answers, and has all that the mapping names")
    if source.connections + COUNTS > settings.threads:
        text = "may hold every thread of a worker when it hangs"
        yield warning(text, "ENCOUNTERS_THREADS: more than source.connections + 2")
    if source.kind == "sql":
        yield from _database(source, settings.workers, clock)
    elif source.kind == "http":
        yield from _encrypted(source, secure=source.url.startswith("https:"))
        yield from certificate(source.url)


def _problems(parts: Iterable[SourceMapping]) -> dict[str, bool]:
    """Ask as the service does at its start; tell of each problem whether it is an outage."""
    found: dict[str, bool] = {}
    try:
        for part in parts:
            with closing(open_source(part)) as adapter:
                found |= {each.text: each.outage for each in adapter.check()}
    except (AdapterError, MappingError) as refused:
        found[str(refused)] = False
    return found


def _database(
    source: SourceConfig, workers: int, clock: Callable[[], float]
) -> Iterator[Seen]:
    try:
        with closing(Database(source.url, source.timeout_seconds, 1)) as database:
            writes = database.may_write()
            database.vitals()
            began, now = time.monotonic(), clock()
            told = database.vitals()
            took = time.monotonic() - began
    except AdapterError as refused:
        yield error(f"does not tell how it is: {refused}", _UP)
        return
    if told is None:
        yield note("this kind of database is not asked for version, clock and limits")
        return
    yield fine(f"{told.version}, answers in {1000 * took:.1f} ms")
    yield from _account(source, told, writes=writes)
    if told.now is not None:
        yield compared(told.now.timestamp() - now)
    yield from _limit(source, told)
    yield from _room(told, workers * (source.connections + COUNTS))
    if told.encrypted is not None:
        yield from _encrypted(source, secure=told.encrypted)


def _account(source: SourceConfig, told: Vitals, *, writes: bool) -> Iterator[Seen]:
    if writes and not source.may_write:
        return  # It has been told of as a problem.
    if writes:
        text = "the account may change tables, and the mapping lets it (may_write)"
        yield warning(text, "give it one that only reads, and take may_write away")
    elif source.may_write:
        yield note(
            f"{source.mark}: the account only reads: may_write can be taken away"
        )
    elif told.writable:
        text = "this account may change the file, which is opened for reading only"
        yield note(text, "chown and chmod the file: reading is all that is needed")
    else:
        yield fine("the account may only read")


def _limit(source: SourceConfig, told: Vitals) -> Iterator[Seen]:
    wanted, kept = source.timeout_seconds, told.statement_seconds
    if kept is not None and abs(kept - wanted) > CLOSE_SECONDS:
        text = f"would let a statement run {kept:g} s, not {wanted:g}"
        remedy = "a pooler between that forgets settings of a session? Go past it"
        yield error(text, remedy)


def _room(told: Vitals, ours: int) -> Iterator[Seen]:
    told_ours = f"this instance may want {ours}"
    remedy = "fewer ENCOUNTERS_WORKERS or source.connections, or more there"
    if told.own_most is not None and told.own_most < ours:
        text = f"the account may have {told.own_most} connections"
        yield error(f"{text}, {told_ours}", remedy)
    if told.most is None:
        return
    used = (told.used or 0) - (told.own_used or 0)
    if used + ours > told.most:
        text = f"takes {told.most} connections, others have {used}"
        yield error(f"{text}, {told_ours}", remedy)
    else:
        yield fine(f"takes {told.most} connections, others have {used}, {told_ours}")


def _encrypted(source: SourceConfig, *, secure: bool) -> Iterator[Seen]:
    host = urlsplit(source.url).hostname
    if not secure and host is not None and not is_loopback(host):
        text = "is reached without TLS: patients' data go over the network in clear"
        yield warning(
            text, "let its address ask for TLS (PostgreSQL: sslmode=verify-full)"
        )
