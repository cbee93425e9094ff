"""`sync` and a hospital that never stands still: in the end both are the same."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from encounters_client import Encounters, EncountersError, Retry, SqliteStore
from encounters_client.store import CANCELLED, CURRENT, INVALID, REMOVED
from encounters_client.sync import OVERLAP_SECONDS
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.clients.running import copied
from tests.clients.service import (
    ORGANIZATIONS,
    Fault,
    pages_expire,
    status,
    token_expires,
)

STATUSES = {REMOVED: 410, CANCELLED: 404, INVALID: 500}
STAYS, PATIENTS = st.integers(1, 9), st.integers(100, 102)

# A change is the name of a method of the hospital, and its arguments.
TICK = st.tuples(st.just("tick"), st.integers(1, 2 * OVERLAP_SECONDS))
# A transaction is stored later than the time of change that it wrote.
ADMIT = st.tuples(st.just("admit"), STAYS, PATIENTS, st.integers(0, OVERLAP_SECONDS))
HONEST = TICK | ADMIT
EVERY = HONEST | st.tuples(st.just("merge"), PATIENTS, PATIENTS)
for kind, ids in (("Encounter", STAYS), ("Patient", PATIENTS)):
    HONEST |= st.tuples(st.just("change"), st.just(kind), ids)
    states = st.sampled_from([CURRENT, *STATUSES])
    EVERY |= st.tuples(st.just("change"), st.just(kind), ids, states)
EVERY |= st.tuples(
    *(st.just("admit"), STAYS, PATIENTS, st.integers(0, 10**6), st.booleans())
)
FAULTS = st.dictionaries(
    st.integers(1, 8),
    st.sampled_from([status(503, "0"), status(429, "0"), token_expires, pages_expire]),
    max_size=2,
)

Changes = Sequence[tuple[object, ...]]


@dataclass(frozen=True)
class Run:
    """A run of the client: changes before it and after each of its answers, and faults."""

    before: Changes = ()
    during: Sequence[Changes] = ()
    faults: Mapping[int, Fault] = field(default_factory=dict)
    is_full: bool = False


def synchronize(service, file, run):
    """Run the client once; faults may end it early."""

    def apply(changes):
        for name, *arguments in changes:
            getattr(service.hospital, str(name))(*arguments)

    apply(run.before)
    during = iter(run.during)
    service.forget()
    service.faults = run.faults
    service.after = lambda: apply(next(during, ()))
    retry = Retry(first_wait_seconds=0)
    with (
        SqliteStore(file) as store,
        Encounters.from_environment(service.environ(), retry=retry) as hospital,
        suppress(EncountersError) if run.faults else nullcontext(),
    ):
        hospital.sync(store, full=run.is_full, page_size=2)


def assert_identical(service, file):
    """Check that the copy has what the service shows, and of patients those of its stays.

    Of what it shows no longer the copy has the state: deleted, or not to be shown.
    """
    keys = [*service.hospital.records, *(("Organization", id) for id in ORGANIZATIONS)]
    reads = {key: service.read(*key) for key in keys}
    shown = {key: body for key, (status, body) in reads.items() if status == 200}
    current = copied(file)
    assert current.items() <= shown.items()
    stays = {key: body for key, body in shown.items() if key[0] == "Encounter"}
    assert stays.items() <= current.items()
    for body in stays.values():
        patient = ("Patient", body["subject"]["reference"].removeprefix("Patient/"))
        assert (patient in current) == (patient in shown)
    for state, code in STATUSES.items():
        for key in copied(file, state):
            assert reads[key][0] == code


def assert_converges(service, *runs):
    """Run the client several times; after the last one the copy must be identical."""
    service.open(5)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "copy.sqlite"
        for run in runs:
            synchronize(service, file, run)
        assert_identical(service, file)


@pytest.mark.parametrize("ends_full", [True, False])
# A smaller example would take minutes to find.
@settings(max_examples=25, phases=[Phase.generate])
@given(st.data())
def test_the_copy_ends_identical(service, ends_full, data):
    """After a full run whatever happens, after others where times of change are right."""
    changes = st.lists(EVERY if ends_full else HONEST, max_size=6)
    full = st.booleans() if ends_full else st.just(False)
    runs = st.builds(Run, changes, st.lists(changes, max_size=3), FAULTS, full)
    between = data.draw(st.lists(runs, min_size=2, max_size=4))
    last = Run(data.draw(changes), is_full=ends_full)
    assert_converges(service, *between, last)


def test_what_changes_during_the_first_walk_is_not_lost(service):
    """Whichever end a walk without a sort begins at."""
    early = [("change", "Encounter", id) for id in (2, 4)]
    later = [("change", "Encounter", id) for id in (1, 5)]
    later.insert(0, ("tick", 3 * OVERLAP_SECONDS))
    # After the CapabilityStatement, the first page, and the second one of three.
    assert_converges(service, Run(during=[[], early, later]), Run())


def test_a_row_from_the_future_hides_no_change(service):
    tomorrow = [("admit", 9, 100, -86_400)]
    today = [("tick", 60), ("change", "Encounter", 1)]
    assert_converges(service, Run(before=tomorrow), Run(before=today))


def test_what_is_deleted_is_told_from_what_cannot_be_shown(service, tmp_path):
    file = tmp_path / "copy.sqlite"
    states = {1: INVALID, 2: REMOVED, 3: CANCELLED}
    service.open(5)
    synchronize(service, file, Run())
    before = copied(file)
    change = [("change", "Encounter", id, state) for id, state in states.items()]
    synchronize(service, file, Run(change, is_full=True))
    for id, state in states.items():
        key = ("Encounter", str(id))
        assert copied(file, state) == {key: before[key] if state == INVALID else None}
    # What is mended is shown again.
    synchronize(service, file, Run([("change", "Encounter", id) for id in states]))
    assert_identical(service, file)
    assert copied(file, INVALID) == {}
