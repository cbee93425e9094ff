"""What there is to look at in a hospital database, section by section."""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime

from adapters.contract import Page, ResourceType, SearchQuery, SourceDataError
from adapters.errors import SourceTimedOutError
from adapters.inspection import Look, Observation, Weight
from adapters.inspection.faults import broken_rules
from adapters.inspection.filled import never_filled
from adapters.inspection.times import doubtful_times
from adapters.mapping.model import SourceMapping
from adapters.sql.database import Database
from adapters.sql.inspection.blanks import blank_ends
from adapters.sql.inspection.codes import CodesSeen
from adapters.sql.inspection.cut import cut_short
from adapters.sql.inspection.filters import filters_without_index
from adapters.sql.inspection.kinds import unfit_kinds
from adapters.sql.inspection.merged import merged_patients
from adapters.sql.inspection.rows import (
    Looked,
    empty_required,
    far_times,
    repeated_ids,
    strangers,
)
from adapters.sql.inspection.sorts import sorts_without_index
from adapters.sql.section import Section, UnfitError

__all__ = ["looks"]

_OF_STAYS = ("patients", "merged patients")


def looks(
    section: Section,
    mapping: SourceMapping,
    database: Database,
    search: Callable[[SearchQuery], Page],
) -> Iterator[Look]:
    """Yield what there is to look at in one section."""
    kind = section.mapping.resource_type
    looked = Looked(section, mapping, database, search)
    codes = CodesSeen(looked)
    for subject, ask in (
        ("all rows", lambda: cut_short(looked)),
        ("types of columns", lambda: unfit_kinds(looked)),
        ("codes", codes.observations),
        ("blanks", lambda: blank_ends(looked)),
        ("required values", lambda: empty_required(looked)),
        ("rows", lambda: _rows(looked)),
        ("far days", lambda: far_times(looked, datetime.now(UTC))),
        ("ids", lambda: repeated_ids(looked)),
        ("patients", lambda: strangers(looked)),
        ("merged patients", lambda: merged_patients(looked)),
        ("indexes of filters", lambda: filters_without_index(looked)),
        ("indexes of sorts", lambda: sorts_without_index(looked)),
    ):
        if kind is ResourceType.ENCOUNTER or subject not in _OF_STAYS:
            yield Look(f"{kind}: {subject}", _in_time(looked, subject, ask))


def _rows(looked: Looked) -> Iterator[Observation]:
    rows, columns = looked.sample, looked.columns
    section = looked.section.mapping
    yield from broken_rules(section, rows, columns, looked.told)
    yield from doubtful_times(section, rows, columns, datetime.now(UTC))
    yield from never_filled(
        section, looked.section.selected, looked.some_rows(), columns
    )


def _in_time(
    looked: Looked, subject: str, ask: Callable[[], Iterable[Observation]]
) -> Callable[[], Iterable[Observation]]:
    """Return a look that says so when the database takes too long, and goes on."""

    def asked() -> Iterator[Observation]:
        try:
            yield from ask()
        except SourceTimedOutError:
            yield looked.untold(subject)
        except UnfitError as error:
            # Of another section that this one looks into.
            yield from map(Observation.of, error.problems)
        except SourceDataError as error:
            yield looked.seen(f"{subject}: {error}", Weight.ERROR)

    return asked
