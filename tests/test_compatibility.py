"""What docs/change/compatibility.md promises is still there: names may be added, none may go."""

import pytest

from tests import compatibility
from tests.compatibility import LISTS, NAMES, promised


@pytest.mark.parametrize("name", NAMES)
def test_what_was_promised_is_still_there(name):
    assert promised(name)
    gone = promised(name) - {*NAMES[name]()}
    assert not gone, "see docs/change/compatibility.md"


def test_a_release_lacks_no_name_and_the_command_adds_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(compatibility, "LISTS", tmp_path)
    for file in LISTS.glob("*.txt"):
        lines = file.read_text("utf-8").splitlines(keepends=True)
        (tmp_path / file.name).write_text("".join(lines[1:]), "utf-8")
    assert compatibility.main(["--check"]) == 1
    assert "lacks ENCOUNTERS_ADDRESS_REQUESTS_PER_MINUTE" in capsys.readouterr().out
    assert compatibility.main([]) == 0
    for file in LISTS.glob("*.txt"):
        assert (tmp_path / file.name).read_text("utf-8") == file.read_text("utf-8")
