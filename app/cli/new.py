"""`encounters mapping new`: a first mapping file from the structure of a source.

Of a database it reads the catalogue: tables, columns, types, keys (`app.cli.tables`). Of a
FHIR R4 server it reads the CapabilityStatement (`app.cli.fhir`), of another HTTP API answers
that somebody saved. Declared foreign keys come first, then the
words in names (`app.cli.names`). A line without the mark `# ?` follows from the structure: a
declared key, a column with the name of its slot. Every guess, every row that is left out,
every id prefix and every open slot has the mark.
"""

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

import orjson

from adapters import open_adapter
from adapters.contract import AdapterError, ResourceType
from adapters.mapping.load import load_mapping
from adapters.mapping.problems import MappingError
from adapters.mapping.values import LONGEST_CODE
from adapters.sql.catalog import MOST_CODES, CodeCount, Holds, read_catalogue
from adapters.sql.engine import AddressError, Database
from app.cli.check import (
    FINDINGS,
    FINE,
    MARK,
    CannotRunError,
    marked_lines,
    print_json,
)
from app.cli.draft import MOST_PATIENT_CODES, Part, Sections, text_of, with_fields
from app.cli.fhir import draft_of_server
from app.cli.names import Column, meanings_of
from app.cli.tables import sections_of

STAY, PATIENT, ORGANIZATION = ResourceType

MAY_WRITE = (
    "this account may change tables: the service needs one that may only read"
    " (docs/operators.md, The database account)"
)
VARIABLE = "PAS_URL"
_QUERY_SECONDS = 10.0

# Saved answers

_DEEPEST = 4
_FORMATS = (
    *("%d/%m/%Y %H:%M:%S", "%d/%m/%Y %H:%M", "%d/%m/%Y"),
    *("%d.%m.%Y %H:%M:%S", "%d.%m.%Y", "%Y%m%d%H%M%S", "%Y%m%d"),
)
"""Formats of times beside ISO 8601; one that fits every value is the column's."""

_READ = """\
read: {{path: "/{name}/{{id}}"}}  # ? the path of one row"""

_LIST = """\
list:
  path: /{name}  # ? the path of the list
  rows: {rows}
  total: {total}  # ? the number of all rows that match
  count: count  # ? the parameter of the page size
  # ? can it continue after the first rows? Then say how (paging: {{offset: …}}, page, next or
  #   token), and use the profile full. Can it sort? Then say how, and where nulls are (sort)
  # ? are cancelled or deleted rows left out by the API itself? What is it sent for that (fixed)?
# ? which parameters does it filter by? Ask the vendor (mappings/README.md). As an example:
# search:
#   _id: {{send: ids, several: comma}}"""

_SEARCHES: Mapping[ResourceType, str] = MappingProxyType(
    {
        STAY: "#   date: {from: from, before: before, step: day}",
        PATIENT: "#   name: {send: name}",
    }
)


class SavedAnswer(NamedTuple):
    """One answer: its rows by paths of fields, and where rows and total stand in it.

    `total` is "" where no number can be one. `lists` are the paths of lists in a row.
    """

    name: str
    rows_path: str
    total: str
    rows: Sequence[Mapping[str, object]]
    lists: Sequence[str]


def read_answer(file: Path) -> SavedAnswer:
    """Return what stands in a file; raises CannotRunError where it is no list of rows."""
    try:
        answer = orjson.loads(file.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    except OSError as error:
        raise CannotRunError(f"{file} cannot be read: {error.strerror}") from error
    except orjson.JSONDecodeError as error:
        raise CannotRunError(f"{file} is not JSON: is it the answer itself?") from error
    lists_by_path = {
        path: rows
        for path, rows in _lists(answer)
        if rows and all(isinstance(row, dict) for row in rows)
    }
    if not lists_by_path:
        text = f"{file} has no list of rows: save the answer of a search, not of one id"
        raise CannotRunError(text)
    path, rows = max(lists_by_path.items(), key=lambda item: len(item[1]))
    lists = sorted({name for row in rows for name, _ in _lists(row)})
    numbers = [
        name
        for name, value in (_flat(answer) if isinstance(answer, dict) else ())
        if type(value) is int and value >= len(rows)
    ]
    flat = [dict(_flat(row)) for row in rows]
    return SavedAnswer(file.stem, path, next(iter(numbers), ""), flat, lists)


def _lists(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield each list outside of other lists with its path, "." for the answer itself."""
    if isinstance(value, list):
        yield path or ".", value
    elif isinstance(value, dict) and depth < _DEEPEST:
        for key, below in value.items():
            yield from _lists(below, f"{path}.{key}".strip("."), depth + 1)


def _flat(row: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, object]]:
    """Yield each field of a row with its path; one with a dot in its name has none."""
    for key, value in row.items():
        if "." in key or isinstance(value, list):
            continue
        if isinstance(value, dict):
            yield from _flat(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def part_of_answer(kind: ResourceType, answer: SavedAnswer) -> Part:
    """Return the part of the list that an answer is of."""
    names = dict.fromkeys(name for row in answer.rows for name in row)
    # A null stands where other rows have an object or a list.
    holders = {
        ".".join(n.split(".")[:i]) for n in names for i in range(1, n.count(".") + 1)
    }
    columns = [
        _answer_column(kind, name, [row.get(name) for row in answer.rows])
        for name in names
        if name not in holders | {*answer.lists}
    ]
    ids = [c.name for c in columns if c.name.lower() == "id"]
    unique = [c.name for c in columns if c.is_key]
    id = next(iter(ids or unique), columns[0].name if columns else "id")
    question = "" if ids else "is this the id by which one row is read?"
    left = [
        f"{path} is a list: an item with rows: {path} reads it, or a path like {path}[0].value"
        for path in answer.lists
    ]
    head = [_READ.format(name=answer.name)]
    if kind is not ORGANIZATION:
        bare = "{header: X-Total-Count}" if answer.rows_path == "." else "total"
        total = answer.total or bare
        text = _LIST.format(name=answer.name, rows=answer.rows_path, total=total)
        head += [*text.split("\n"), _SEARCHES[kind]]
    return Part(kind, answer.name, columns, id, question, head=head, left=left)


def _answer_column(kind: ResourceType, name: str, cells: Sequence[object]) -> Column:
    values = [cell for cell in cells if cell not in (None, "")]
    texts = [str(value) for value in values]
    codes = [CodeCount(code, rows) for code, rows in Counter(texts).most_common()]
    is_unique = len(texts) == len(cells) == len(codes)
    most = MOST_PATIENT_CODES if kind is PATIENT else MOST_CODES
    is_short = all(len(count.code) <= LONGEST_CODE for count in codes)
    is_coded = is_short and not is_unique and len(codes) <= most
    holds, form = Holds.TEXT, ""
    if values and all(isinstance(value, bool) for value in values):
        holds = Holds.FLAG
    elif values and all(type(value) is int for value in values):
        holds = Holds.INTEGER
    elif (time := _time_format(texts)) is not None:
        holds, form = time
    return Column(
        *(name, holds, meanings_of(name), lambda: codes if is_coded else None),
        is_key=is_unique and name.lower() == "id",
        format=form,
    )


def _time_format(texts: Sequence[str]) -> tuple[Holds, str] | None:
    """Return what texts of times hold and their format, None where they are none."""
    # Digits alone are no ISO 8601 here: numbers are more common.
    is_iso = not all(text.isdigit() for text in texts)
    for form in (*([""] if is_iso else []), *_FORMATS):
        try:
            times = [
                datetime.strptime(text, form) if form else datetime.fromisoformat(text)  # noqa: DTZ007
                for text in texts
            ]
        except ValueError:
            continue
        if times and "%H" not in form and not any(":" in text for text in texts):
            return Holds.DATE, form
        if times:
            is_instant = all(time.tzinfo for time in times)
            return Holds.INSTANT if is_instant else Holds.LOCAL_TIME, form
    return None


# The command


def run(options: SimpleNamespace) -> int:
    """Read the structure of the source, write a first mapping, and say what is open."""
    if options.out is not None and options.out.exists():
        text = f"{options.out} exists already: name another file with --out"
        raise CannotRunError(text)
    if options.source.endswith(".json"):
        sections = with_fields(_of_answers(options))
        text = text_of(sections, VARIABLE, "My hospital", is_sql=False)
        problems = _problems(text, {VARIABLE: "http://127.0.0.1"}, is_sql=False)
        return _finish(options, text, VARIABLE, problems)
    url, variable = _address(options.source)
    if url.lower().startswith(("http:", "https:")):
        return _of_server(options, url, variable)
    try:
        with closing(Database(url, _QUERY_SECONDS, 1)) as database:
            catalogue = read_catalogue(database, options.schema)
            sections, name = sections_of(options, database, catalogue)
            text = text_of(sections, variable, name, is_sql=True)
            may_write = database.may_write()
    except AddressError as error:
        message = f"--from is not an address like postgresql://host/database: {error}"
        raise CannotRunError(message) from error
    except AdapterError as error:
        raise CannotRunError(f"the catalogue cannot be read: {error}") from error
    problems = _problems(text, {variable: url}, is_sql=True)
    return _finish(options, text, variable, problems, (MAY_WRITE,) if may_write else ())


def _address(source: str) -> tuple[str, str]:
    """Return the address of the database and the variable that the file names for it."""
    variable, url = VARIABLE, source
    if source.startswith("env:"):
        variable = source.removeprefix("env:")
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable):
            text = "--from env:NAME needs the name of an environment variable"
            raise CannotRunError(text)
        url = os.environ.get(variable, "")
        if not url:
            raise CannotRunError(f"the environment variable {variable} is not set")
    return url, variable


def _of_server(options: SimpleNamespace, url: str, variable: str) -> int:
    """Write the file of a FHIR R4 server."""
    if options.stay or options.patient or options.organization or options.schema:
        raise CannotRunError("a FHIR server has no tables: name its address alone")
    is_hidden = options.source.startswith("env:") or "@" in url
    text = draft_of_server(
        url, f"{{env: {variable}}}" if is_hidden else json.dumps(url)
    )
    problems = _problems(text, {variable: url}, is_sql=False)
    return _finish(options, text, variable if is_hidden else "", problems)


def _of_answers(options: SimpleNamespace) -> Sections:
    """Return the sections of an HTTP API from answers that somebody saved."""
    files = {
        STAY: (options.source,),
        PATIENT: options.patient,
        ORGANIZATION: options.organization,
    }
    if (
        options.stay
        or options.schema
        or any(len(names) > 1 for names in files.values())
    ):
        raise CannotRunError(
            "saved answers are one file each: --from stays.json --patient patients.json"
        )
    return {
        kind: [part_of_answer(kind, read_answer(Path(names[0])))]
        for kind, names in files.items()
        if names
    }


def _problems(text: str, environ: Mapping[str, str], *, is_sql: bool) -> list[str]:
    """Return what keeps the file from being served as it is."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "new.yaml"
        file.write_text(text, encoding="utf-8")
        try:
            mapping = load_mapping(file, environ)
            # An account that may write is a warning of its own.
            source = replace(mapping.source, may_write=True)
            if is_sql:
                with closing(open_adapter(replace(mapping, source=source))) as adapter:
                    texts = [problem.text for problem in adapter.check()]
                return [text.removeprefix(f"{file}:") for text in texts]
        except MappingError as error:
            return [f"{one.element}: {one.text}" for one in error.problems]
        except AdapterError as error:
            return [str(error)]
    return []


def _finish(
    options: SimpleNamespace,
    text: str,
    variable: str,
    problems: Sequence[str],
    warnings: Sequence[str] = (),
) -> int:
    """Hand the file over, and say on standard error what is open and what to do next."""
    questions = [
        {
            "line": number,
            "text": line.partition(MARK)[2].strip(),
            "of": line.partition(MARK)[0].strip(),
        }
        for number, line in marked_lines(text)
    ]
    if options.out is not None:
        try:
            options.out.write_text(text, encoding="utf-8")
        except OSError as error:
            message = f"{options.out} cannot be written: {error.strerror}"
            raise CannotRunError(message) from error
    if options.json:
        file = {"file": str(options.out or ""), "mapping": text, "questions": questions}
        print_json(file | {"warnings": [*problems, *warnings]})
    elif options.out is None:
        print(text, end="")
    has_patients = "\npatient:\n" in text or "\nextend:" in text
    lines = [f"open: {problem}" for problem in problems]
    lines += [f"warning: {warning}" for warning in warnings]
    if not has_patients:
        lines.append("there is no section of patients: name their table with --patient")
    lines.append(
        f"{options.out or 'the file'}: {len(questions)} questions are marked '# ?'"
    )
    if options.out is not None:
        address = f" put the address of the source into {variable}," if variable else ""
        lines.append(
            f"next: answer them,{address} and run encounters mapping check {options.out},"
            " then the same with --live"
        )
    print("\n".join(lines), file=sys.stderr)
    return FINE if has_patients and not problems else FINDINGS
