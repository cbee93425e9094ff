"""What a YAML parser refuses, said to the person who wrote it, at the place to mend."""

from typing import Any, NamedTuple

import yaml


class _Fault(NamedTuple):
    """A fault of the parser by how its problem and its context begin.

    `at_start` places it where the thing that is at fault starts: the parser often
    finds out a line later, or at the end of the file.
    """

    problem: str
    context: str
    words: str
    at_start: bool = False


_QUOTE = "a quote is never closed"
_COLON = "a ':' is not expected here: quote the text, or check the indentation above"
_NO_COLON = "a key without ':', or a text that needs quotes"
_MISPLACED = "indented like nothing above it: line it up with what it belongs to"
_TOO_MANY = "does not belong to what stands before it: a bracket, quote or ',' too many"
_SIGN = "a text cannot begin with this sign: quote it"

_FAULTS = (
    _Fault("found character '\\t'", "", "a tab: indent with blanks"),
    _Fault("found character", "", _SIGN),
    _Fault(
        "mapping values are not allowed",
        "",
        _COLON,
    ),
    _Fault(
        "could not find expected ':'",
        "",
        _NO_COLON,
        at_start=True,
    ),
    _Fault("found unexpected", "while scanning a quoted", _QUOTE, at_start=True),
    _Fault(
        "expected ',' or",
        "while parsing a flow",
        "this bracket is never closed, or a ',' is missing between what it holds",
        at_start=True,
    ),
    _Fault(
        "expected <block end>",
        "",
        _MISPLACED,
    ),
    _Fault("expected the node content", "", "a value is missing here, or needs quotes"),
    _Fault(
        "sequence entries are not allowed",
        "",
        "a '-' is not expected here: quote the text, or check the indentation",
    ),
    _Fault("mapping keys are not allowed", "", _SIGN),
    _Fault(
        "",
        "while scanning a block scalar",
        "after '|' or '>' the text begins on the next line",
    ),
    _Fault(
        "",
        "while scanning a double-quoted",
        "a '\\' means something else in double quotes: use single quotes",
    ),
    *(
        _Fault("", f"while {seen}", _SIGN, at_start=True)
        for seen in (
            *("scanning an alias", "scanning an anchor", "scanning a directive"),
            *("scanning a tag", "parsing a tag", "parsing a node"),
        )
    ),
    _Fault(
        "expected '<document start>'",
        "",
        "does not belong to what stands above: check the indentation and the brackets",
    ),
    _Fault("", "", "not readable as YAML from here on"),
)


class _Place(NamedTuple):
    """A line and a column, from 0."""

    line: int
    column: int


def explained(error: yaml.MarkedYAMLError, text: str = "") -> tuple[Any, str]:
    """Return the place to mend, as the parser counts (from 0), and what is wrong there.

    `text` is what was parsed: the lines above often tell more than the parser does.
    """
    found, words = _found(error)
    lines = text.splitlines()[: found.line + 1]
    above = [number for number, line in enumerate(lines[:-1]) if _says(line)]
    if not above or len(lines) <= found.line:
        return found, words
    return _by_indentation(found, words, lines, above)


def _by_indentation(
    found: Any, words: str, lines: list[str], above: list[int]
) -> tuple[Any, str]:
    """Return place and words again; `above` are the numbers of the lines before it."""
    line, last = lines[found.line], lines[above[-1]].rstrip()
    before = _indent(lines[above[-2]]) if len(above) > 1 else -1
    deeper = _indent(line) > _indent(last)
    if words == _MISPLACED and found.column > _indent(line):
        return found, _TOO_MANY
    if words == _NO_COLON and last.endswith(("|", ">", "|-", ">-")):
        return found, f"indent this text: it belongs to '{last.strip()}' above"
    if words == _MISPLACED and deeper and before == _indent(line):
        return _Place(above[-1], _indent(last)), _MISPLACED
    first = line.find(":") == found.column and not last.endswith(":")
    if words == _COLON and deeper and first:
        return _Place(found.line, _indent(line)), _MISPLACED
    return found, words


def _says(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _found(error: yaml.MarkedYAMLError) -> tuple[Any, str]:
    problem, context = error.problem or "", error.context or ""
    fault = next(
        fault
        for fault in _FAULTS
        if problem.startswith(fault.problem) and context.startswith(fault.context)
    )
    found = error.problem_mark or error.context_mark
    begins = error.context_mark or found
    return begins if fault.at_start else found, fault.words
