"""The demo's HTTP API in a process of its own, and tiny hospitals in it that tests change."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from demo.http import KEY_VARIABLE
from tests.hospital_http import SECRETS
from tests.hospital_http_rows import file_text
from tests.live import ROOT, wait_until
from toolkit.contract.hospital import Hospital, StayRow


@contextmanager
def demo_http(directory: Path, *options: str) -> Iterator[str]:
    """Run `python -m demo.http` with its log in a directory, and yield its address."""
    log = directory / "demo-http.log"
    with log.open("wb") as written:
        process = subprocess.Popen(
            [sys.executable, "-m", "demo.http", "--port", "0", *options],
            env={
                **os.environ,
                KEY_VARIABLE: SECRETS[KEY_VARIABLE],
                "PYTHONPATH": str(ROOT),
            },
            stdout=written,
            stderr=subprocess.STDOUT,
        )

    def settled() -> bool:
        return log.read_bytes().endswith(b"\n") or process.poll() is not None

    try:
        wait_until(settled, log)
        if process.poll() is not None:
            pytest.fail(log.read_text())
        yield log.read_text().split()[-1]
    finally:
        process.terminate()
        process.wait(60)


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
    """A folder of hospitals that such a process serves at an address."""

    def __init__(self, folder: Path, url: str) -> None:
        self._folder, self._url = folder, url

    def new_hospital(self, name: str, hospital: Hospital) -> ServedHospital:
        """Serve one more hospital; its name is nobody else's."""
        file = self._folder / f"{name}.json"
        return ServedHospital(file, f"{self._url}/{name}", hospital)
