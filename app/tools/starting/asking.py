"""A first mapping of an HTTP API, from answers that somebody saved."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType

from adapters.contract import ResourceType
from adapters.sql.catalogue import read_catalogue
from adapters.sql.database import Database
from app.tools.starting.answers import SavedAnswer, read_answer
from app.tools.starting.draft import Draft, Part
from app.tools.starting.drafting import draft_of
from app.tools.starting.guesses import OWN
from app.tools.starting.references import References
from app.tools.starting.standing_in import store
from app.tools.starting.tables import Finder
from app.tools.starting.writing import comments

_SECONDS = 10.0
STAY, PATIENT, ORGANIZATION = ResourceType

_SEARCHES: Mapping[ResourceType, tuple[str, ...]] = MappingProxyType(
    {
        STAY: (
            "_id: {send: ids, several: comma}",
            "patient: {send: patient}",
            'date: {from: from, before: before, step: day, format: "%Y-%m-%d"}',
        ),
        PATIENT: (
            "_id: {send: ids, several: comma}",
            "name: {send: name}",
        ),
    }
)
"""Searches with parameters as examples: what an API can be asked, no answer says."""

MARKED = "# ? "
_SOURCE = (
    "how is it shown who asks? By headers: {X-Api-Key: {env: PAS_KEY}}, or by auth",
    "does an error come with status 200? Then say by error where its code stands",
)
_TIMES = (
    "by whose clock is each time written, the wall's or UTC? A start can be held against a"
    " screen, a last change cannot: ask the vendor, and write time_zone at the field"
)
_PAGING = (
    "can it go on after the first rows? Then say how (paging: {offset: …}, page, next or"
    " token), and take the profile full"
)
_FIXED = (
    "stays that are cancelled or deleted must be left out by the API itself: what is it sent"
    " for that (fixed)? Then give their codes hidden or removed in codes"
)


_ASKED = (
    "what can it be asked for? No answer says: ask the vendor (mappings/README.md, What to ask"
    " the vendor), take the # from that, and put its own words:"
)


def draft_of_answers(files: Mapping[ResourceType, Path], variable: str) -> Draft:
    """Return a draft of a whole file from one answer of each resource type.

    Raises CannotRunError for a file that is no answer.
    """
    answers = {kind: read_answer(file) for kind, file in files.items()}
    names = {kind: answer.name for kind, answer in answers.items()}
    if len(set(names.values())) < len(names):
        names = {kind: kind.lower() for kind in answers}
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "answers.sqlite"
        store(file, {names[kind]: (of, OWN[kind]) for kind, of in answers.items()})
        with closing(Database(f"sqlite:///{file}", _SECONDS, 1)) as database:
            draft = _drafted(database, names, variable)
    for kind, answer in answers.items():
        for part in draft.sections[kind]:
            part.asked = tuple(_asked(kind, answer))
            part.left = tuple(_left(kind, answer, _read_lists(part)))
    draft.profile, draft.source_questions = "group-a", (*_SOURCE, _TIMES)
    draft.notes.clear()
    return draft


def _read_lists(part: Part) -> set[str]:
    """Let items be read from the lists of a row, and return the paths of those lists."""
    items = [item for of in part.lists.values() for item in of]
    for item in items:
        item.path = item.select.table.name if item.select else ""
    return {item.path for item in items}


def _drafted(
    database: Database, names: Mapping[ResourceType, str], variable: str
) -> Draft:
    catalogue = read_catalogue(database)
    references = References(catalogue)
    stays, patients, houses = (
        [catalogue.by_name[names[kind]]] if kind in names else []
        for kind in ResourceType
    )
    roles = Finder(catalogue, references).roles(database, stays, patients, houses)
    return draft_of(database, catalogue, references, roles, variable, "http")


def _asked(kind: ResourceType, answer: SavedAnswer) -> Iterator[str]:
    """Yield how rows are asked for, with what no answer says as questions."""
    yield f'read: {{path: "/{answer.name}/{{id}}"}}  # ? the path of one row'
    if kind is ORGANIZATION:
        return
    yield "list:"
    yield f"  path: /{answer.name}  # ? the path of the list"
    yield f"  rows: {answer.rows_path}"
    if answer.total:
        yield f"  total: {answer.total}  # ? is it the number of all rows that match?"
    else:
        yield "  total: total  # ? where does the number of all rows stand?"
    yield "  count: count  # ? the parameter of the page size"
    yield from comments([_PAGING, _FIXED] if kind is STAY else [_PAGING], "  ", MARKED)


def _left(kind: ResourceType, answer: SavedAnswer, read: set[str]) -> Iterator[str]:
    if kind in _SEARCHES:
        yield from comments([_ASKED], "", MARKED)
        yield "# search:"
        yield from (f"#   {line}" for line in _SEARCHES[kind])
    for path in sorted(answer.lists.keys() - read):
        text = f"{path} is a list: an item with rows: {path} reads it"
        yield from comments(
            [f"{text}, or given where it is one of given names"], "", MARKED
        )
