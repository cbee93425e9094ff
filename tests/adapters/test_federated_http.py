"""Two hospitals as one, one in a database and one behind an HTTP API."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapters import open_adapter
from adapters.contract import (
    Adapter,
    Criterion,
    NotAskableError,
    NotFoundError,
    ResourceType,
    Sort,
    SortKey,
    SourceDataError,
    SourceUnavailableError,
)
from adapters.mapping.load import load_mapping
from adapters.mapping.problems import MappingError
from adapters.mapping.profile import load_profile
from adapters.testing.asking import (
    NEWEST_FIRST,
    PATIENT,
    STAY,
    ask,
    dates,
    ids_of,
    patient,
    token,
)
from adapters.testing.hospital import Hospital, Ids
from adapters.testing.stays import EDGES
from app.capabilities import compute_offer
from demo.hospital import fill, generate
from demo.rows import Sejour
from tests.adapters.group import PREFIXES, SHARED, GroupModel
from tests.adapters.http_cases import rows_of
from tests.hospital_http import SECRETS, Api, answer, serving
from tests.hospital_http_mapping import OFFSET, http_mapping_text
from tests.hospital_server import demo_http
from tests.hospital_sql import Tables, mapping_text

BEFORE = "before: entreeAvant"
NEVER = "2024-03-31 02:30:00"
SOUTH = replace(EDGES, stays=tuple(row for row in EDGES.stays if row.began != NEVER))
OLDEST_FIRST = Sort(SortKey.DATE)
ORDERS = (
    NEWEST_FIRST,
    OLDEST_FIRST,
    Sort(SortKey.LAST_UPDATED),
    Sort(SortKey.LAST_UPDATED, descending=True),
)
REFERENCES = ("patient_id", "organization_id", "replaced_by")


def group_text(hospital: Hospital, paging: str, profile: str = "group-a") -> str:
    """Return one mapping file for both: the north by SQL, the south by HTTP."""
    files = [
        yaml.load(text, yaml.BaseLoader)
        for text in (
            mapping_text(hospital),
            http_mapping_text(hospital, paging=paging),
        )
    ]
    whole = {key: files[0][key] for key in SHARED if key in files[0]}
    whole |= {key: {**files[1][key], **files[0][key]} for key in ("constants", "codes")}
    whole["profile"] = profile
    whole["sources"] = {
        "north": {"kind": "sql", "url": {"env": "NORTH_URL"}, "may_write": "true"},
        "south": {
            "kind": "http",
            "url": {"env": "SOUTH_URL"},
            "timeout_seconds": "30",
            "connections": "2",
        },
    }
    for kind in ("encounter", "patient", "organization"):
        north, south = (file[kind] for file in files)
        listed = {key: north.pop(key) for key in ("search", "sort")}
        entries = [
            {"source": "north", "prefix": "n-", **_referring(north, "north")},
            {"source": "south", "prefix": "s-", **_referring(south, "south")},
        ]
        whole[kind] = {"sources": entries, **listed}
    return yaml.safe_dump(whole, sort_keys=False, allow_unicode=True)


def _referring(section: dict[str, Any], name: str) -> dict[str, Any]:
    for slot in REFERENCES:
        if slot in section["fields"]:
            section["fields"][slot]["source"] = name
    return section


class Two:
    """A database and an API, opened as one in the variant that a test wants."""

    def __init__(self, stack: ExitStack, directory: Path, ids: Ids) -> None:
        self.hospitals = (EDGES.with_ids(ids), SOUTH.with_ids(ids))
        self.api = Api(self.hospitals[1])
        self.model = GroupModel(self.hospitals)
        self._stack, self._directory = stack, directory
        north = f"sqlite:///{directory / 'north.db'}"
        tables = Tables(north, self.hospitals[0])
        stack.callback(tables.close)
        south = stack.enter_context(serving(self.api))
        self.environ = {"NORTH_URL": north, "SOUTH_URL": south}

    def opened(
        self, *, paging: str = OFFSET, changes: tuple[tuple[str, str], ...] = ()
    ) -> Adapter:
        text = group_text(self.hospitals[0], paging)
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        file = self._directory / "group.yaml"
        file.write_text(text, encoding="utf-8")
        adapter = open_adapter(load_mapping(file, self.environ))
        self._stack.callback(adapter.close)
        return adapter


@pytest.fixture(scope="module", params=Ids)
def two(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Two]:
    with ExitStack() as stack:
        yield Two(stack, tmp_path_factory.mktemp("group"), request.param)


@pytest.fixture(
    scope="module", params=["", OFFSET, "{page: page}", "{next: suite.lien}"]
)
def adapter(request: pytest.FixtureRequest, two: Two) -> Adapter:
    """Return both as one, the API with each of its ways to page."""
    return two.opened(paging=request.param)


# ------------------------------------------------------------------ one list


@pytest.mark.parametrize("sort", ORDERS)
def test_first_rows_of_both_in_one_order(
    adapter: Adapter, two: Two, sort: Sort
) -> None:
    expected = rows_of(two.model.search(ask(sort=sort)))
    assert adapter.count(ask(sort=sort)) == len(expected)
    for size in (1, 2, 3, 7, 40, len(expected), len(expected) + 1):
        page = adapter.search(ask(sort=sort, count=size))
        assert rows_of(page) == expected[:size]
        assert page.more is (size < len(expected))


def test_an_api_that_gives_less_at_once_is_asked_on(two: Two) -> None:
    """A page that ends early would be filled up with rows that come later."""
    adapter = two.opened(paging="{next: suite.lien}")
    expected = rows_of(two.model.search(ask()))
    two.api.most = 4
    try:
        assert rows_of(adapter.search(ask(count=30))) == expected[:30]
    finally:
        two.api.most = 1000


@pytest.mark.parametrize(
    "criterion",
    [
        dates("2024-03-14"),
        dates("ge2024-10-27T02:30:00+02:00"),
        token("status", "planned"),
        token("class", "AMB"),
        token("_id", "n-1", "s-1", "s-2", "1"),
        token("identifier", "000123"),
    ],
    ids=str,
)
@pytest.mark.parametrize("sort", ORDERS[:2])
def test_filters_hold_in_both(
    adapter: Adapter, two: Two, criterion: Criterion, sort: Sort
) -> None:
    query = ask(_own(two, criterion), sort=sort)
    expected = rows_of(two.model.search(query))
    assert rows_of(adapter.search(query)) == expected
    assert adapter.count(query) == len(expected)


def _own(two: Two, criterion: Criterion) -> Criterion:
    if criterion.parameter != "_id":
        return criterion
    codes = [t.code or "" for t in criterion.values]  # type: ignore[union-attr]
    numbered = [(code[:2], code[2:]) for code in codes if code[:2] in PREFIXES]
    own = [prefix + two.hospitals[0].ids.text(int(n)) for prefix, n in numbered]
    return token("_id", *own)


# ---------------------------------------------------------- ids and references


def test_ids_and_patients_lead_to_their_own_hospital(
    adapter: Adapter, two: Two
) -> None:
    number = two.hospitals[0].ids.text
    for prefix in PREFIXES:
        stay = adapter.read(STAY, prefix + number(42))
        assert stay.id == prefix + number(42)
        query = ask(patient(prefix + number(3)))
        assert rows_of(adapter.search(query)) == rows_of(two.model.search(query))
        assert all(id.startswith((prefix, "!")) for id in ids_of(adapter.search(query)))
    for id in (number(42), "s-", "s-..", "s-none"):
        with pytest.raises(NotFoundError):
            adapter.read(STAY, id)


@pytest.mark.parametrize(
    ("criteria", "asked"),
    [
        ((token("_id", "n-1"),), 0),
        ((token("_id", "1"),), 0),
        ((patient("n-3"),), 0),
        ((patient("3"),), 0),
        ((patient("s-3"),), 1),
        ((), 1),
    ],
    ids=str,
)
def test_the_api_is_asked_only_where_it_is_concerned(
    two: Two, criteria: tuple[Criterion, ...], asked: int
) -> None:
    adapter = two.opened()
    two.api.requests.clear()
    adapter.search(ask(*criteria))
    assert len(two.api.requests) == asked


def test_prefixes_are_never_sent(two: Two) -> None:
    adapter = two.opened()
    number = two.hospitals[1].ids.text(1)
    two.api.requests.clear()
    adapter.search(ask(token("_id", f"s-{number}"), patient(f"s-{number}")))
    adapter.count(ask(patient(f"s-{number}")))
    assert [r.args.get("ipp") for r in two.api.requests] == [number, number]
    assert two.api.requests[0].args["ids"] == number


# ----------------------------------------------------- what is offered, and refused


def test_there_are_no_further_pages(adapter: Adapter) -> None:
    able = adapter.capabilities[STAY]
    assert (able.keyset, able.paging, able.backwards) == (False, False, False)
    assert set(able.sorts) == {SortKey.DATE, SortKey.LAST_UPDATED}
    offer = compute_offer(load_profile("group-a", Path()), adapter.capabilities)
    assert not offer.paging


def test_a_profile_with_pages_is_refused(two: Two, tmp_path: Path) -> None:
    file = tmp_path / "group.yaml"
    text = group_text(two.hospitals[0], OFFSET, "full")
    file.write_text(text, encoding="utf-8")
    with pytest.raises(
        MappingError, match="cannot go on from a row of another"
    ) as caught:
        load_mapping(file, two.environ)
    lines = text.splitlines()
    places = [problem.mark.line for problem in caught.value.problems]
    assert [lines[n - 1].strip() for n in places] == ["- source: south"] * 3


def test_an_api_that_does_not_sort_withdraws_the_key(two: Two) -> None:
    text = yaml.safe_load(group_text(two.hospitals[0], OFFSET))
    del text["encounter"]["sources"][1]["sort"]
    file = two._directory / "unsorted.yaml"
    file.write_text(yaml.safe_dump(text, sort_keys=False), encoding="utf-8")
    adapter = open_adapter(load_mapping(file, two.environ))
    able = adapter.capabilities[STAY]
    assert (able.sorts, able.order[:10]) == ((), "one source")
    by_id = Sort(SortKey.ID)
    found = ids_of(adapter.search(ask(sort=by_id)))
    assert len(found) == adapter.count(ask())
    adapter.close()


def test_what_the_api_cannot_be_asked_is_refused(two: Two) -> None:
    by_day = (
        (
            f"{BEFORE}\n        format: '%d/%m/%Y %H:%M:%S'",
            f"{BEFORE}\n        step: day",
        ),
    )
    adapter = two.opened(changes=by_day)
    with pytest.raises(NotAskableError):
        adapter.search(ask(dates("ge2024-03-14T10:00:00+01:00")))


def test_an_api_that_sorts_otherwise_is_noticed(two: Two) -> None:
    adapter = two.opened(changes=(("date: entree", "date: -entree"),))
    with pytest.raises(
        SourceDataError, match="source south: the list is not in the order"
    ):
        adapter.search(ask(sort=OLDEST_FIRST))


@pytest.mark.parametrize(
    ("status", "kind"), [(500, SourceUnavailableError), (200, SourceDataError)]
)
def test_an_api_that_fails_is_never_a_shorter_list(
    two: Two, status: int, kind: type[Exception]
) -> None:
    adapter = two.opened()
    two.api.strange = lambda _: answer({"erreur": "Jeanne"}, status)
    try:
        for question in (adapter.search, adapter.count):
            with pytest.raises(kind, match="source south: ") as caught:
                question(ask())
            assert "Jeanne" not in str(caught.value)
        assert any("source south" in problem.text for problem in adapter.check())
        number = two.hospitals[0].ids.text(1)
        assert adapter.read(STAY, f"n-{number}").id == f"n-{number}"
    finally:
        two.api.strange = lambda _: None


def test_patients_of_the_api_are_found(adapter: Adapter, two: Two) -> None:
    query = ask(token("gender", "female"), of=PATIENT, sort=Sort(SortKey.ID))
    found = set(ids_of(adapter.search(query)))
    assert found == set(ids_of(two.model.search(query)))
    assert {id[:2] for id in found} == set(PREFIXES)
    assert set(adapter.capabilities) == set(ResourceType)


# --------------------------------------------------------- the demo, as processes

DEMO = """\
mapping: 1
name: Two demo hospitals
profile: group-a
time_zone: Europe/Paris
sources:
  north: {kind: sql, url: {env: NORTH_URL}}
  south:
    kind: http
    url: {env: SOUTH_URL}
    headers: {X-Cle-Api: {env: PAS_KEY}}
codes:
  status:
    table: {P: planned, PA: planned, E: in-progress, EC: in-progress, R: in-progress,
            S: finished, T: finished, F: finished, A: hidden, AN: hidden, X: removed, SUP: removed}
encounter:
  search: [_id, patient, date]
  sort: [date]
  sources:
    - source: north
      prefix: n-
      rows: SELECT sejour_id, patient_id, etat, date_entree FROM sejour
      fields:
        id: {from: sejour_id}
        patient_id: {from: patient_id, source: north}
        status: {from: etat, codes: status}
        start: {from: date_entree}
    - source: south
      prefix: s-
      read: {path: "/sejours/{id}"}
      list:
        path: /sejours
        rows: resultats
        total: nombre
        count: nb
        fixed: {sansEtats: "A,AN,X,SUP"}
      fields:
        id: {from: id}
        patient_id: {from: patient.ipp, source: south}
        status: {from: etat, codes: status}
        start: {from: dateEntree, format: "%d/%m/%Y %H:%M:%S"}
      search:
        _id: {send: ids, several: comma}
        patient: {send: ipp, several: comma, merged: true}
        date: {from: entreeDu, before: entreeAvant, step: day, format: "%d/%m/%Y"}
      sort: {send: tri, by: {date: entree, -date: -entree}}
patient:
  search: [_id]
  sources:
    - source: north
      prefix: n-
      rows: SELECT patient_id, fusion_vers FROM patient
      fields: {id: {from: patient_id}, replaced_by: {from: fusion_vers, source: north}}
    - source: south
      prefix: s-
      read: {path: "/patients/{id}"}
      list: {path: /patients, rows: resultats, total: nombre, count: nb}
      fields: {id: {from: id}, replaced_by: {from: fusionVers, source: south}}
      search: {_id: {send: ids, several: comma}}
"""
STAYS = 1000
UNSERVED = ("A", "AN", "X", "SUP")


@pytest.fixture(scope="module")
def demo_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the demo hospital of seed 2 over HTTP, as a process."""
    directory = tmp_path_factory.mktemp("south")
    with demo_http(directory, "--seed", "2", "--stays", str(STAYS)) as url:
        yield url


@pytest.fixture(scope="module")
def demo_group(
    demo_api: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Adapter]:
    directory = tmp_path_factory.mktemp("demo")
    north = f"sqlite:///{directory / 'north.db'}"
    fill(north, STAYS, 1)
    file = directory / "demo.yaml"
    file.write_text(DEMO, encoding="utf-8")
    environ = {"NORTH_URL": north, "SOUTH_URL": demo_api, **SECRETS}
    adapter = open_adapter(load_mapping(file, environ))
    yield adapter
    adapter.close()


def _expected(*, newest_first: bool) -> list[str]:
    """Return the ids of both hospitals' stays, from their rows alone."""
    found = []
    for place, prefix in enumerate(PREFIXES):
        for row in generate(STAYS, place + 1):
            if isinstance(row, Sejour) and row.etat not in UNSERVED:
                found.append((row.date_entree, place, row.sejour_id, prefix))
    begun = sorted((row for row in found if row[0]), reverse=newest_first)
    others = sorted((row for row in found if not row[0]), key=lambda row: row[1:3])
    if newest_first:
        others.reverse()
    return [f"{prefix}{number}" for _, _, number, prefix in (*begun, *others)]


@pytest.mark.parametrize("newest_first", [True, False])
def test_demo_hospitals_as_one_list(demo_group: Adapter, newest_first: bool) -> None:
    expected = _expected(newest_first=newest_first)
    sort = Sort(SortKey.DATE, newest_first)
    assert list(demo_group.check()) == []
    assert demo_group.count(ask()) == len(expected)
    for size in (1, 10, 100, len(expected)):
        page = demo_group.search(ask(sort=sort, count=size))
        assert _shown(page, expected[:size]) == expected[:size]
        assert page.more is (size < len(expected))


def _shown(page: Any, expected: list[str]) -> list[str]:
    """Return the ids of a page; a fault, which has none, stands for what is expected there."""
    assert len(page.rows) == len(expected)
    return [
        wanted if id.startswith("!") else id
        for id, wanted in zip(ids_of(page), expected, strict=True)
    ]


def test_patient_42_of_one_demo_hospital_is_not_that_of_the_other(
    demo_group: Adapter,
) -> None:
    for prefix in PREFIXES:
        query = ask(patient(f"{prefix}42"))
        found = ids_of(demo_group.search(query))
        assert 0 < len(found) == demo_group.count(query)
        assert all(id.startswith((prefix, "!")) for id in found)
    assert demo_group.count(ask(patient("42"))) == 0
