"""What the tables of `make test` name is there: a test that is renamed stays in its set."""

import re

from tests.live import ROOT
from tests.sets import EXTENDED, LONGEST, SHORT, SYSTEM


def test_what_is_named_is_there_and_in_one_set() -> None:
    for entry in (*SYSTEM, *EXTENDED, *SHORT, *LONGEST):
        place, _, name = entry.partition("::")
        assert (ROOT / "tests" / place).exists(), entry
        if name := name.partition("[")[0]:
            text = (ROOT / "tests" / place).read_text("utf-8")
            assert re.search(rf"^def {name}\b", text, re.MULTILINE), entry
    assert set(SYSTEM).isdisjoint(EXTENDED)
