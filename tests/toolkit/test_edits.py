"""Edits of the text of a mapping file: each changes what was chosen, and nothing else."""

import pytest

from app.console import CannotRunError
from toolkit.edits import add_field, remarks, write_codes

DRAFT = """\
codes:
  status:  # ? what does each code mean?
    table: {}
    # table: {S: …, "A B": …}  # planned, finished
  class:
    table:
      URG: EMER   # by ambulance
      HC: IMP
    otherwise: UNK
  gender: {table: {M: male}}
encounter:
  rows: |
    SELECT s.*, NULL AS open_status
    FROM stay s
  fields:
    status: {from: open_status, codes: status}  # ? which column is it?; INTEGER
    # ? no column yet: class, start
"""
STATUS, MISSING = 16, 17


def changed(after):
    """Return the lines that the draft does not have."""
    return [line for line in after.splitlines() if line not in DRAFT.splitlines()]


@pytest.mark.parametrize(
    ("table", "chosen", "lines"),
    [
        (
            "status",
            {"S": "finished", "A B": "planned", "0": "hidden"},
            [
                "  status:",
                "      S: finished",
                '      "A B": planned',
                "      0: hidden",
            ],
        ),
        ("class", {"URG": "AMB"}, ["      URG: AMB   # by ambulance"]),
        ("class", {"URG": "EMER", "EXT": "AMB"}, ["      EXT: AMB"]),
        ("class", {"URG": "", "HC": "IMP"}, []),
        ("gender", {"F": "f", "#": ""}, ["  gender: {table: {M: male, F: f}}"]),
        ("gender", {"M": "", "F: {": "x"}, ['  gender: {table: {"F: {": x}}']),
    ],
)
def test_codes_are_written_and_comments_stay(table, chosen, lines):
    after = write_codes(DRAFT, table, chosen)
    assert changed(after) == lines
    assert after.endswith(DRAFT[DRAFT.index("encounter:") :])
    assert ("by ambulance" in after) is (chosen.get("URG") != "")


def test_an_open_table_stays_marked_and_a_table_that_is_gone_is_refused():
    assert "# ?" in write_codes(DRAFT, "status", {"S": "finished", "A": ""})
    assert write_codes(DRAFT, "status", {"S": ""}) == DRAFT
    with pytest.raises(CannotRunError):
        write_codes(DRAFT, "nowhere", {"S": "finished"})


def test_a_remark_of_a_code_is_its_comment():
    assert remarks(DRAFT, "class") == {"URG": "by ambulance"}
    assert remarks(DRAFT, "gender") == {}


def test_a_field_is_added_with_its_table_of_codes():
    start = add_field(DRAFT, MISSING, "start", "began")
    assert changed(start) == [
        "    start: {from: began}",
        "    # ? no column yet: class",
    ]
    both = add_field(start, MISSING + 1, "class", "kind")
    assert "no column yet" not in both
    (line,) = [one for one in both.splitlines() if "class: {from: kind" in one]
    name = line.partition("codes: ")[2].rstrip("}")
    assert name != "class", "there is a table of this name"
    assert "EMER" in write_codes(both, name, {"U": "EMER"})
    without = add_field("encounter:\n  # ? no column yet: class\n", 2, "class", "kind")
    assert "EMER" in write_codes(without, "class", {"U": "EMER"})
