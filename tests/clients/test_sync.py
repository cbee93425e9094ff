"""`sync` and a hospital that never stands still: in the end both are the same.

The service is the real one, over SQLite.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from encounters_client import Encounters, EncountersError, Retry, SqliteStore
from encounters_client.sync import OVERLAP_SECONDS
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.clients.running import copied
from tests.clients.service import (
    ORGANIZATIONS,
    Answer,
    Expiry,
    Fault,
    Gone,
    Hospital,
    Service,
    State,
)

Change = Callable[[Hospital], object]

PAGE_SIZE = 2
STATUSES = {State.REMOVED: 410, State.CANCELLED: 404, State.INVALID: 500}
STAYS = st.integers(1, 9).map(str)
PATIENTS = st.sampled_from(["100", "101", "102"])
ANY = STAYS.map(lambda id: ("Encounter", id)) | PATIENTS.map(lambda id: ("Patient", id))


def _admitted(id: str, patient: str, seconds: int, dated: bool = True) -> Change:
    late = timedelta(seconds=seconds)
    return lambda hospital: hospital.admit(id, patient, late=late, dated=dated)


def _changed(key: tuple[str, str], state: State) -> Change:
    def change(hospital: Hospital) -> None:
        if key in hospital.records:
            hospital.change(*key, content=hospital.now.isoformat(), state=state)

    return change


def _merged(old: str, survivor: str) -> Change:
    def merge(hospital: Hospital) -> None:
        patients = {("Patient", old), ("Patient", survivor)}
        if len(patients) == 2 and patients <= hospital.records.keys():
            hospital.merge(old, survivor)

    return merge


def stay_as_it_is(hospital: Hospital) -> None:
    """Change nothing."""


# Several of them have one time, as time passes only here.
PASSING = st.integers(1, 2 * OVERLAP_SECONDS).map(lambda s: lambda h: h.tick(s))
HONEST = (
    PASSING
    | st.builds(_changed, ANY, st.just(State.CURRENT))
    # A transaction is stored later than the time of change that it wrote.
    | st.builds(_admitted, STAYS, PATIENTS, st.integers(0, OVERLAP_SECONDS))
)
LATE = st.builds(_admitted, STAYS, PATIENTS, st.integers(0, 10**6), st.booleans())
EVERY = HONEST | LATE | st.builds(_changed, ANY, st.sampled_from(State))
EVERY |= st.builds(_merged, PATIENTS, PATIENTS)
FAULTS = st.dictionaries(
    st.integers(1, 8),
    st.sampled_from([Answer(503, "0"), Answer(429, "0"), Expiry(), Gone()]),
    max_size=2,
)


@dataclass(frozen=True)
class Run:
    """A run of the client: changes before it and after its answers, and faults."""

    is_full: bool
    before: Sequence[Change] = ()
    during: Sequence[Change] = ()
    faults: Mapping[int, Fault] = field(default_factory=dict)


def runs(changes: st.SearchStrategy[Change], full: st.SearchStrategy[bool]) -> Any:
    """Return a strategy of runs, of which the last one is undisturbed."""
    some = st.lists(changes, max_size=6)
    last = st.builds(Run, full, some)
    return st.tuples(
        st.lists(st.builds(Run, full, some, some, FAULTS), min_size=2, max_size=4), last
    )


def synchronize(served: Service, file: Path, run: Run) -> None:
    """Run the client once; faults may end it early."""
    for each in run.before:
        each(served.hospital)
    waiting = [*run.during]

    def change() -> None:
        if waiting:
            waiting.pop(0)(served.hospital)

    served.forget()
    served.faults, served.after = run.faults, change
    ends_early = suppress(EncountersError) if run.faults else nullcontext()
    retry = Retry(first_wait_seconds=0)
    with (
        SqliteStore(file) as store,
        Encounters.from_environment(served.environ(), retry=retry) as hospital,
        ends_early,
    ):
        hospital.sync(store, full=run.is_full, page_size=PAGE_SIZE)


def assert_identical(served: Service, file: Path) -> None:
    """Check that the copy has what the service shows, and of patients those of its stays.

    Of what it shows no longer the copy has the state: deleted, or not to be shown.
    """
    keys = [*served.hospital.records, *(("Organization", id) for id in ORGANIZATIONS)]
    reads = {key: served.read(*key) for key in keys}
    shown = {key: body for key, (status, body) in reads.items() if status == 200}
    current = copied(file)
    assert current.items() <= shown.items()
    stays = {key: body for key, body in shown.items() if key[0] == "Encounter"}
    assert stays.items() <= current.items()
    for body in stays.values():
        patient = ("Patient", body["subject"]["reference"].removeprefix("Patient/"))
        assert (patient in current) == (patient in shown)
    for state, status in STATUSES.items():
        for key in copied(file, state):
            assert reads[key][0] == status


@settings(max_examples=25)
@given(runs(EVERY, st.booleans()))
def test_a_full_walk_ends_with_an_identical_copy(
    service: Service, steps: tuple[Sequence[Run], Run]
) -> None:
    between, last = steps
    assert_converges(service, [*between, replace(last, is_full=True)])


@settings(max_examples=25)
@given(runs(HONEST, st.just(False)))
def test_times_of_change_are_enough_where_they_are_right(
    service: Service, steps: tuple[Sequence[Run], Run]
) -> None:
    between, last = steps
    assert_converges(service, [*between, last])


def test_what_changes_during_the_first_walk_is_not_lost(service: Service) -> None:
    """Whichever end a walk without a sort begins at."""

    def change_early(hospital: Hospital) -> None:
        for id in ("2", "4"):
            hospital.change("Encounter", id, content="early")

    def change_later(hospital: Hospital) -> None:
        hospital.tick(3 * OVERLAP_SECONDS)
        for id in ("1", "5"):
            hospital.change("Encounter", id, content="later")

    # After the CapabilityStatement, the first page, and the second one of three.
    during = [stay_as_it_is, change_early, change_later]
    assert_converges(service, [Run(is_full=False, during=during), Run(is_full=False)])


def test_a_row_from_the_future_hides_no_change(service: Service) -> None:
    def admit_tomorrow(hospital: Hospital) -> None:
        hospital.admit("9", "100", late=timedelta(days=-1))

    def change_today(hospital: Hospital) -> None:
        hospital.tick(60)
        hospital.change("Encounter", "1", content="changed")

    assert_converges(
        service,
        [
            Run(is_full=False, before=[admit_tomorrow]),
            Run(is_full=False, before=[change_today]),
        ],
    )


def test_what_is_deleted_is_told_from_what_cannot_be_shown(
    service: Service, tmp_path: Path
) -> None:
    """Three stays are gone from the search; only one of them is still there."""
    file = tmp_path / "copy.sqlite"
    states = {"1": State.INVALID, "2": State.REMOVED, "3": State.CANCELLED}
    service.open(5)
    synchronize(service, file, Run(is_full=False))
    before = copied(file)
    change = [_changed(("Encounter", id), state) for id, state in states.items()]
    synchronize(service, file, Run(is_full=True, before=change))
    for id, state in states.items():
        key = ("Encounter", id)
        kept = before[key] if state is State.INVALID else None
        assert copied(file, state) == {key: kept}
    # What is mended is shown again.
    mend = [_changed(("Encounter", id), State.CURRENT) for id in states]
    synchronize(service, file, Run(is_full=False, before=mend))
    assert_identical(service, file)
    assert copied(file, State.INVALID) == {}


def assert_converges(served: Service, steps: Sequence[Run]) -> None:
    """Take the steps; after the last one the copy must be identical."""
    served.open(5)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "copy.sqlite"
        for step in steps:
            synchronize(served, file, step)
        assert_identical(served, file)
