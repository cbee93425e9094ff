"""The request that a search sends to an HTTP system, held against what is expected."""

from collections.abc import Iterator, Mapping

from adapters.contract import SearchQuery
from adapters.http.calls import Pairs, Question
from adapters.http.section import open_section
from adapters.mapping.model import Mark, SourceMapping
from adapters.mapping.nodes import Items, Node, Scalar, Table
from adapters.mapping.problems import did_you_mean
from app.tools.report import Finding
from app.tools.testing.cases import Case


def sent_question(mapping: SourceMapping, query: SearchQuery) -> Question | None:
    """Return what a search sends, None when nothing can match and nothing is sent.

    Raises NotAskableError.
    """
    return Question.of(open_section(mapping, query.resource_type), query)


def check_request(
    case: Case, question: Question | None, query: SearchQuery
) -> Iterator[Finding]:
    """Yield how the request of a first page differs from `expect_request`."""
    expected = case.parts["expect_request"]
    if question is None or not isinstance(expected, Table):
        if question is not None:
            text = f"expected no request, and it is: {_written(question, query)}"
            yield _finding(expected.mark, text)
        elif isinstance(expected, Table):
            text = "nothing is sent: nothing can match this search"
            yield _finding(expected.mark, text)
        return
    call = question.call((), query.count)
    yield from _text(expected, "path", call.path)
    yield from _text(expected, "method", call.method.lower())
    if isinstance(parameters := expected.entries.get("parameters"), Table):
        yield from _parameters(parameters, question, tuple(call.values))


def _text(expected: Table, key: str, sent: str) -> Iterator[Finding]:
    node = expected.entries.get(key)
    if isinstance(node, Scalar) and node.text != sent:
        yield _finding(node.mark, f"expected '{node.text}', and it is '{sent}'")


def _parameters(expected: Table, question: Question, sent: Pairs) -> Iterator[Finding]:
    """Compare what the search itself sends, all of it, and what else is expected."""
    found = _by_name(sent)
    for name, node in expected.entries.items():
        wanted = _texts(node)
        if name not in found:
            near = did_you_mean(name, found)
            text = f"the parameter '{name}' is not sent{near}"
            yield _finding(expected.keys[name], text)
        elif wanted != found[name]:
            text = f"expected {_listed(wanted)}, and it is {_listed(found[name])}"
            yield _finding(node.mark, f"'{name}': {text}")
    for name, values in _by_name((*question.asked, *question.order)).items():
        if name not in expected.entries:
            text = f"the request has '{name}' too: {_listed(values)}"
            yield _finding(expected.mark, text)


def _by_name(pairs: Pairs) -> Mapping[str, tuple[str, ...]]:
    names = dict.fromkeys(name for name, _ in pairs)
    return {name: tuple(v for n, v in pairs if n == name) for name in names}


def _texts(node: Node) -> tuple[str, ...]:
    nodes = node.items if isinstance(node, Items) else (node,)
    return tuple(each.text for each in nodes if isinstance(each, Scalar))


def _listed(values: tuple[str, ...]) -> str:
    return ", ".join(f"'{value}'" for value in values)


def _written(question: Question, query: SearchQuery) -> str:
    call = question.call((), query.count)
    shown = " ".join(f"{name}={value}" for name, value in call.values)
    return f"{call.method} {call.path} {shown}"


def _finding(mark: Mark, text: str) -> Finding:
    return Finding(mark.file, mark.line, mark.column, text)
