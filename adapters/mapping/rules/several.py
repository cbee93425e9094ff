"""Rules about several sources: their names, their prefixes, what refers to which."""

from collections.abc import Iterator

from adapters.mapping.checks import FHIR_ID
from adapters.mapping.document import Document, Site
from adapters.mapping.parts import prefix_of, targets
from adapters.mapping.problems import MappingProblem, one_of
from adapters.mapping.slots import REFERS

_LONGEST_PREFIX = 16
_LONGEST_ID = 64


def sections_name_their_source(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a section that names no source of the file, or none where there are several."""
    if not doc.refused.isdisjoint((("source",), ("sources",))):
        return
    names = [str(path[-1]) for path in doc.sources() if len(path) > 1]
    for path, _, section in doc.sections():
        name = section.get("source")
        if name is None and len(names) > 1:
            text = f"say source: which of {', '.join(names)} holds these rows"
            yield doc.problem(path, text, at_key=True)
        elif name is not None and not names:
            text = "the file has one source: names are for those under sources"
            yield doc.problem((*path, "source"), text)
        elif name is not None and not doc.holds(("sources", name)):
            text = one_of(name, names, "a source of this file")
            yield doc.problem((*path, "source"), text)


def sources_are_used(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a source that no section names."""
    used = {str(section.get("source")) for _, _, section in doc.sections()}
    if len(doc.sources()) < 2 or doc.refused:
        return
    for path in doc.sources():
        if path[-1] not in used:
            text = "no section reads this source: name it with source:, or remove it"
            yield doc.problem(path, text, at_key=True)


def prefixes_tell_sources_apart(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a prefix that no id may have, or that begins like another one."""
    for _, kind, _ in doc.wholes():
        seen: list[str] = []
        for path, of, section in doc.sections():
            prefix = section.get("prefix")
            if of is not kind or prefix is None:
                continue
            if not FHIR_ID.fullmatch(prefix) or len(prefix) > _LONGEST_PREFIX:
                text = f"up to {_LONGEST_PREFIX} letters, digits, '-' and '.'"
                yield doc.problem((*path, "prefix"), f"not the start of an id: {text}")
            for other in seen:
                if prefix.startswith(other) or other.startswith(prefix):
                    text = f"'{prefix}' and '{other}': one is the start of the other"
                    yield doc.problem((*path, "prefix"), text)
            seen.append(prefix)


def references_name_their_source(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a reference of which nobody could tell to which source it leads."""
    for site in doc.sites():
        if site.slot.name in REFERS and not doc.refused:
            if text := _unclear(doc, site):
                yield doc.problem(site.path, text, at_key=True)
            elif text := _too_long(doc, site):
                yield doc.problem(site.path, text)


def _unclear(doc: Document, site: Site) -> str:
    target = REFERS[site.slot.name].lower()
    named = site.options.get("source")
    found = targets(doc, site)
    everywhere = [s for _, kind, s in doc.sections() if kind is REFERS[site.slot.name]]
    if not everywhere:
        return _unserved(doc, site, target)
    if not found:
        known = [str(doc.source_of(section)[-1]) for section in everywhere]
        return one_of(named or "", dict.fromkeys(known), f"a source of {target}")
    if len(found) > 1 and named is None:
        return f"several sources hold {target}: say which one with source:"
    if len(found) > 1:
        return f"'{named}' holds {target} more than once: name the prefix with source:"
    return ""


def _unserved(doc: Document, site: Site, target: str) -> str:
    """Return what is wrong with a reference to what the file does not have."""
    if "source" in site.options:
        return f"there is no section {target} that source: could name"
    places = {doc.source_of(s) for _, kind, s in doc.sections() if kind is site.kind}
    if len(places) > 1 and site.columns:
        return f"two sources may hold the same id: the file needs a section {target}"
    return ""


def _too_long(doc: Document, site: Site) -> str:
    whole = prefix_of(doc, site) + site.options.get("constant", "")
    if len(whole) > _LONGEST_ID:
        return f"'{whole}' is longer than an id may be: {_LONGEST_ID} characters"
    return ""
