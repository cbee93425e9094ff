"""Redis, as the pages of searches need it."""

import secrets
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any
from urllib.parse import parse_qs, urlsplit

import redis
from redis.sentinel import MasterNotFoundError

from app.sentinels import SentinelAddress, is_sentinel
from app.setting_readers import is_loopback
from app.settings import Settings
from app.timed_redis import REDIS_SECONDS, connect
from app.tools.doctor.certificates import certificate
from app.tools.doctor.clocks import compared
from app.tools.doctor.rounds import Check, Seen, error, fine, note, warning

SLOW_MS = 5.0
FULL = 0.8
SENTINELS = 3

_LAPS = 20
_PORT = 6379
_SETTING = "ENCOUNTERS_REDIS_URL"
_MIB = 1024 * 1024
_REFUSED: Mapping[type[redis.RedisError], tuple[str, str]] = {
    redis.AuthenticationError: ("refuses our password", f"see {_SETTING}"),
    redis.exceptions.NoPermissionError: (
        "does not let us keep pages",
        "its account must read, write and run scripts on all keys of this database",
    ),
    MasterNotFoundError: (
        "its sentinels name no master, or none of them answers: further pages are 503",
        f"{_SETTING}: do they know the master by that name, and take the same password?",
    ),
    redis.ReadOnlyError: (
        "is a replica: it takes no pages",
        f"{_SETTING}: name the master, or its sentinels",
    ),
    redis.exceptions.OutOfMemoryError: (
        "is full and takes no page: searches of more than one page are 503",
        "raise maxmemory: a page takes up to 2 KB",
    ),
}


def store_checks(
    settings: Settings, clock: Callable[[], float] = time.time
) -> Iterator[Check]:
    """Yield the check of Redis."""
    yield Check("redis", partial(_look, settings, clock))


def _look(settings: Settings, clock: Callable[[], float]) -> Iterator[Seen]:
    yield from _address(settings.redis_url)
    with connect(settings.redis_url) as client:
        try:
            yield from _answers(client)
            yield from _takes_pages(client)
            seconds, micro = client.time()
            yield compared(seconds + micro / 1e6 - clock())
        except redis.RedisError as refused:
            yield _fault(refused)
            return
        try:
            told: Mapping[str, Any] = client.info()
        except redis.RedisError:
            yield note("does not tell how it is set up (INFO is refused)")
            return
        yield from _memory(told)
        yield from _room(told, settings.workers * settings.threads + 1)


def _address(url: str) -> Iterator[Seen]:
    if is_sentinel(url):
        address = SentinelAddress.read(url)
        if len(address.hosts) < SENTINELS:
            text = f"{len(address.hosts)} sentinels are named: fewer than {SENTINELS}"
            yield warning(f"{text} choose no master safely", f"name them in {_SETTING}")
        hosts, secure = [host for host, _ in address.hosts], address.secure
    else:
        parts = urlsplit(url)
        hosts = [parts.hostname or "localhost"]
        secure = parts.scheme == "rediss"
        if secure:
            (authority,) = parse_qs(parts.query).get("ssl_ca_certs", [""])
            at = f"https://{parts.hostname}:{parts.port or _PORT}"
            yield from certificate(at, authority)
    if not secure and not all(map(is_loopback, hosts)):
        text = "is reached without TLS: pages are sealed, its password is not"
        yield warning(text, f"{_SETTING}: rediss://…, or keep the network to yourself")


def _answers(client: redis.Redis) -> Iterator[Seen]:
    laps = []
    for _ in range(_LAPS):
        began = time.perf_counter()
        client.ping()
        laps.append(1000 * (time.perf_counter() - began))
    took = statistics.median(laps)
    if took > SLOW_MS:
        text = f"answers in {took:.1f} ms: each search waits for that, once or twice"
        yield warning(
            text, f"put it nearer; beyond {REDIS_SECONDS} s it counts as away"
        )
    else:
        yield fine(f"answers in {took:.2g} ms")


def _takes_pages(client: redis.Redis) -> Iterator[Seen]:
    """Keep a page as searches do, and take it away."""
    key = f"page:doctor-{secrets.token_hex(8)}"
    with client.pipeline(transaction=False) as steps:
        steps.hset(key, "page", "")
        steps.hsetnx(key, "link", "")
        steps.expire(key, 10)
        steps.hgetall(key)
        steps.delete(key)
        steps.execute()
    yield fine("takes pages and gives them back")


def _fault(refused: redis.RedisError) -> Seen:
    for kind, (text, remedy) in _REFUSED.items():
        if isinstance(refused, kind):
            return error(text, remedy)
    text = f"does not answer ({type(refused).__name__}): further pages are 503"
    return error(text, f"is it up, is {_SETTING} right, does a firewall stand between?")


def _memory(told: Mapping[str, Any]) -> Iterator[Seen]:
    # A Redis that somebody else runs may leave out any of these.
    most, used = int(told.get("maxmemory", 0)), int(told.get("used_memory", 0))
    policy = str(told.get("maxmemory_policy", "noeviction"))
    lost = int(told.get("evicted_keys", 0))
    yield fine(f"Redis {told.get('redis_version', '')}, {used / _MIB:.1f} MiB in use")
    enough = "CONFIG SET maxmemory-policy noeviction, with memory for all pages"
    if policy != "noeviction" and most:
        text = (
            f"drops pages that are in use when it is full ({policy}): walks end (410)"
        )
        yield warning(text, enough)
    elif policy != "noeviction":
        text = f"its policy is {policy}: it would drop pages if it had a maxmemory"
        yield note(text, enough)
    elif not most:
        text = "has no maxmemory: what else it keeps may take the machine's memory"
        yield note(text, "CONFIG SET maxmemory …: docs/operators.md, Capacity")
    if lost:
        text = f"has dropped {lost} keys to make room since its start"
        yield warning(text, "raise maxmemory: clients were told 410")
    if most and used > FULL * most:
        yield warning(f"is {used / most:.0%} full", "raise maxmemory")


def _room(told: Mapping[str, Any], ours: int) -> Iterator[Seen]:
    most, used = int(told.get("maxclients", 0)), int(told.get("connected_clients", 0))
    if most and used + ours > most:
        text = f"takes {most} connections, {used} are in use: this instance may want {ours}"
        yield warning(text, "raise maxclients")
