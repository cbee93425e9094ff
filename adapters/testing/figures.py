"""A plugin of pytest: what ran over each adapter, and what was left out and why.

    python -m pytest -p adapters.testing.figures <the module with the suite>

The adapter is the parameter `source` of a test, or else the name of its module.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest


def pytest_itemcollected(item: pytest.Item) -> None:
    """Note on each test which adapter it is about, for its report."""
    params = getattr(getattr(item, "callspec", None), "params", {})
    item.user_properties.append(("adapter", str(params.get("source", item.path.stem))))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Write the table below the tests."""
    stats = terminalreporter.stats
    run = Counter(
        _adapter(r) for word in ("passed", "failed") for r in stats.get(word, ())
    )
    skipped = Counter(
        (_adapter(report), report.longrepr[2].removeprefix("Skipped: "))
        for report in stats.get("skipped", ())
    )
    terminalreporter.write_line("")
    for line in _table(run, skipped):
        terminalreporter.write_line(line)


def _table(run: Counter[str], skipped: Counter[tuple[str, str]]) -> Iterator[str]:
    yield "| adapter | run | skipped | why |"
    yield "|---|---|---|---|"
    for adapter in sorted({*run, *(adapter for adapter, _ in skipped)}):
        why = {text: n for (of, text), n in skipped.most_common() if of == adapter}
        reasons = ", ".join(f"{text}: {number}" for text, number in why.items())
        yield f"| {adapter} | {run[adapter]} | {sum(why.values())} | {reasons} |"


def _adapter(report: pytest.TestReport) -> str:
    return str(dict(report.user_properties)["adapter"])
