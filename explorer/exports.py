"""Views of files: a whole result as CSV, NDJSON or JSON.

Nothing runs in the background. A page that shows the progress reads further pages of the
result and stores them, encrypted for the session; whoever closes it stops the export. The
finished file is sent part by part.
"""

import secrets
import time
from collections.abc import Mapping
from datetime import datetime
from http import HTTPStatus

import orjson
from flask import Response, g, render_template, request, url_for
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response as BaseResponse

from explorer.core import blueprint, explorer, go, step_of
from explorer.failures import Failure, RefusedError
from explorer.language import gettext, read_day
from explorer.language import mark as _
from explorer.results import BundleEntries, csv_lines
from explorer.sessions import Export, SearchResult

FORMATS: Mapping[str, tuple[str, str]] = {
    "csv": ("CSV", "text/csv"),
    "ndjson": ("NDJSON", "application/fhir+ndjson"),
    "json": ("JSON", "application/fhir+json"),
}
"""The formats of a file: what they are called, and their media types."""

MOST_FILES = 3
_A_LOOK = 1.0
"""How many seconds a page of progress reads on."""

_RETRIED = {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}
"""Refusals after which the next look goes on."""

_STEMS = {
    "Encounter": _("stays"),
    "Patient": _("patients"),
    "Organization": _("hospitals"),
}


def may_export() -> bool:
    """Whether files are offered, to this person."""
    settings = explorer.settings
    scope = settings.explorer_export_scope
    allowed = scope is None or scope in g.session.scope.split()
    return settings.explorer_export_rows > 0 and allowed


def exports() -> list[Export]:
    """Return the files of the session."""
    ids = g.session.exports
    stored = (explorer.sessions.stored(g.session, id, Export) for id in ids)
    return [export for export in stored if export]


@blueprint.post("/results/<id>/export")
def export(id: str) -> BaseResponse:
    """Begin a file; with script the page of the result shows its progress."""
    result, format = explorer.stored(id, SearchResult), request.form.get("format", "")
    if not may_export() or format not in FORMATS:
        raise NotFound
    at = explorer.read_offer().now()
    new = Export(
        id=secrets.token_urlsafe(16),
        result=id,
        kind=result.kind,
        criteria=result.criteria,
        format=format,
        name=f"{_name(result, at)}.{format}",
    )
    explorer.sessions.store(g.session, new.id, new)
    g.session.exports = [new.id, *g.session.exports][:MOST_FILES]
    explorer.sessions.save(g.session)
    if "HX-Request" in request.headers:
        return go(url_for(".results", id=id))
    return go(url_for(".progress", id=new.id))


def _name(result: SearchResult, at: datetime) -> str:
    """Return the name of a file; it has the days of the search, and no patient."""
    form: MultiDict[str, str] = MultiDict(result.form)
    days = [form.get(f"admission.{bound}", "") for bound in ("from", "to")]
    name = gettext(_STEMS[result.kind])
    if all(days):
        first, last = (read_day(text).isoformat() for text in days)
        between = gettext("admissions-%(first)s-to-%(last)s", first=first, last=last)
        name = f"{name}_{between}"
    return f"{name}_{at:%Y-%m-%d-%H%M}"


@blueprint.get("/exports/<id>")
def progress(id: str) -> Response:
    """Read on, and show how far a file is; without script it is a page that reloads."""
    file, has_script = _read_on(id), "HX-Request" in request.headers
    page = render_template("note.html" if has_script else "export.html", export=file)
    response = Response(page)
    if file.next != [] and not has_script:
        response.headers["Refresh"] = "2"
    return response


@blueprint.post("/exports/<id>/cancel")
def cancel(id: str) -> BaseResponse:
    """Take a file off the pages; what there is of it expires."""
    file = explorer.stored(id, Export)
    g.session.exports = [other for other in g.session.exports if other != id]
    explorer.sessions.save(g.session)
    return go(url_for(".results", id=file.result))


@blueprint.get("/exports/<id>/file")
def file(id: str) -> Response:
    """Send a finished file."""
    export = explorer.stored(id, Export)
    if export.next != []:
        raise NotFound
    parts = explorer.sessions.parts(g.session, export)
    response = Response(parts, mimetype=FORMATS[export.format][1])
    disposition = f'attachment; filename="{export.name}"'
    response.headers["Content-Disposition"] = disposition
    return response


def _read_on(id: str) -> Export:
    """Read further pages of a result for a moment and store them; return the file."""
    file = explorer.stored(id, Export)
    until = time.monotonic() + _A_LOOK
    try:
        while time.monotonic() < until and file.next != []:
            _read_page(file)
    except RefusedError as error:
        if error.status == HTTPStatus.UNAUTHORIZED:
            raise
        if error.status not in _RETRIED:
            file.next, file.fault = [], Failure(error).text
            explorer.sessions.store(g.session, id, file)
    return file


def _read_page(file: Export) -> None:
    is_first = file.next is None
    if file.next is None:
        # Names of patients and hospitals are columns; other formats have the stays alone.
        unwanted = {"_count"} if file.format == "csv" else {"_count", "_include"}
        form = [pair for pair in file.criteria if pair[0] not in unwanted]
        if size := explorer.search_offer(file.kind).most_count:
            form.append(("_count", size))
        bundle = explorer.call(f"{file.kind}/_search", form=form)
    else:
        bundle = explorer.call("Bundle", query=file.next)
    file.next, results = step_of(bundle, "next"), BundleEntries(bundle)
    left = explorer.settings.explorer_export_rows - file.rows
    if len(results.matches) >= left:
        results.matches, file.next = results.matches[:left], []
    file.total = results.total
    part = _part(file, results, is_first=is_first)
    file.rows += len(results.matches)
    file.size += len(part)
    explorer.sessions.store_part(g.session, file, part)


def _part(file: Export, results: BundleEntries, *, is_first: bool) -> bytes:
    if file.format == "csv":
        now = explorer.read_offer().now()
        text = csv_lines(file.kind, results, now, head=is_first)
        return text.encode("utf-8-sig" if is_first else "utf-8")
    if file.format == "ndjson":
        return b"".join(orjson.dumps(match) + b"\n" for match in results.matches)
    part = b",".join(orjson.dumps({"resource": match}) for match in results.matches)
    if is_first:
        part = b'{"resourceType":"Bundle","type":"collection","entry":[' + part
    elif part:
        part = b"," + part
    return part + b"]}" if file.next == [] else part
