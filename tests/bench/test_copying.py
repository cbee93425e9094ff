"""The measurement of a full copy counts what was copied."""

from pathlib import Path
from subprocess import CalledProcessError

import pytest

from bench.copying import LIMIT, PAGE_SIZE, Copied, copy
from tests.clients.fault_server import Answer, FaultServer, serving
from tests.clients.hospital import State, filled


def measured(
    service: FaultServer, file: Path, monkeypatch: pytest.MonkeyPatch
) -> Copied:
    with serving(service) as served:
        for name, text in served.environ().items():
            monkeypatch.setenv(name, text)
        return copy(file)


def test_it_counts_what_was_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "stays.ndjson"
    hospital = filled(250)
    hospital.change("Encounter", "7", state=State.INVALID)
    done = measured(FaultServer(hospital, page_size=PAGE_SIZE), file, monkeypatch)
    assert (done.rows, done.invalid) == (249, 1)
    assert len(file.read_text("utf-8").splitlines()) == 249
    assert done.seconds > 0
    assert done.memory_mb > 0
    # A copy that is not complete is no measurement.
    with pytest.raises(CalledProcessError):
        measured(FaultServer(filled(3), {1: Answer(403)}), file, monkeypatch)
    # The share of the limit is that of requests.
    report = Copied(rows=99_000, invalid=1_000, seconds=20, memory_mb=32).report(LIMIT)
    assert "4,950 stays/s" in report
    assert "50 requests/s (5.0% of the limit)" in report
