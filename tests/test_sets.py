"""What the tables of `make test` name is there: a test that is renamed stays in its set."""

import re

import pytest

from tests.live import ROOT
from tests.sets import EXTENDED, LONGEST, SHORT, SYSTEM


@pytest.mark.parametrize("entry", [*SYSTEM, *EXTENDED, *SHORT, *LONGEST])
def test_what_is_named_is_there(entry: str) -> None:
    place, _, name = entry.partition("::")
    assert (ROOT / "tests" / place).exists()
    if name := name.partition("[")[0]:
        text = (ROOT / "tests" / place).read_text("utf-8")
        assert re.search(rf"^def {name}\b", text, re.MULTILINE)


def test_each_is_in_one_set() -> None:
    assert set(SYSTEM).isdisjoint(EXTENDED)
