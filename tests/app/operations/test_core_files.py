"""A service that crashes leaves no file with what was in its memory."""

import resource
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from adapters.testing.stays import EDGES
from tests.app.operations.running import running
from tests.hospital_sql import Tables, mapping_text


@pytest.fixture
def cores_wanted() -> Iterator[int]:
    """Let processes that are started write as much as they may; return how much that is."""
    before = resource.getrlimit(resource.RLIMIT_CORE)
    if before[1] == 0:
        pytest.skip("no process of this machine may write a core file")
    resource.setrlimit(resource.RLIMIT_CORE, (before[1], before[1]))
    yield before[1]
    resource.setrlimit(resource.RLIMIT_CORE, before)


def test_no_process_writes_a_core_file_unless_it_is_told_to_meanwhile(
    cores_wanted: int, tmp_path: Path
) -> None:
    url, mapping = f"sqlite:///{tmp_path / 'pas.db'}", tmp_path / "hospital.yaml"
    Tables(url, EDGES).close()
    mapping.write_text(mapping_text(EDGES), "utf-8")
    with running(tmp_path, mapping, {"PAS_URL": url}) as service:
        master = psutil.Process(service.process.pid)
        for process in (master, *service.workers(), *service.beside()):
            # `prlimit --core=unlimited --pid` still lets one be written.
            assert process.rlimit(psutil.RLIMIT_CORE) == (0, cores_wanted)
