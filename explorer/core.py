"""What every view of the explorer needs: the service, the person's session, the searches."""

from collections.abc import Mapping
from contextvars import copy_context
from dataclasses import replace
from datetime import datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit
from wsgiref.types import WSGIApplication

import orjson
from flask import Blueprint, current_app, g, redirect, request, url_for
from werkzeug.exceptions import NotFound
from werkzeug.local import LocalProxy
from werkzeug.test import Client
from werkzeug.wrappers import Response as BaseResponse

from app.call import request_id
from app.config import BASE_PATH, Settings
from app.in_process import PERSON, REASON
from app.middleware import REQUEST_ID_HEADER, requester
from app.redis_client import connect
from explorer.failures import RefusedError
from explorer.login import ProviderLogin
from explorer.offer import Offer, SearchOffer
from explorer.results import BundleEntries
from explorer.sessions import Pairs, SearchResult, Session, Sessions, StoredT

INCLUDES = ("Encounter:patient", "Encounter:service-provider")
"""What comes with stays, so that they have names."""

MOST_WARDS = 200

_PASSED_ON = (
    "REMOTE_ADDR",
    "wsgi.url_scheme",
    "HTTP_X_FORWARDED_FOR",
    "HTTP_X_FORWARDED_PROTO",
)
"""The address of the person, and that they came over HTTPS."""


class Explorer:
    """What the views need; one for each application."""

    def __init__(self, service: WSGIApplication, settings: Settings) -> None:
        self.service = service
        self.settings = settings
        self.url = settings.explorer_url or f"http://{settings.explorer_bind}"
        self.sessions = Sessions(
            connect(settings.redis_url),
            settings.seal_keys,
            idle=60 * settings.explorer_idle_minutes,
            secure=self.url.startswith("https:"),
        )
        redirect_uri = f"{self.url.rstrip('/')}/login/done"
        has_provider = settings.explorer_client_id is not None
        self.login = ProviderLogin(settings, redirect_uri) if has_provider else None
        # Read once, by whoever comes first: another mapping is served by other processes.
        self.offer: Offer | None = None

    def count_login(self) -> None:
        """Count a login of the requesting address. Raises TooManyRequests, AwayError."""
        address = requester(request.environ, self.settings.trusted_proxies)
        self.sessions.count_login(address)

    def begin(self, **values: Any) -> BaseResponse:
        """Begin the session of somebody whose access token the service accepts.

        A form that waited for the login is shown next. Raises RefusedError, AwayError.
        """
        waiting = g.session.waiting
        response = go("/resume" if waiting else "/")
        self.sessions.end(g.session, response)
        g.session = None
        try:
            # Pages need a token, the CapabilityStatement may not.
            self.call("Bundle", session=Session(id="", **values))
        except RefusedError as error:
            # The token is accepted: no page is named, or it has no scope for pages.
            if error.status not in {HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN}:
                raise
        g.session = self.sessions.begin(response, waiting=waiting, **values)
        return response

    def call(
        self,
        path: str,
        *,
        query: Pairs = (),
        form: Pairs | None = None,
        session: Session | None = None,
    ) -> Any:
        """Return the resource at a path of the service, for the person who is logged in.

        The call goes through all of the service without a network: token, scopes, rate
        limit, audit. A form is posted. Raises RefusedError.
        """
        session = session or g.session
        environ = {name: request.environ.get(name) for name in _PASSED_ON}
        environ = {name: value for name, value in environ.items() if value is not None}
        environ |= {PERSON: session.person, REASON: session.reason or None}
        content: dict[str, Any] = {"query_string": urlencode(query)}
        if form is not None:
            content = {
                "method": "POST",
                "data": urlencode(form),
                "content_type": "application/x-www-form-urlencoded",
            }
        # In another context: the service has a request of its own.
        response = copy_context().run(
            Client(self.service).open,
            f"{BASE_PATH}/{path}",
            headers=[
                ("Authorization", f"Bearer {session.token}"),
                (REQUEST_ID_HEADER, request_id() or ""),
            ],
            environ_overrides=environ,
            buffered=True,
            **content,
        )
        resource = orjson.loads(response.get_data())
        if response.status_code != HTTPStatus.OK:
            location = resource["issue"][0].get("location") or [""]
            raise RefusedError(
                response.status_code,
                parameter=location[0].removeprefix("http."),
                request_id=response.headers.get(REQUEST_ID_HEADER, ""),
            )
        return resource

    def read_offer(self) -> Offer:
        """Return what the service offers. Raises RefusedError."""
        if self.offer is None:
            self.offer = Offer(self.call("metadata"))
        return self.offer

    def search_offer(self, kind: str) -> SearchOffer:
        """Return the searches of a resource type, else NotFound."""
        search = self.read_offer().searches.get(kind)
        if search is None:
            raise NotFound
        return search

    def search(self, kind: str, criteria: Pairs) -> SearchResult:
        """Search; the criteria of the result are all parameters that were sent.

        Patients and hospitals come with stays as far as the person may see them: the first
        search of the session finds out. Raises RefusedError.
        """
        plain = [pair for pair in criteria if pair[0] != "_include"]
        offered = self.search_offer(kind).includes
        usual = tuple(include for include in INCLUDES if include in offered)
        known = g.session.includes
        attempts = [usual, *((include,) for include in usual), ()]
        if known is not None:
            attempts = [tuple(include for include in usual if include in known)]
        for includes in dict.fromkeys(attempts):
            sent = [*plain, *(("_include", include) for include in includes)]
            try:
                bundle = self.call(f"{kind}/_search", form=sent)
            except RefusedError as error:
                if error.status != HTTPStatus.FORBIDDEN or not includes:
                    raise
                continue
            if usual and known is None:
                g.session.includes = [*includes]
                self.sessions.save(g.session)
            result = SearchResult(kind, sent, bundle)
            self.remember_wards(result)
            return result
        raise RefusedError(HTTPStatus.FORBIDDEN)

    def collect(self, kind: str, criteria: Pairs, most: int) -> SearchResult:
        """Search and follow pages to `most` matches, as one Bundle. Raises RefusedError."""
        size = self.search_offer(kind).most_count
        plain = [pair for pair in criteria if pair[0] != "_count"]
        sized = [*plain, ("_count", str(min(most, int(size))))] if size else plain
        result = self.search(kind, sized)
        page = result.bundle
        entries = [*page.get("entry", [])]
        while sum(entry["search"]["mode"] == "match" for entry in entries) < most:
            link = step_of(page, "next")
            if not link:
                break
            page = self.call("Bundle", query=link)
            entries += page.get("entry", [])
        links = result.bundle["link"][:1]
        whole = {**result.bundle, "link": links, "entry": entries}
        return replace(result, bundle=whole)

    def remember_wards(self, result: SearchResult) -> None:
        """Remember the wards of stays by name, for forms."""
        stays = BundleEntries(result.bundle).stays if result.kind == "Encounter" else ()
        names = {stay.unit: stay.ward for stay in stays if stay.unit}
        wards = g.session.wards
        if not names.keys() <= wards.keys():
            merged = {**names, **{code: name for code, name in wards.items() if name}}
            g.session.wards = dict(sorted(merged.items())[:MOST_WARDS])
            self.sessions.save(g.session)

    def stored(self, id: str, record: type[StoredT]) -> StoredT:
        """Return a result or a file of this session, else NotFound."""
        stored = self.sessions.stored(g.session, id, record)
        if stored is None:
            raise NotFound
        return stored


blueprint = Blueprint("explorer", __name__)

explorer: Explorer = LocalProxy(lambda: current_app.extensions["explorer"])  # type: ignore[assignment]
"""The explorer of the request."""


def see(reference: str, **place: Any) -> str:
    """Return the address of the page of a resource, for this session alone."""
    sealed = explorer.sessions.seal(g.session.id, b"reference", reference)
    return url_for("explorer.show", sealed=sealed, **place)


def go(address: str) -> BaseResponse:
    """Lead to another page."""
    return redirect(address, HTTPStatus.SEE_OTHER)


def clock(seconds: float) -> datetime:
    """Return a time, in seconds since 1970, at the hospital."""
    return datetime.fromtimestamp(seconds, explorer.read_offer().zone)


def set_choice(response: BaseResponse, cookie: str, text: str) -> None:
    """Store a choice of the person in their browser for a year."""
    response.set_cookie(
        cookie,
        text,
        max_age=365 * 86400,
        secure=explorer.url.startswith("https:"),
        httponly=True,
        samesite="Lax",
    )


def step_of(bundle: Mapping[str, Any], relation: str) -> Pairs:
    """Return the query of a link of a Bundle, [] for none."""
    urls = [link["url"] for link in bundle["link"] if link["relation"] == relation]
    return parse_qsl(urlsplit(urls[0]).query) if urls else []
