"""The contract of adapters, held against hospitals full of edge cases.

Nothing here knows an adapter: who tests one opens it on these rows, and what it answers
is compared with expected ids and with the memory model.
"""

import re
from itertools import combinations

import pytest

from adapters.contract import (
    Adapter,
    Criterion,
    GoneError,
    NotFoundError,
    ResourceType,
    RowFault,
    SourceDataError,
)
from adapters.testing.asking import (
    ORGANIZATION,
    PATIENT,
    STAY,
    ask,
    assert_as_model,
    dates,
    ids_of,
    patient,
    plain,
    token,
    with_ids,
)
from adapters.testing.found import (
    ORGANIZATIONS_FOUND,
    PATIENTS_FOUND,
    SOME,
    STAYS_FOUND,
)
from adapters.testing.opened import Opened

# ------------------------------------------------------------------ reading


@pytest.mark.parametrize("kind", ResourceType)
def test_what_is_searched_can_be_read(edges: Opened, kind: ResourceType) -> None:
    for row in edges.adapter.search(ask(of=kind)).rows:
        if not hasattr(row, "column"):
            assert plain(edges.adapter.read(kind, row.id)) == plain(row)


@pytest.mark.parametrize("kind", ResourceType)
def test_every_row_is_read_as_it_is(edges: Opened, kind: ResourceType) -> None:
    for id_ in sorted(edges.held(kind)):
        if "_" not in id_:  # never asked for: no resource has such an id
            expected = _read(edges.model, kind, id_)
            assert _read(edges.adapter, kind, id_) == expected, id_


def _read(adapter: Adapter, kind: ResourceType, id: str) -> object:
    """Return a record for comparison, or how it is refused."""
    try:
        return plain(adapter.read(kind, id))
    except (NotFoundError, GoneError) as error:
        return type(error)
    except SourceDataError as error:
        return error.fault and plain(error.fault)


def test_faulty_row_is_a_fault_when_read(edges: Opened) -> None:
    with pytest.raises(SourceDataError) as caught:
        edges.adapter.read(STAY, _held(edges, 37))
    assert caught.value.fault is not None
    assert caught.value.fault.column == "state"


def test_fault_tells_no_value_of_its_row(edges: Opened) -> None:
    rows = {edges.id(row.id): row for row in edges.hospital.stays}
    told = {id_: _fault(edges.adapter, id_) for id_ in rows}
    faults = {id_: fault for id_, fault in told.items() if fault}
    for id_, fault in faults.items():
        row = rows[id_]
        for value in filter(None, (id_, row.visit, row.began, row.ended)):
            whole = rf"(?<!\w){re.escape(value)}(?!\w)"
            assert not re.search(whole, fault.rule)
    if not faults:
        pytest.skip("the hospital does not hold a faulty stay")


def _fault(adapter: Adapter, id: str) -> RowFault | None:
    try:
        adapter.read(STAY, id)
    except SourceDataError as error:
        return error.fault
    except (NotFoundError, GoneError):
        return None
    return None


def test_hidden_stay_is_not_there(edges: Opened) -> None:
    with pytest.raises(NotFoundError):
        edges.adapter.read(STAY, _held(edges, 50))


def test_removed_stay_is_gone(edges: Opened) -> None:
    with pytest.raises(GoneError):
        edges.adapter.read(STAY, _held(edges, 51))


def _held(opened: Opened, number: int) -> str:
    """Return the id of a stay; the test is skipped where the hospital does not hold it."""
    if opened.id(number) not in opened.held(STAY):
        pytest.skip(f"the hospital does not hold stay {number}")
    return opened.id(number)


@pytest.mark.parametrize("kind", ResourceType)
@pytest.mark.parametrize(
    "id",
    [
        *("", " ", "0", "-1", "abc", "1.0", "1e0", "01", "+1", " 1", "1 ", "1_0", "１"),
        *("\x00", "1\x00", "%", "_", "1' OR '1'='1", "h1", "\ud83d\ude00", "é" * 2000),
        *(str(10**30), str(-(10**30)), str(2**63), "None", "NULL", "NaN", "\\"),
    ],
)
def test_id_that_no_row_has_is_not_found(
    edges: Opened, kind: ResourceType, id: str
) -> None:
    with pytest.raises(NotFoundError):
        edges.adapter.read(kind, id)
    assert edges.adapter.count(ask(token("_id", "1", id), of=kind)) == (
        edges.adapter.count(ask(token("_id", "1"), of=kind))
    )


def test_ids_are_whole_and_exact(edges: Opened) -> None:
    texts = {edges.id(number) for number in (42, 420, 421, 422, 423)}
    for id_ in sorted(texts & edges.held(STAY)):
        assert edges.adapter.count(ask(token("_id", id_))) == 1
    for code in sorted({"042", "42"} & edges.held(ORGANIZATION)):
        assert edges.adapter.read(ORGANIZATION, code).id == code


# ------------------------------------------------- criteria and what they find


@pytest.mark.parametrize(
    ("criteria", "found"), [pytest.param(c, f, id=name) for name, c, f in STAYS_FOUND]
)
def test_stays_found(
    edges: Opened, criteria: tuple[Criterion, ...], found: tuple[int, ...]
) -> None:
    query = ask(*(with_ids(edges, criterion) for criterion in criteria))
    expected = {edges.id(number) for number in found} & edges.held(STAY)
    assert set(ids_of(edges.adapter.search(query))) == expected
    assert_as_model(edges, query)


@pytest.mark.parametrize(
    ("criteria", "found"),
    [pytest.param(c, f, id=name) for name, c, f in PATIENTS_FOUND],
)
def test_patients_found(
    edges: Opened, criteria: tuple[Criterion, ...], found: tuple[int, ...]
) -> None:
    query = ask(*(with_ids(edges, c) for c in criteria), of=PATIENT)
    expected = {edges.id(number) for number in found} & edges.held(PATIENT)
    assert set(ids_of(edges.adapter.search(query))) == expected
    assert_as_model(edges, query)


@pytest.mark.parametrize(
    ("criterion", "found"),
    [pytest.param(c, f, id=n) for n, c, f in ORGANIZATIONS_FOUND],
)
def test_organizations_found(
    edges: Opened, criterion: Criterion, found: tuple[str, ...]
) -> None:
    query = ask(criterion, of=ORGANIZATION)
    expected = set(found) & edges.held(ORGANIZATION)
    assert set(ids_of(edges.adapter.search(query))) == expected
    assert_as_model(edges, query)


# ------------------------------------------------------- criteria together


@pytest.mark.parametrize(("size", "each"), [(1, 1), (2, 1), (3, 7)])
def test_criteria_hold_together(edges: Opened, size: int, each: int) -> None:
    asked = [with_ids(edges, criterion) for criterion in SOME]
    askable = [c for c in asked if edges.adapter.takes(ask(c))]
    assert len(askable) > len(SOME) / 2
    for some in tuple(combinations(askable, size))[::each]:
        assert_as_model(edges, ask(*some))


def test_question_explained_shows_no_value(edges: Opened) -> None:
    query = ask(
        token("identifier", "SECRET-1"), dates("2031-05-06"), patient(edges.id(1))
    )
    explained = edges.adapter.explain(query)
    assert explained
    assert "SECRET-1" not in explained
    assert "2031" not in explained


def test_sound_source_has_no_problems(edges: Opened) -> None:
    assert list(edges.adapter.check()) == []


def test_fingerprint_stays(edges: Opened) -> None:
    assert edges.adapter.fingerprint == edges.adapter.fingerprint != ""
