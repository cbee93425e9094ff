"""The adapters that the contract suite runs on, each opened on a hospital of the test's.

To put another adapter under the suite, add how it is opened to `OPENERS`.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest

from adapters import open_adapter
from adapters.contract import ResourceType
from adapters.mapping.load import load_mapping
from adapters.mapping.model import DateReading
from tests.adapters import emptied
from tests.adapters.changeable import Changeable
from tests.adapters.http_cases import LIMITS
from tests.databases import new_database
from tests.hospital_http import COLUMNS, Api, http_mapping_text, serving
from tests.hospital_sql import Tables, covering_changes, mapping_text
from tests.sets import SERVERS
from toolkit.contract.harness import Open, Opened
from toolkit.contract.hospital import Hospital, Ids

opened, url = emptied.opened, emptied.url
"""Fixtures, which pytest finds by name here."""


def _memory(
    hospital: Hospital, _directory: Path, _request: pytest.FixtureRequest
) -> Iterator[Changeable]:
    adapter = hospital.model()
    yield Changeable(
        hospital,
        adapter,
        hospital.model(),
        put_stay=lambda row: adapter.put(hospital.stay(row)),
        delete_stay=lambda id: adapter.delete(
            ResourceType.ENCOUNTER, hospital.ids.text(id)
        ),
    )


def _in_database(
    kind: str, hospital: Hospital, directory: Path, request: pytest.FixtureRequest
) -> Iterator[Changeable]:
    if kind in ("postgresql", "pgbouncer"):
        locale = "unicode" if hospital.ids is Ids.NUMBERS else "plain"
        url = request.getfixturevalue("new_postgresql")(locale)
    else:
        url = new_database(kind, request)
    tables = Tables(url, hospital)
    if kind == "pgbouncer":
        url = request.getfixturevalue("pgbouncer")(url)
    file = directory / "hospital.yaml"
    file.write_text(covering_changes(mapping_text(hospital)), encoding="utf-8")
    adapter = open_adapter(load_mapping(file, {"PAS_URL": url}))
    yield Changeable(
        hospital, adapter, hospital.model(), tables.put_stay, tables.delete_stay
    )
    adapter.close()
    tables.close()


def _http(
    hospital: Hospital, directory: Path, request: pytest.FixtureRequest
) -> Iterator[Opened]:
    if hospital.date_reading is DateReading.PERIOD:
        pytest.skip("an HTTP source is not asked for whole periods")
    file = directory / "hospital.yaml"
    text = http_mapping_text(hospital, source=f", {LIMITS}")
    file.write_text(text, encoding="utf-8")
    with serving(Api(hospital)) as url:
        adapter = open_adapter(load_mapping(file, {"PAS_URL": url}))
        yield Opened(hospital, adapter, columns=COLUMNS)
        adapter.close()


Opener: TypeAlias = Callable[[Hospital, Path, pytest.FixtureRequest], Iterator[Opened]]

OPENERS: Mapping[str, Opener] = {
    "memory": _memory,
    **{
        kind: partial(_in_database, kind)
        for kind in ("sqlite", "postgresql", "pgbouncer", *SERVERS)
    },
    "http": _http,
}


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Compare the list in memory with its like, which is the model, for numbers alone.

    To an API, a UUID is another text.
    """
    again = {item for item in items if _is_model_again(item)}
    config.hook.pytest_deselected(items=[*again])
    items[:] = [item for item in items if item not in again]


def _is_model_again(item: pytest.Item) -> bool:
    params = getattr(getattr(item, "callspec", None), "params", {})
    source, ids = params.get("source"), params.get("edges", params.get("ids"))
    if source == "memory":
        return ids in (Ids.TEXTS, Ids.UUIDS) and "edges" in params
    return source == "http" and ids is Ids.UUIDS


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Let only an HTTP source leave out what it is not asked; a list and a database answer."""
    try:
        return (yield)
    except pytest.skip.Exception as skipped:
        asked = getattr(item, "callspec", None)
        answers = asked and asked.params.get("source", "http") != "http"
        if answers and ":exact is not offered" not in str(skipped):
            raise AssertionError(f"has to be answered: {skipped}") from skipped
        raise


@pytest.fixture(scope="module", params=OPENERS)
def source(request: pytest.FixtureRequest) -> str:
    """Return the kind of adapter under test."""
    return str(request.param)


@pytest.fixture(scope="module")
def open_hospital(
    source: str,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Open]:
    """Return a function that opens the adapter under test on a hospital."""
    with ExitStack() as stack:

        def opened(hospital: Hospital) -> Opened:
            directory = tmp_path_factory.mktemp(source)
            opening = OPENERS[source](hospital, directory, request)
            stack.callback(lambda: list(opening))
            return next(opening)

        yield opened
