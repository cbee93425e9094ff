"""The explorer: pages on which people search stays, with the token of their own login.

It listens on another address than the service, which it calls as any client does
(`explorer.core`).
"""

from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from wsgiref.types import WSGIApplication

import orjson
from flask import Flask, Response, g, render_template
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as BaseResponse

from app.config import Settings
from app.middleware import Requests, Transport
from app.pages import POLICY, create_pages
from explorer import details, entry, exports, language, search, words
from explorer.core import Explorer, blueprint, explorer, see
from explorer.failures import PageError, page_error

HEADERS = (
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("Content-Security-Policy", POLICY.format("")),
    ("Referrer-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
"""Headers of every page: it loads from this origin alone, and nobody frames it."""

VIEWS = (entry, search, details, exports)
"""The modules whose views the blueprint has."""


def create_explorer(service: WSGIApplication, settings: Settings) -> Flask:
    """Return the explorer of a service, which it calls; both have the same settings."""
    of_app = Explorer(service, settings)
    pages = create_pages("explorer", Path(__file__).parent)
    pages.config["MAX_CONTENT_LENGTH"] = settings.max_body_bytes
    # A page of another site that resolves to this machine is not served (DNS rebinding).
    pages.config["TRUSTED_HOSTS"] = [urlsplit(of_app.url).hostname]
    pages.extensions["explorer"] = of_app
    pages.jinja_env.add_extension("jinja2.ext.i18n")
    pages.jinja_env.install_gettext_callables(  # type: ignore[attr-defined] # the extension's
        language.gettext, language.ngettext, newstyle=False, pgettext=language.pgettext
    )
    pages.jinja_env.globals.update(
        tables=words,
        N=language.number,
        day=language.day,
        moment=language.moment,
        languages=language.LANGUAGES,
        see=see,
    )
    pages.jinja_env.filters["pretty"] = lambda resource: orjson.dumps(
        resource, option=orjson.OPT_INDENT_2
    ).decode()
    transport = Transport(
        settings.trusted_proxies, on_loopback=settings.plain_http == "loopback"
    )
    pages.wsgi_app = Requests(  # type: ignore[method-assign] # as Flask documents it
        pages.wsgi_app, transport, headers=HEADERS, is_counted=False
    )
    pages.register_error_handler(Exception, _show_error)
    pages.context_processor(_around)
    pages.register_blueprint(blueprint)
    return pages


def _around() -> dict[str, Any]:
    """Return what the frame of each page shows; nothing of the deployment before the login."""
    session = g.get("session")
    shown: dict[str, Any] = {"offer": None, "language": language.language()}
    if session is not None and session.token:
        with suppress(PageError):
            shown |= {"offer": explorer.offer, "here": explorer.offer.now()}
        shown["may_export"] = exports.may_export()
        shown["most_rows"] = explorer.settings.explorer_export_rows
    return shown


def _show_error(error: Exception) -> BaseResponse | HTTPException:
    if isinstance(error, HTTPException) and (error.code or 0) < HTTPStatus.BAD_REQUEST:
        return error
    failure = page_error(error)
    if failure.status == HTTPStatus.UNAUTHORIZED and g.get("session"):
        return entry.expired()
    page = render_template("error.html", failure=failure)
    return Response(page, failure.status)
