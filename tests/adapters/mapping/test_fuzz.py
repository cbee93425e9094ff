"""Mapping files with a part taken out or replaced: a mapping or its problems, no traceback."""

import json
from copy import deepcopy
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.mapping.problems import MappingError
from adapters.mapping.yaml import read_text
from tests.adapters.mapping.good import HTTP, TWO, WHOLE, load

TREES = [json.loads(json.dumps(read_text(text, "m"))) for text in (WHOLE, HTTP, TWO)]


def paths_in(node, path=()):
    inner: list[tuple[Any, Any]] = []
    if isinstance(node, dict):
        inner = list(node.items())
    elif isinstance(node, list):
        inner = list(enumerate(node))
    below = [p for key, value in inner for p in paths_in(value, (*path, key))]
    return [(*path, key) for key, _ in inner] + below


TEXTS = (
    *("", " ", "x", "0", "~", "status", "hidden", "urn:oid:1", "%Q", "a b", "é"),
    "start",
)
VALUES = st.recursive(
    st.sampled_from(TEXTS),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from((*TEXTS, "from", "value", "table")), inner, max_size=3
        )
    ),
    max_leaves=4,
)


def changes_of(tree):
    """Return a tree, a path in it, and what is put there; None takes the part out."""
    return st.tuples(st.just(tree), st.sampled_from(paths_in(tree)), st.none() | VALUES)


@given(st.sampled_from(TREES).flatmap(changes_of))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_change_is_a_mapping_or_problems(tmp_path, changed):
    tree, path, value = changed
    node = tree = deepcopy(tree)
    for step in path[:-1]:
        node = node[step]
    if value is None:
        del node[path[-1]]
    else:
        node[path[-1]] = value
    try:
        load(json.dumps(tree, ensure_ascii=False), tmp_path)
    except MappingError as error:
        for problem in error.problems:
            assert problem.text
            assert problem.mark.line == 1
