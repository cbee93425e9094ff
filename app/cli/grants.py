"""`encounters mapping grants`: the privileges that the account of each source needs."""

import os
from itertools import chain
from pathlib import Path

from adapters.mapping.load import load_mapping
from adapters.mapping.model import SourceMapping
from app.console import FINE, CannotRunError, print_json


def run(*, file: Path, account: str, schema: str, as_json: bool) -> int:
    """Print the GRANTs of each source, with its name where there are several."""
    mapping = load_mapping(file, os.environ)
    sources = _grants(mapping, account, schema)
    if as_json:
        print_json({"sources": sources})
        return FINE
    for name, statements in sources.items():
        if len(sources) > 1:
            print(f"-- {name}")
        print("\n".join(statements) or "-- no GRANT: this source has no accounts")
    return FINE


def _grants(
    mapping: SourceMapping, account: str, schema: str
) -> dict[str, tuple[str, ...]]:
    """Return the GRANTs by the name of the source; none for what is no database."""
    try:
        from adapters.sql.grants import grants
    except ImportError as error:
        text = f"install the extra 'grants' (pip install 'encounters[grants]'): {error}"
        raise CannotRunError(text) from error
    sources: dict[str, tuple[str, ...]] = {}
    for name, source in mapping.sources.items():
        parts = [part.mapping for part in mapping.parts if part.name == name]
        sections = chain.from_iterable(
            part.resources.values() for part in parts or [mapping]
        )
        is_sql = source.kind == "sql"
        sources[name] = grants(source.url, sections, account, schema) if is_sql else ()
    return sources
