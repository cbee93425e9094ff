"""Faults at random, one after the other and at once, while several clients walk.

`make faults` lets it storm for longer (FAULT_SECONDS) and says how often (`-s`).
"""

import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from tests.attacks.faulty_proxy import Fault, FaultyProxy
from tests.attacks.neighbours import COUNT, WALK, Behind, behind, kept_word
from tests.databases import NewDatabase
from tests.redis_server import RedisServer
from tests.serving import Served, link, relations

SECONDS = float(os.environ.get("FAULT_SECONDS", "1.5"))
WALKERS = 3
PATIENCE = 60.0


@pytest.fixture(params=["postgresql", "http"])
def service(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    redis_server: RedisServer,
    new_postgresql: NewDatabase,
) -> Iterator[Behind]:
    database = new_postgresql("unicode") if request.param == "postgresql" else None
    with behind(request.param, tmp_path, redis_server, database) as made:
        yield made


def test_in_a_storm_of_faults_every_walk_finds_every_stay_once(service: Behind) -> None:
    over, faults = Event(), Counter[str]()
    clients = [service.served.as_client(f"client-{n}") for n in range(WALKERS)]
    service.first()
    with ThreadPoolExecutor(WALKERS + len(service.proxies)) as threads:
        storms = [
            threads.submit(_storm, name, proxy, over, faults)
            for name, proxy in service.proxies.items()
        ]
        walks = [threads.submit(_walks, client, over) for client in clients]
        for storm in storms:
            storm.result()
        over.set()
        statuses = sum((walk.result() for walk in walks), Counter[int]())
    print(f"faults {sum(faults.values())} of {len(faults)} kinds, answers {statuses}")
    assert statuses[200] >= len(WALK) // COUNT


def _storm(name: str, proxy: FaultyProxy, over: Event, faults: Counter[str]) -> None:
    """Fail again and again, in an order that is the same every time."""
    chance = random.Random(name)
    ends = time.monotonic() + SECONDS
    while time.monotonic() < ends:
        # psycopg waits for a silent server (docs/operators.md).
        silent = {Fault.SILENT} if name == "postgresql" else set()
        fault = chance.choice([each for each in Fault if each not in silent])
        with proxy.failing(fault):
            faults[f"{name}: {fault}"] += 1
            over.wait(chance.uniform(0, 0.6))
        over.wait(chance.uniform(0, 0.6))


def _walks(client: Served, over: Event) -> Counter[int]:
    """Walk until it is over, and then to the end; return how often each status came."""
    statuses = Counter[int]()
    while not over.is_set() or not statuses[200]:
        _walk(client, over, statuses)
    return statuses


def _walk(client: Served, over: Event, statuses: Counter[int]) -> None:
    start, following = 0, None
    calm = None
    while start < len(WALK):
        if following is None:
            answer = client.post("Encounter/_search", {"_count": str(COUNT)})
        else:
            answer = client.get(following)
        statuses[answer.status_code] += 1
        if not kept_word(answer, WALK[start : start + COUNT]):
            calm = calm or (time.monotonic() if over.is_set() else None)
            assert calm is None or time.monotonic() < calm + PATIENCE
            time.sleep(0.05)
            continue
        page = answer.get_json(force=True)
        start += COUNT
        assert ("next" in relations(page)) == (start < len(WALK))
        if start < len(WALK):
            following = link(page, "next")
