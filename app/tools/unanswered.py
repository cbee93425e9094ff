"""What a mapping file leaves open: guesses and questions, and systems that are nobody's."""

import re
from collections.abc import Iterator
from pathlib import Path

from app.tools.report import Finding, Severity

MARK = "# ? "
"""Stands before a guess or a question of `mapping new`."""

_NOBODYS = re.compile(r"""[^#]*(?:["']|[-:,\[{]\s*)https://example\.org/identifiers/""")
"""A value that begins so: a text that only tells of such a system is none."""

_SHOWN = 10


def marked_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the number, from 1, and the text of each line with an open question."""
    for number, line in enumerate(text.splitlines(), 1):
        if MARK in f"{line} ":
            yield number, line


def left_open(file: Path, severity: Severity) -> Iterator[Finding]:
    """Yield up to two findings: for the marked lines, and for systems that stand in."""
    text = file.read_text(encoding="utf-8-sig")
    if marked := [number for number, _ in marked_lines(text)]:
        several = "guesses and questions are" if len(marked) > 1 else "guess is"
        yield _finding(file, marked, severity, f"{len(marked)} {several} marked '# ?'")
    lines = enumerate(text.splitlines(), 1)
    if nobodys := [number for number, line in lines if _NOBODYS.match(line)]:
        said = (
            "a system under https://example.org/identifiers/ is nobody's (RFC 2606): put"
            " the hospital's"
        )
        yield _finding(file, nobodys, severity, said)


def _finding(file: Path, lines: list[int], severity: Severity, text: str) -> Finding:
    shown = ", ".join(map(str, lines[:_SHOWN])) + ", …" * (len(lines) > _SHOWN)
    word = "lines" if len(lines) > 1 else "line"
    said = f"{text}: {word} {shown}"
    return Finding(str(file), lines[0], 1, said, severity=severity)
