"""Rules about slots: what is required, what a list item needs."""

from collections import Counter
from collections.abc import Iterator

from adapters.contract import ResourceType
from adapters.mapping.document import Document
from adapters.mapping.nodes import KeyPath
from adapters.mapping.problems import MappingProblem, one_of
from adapters.mapping.slots import LISTS, SLOTS


def required_slots_are_mapped(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a slot under `requires` that is unknown or comes from nowhere."""
    for key, kind, section in doc.sections():
        names = [slot.name for slot in SLOTS[kind]]
        names += [listed.name for listed in LISTS[kind]]
        for index, name in enumerate(section.get("requires", ())):
            path = (*key, "requires", index)
            if name not in names:
                yield doc.problem(path, one_of(name, names, "a field of this section"))
            elif not doc.holds((*key, "fields", name)):
                text = (
                    f"'{name}' is required, but fields does not say where it comes from"
                )
                yield doc.problem(path, text)


def nothing_is_listed_twice(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a word that stands twice in `search`, `sort` or `requires`."""
    wholes = {(key,): section for key, _, section in doc.wholes()}
    entries = {path: section for path, _, section in doc.sections()}
    for key, section in (wholes | entries).items():
        for part in ("search", "sort", "requires"):
            words = tuple(section.get(part, ()))
            for word, times in Counter(words).items():
                if times > 1:
                    last = len(words) - 1 - words[::-1].index(word)
                    yield doc.problem((*key, part, last), f"'{word}' is listed twice")


def items_have_content(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a list item that could never say anything."""
    for item in doc.items():
        listed = item.listed
        if listed.required or any(doc.holds((*item.path, c)) for c in listed.content):
            continue
        wanted = " or ".join(listed.content)
        yield doc.problem(item.path, f"an item of '{listed.name}' needs {wanted}")


def item_rows_have_a_key(doc: Document) -> Iterator[MappingProblem]:
    """Refuse `rows` without `key` in a list item, and `key` without `rows`."""
    for item in doc.items():
        bare = "rows" in item.options and not doc.holds((*item.path, "key"))
        if bare and not doc.is_http(doc.section(item.section)):
            text = "rows needs key: the column that holds the id of the resource"
            yield doc.problem((*item.path, "rows"), text, at_key=True)
        if "key" in item.options and not doc.holds((*item.path, "rows")):
            text = "key is only for an item with a SELECT of its own (rows)"
            yield doc.problem((*item.path, "key"), text, at_key=True)


def visit_number_has_a_system(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a visit number whose system nothing names (spec 2.2)."""
    for path in _stays_with(doc, "visit_number"):
        given = (
            (*path[:-1], "visit_number_system"),
            ("constants", "visit_number_system"),
        )
        if not any(doc.holds(path) or _is_told(doc, path) for path in given):
            text = (
                "needs constants.visit_number_system, or the field visit_number_system"
            )
            yield doc.problem(path, text, at_key=True)


def functional_unit_has_an_extension(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a functional unit without the address of its extension (spec 2.3)."""
    for path in _stays_with(doc, "functional_unit"):
        given = ("constants", "functional_unit_extension")
        if not doc.holds(given) and not _is_told(doc, given):
            text = "needs constants.functional_unit_extension"
            yield doc.problem(path, text, at_key=True)


def _is_told(doc: Document, path: KeyPath) -> bool:
    """Tell whether a key is misspelt, or stands at the top: that is the one problem."""
    return path in doc.refused or path[-1:] in doc.refused


def _stays_with(doc: Document, name: str) -> Iterator[KeyPath]:
    for section, kind, _ in doc.sections():
        path = (*section, "fields", name)
        if kind is ResourceType.ENCOUNTER and doc.holds(path):
            yield path
