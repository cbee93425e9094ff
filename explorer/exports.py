"""The view of files: a whole result as CSV, NDJSON or JSON, sent while it is read.

Whoever cancels the download ends the search. One that fails midway ends without its last
chunk: the browser tells that the file is incomplete.
"""

from collections.abc import Iterator
from datetime import datetime
from itertools import chain

import orjson
from flask import Response, g, request, stream_with_context
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import NotFound

from explorer.core import INCLUDES, blueprint, explorer
from explorer.language import gettext, read_day
from explorer.records import BundleEntries, csv_lines
from explorer.sessions import SearchResult
from explorer.words import RESOURCES

MEDIA_TYPES = {
    "csv": "text/csv",
    "ndjson": "application/fhir+ndjson",
    "json": "application/fhir+json",
}
"""The formats of a file."""

_BUNDLE = b'{"resourceType":"Bundle","type":"collection","entry":['


def may_export() -> bool:
    """Whether files are offered, to this person."""
    settings = explorer.settings
    scope = settings.explorer_export_scope
    allowed = scope is None or scope in g.session.scope.split()
    return settings.explorer_export_rows > 0 and allowed


@blueprint.post("/results/<id>/export")
def export(id: str) -> Response:
    """Send a whole result as a file."""
    result = explorer.stored(id)
    format = request.form.get("format", "")
    if not may_export() or format not in MEDIA_TYPES:
        raise NotFound
    parts = _parts(result, format)
    # What is refused at once is a page.
    content = stream_with_context(chain([next(parts)], parts))
    response = Response(content, mimetype=MEDIA_TYPES[format])
    name = f"{_name(result, explorer.offer.now())}.{format}"
    response.headers.set("Content-Disposition", "attachment", filename=name)
    return response


def _name(result: SearchResult, at: datetime) -> str:
    """Return the name of a file; it has the days of the search, and no patient."""
    form: MultiDict[str, str] = MultiDict(result.form)
    days = [form.get(f"admission.{bound}", "") for bound in ("from", "to")]
    name = gettext(RESOURCES[result.kind]).lower()
    if all(days):
        first, last = (read_day(text).isoformat() for text in days)
        between = gettext("admissions-%(first)s-to-%(last)s", first=first, last=last)
        name = f"{name}_{between}"
    return f"{name}_{at:%Y-%m-%d-%H%M}"


def _parts(result: SearchResult, format: str) -> Iterator[bytes]:
    """Yield a file, in a part for each page of the result."""
    left = explorer.settings.explorer_export_rows
    # Names of patients and hospitals are columns; other formats have the stays alone.
    includes = INCLUDES if format == "csv" else ()
    pages = explorer.pages(result.kind, result.criteria, left, includes)
    separator = b""
    for number, page in enumerate(pages):
        is_first = number == 0
        results = BundleEntries(page.bundle)
        results.matches = results.matches[:left]
        left -= len(results.matches)
        if format == "csv":
            rows = results.rows(result.kind)
            now = explorer.offer.now()
            text = csv_lines(result.kind, rows, now, head=is_first)
            yield text.encode("utf-8-sig" if is_first else "utf-8")
        elif format == "ndjson":
            yield b"".join(orjson.dumps(match) + b"\n" for match in results.matches)
        else:
            part = _BUNDLE if is_first else b""
            for match in results.matches:
                part += separator + orjson.dumps({"resource": match})
                separator = b","
            yield part
    if format == "json":
        yield b"]}"
