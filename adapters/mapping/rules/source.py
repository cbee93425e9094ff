"""Rules about the source: secrets, and statements that only read."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from adapters.mapping.document import Document
from adapters.mapping.nodes import KeyPath
from adapters.mapping.problems import MappingProblem, one_of
from adapters.mapping.profile import PROFILES, profile_is_there
from adapters.mapping.secrets import named, resolved, variable

_PASSWORD = re.compile(r"://[^/@:]*:[^/@]+@|[?&;](password|pwd)=", re.IGNORECASE)
_SKIPPED = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | `[^`]*` | --[^\n]* | /\*.*?\*/""",
    re.VERBOSE | re.DOTALL,
)
_READS = re.compile(r"[\s(]*(SELECT|WITH)\b", re.IGNORECASE)


def secrets_are_set(doc: Document) -> Iterator[MappingProblem]:
    """Refuse an environment variable that is named and not set, where there are any."""
    if doc.environ is None:
        return
    for path, source in doc.sources().items():
        for place, name in named(source, path):
            if not variable(name, doc.environ):
                text = f"the environment variable {name} is not set"
                yield doc.problem(place, text)


def secrets_are_not_written(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a URL in clear that holds a password."""
    for path, source in doc.sources().items():
        url = source.get("url")
        if isinstance(url, str) and _PASSWORD.search(url):
            text = "holds a password: put it into the environment and write {env: NAME}"
            yield doc.problem((*path, "url"), text)


def urls_have_a_scheme(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a source URL that does not begin like one; never quote it."""
    for path, source in doc.sources().items():
        url = "" if source.get("kind") == "http" else source_url(doc, source)
        if url and not re.match(r"[a-z][a-z0-9+_]*:/", url):
            text = "not an address like postgresql://host/database"
            text += ", nor {env: NAME}" if isinstance(source["url"], str) else ""
            yield doc.problem((*path, "url"), text)


def source_url(doc: Document, source: Mapping[str, Any]) -> str:
    """Return the URL of a source, from the environment where the file says so."""
    return resolved(source.get("url", ""), doc.environ)


def rows_only_read(doc: Document) -> Iterator[MappingProblem]:
    """Refuse `rows` that is not one SELECT, or that ends in a semicolon."""
    for path, text in _statements(doc):
        bare = _SKIPPED.sub(lambda skipped: re.sub(r"[^\n]", " ", skipped[0]), text)
        if not _READS.match(bare):
            begins = len(bare) - len(bare.lstrip())
            said = "must be one SELECT (or WITH … SELECT)"
            yield doc.problem(path, said, offset=begins)
        elif ";" in bare:
            said = "must be one statement without ';'"
            if bare.rstrip().endswith(";") and bare.count(";") == 1:
                said = "must not end in ';': the service adds WHERE and ORDER BY"
            yield doc.problem(path, said, offset=bare.index(";"))


def _statements(doc: Document) -> Iterator[tuple[KeyPath, str]]:
    read = {path: data for path, _, data in doc.sections() if not doc.is_http(data)}
    for path, section in read.items():
        if "rows" in section:
            yield (*path, "rows"), section["rows"]
    for item in doc.items():
        if "rows" in item.options and item.section in read:
            yield (*item.path, "rows"), item.options["rows"]


def profile_is_known(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a profile that is neither one of ours nor a file."""
    name = doc.data.get("profile")
    if name is not None and not profile_is_there(name, doc.profile_directory, doc.read):
        text = one_of(name, PROFILES, "a profile, nor a file beside this one")
        yield doc.problem(("profile",), text)
