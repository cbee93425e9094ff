"""Kestrel's adapter under the contract suite."""

from collections.abc import Iterator

import pytest
from filled import COLUMNS, MAPPING, fill, holdable

from adapters import open_adapter
from adapters.mapping.load import load_mapping
from adapters.mapping.model import DateReading
from toolkit.contract import Hospital, Open, Opened
from toolkit.contract.suite import *  # noqa: F403


@pytest.fixture(scope="module")
def open_hospital(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    """Return a function that fills a file and opens the adapter on it."""
    opened = []

    def open_file(hospital: Hospital) -> Opened:
        if hospital.date_reading is DateReading.PERIOD:
            pytest.skip("Kestrel compares starts")
        directory = tmp_path_factory.mktemp("kestrel")
        held = holdable(hospital)
        fill(held, directory / "visits.db")
        mapping = directory / "mapping.yaml"
        mapping.write_text(MAPPING, encoding="utf-8")
        environ = {"KESTREL_FILE": str(directory / "visits.db")}
        adapter = open_adapter(load_mapping(mapping, environ))
        opened.append(adapter)
        return Opened(held, adapter, columns=COLUMNS)

    yield open_file
    for adapter in opened:
        adapter.close()
