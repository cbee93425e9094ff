"""Rules about a class of the hospital's own."""

from collections.abc import Iterator

from adapters.mapping.checks import is_own
from adapters.mapping.document import Document
from adapters.mapping.problems import MappingProblem

_UNIT = "service-provider._extension"


def searched_unit_has_an_extension(doc: Document) -> Iterator[MappingProblem]:
    """Refuse to search functional units without the address of their extension (spec 2.3)."""
    searched = doc.data.get("encounter", {}).get("search", ())
    if not doc.is_own or doc.holds(("constants", "functional_unit_extension")):
        return
    for index, name in enumerate(searched):
        if name == _UNIT:
            text = "needs constants.functional_unit_extension"
            yield doc.problem(("encounter", "search", index), text)


def classes_stand_alone(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a class among `sources`: it does not know of prefixes, nor of others' rows."""
    for path, source in doc.sources().items():
        if len(path) > 1 and is_own(source.get("kind")):
            text = "a class of your own stands alone, under source: it is not merged"
            yield doc.problem((*path, "kind"), text)
