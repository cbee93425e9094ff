"""What `python -m bench.calls` prints: calls per page of an HTTP API."""

import sys

import pytest

from bench import calls


def test_a_page_costs_one_call_where_its_answer_has_the_total(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["calls", "--latency", "0"])
    calls.main()
    _, _, *rows = capsys.readouterr().out.splitlines()
    counted = {row.split(" | ")[0]: [] for row in rows}
    for row in rows:
        case, _, count, _ = row.split(" | ")
        counted[case].append(count)
    # Of rows without a start first, the total is that of a second list.
    assert [*counted.values()] == [["1", "1", "1"], ["2", "1", "1"]] * 2
