"""The demo's HTTP API in a process of its own, with tiny hospitals that a test may change."""

import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType

import pytest

from adapters.testing.hospital import Hospital, StayRow
from demo.http import KEY_VARIABLE
from tests.hospital_http import SECRETS
from tests.hospital_http_rows import file_text
from tests.live import ROOT, wait_until


class ServedHospital:
    """A hospital as a file that is served; each change replaces the file."""

    def __init__(self, file: Path, url: str, hospital: Hospital) -> None:
        self.url = url
        self._file, self._hospital = file, hospital
        self._stays = {row.id: row for row in hospital.stays}
        self._write()

    def put_stay(self, row: StayRow) -> None:
        """Add a stay, or put it in place of the one with its id."""
        self._stays[row.id] = row
        self._write()

    def delete_stay(self, id: int) -> None:
        """Take a stay away."""
        del self._stays[id]
        self._write()

    def _write(self) -> None:
        aside = self._file.with_suffix(".new")
        aside.write_bytes(file_text(self._hospital, self._stays.values()))
        aside.replace(self._file)


class HospitalServer:
    """`python -m demo.http` on a folder, from the block's beginning to its end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> "HospitalServer":
        log = self._folder / "server.log"
        with log.open("wb") as written:
            self._process = subprocess.Popen(
                [*_COMMAND, "--folder", str(self._folder)],
                env={
                    **os.environ,
                    KEY_VARIABLE: SECRETS[KEY_VARIABLE],
                    "PYTHONPATH": str(ROOT),
                },
                stdout=written,
                stderr=subprocess.STDOUT,
            )
        wait_until(lambda: b"\n" in log.read_bytes() or not self._goes_on(), log)
        if not self._goes_on():
            pytest.fail(log.read_text())
        self._url = log.read_text().split()[-1]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.terminate()
        self._process.wait(10)

    def new_hospital(self, name: str, hospital: Hospital) -> ServedHospital:
        """Serve one more hospital; its name is nobody else's."""
        file = self._folder / f"{name}.json"
        return ServedHospital(file, f"{self._url}/{name}", hospital)

    def _goes_on(self) -> bool:
        return self._process.poll() is None


_COMMAND = (sys.executable, "-m", "demo.http", "--port", "0")
