"""A mapping is checked before it is served, in a process that serves nobody.

    python -m app.operations.candidate

checks the mapping file of a running service anew. Only one that passes takes the place of
the mapping that is served: a worker never meets another.
"""

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from adapters.contract import AdapterError, Problem
from adapters.mapping.load import keep_mapping
from adapters.mapping.model import SourceMapping
from adapters.mapping.problems import MappingError
from app import create_app
from app.operations.shared import Shared
from app.service import EXTENSION, Service
from app.settings import Settings, SettingsError


class RefusedError(Exception):
    """A deployment that cannot be served, in words for its operator."""


class Passed(NamedTuple):
    """What a mapping that passed leaves to be told: sources, by name.

    Those that are `away`, and those that may hold every thread of a process when they hang
    because they have as many connections.
    """

    away: tuple[str, ...]
    wide: tuple[str, ...]


def pass_candidate(
    shared: Shared, settings: Settings, environ: Mapping[str, str]
) -> Passed:
    """Check the mapping file and keep it for serving.

    Raises RefusedError; then what is served stays as it was.
    """
    try:
        mapping = keep_mapping(shared.file, environ, shared.candidate)
        # Put together as a worker does it, and thrown away.
        app = create_app(replace(settings, mapping=shared.candidate))
        service: Service = app.extensions[EXTENSION]
        problems = tuple(service.adapter.check())
        service.adapter.close()
    except (MappingError, AdapterError, SettingsError, OSError) as error:
        raise RefusedError(str(error)) from error
    # A source that is down now may be up soon: until then the answer is 503.
    if lasting := [p.text for p in problems if p.serious and not p.outage]:
        raise RefusedError("\n".join(lasting))
    shared.candidate.replace(shared.mapping)
    return Passed(_away(problems, service.title), _wide(mapping, settings.threads))


def _away(problems: Iterable[Problem], title: str) -> tuple[str, ...]:
    return tuple(sorted({p.source or title for p in problems if p.outage}))


def _wide(mapping: SourceMapping, threads: int) -> tuple[str, ...]:
    sources = mapping.sources.items()
    return tuple(sorted(n for n, s in sources if s.connections >= threads))


def main() -> int:
    """Check the file of the running service; what is wrong is left where all can read it."""
    shared = Shared.of(os.environ)
    if shared is None:
        print(
            "There is no service that `encounters serve` has started.", file=sys.stderr
        )
        return 2
    try:
        pass_candidate(shared, Settings.from_environ(os.environ), os.environ)
    except (RefusedError, SettingsError) as error:
        shared.refused.write_text(str(error), "utf-8")
        return 1
    shared.refused.unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
