"""The sync client and a hospital that never stands still: in the end both are the same."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from sync import OVERLAP_SECONDS, TYPES, Copy, Sync
from walk import Service, WalkError

from tests.clients.fault_server import (
    Answer,
    Expiry,
    Fault,
    FaultServer,
    Gone,
    serving,
)
from tests.clients.hospital import Hospital, State, filled
from tests.clients.running import copied

Change = Callable[[Hospital], object]

STAYS = st.integers(1, 9).map(str)
PATIENTS = st.sampled_from(["p0", "p1", "p2"])
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


def synchronize(served: FaultServer, file: Path, run: Run) -> None:
    """Run the client once; faults may end it early."""
    for each in run.before:
        each(served.hospital)
    waiting = [*run.during]

    def change() -> None:
        if waiting:
            waiting.pop(0)(served.hospital)

    served.requests.clear()
    served.faults, served.after = run.faults, change
    ends_early = suppress(WalkError) if run.faults else nullcontext()
    with closing(Copy(str(file))) as copy, ends_early:
        sync = Sync(Service(served.environ()), copy, is_full=run.is_full)
        for kind in TYPES:
            sync.run(kind)


def assert_identical(hospital: Hospital, file: Path) -> None:
    """Check that the copy has what the hospital shows, and of patients those of its stays."""
    current = copied(file)
    shown = {
        key: record.resource()
        for key, record in hospital.records.items()
        if record.state is State.CURRENT
    }
    stays = {key: body for key, body in shown.items() if key[0] == "Encounter"}
    assert {
        key: body for key, body in current.items() if key[0] == "Encounter"
    } == stays
    assert current.items() <= shown.items()
    referred = {("Patient", hospital.records[key].patient) for key in stays}
    assert referred & shown.keys() <= current.keys()


@settings(max_examples=40)
@given(runs(EVERY, st.booleans()))
def test_a_full_walk_ends_with_an_identical_copy(
    steps: tuple[Sequence[Run], Run],
) -> None:
    between, last = steps
    assert_converges([*between, replace(last, is_full=True)])


@settings(max_examples=40)
@given(runs(HONEST, st.just(False)))
def test_times_of_change_are_enough_where_they_are_right(
    steps: tuple[Sequence[Run], Run],
) -> None:
    between, last = steps
    assert_converges([*between, last])


def test_what_changes_during_the_first_walk_is_not_lost() -> None:
    change_first = _changed(("Encounter", "1"), State.CURRENT)
    change_last = _changed(("Encounter", "5"), State.CURRENT)

    def change_later(hospital: Hospital) -> None:
        hospital.tick(3 * OVERLAP_SECONDS)
        change_last(hospital)

    # After the CapabilityStatement, the page with stay 1, and the one after it.
    during = [stay_as_it_is, change_first, change_later]
    assert_converges([Run(is_full=False, during=during), Run(is_full=False)])


def test_a_row_from_the_future_hides_no_change() -> None:
    def admit_tomorrow(hospital: Hospital) -> None:
        hospital.admit("9", "p0", late=timedelta(days=-1))

    def change_today(hospital: Hospital) -> None:
        hospital.tick(60)
        hospital.change("Encounter", "1", content="changed")

    assert_converges(
        [
            Run(is_full=False, before=[admit_tomorrow]),
            Run(is_full=False, before=[change_today]),
        ]
    )


def assert_converges(steps: Sequence[Run]) -> None:
    """Take the steps; after the last one the copy must be identical."""
    with (
        TemporaryDirectory() as folder,
        serving(FaultServer(filled(5), page_size=2)) as served,
    ):
        file = Path(folder) / "copy.sqlite"
        for step in steps:
            synchronize(served, file, step)
        assert_identical(served.hospital, file)
        for state in (State.REMOVED, State.CANCELLED, State.INVALID):
            for key in copied(file, state):
                assert served.hospital.records[key].state is state
