"""`encounters workbench`: a page to write a mapping file beside rows of the hospital system.

It runs on the integrator's machine only, behind a token that is used once. The file on the
disk is the truth: the page checks a draft while it is typed, and writes the file when it is
saved. Rows, resources, findings and tests come from the tools of `encounters mapping`.

A panel that reads the source has a thread of its own and shows what it does: a slow source
never blocks typing.
"""

import hmac
import logging
import os
import secrets
import shlex
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYetError
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from time import monotonic
from typing import Any

import orjson
import yaml
from flask import (
    Blueprint,
    Flask,
    Response,
    abort,
    copy_current_request_context,
    current_app,
    g,
    jsonify,
    redirect,
    render_template,
    request,
)
from werkzeug.local import LocalProxy
from werkzeug.serving import make_server
from werkzeug.wrappers import Response as BaseResponse

from adapters.contract import AdapterError, RowFault, TooCostlyError
from adapters.mapping.document import Document, named
from adapters.mapping.load import load_draft
from adapters.mapping.model import Mark, ResourceMapping
from adapters.mapping.problems import MappingError
from adapters.mapping.schema import editor_schema
from adapters.mapping.slots import SECTIONS, Place, places_of
from app.console import FINE, CannotRunError
from app.fhir.resources import CLASS_LABELS
from app.pages import POLICY, create_pages
from toolkit.check import check_file
from toolkit.checks.rows import MEANS
from toolkit.checks.runner import count_codes
from toolkit.console import NO_COLUMN, QUESTION, MappingFile, marked_lines
from toolkit.edits import add_field, answer, name_column, remarks, write_codes
from toolkit.explain import whereabouts
from toolkit.findings import Finding, findings_in, measurements_in, timed
from toolkit.labels import read_labels
from toolkit.mapping_tests import tests_beside, try_file
from toolkit.new import VARIABLE
from toolkit.new import run as write_first
from toolkit.searches import parsed_search, searching
from toolkit.source_rows import FoundRow, SourceReader
from toolkit.tried_row import (
    PERSONAL_TEXTS,
    as_resource,
    cell_text,
    element_of,
    masked_cells,
)

HOST = "127.0.0.1"
PAGE_ROWS = 20
"""How many rows of the source are shown at a time."""

WAIT_SECONDS = 1.0
"""How long a panel waits for its source before it shows that it is waiting."""

PANEL_SECONDS = 60.0
"""After how long a panel gives up; the source has time limits of its own."""

COOKIE = "workbench"


@dataclass(slots=True)
class Draft:
    """The text in the editor; `file` is the last version without problems.

    `is_stale` is whether the text has problems, so that `file` is an older version. `no_source`
    says why the source cannot be reached and which commands to run, "" if it can.
    """

    text: str
    file: MappingFile | None = None
    is_stale: bool = False
    problems: list[Finding] = field(default_factory=list)
    no_source: str = ""


class Workbench:
    """One mapping file, its draft, and the panels that are being read."""

    def __init__(self, path: Path, environ: Mapping[str, str]) -> None:
        self.name = str(path)
        self.path = path.absolute()
        self.environ = environ
        self.token = secrets.token_urlsafe(24)
        self.session = ""
        self.draft = Draft("")
        # By panel, its result and when it was started by the monotonic clock.
        self._jobs: dict[str, tuple[Future[str], float]] = {}
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="panel")
        self.read_draft(self.on_disk())

    def on_disk(self) -> str:
        """Return the file as it is now."""
        return self.path.read_text(encoding="utf-8-sig")

    def read_draft(self, text: str) -> Draft:
        """Check the text of the editor; one with problems keeps the last version without."""
        draft = Draft(text, self.draft.file)
        try:
            # Without the environment: a missing variable is no problem of the file.
            mapping = load_draft(self.path, text, None)
            draft.file = MappingFile.of(mapping)
        except MappingError as error:
            draft.is_stale = True
            draft.problems = [Finding.of(problem) for problem in error.problems]
            draft.no_source = self.draft.no_source
        else:
            try:
                mapping = load_draft(self.path, text, self.environ)
                draft.file = MappingFile.of(mapping)
            except MappingError as error:
                reasons = [problem.text for problem in error.problems]
                draft.no_source = self._what_to_type(draft.file, reasons)
        self.draft = draft
        return draft

    def _what_to_type(self, file: MappingFile, reasons: Sequence[str]) -> str:
        """Return why the source cannot be reached, and the commands that set what is missing."""
        sources = Document(file.root, file.mapping.read).sources
        variables: list[str] = []
        for path, table in sources.items():
            variables += [variable for _, variable in named(table, path)]
        is_http = file.mapping.source.kind == "http"
        address = "https://…" if is_http else "postgresql://reader:secret@host/database"
        commands = []
        for variable in dict.fromkeys(variables):
            if self.environ.get(variable) or self.environ.get(f"{variable}_FILE"):
                continue
            # The first variable is the address of the source.
            value = address if variable == variables[0] else "…"
            commands.append(f"export {variable}={value}")
        commands.append(f"encounters workbench {shlex.quote(self.name)}")
        return (
            f"The workbench cannot reach the source: {'; '.join(dict.fromkeys(reasons))}."
            " The file is checked, and its tests run. To see rows, end the workbench with"
            " Ctrl-C, and type:\n" + "\n".join(commands)
        )

    def good(self) -> MappingFile:
        """Return the last version without problems.

        Raises CannotRunError if there is none, or if its source cannot be reached.
        """
        if self.draft.file is None:
            text = "The file has problems. Correct them first."
            raise CannotRunError(text)
        if self.draft.no_source:
            raise CannotRunError(self.draft.no_source)
        return self.draft.file

    def panel(self, name: str, work: Callable[[], str], *, start: bool) -> str:
        """Return the HTML of a panel: its content, or that it waits for the source.

        `start` begins the work anew; without it the panel goes on waiting for the same work.
        """
        if start:
            if name in self._jobs:
                self._jobs[name][0].cancel()
            self._jobs[name] = self._threads.submit(work), monotonic()
        if name not in self._jobs:
            return ""
        future, began = self._jobs[name]
        try:
            return future.result(WAIT_SECONDS)
        except NotYetError:
            seconds = round(monotonic() - began)
            text = "The source did not answer in time."
            problem = text if seconds > PANEL_SECONDS else ""
        except (AdapterError, CannotRunError, MappingError) as error:
            seconds, problem = 0, str(error)
        return render_template(
            "waiting.html", name=name, seconds=seconds, problem=problem
        )


def digest(text: str) -> str:
    """Return what identifies a version of the file."""
    return blake2b(text.encode(), digest_size=12).hexdigest()


def run(*, file: Path, source: str | None, **tables: Any) -> int:
    """Serve the workbench until it is stopped; `tables` are those of `mapping new`."""
    if source and not file.exists():
        write_first(source=source, out=file, **tables)
    if source and "://" in source:
        # The file names the variable: no password is written into it.
        os.environ.setdefault(VARIABLE, source)
    if not file.is_file():
        hint = (
            "name the tables of a first one"
            if source
            else "--from URL writes a first one"
        )
        raise CannotRunError(f"{file} does not exist: {hint}")
    workbench = Workbench(file, os.environ)
    # Its log lines would contain searches, and so ids of patients.
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server(HOST, 0, create_workbench(workbench), threaded=True)
    address = f"http://{HOST}:{server.port}/?token={workbench.token}"
    print(
        f"{file}: open {address}\nThe address works once. Ctrl-C ends the workbench.",
        flush=True,
    )
    webbrowser.open(address)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print()
    return FINE


blueprint = Blueprint("workbench", __name__)


def create_workbench(workbench: Workbench) -> Flask:
    """Return the pages of a workbench."""
    pages = create_pages("toolkit", Path(__file__).parent)
    pages.config["TRUSTED_HOSTS"] = [HOST, "localhost"]
    pages.extensions["workbench"] = workbench
    pages.register_blueprint(blueprint)
    return pages


bench: Workbench = LocalProxy(lambda: current_app.extensions["workbench"])  # type: ignore[assignment]
"""The workbench of the request."""


@blueprint.before_app_request
def _require_session() -> BaseResponse | None:
    """Exchange the token, which works once, for a cookie; require the cookie otherwise."""
    if request.endpoint in {None, "static"}:
        # Flask itself refuses an unknown page or another host.
        return None
    token, cookie = request.args.get("token", ""), request.cookies.get(COOKIE, "")
    if bench.token and _is_equal(token, bench.token):
        bench.token, bench.session = "", secrets.token_urlsafe(24)
        response = redirect("/")
        response.set_cookie(COOKIE, bench.session, httponly=True, samesite="Strict")
        return response
    if not bench.session or not _is_equal(cookie, bench.session):
        abort(403, "Open the address that the command printed; it works once.")
    # A form of another site is refused: it cannot send this header.
    if request.method == "POST" and request.headers.get("X-Workbench") != "1":
        abort(403)
    return None


def _is_equal(text: str, secret: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(text.encode(), secret.encode())


@blueprint.after_app_request
def _add_headers(response: Response) -> Response:
    """Add the headers of security, and forbid caching but of static files."""
    nonce = f" 'nonce-{g.nonce}'" if "nonce" in g else ""
    response.headers["Content-Security-Policy"] = POLICY.format(nonce)
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "no-referrer"
    if request.endpoint != "static":
        response.headers["Cache-Control"] = "no-store"
    return response


@blueprint.get("/")
def page() -> str:
    """Show the file in the editor, and empty panels."""
    text = bench.on_disk()
    bench.read_draft(text)
    # For the styles that the editor adds; it is of this response alone.
    g.nonce = secrets.token_urlsafe(16)
    return render_template(
        "workbench.html",
        name=bench.path.name,
        text=text,
        digest=digest(text),
        nonce=g.nonce,
        kinds=list(SECTIONS),
    )


@blueprint.get("/schema.json")
def schema() -> Response:
    """Return the JSON Schema of mapping files."""
    return jsonify(editor_schema())


@blueprint.get("/version")
def version() -> Response:
    """Return the digest of the file as it is now."""
    return jsonify({"digest": digest(bench.on_disk())})


@blueprint.post("/draft")
def draft() -> Response:
    """Check the text of the editor."""
    checked = bench.read_draft(request.get_data(as_text=True))
    return jsonify(
        {
            "stale": checked.is_stale,
            "problems": [*map(_diagnostic, checked.problems)],
            "questions": [*marked_lines(checked.text)],
        }
    )


@blueprint.post("/save")
def save() -> tuple[Response, int]:
    """Write the file, unless it was edited elsewhere since this page read it."""
    now = digest(bench.on_disk())
    if request.headers.get("If-Match") != now:
        return jsonify({"digest": now}), 409
    text = request.get_data(as_text=True)
    _write(bench.path, text)
    bench.read_draft(text)
    return jsonify({"digest": digest(text)}), 200


@blueprint.post("/edit")
def edit() -> tuple[Response, int]:
    """Return the text of the editor with what a person chose; nothing is written."""
    form = request.form
    text, kind = form["text"].replace("\r\n", "\n"), form["edit"]
    line = form.get("line", 0, int)
    try:
        if kind == "codes":
            chosen = zip(form.getlist("code"), form.getlist("word"), strict=True)
            text = write_codes(text, form["table"], dict(chosen))
        elif kind == "column":
            text = name_column(text, line, form["column"])
        elif kind == "field":
            text = add_field(text, line, form["slot"], form["column"])
        else:
            text = answer(text, line)
    except (CannotRunError, yaml.YAMLError) as error:
        return jsonify({"problem": str(error)}), 409
    return jsonify({"text": text}), 200


@blueprint.get("/panel/<name>")
def panel(name: str) -> str:
    """Show a panel, or that it waits for the source."""
    if name not in PANELS:
        abort(404)
    work = copy_current_request_context(PANELS[name])
    return bench.panel(name, work, start="wait" not in request.args)


def _write(file: Path, text: str) -> None:
    """Write a file whole or not at all."""
    new = file.with_name(f".{file.name}.new")
    new.write_text(text, encoding="utf-8")
    if file.exists():
        new.chmod(file.stat().st_mode)
    new.replace(file)


def _diagnostic(finding: Finding) -> Mapping[str, Any]:
    """Return a problem for the editor; one of another file is shown at the first line."""
    line, column, message = finding.line, finding.column, finding.text
    if Path(finding.file) != bench.path:
        line, column = 1, 1
        message = f"{Path(finding.file).name}: {finding.text}"
    return {
        "line": line,
        "column": column,
        "message": message,
        "severity": finding.severity,
    }


# ------------------------------------------------------------------------------ panels


def _rows() -> str:
    """Show a page of rows of a section as the source has them, and why a row is invalid."""
    file, kind = bench.good(), SECTIONS[request.args["kind"]]
    sections = file.sections(kind)
    if not sections:
        raise CannotRunError(f"The mapping has no section {kind.lower()}.")
    page = request.args.get("page", 0, int)
    source = min(request.args.get("source", 0, int), len(sections) - 1)
    section = sections[source]
    with SourceReader(file) as reader:
        rows, more = reader.page(section, PAGE_ROWS, page)
    return render_template(
        "rows.html",
        kind=request.args["kind"],
        sources=[file.of_source(listed) for listed in sections],
        source=source,
        page=page,
        first=page * PAGE_ROWS,
        more=more,
        unmasked=_is_unmasked(),
        stale=bench.draft.is_stale,
        rows=[_shown(section, row) for row in rows],
        columns=rows[0].columns if rows else (),
    )


def _shown(section: ResourceMapping, row: FoundRow) -> Mapping[str, Any]:
    """Return the id and the cells of a row, and why it is invalid, with the line of the field."""
    if _is_unmasked():
        cells = [None if cell is None else cell_text(cell) for cell in row.cells]
    else:
        cells = [*masked_cells(section, row)]
    reason, line = "", 0
    if isinstance(row.outcome, RowFault):
        fault = row.outcome
        reason = f"{element_of(section.resource_type, fault)} ← {fault.column}"
        reason += f": {fault.rule}"
        marks = [p.field.mark for p in places_of(section) if p.slot == fault.field]
        line = _line_here((*marks, section.mark)[0])
    return {"id": row.outcome.id, "cells": cells, "reason": reason, "line": line}


def _line_here(mark: Mark) -> int:
    """Return the line of a place, 0 where it is in another file."""
    return mark.line if Path(mark.file) == bench.path else 0


def _is_unmasked() -> bool:
    """Whether the person at the screen has asked to see what identifies patients."""
    return request.args.get("unmask") == "1"


def _resource() -> str:
    """Show the resource of a row, each element with its cell and its line."""
    file, kind = bench.good(), SECTIONS[request.args["kind"]]
    unmasked, id = _is_unmasked(), request.args["id"].strip()
    with SourceReader(file) as reader, searching(file.mapping) as searches:
        masked = frozenset[str]() if unmasked else PERSONAL_TEXTS
        where = whereabouts(reader, searches, kind, id, masked)
    tried = where.tried
    if tried is None:
        raise CannotRunError(f"No client gets this {kind}: {where.text}.")
    lines = [(line, line.number_in(bench.path)) for line in tried.elements()]
    empty = [(line, line.number_in(bench.path)) for line in tried.empty()]
    return render_template(
        "mapped.html",
        stale=bench.draft.is_stale,
        where=where,
        tried=tried,
        lines=lines,
        empty=empty,
        raw=_as_json(tried.resource),
    )


def _as_json(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def _questions() -> str:
    """Show the open questions of the draft, with what each may be answered by."""
    draft = bench.draft
    file = None if draft.is_stale else draft.file
    # By section; none where the source cannot be reached, or refuses the SELECT.
    columns: dict[Mark, Sequence[str]] = {}
    if file and not draft.no_source:
        with SourceReader(file) as reader, suppress(AdapterError):
            for section in file.mapping.sections:
                columns[section.mark] = reader.columns(section)
    questions = [
        _question(file, number, line, columns)
        for number, line in marked_lines(draft.text)
    ]
    return render_template("questions.html", stale=draft.is_stale, questions=questions)


def _question(
    file: MappingFile | None,
    number: int,
    line: str,
    columns: Mapping[Mark, Sequence[str]],
) -> Mapping[str, Any]:
    """Return an open question and what may answer it.

    That is a column of the section, a field without a column, or the index of a code table.
    """
    before, _, text = line.partition(QUESTION)
    question: dict[str, Any] = {"line": number, "of": before.strip(), "text": text}
    if file is None:
        return question
    above = [s for s in file.mapping.sections if _line_here(s.mark) <= number]
    # The section that the line is in.
    for section in above[-1:]:
        at_line = [p for p in places_of(section) if _line_here(p.field.mark) == number]
        if at_line and len(at_line[0].field.columns) == 1:
            question["columns"] = columns.get(section.mark, ())
            question["column"] = at_line[0].field.columns[0]
        if NO_COLUMN in line:
            question["columns"] = columns.get(section.mark, ())
            listed = line.partition(NO_COLUMN)[2].strip().split(", ")
            question["slots"] = [s for s in listed if s not in section.fields]
    for index, (_, place) in enumerate(_coded(file)):
        table = place.field.codes
        if table and table.mark and _line_here(table.mark) == number:
            question["codes"] = index
    return question


def _coded(file: MappingFile) -> list[tuple[ResourceMapping, Place]]:
    """Return the fields of codes with their sections; fields with a closed list of values first."""
    coded = [
        (section, place)
        for section in file.mapping.sections
        for place in places_of(section)
        if place.field.codes and place.field.columns
    ]
    return sorted(coded, key=lambda coded_field: not coded_field[1].takes)


def _codes() -> str:
    """Show the codes of a column with their numbers of rows, and the values that they may get."""
    file = bench.good()
    coded = _coded(file)
    if not coded:
        raise CannotRunError("No field of the file has a table of codes yet.")
    index = min(request.args.get("field", 0, int), len(coded) - 1)
    section, place = coded[index]
    with SourceReader(file) as reader:
        adapter = reader.adapter(section)
        counted = count_codes(adapter, section, place)
        chosen = request.args.get("labels", "")
        labels = read_labels(adapter, section, place, chosen)
    table, unnamed = counted.table, counted.unnamed
    # Codes without an entry, those of most rows first.
    new_codes = [code for code in unnamed if code]
    new_codes.sort(key=lambda code: -unnamed[code])
    return render_template(
        "codes.html",
        stale=bench.draft.is_stale,
        fields=[f"{p.element} ← {', '.join(p.field.columns)}" for _, p in coded],
        index=index,
        table=table,
        takes=place.takes,
        meanings={**CLASS_LABELS, **MEANS},
        labels=labels,
        chosen=chosen,
        remarks=remarks(bench.draft.text, table.name),
        codes=[(c, counted.counts.get(c, 0)) for c in (*table.table, *new_codes)],
        nothing=counted.nothing,
        hidden=unnamed.get("", 0),
        is_sample=section.http is not None,
    )


def _findings() -> str:
    """Show the findings of `check --live` for the saved file."""
    results, error = check_file(bench.path, is_live=True)
    return render_template(
        "findings.html",
        error=bench.draft.no_source or str(error or ""),
        findings=findings_in(results),
        costs=measurements_in(results),
    )


def _tests() -> str:
    """Run the tests beside the saved file."""
    file = tests_beside(bench.path).name
    return render_template("tests.html", result=try_file(bench.path), file=file)


def _try() -> str:
    """Run a search: how long each stage and each statement takes, and the first rows."""
    file, unmasked = bench.good(), _is_unmasked()
    mapping = file.mapping
    stages: dict[str, float] = {}
    with searching(mapping) as searches:
        kind, parameters = parsed_search(request.args.get("search", ""))
        query, stages["parameters"] = timed(lambda: searches.query(kind, parameters))
        page, stages["source: a page of rows"] = timed(lambda: searches.page(query))
        try:
            total, stages["source: count"] = timed(lambda: searches.count(query))
        except TooCostlyError:
            total = None
    with SourceReader(file) as reader:
        sent = [
            (file.of_source(section), reader.timed(section, query))
            for section in file.sections(kind)
        ]
    records = [row for row in page.rows if not isinstance(row, RowFault)]
    resources, stages["rows to FHIR"] = timed(
        lambda: [as_resource(mapping, kind, record) for record in records]
    )
    return render_template(
        "tried.html",
        sent=sent,
        stages=stages,
        page=page,
        total=total,
        raw=_as_json(resources) if unmasked else "",
    )


PANELS: Mapping[str, Callable[[], str]] = {
    "questions": _questions,
    "codes": _codes,
    "rows": _rows,
    "resource": _resource,
    "findings": _findings,
    "tests": _tests,
    "try": _try,
}
