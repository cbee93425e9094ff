"""Rules about what a section says can be searched and sorted."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from adapters.contract import ResourceType
from adapters.mapping.checks import is_format, sorts_as_text
from adapters.mapping.document import Document, Site
from adapters.mapping.nodes import KeyPath
from adapters.mapping.parameters import PARAMETERS, SORTS
from adapters.mapping.problems import MappingProblem, one_of
from adapters.mapping.slots import UNSERVED, Kind

_NOT_LISTED: Mapping[str, str] = MappingProxyType(
    {
        "_count": "'_count' is always offered: remove it here",
        "_sort": "'_sort' is not listed here: write sort: [date, _lastUpdated]",
    }
)


class Use(NamedTuple):
    """A slot that a parameter or a sort key needs, and where the file says so.

    `sections` are the paths in one of which the slot has to be; `several` tells that
    others may lack it, or hold the same code for all their rows.
    """

    path: KeyPath
    word: str
    slots: tuple[str, ...]
    sections: tuple[KeyPath, ...]
    several: bool = False


def parameters_are_known(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a search parameter that the resource type does not have."""
    for words in _listed(doc, "search"):
        for index, name in words.words:
            if name not in PARAMETERS[words.kind]:
                text = _NOT_LISTED.get(name) or one_of(
                    name, PARAMETERS[words.kind], f"a search parameter of {words.kind}"
                )
                yield doc.problem((*words.path, index), text)


def sorts_are_known(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a sort key that the resource type does not have."""
    for words in _listed(doc, "sort"):
        for index, name in words.words:
            if name not in SORTS[words.kind]:
                text = one_of(name, SORTS[words.kind], f"a sort key of {words.kind}")
                yield doc.problem((*words.path, index), text)


def searched_slots_have_columns(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a parameter or sort key whose slot comes from nowhere or from no column."""
    if doc.is_own:
        return
    for use in _uses(doc):
        found = _sites(doc, use)
        if any(site.columns for site in found) or _refused(doc, use):
            continue
        if use.several and any(map(_is_code, found)):
            continue
        constants = [site for site in found if site.slot.kind is not Kind.CODE]
        if constants:
            text = f"is always the same; '{use.word}' needs a column: {{from: …}}"
            yield doc.problem(constants[0].path, text)
        elif not any(site.options.get("constant") in UNSERVED for site in found):
            slots = " or ".join(use.slots)
            text = f"'{use.word}' needs the field {slots}, from a column"
            text += ": here it is always the same" if found else ""
            yield doc.problem(use.path, text)


def searched_columns_are_single(doc: Document) -> Iterator[MappingProblem]:
    """Refuse to search or sort by a time that two columns make."""
    for use, site in _searched(doc):
        if len(site.columns) > 1:
            text = (
                f"'{use.word}' cannot compare two columns: join them in the SELECT, "
                "or name one column with search:"
            )
            yield doc.problem(site.path, text)


def searched_columns_are_whole(doc: Document) -> Iterator[MappingProblem]:
    """Refuse to search a time of two columns by one of them, a day without its time."""
    for site in doc.sites():
        named = site.options.get("search_column")
        if named in site.columns and len(site.columns) > 1:
            text = (
                f"'{named}' alone is not the whole time: join both in the SELECT, and "
                "name that column"
            )
            yield doc.problem((*site.path, "search"), text)


def searched_texts_sort(doc: Document) -> Iterator[MappingProblem]:
    """Refuse to search or sort by texts that do not sort as the times they stand for."""
    for use, site in _searched(doc):
        form = site.options.get("format")
        if form is not None and is_format(form) and not sorts_as_text(form):
            text = (
                f"'{use.word}' cannot compare texts like {form}: make a date of them in "
                "the SELECT, or name a column of dates with search:"
            )
            yield doc.problem((*site.path, "format"), text)


class Words(NamedTuple):
    """A list of `search` or `sort`, and the sections that it speaks of."""

    path: KeyPath
    kind: ResourceType
    words: tuple[tuple[int | str, str], ...]
    sections: tuple[KeyPath, ...]
    several: bool


def _listed(doc: Document, part: str) -> Iterator[Words]:
    """Yield the lists of words; an entry of several sources may have one of its own."""
    for key, kind, whole in doc.wholes():
        entries = [(p, data) for p, k, data in doc.sections() if k is kind]
        several = "sources" in whole
        words = _places(whole, part)
        yield Words((key, part), kind, words, tuple(p for p, _ in entries), several)
        for path, data in entries if several else ():
            words = _places(data, part)
            yield Words((*path, part), kind, words, (path,), several)


def _places(section: Mapping[str, Any], part: str) -> tuple[tuple[int | str, str], ...]:
    """Return the words of a list, or the parameters of an HTTP source, with their places."""
    listed = section.get(part, ())
    if not isinstance(listed, Mapping):
        return tuple(enumerate(listed))
    return tuple((name, name) for name in listed) if part == "search" else ()


def _uses(doc: Document) -> Iterator[Use]:
    period = doc.data.get("date") == "period"
    for words in _listed(doc, "search"):
        for index, name in words.words:
            path = (*words.path, index)
            if slots := PARAMETERS[words.kind].get(name):
                yield Use(path, name, slots, words.sections, words.several)
            if name == "date" and period:
                yield from _ends(doc, words, path)
    for words in _listed(doc, "sort"):
        for index, name in words.words:
            if slot := SORTS[words.kind].get(name):
                path = (*words.path, index)
                yield Use(path, name, (slot,), words.sections, words.several)


def _ends(doc: Document, words: Words, path: KeyPath) -> Iterator[Use]:
    """Yield what `date: period` needs: an end wherever there is a start."""
    for section in words.sections:
        if not words.several or doc.holds((*section, "fields", "start")):
            yield Use(path, "date: period", ("end",), (section,))


def _searched(doc: Document) -> Iterator[tuple[Use, Site]]:
    """Yield what a database compares by its own columns, each value once."""
    seen: set[KeyPath] = set()
    for use in _uses(doc):
        for site in _sites(doc, use):
            if doc.is_http(doc.section(site.section)):
                continue
            if "search_column" not in site.options and site.path not in seen:
                seen.add(site.path)
                yield use, site


def _sites(doc: Document, use: Use) -> list[Site]:
    return [
        site
        for site in doc.sites()
        if site.section in use.sections and site.full_name in use.slots
    ]


def _is_code(site: Site) -> bool:
    return site.slot.kind is Kind.CODE or site.slot.name == "functional_unit"


def _refused(doc: Document, use: Use) -> bool:
    """Tell whether a slot is in the file with a fault that is reported elsewhere."""
    names = {slot.partition(".")[0] for slot in use.slots}
    if not all(doc.holds((*section, "fields")) for section in use.sections):
        return True
    return any(
        doc.is_unclear((*section, *at, name))
        for section in use.sections
        for name in names
        for at in ((), ("fields",))
    )
