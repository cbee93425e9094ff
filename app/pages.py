"""What the pages in the browser share: the explorer for people, the workbench for mappings."""

from mimetypes import guess_type
from pathlib import Path

from flask import Flask, Response, request, send_from_directory

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'{}; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
"""The Content-Security-Policy of all pages; what else may style them is filled in."""


def create_pages(package: str, folder: Path) -> Flask:
    """Return an application with the `templates` and `static` files of a package's folder.

    Large files are sent compressed: each has a copy that ends in .gz beside it.
    """
    pages = Flask(package, template_folder="templates", static_folder=None)
    pages.jinja_env.trim_blocks = pages.jinja_env.lstrip_blocks = True
    files = folder / "static"

    @pages.get("/static/<path:filename>", endpoint="static")
    def static(filename: str) -> Response:
        compressed = f"{filename}.gz"
        takes_gzip = request.accept_encodings.quality("gzip") > 0
        if not (takes_gzip and (files / compressed).is_file()):
            return send_from_directory(files, filename)
        mimetype, _ = guess_type(filename)
        response = send_from_directory(files, compressed, mimetype=mimetype)
        response.headers["Content-Encoding"] = "gzip"
        response.headers["Vary"] = "Accept-Encoding"
        return response

    return pages
