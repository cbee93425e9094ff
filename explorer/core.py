"""What every view of the explorer needs: the service, the person's session, the searches."""

from collections.abc import Mapping, Sequence
from contextvars import copy_context
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
from explorer.login import Login
from explorer.offer import Offer, SearchOffer
from explorer.results import REFERENCE, Column, Results, chosen_columns
from explorer.sessions import Pairs, Result, Session, Sessions, Trail

INCLUDES = ("Encounter:patient", "Encounter:service-provider")
"""What comes with stays, so that they have names."""

MOST_WARDS = 200

COLUMN_COOKIE = "columns-"

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
        self.login = Login(settings, redirect_uri) if has_provider else None
        # Read once, by whoever comes first: another mapping is served by other processes.
        self.offer: Offer | None = None

    def count_login(self) -> None:
        """Count a login of the requesting address. Raises TooManyRequests, AwayError."""
        address = requester(request.environ, self.settings.trusted_proxies)
        self.sessions.count_login(address)

    def begin(self, parked: str, **values: Any) -> BaseResponse:
        """Begin the session of somebody whose access token the service accepts.

        A form that waited for the login, `parked`, is shown next. Raises RefusedError,
        AwayError.
        """
        response = go("/resume" if parked else "/")
        self.sessions.end(g.session, response)
        g.session = None
        try:
            # Pages need a token, the CapabilityStatement may not.
            self._call(Session(id="", **values), "Bundle")
        except RefusedError as error:
            # The token is accepted: no page is named, or it has no scope for pages.
            if error.status not in {HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN}:
                raise
        g.session = self.sessions.begin(response, parked=parked, **values)
        return response

    def call(self, path: str, *, query: Pairs = (), form: Pairs | None = None) -> Any:
        """Return the resource at a path of the service, for the person who is logged in.

        The call goes through all of the service without a network: token, scopes, rate
        limit, audit. A form is posted. Raises RefusedError.
        """
        return self._call(g.session, path, query=query, form=form)

    def _call(
        self,
        session: Session,
        path: str,
        *,
        query: Pairs = (),
        form: Pairs | None = None,
    ) -> Any:
        environ: dict[str, Any] = {
            PERSON: session.person,
            REASON: session.reason or None,
        }
        for name in _PASSED_ON:
            if name in request.environ:
                environ[name] = request.environ[name]
        content: dict[str, Any] = {"query_string": urlencode(query)}
        if form is not None:
            content_type = "application/x-www-form-urlencoded"
            content = {"method": "POST", "data": urlencode(form)}
            content["content_type"] = content_type
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
            self.offer = Offer.of(self.call("metadata"))
        return self.offer

    def search_offer(self, kind: str) -> SearchOffer:
        """Return the searches of a resource type, else NotFound."""
        search = self.read_offer().searches.get(kind)
        if search is None:
            raise NotFound
        return search

    # ---------------------------------------------------------------------- searches

    def search(self, kind: str, criteria: Pairs) -> tuple[Any, Pairs]:
        """Search; return the Bundle and all parameters that were sent.

        Patients and hospitals come with stays as far as the person may see them: the first
        search finds out. Raises RefusedError.
        """
        plain = [pair for pair in criteria if pair[0] != "_include"]
        offered = self.search_offer(kind).includes
        usual = [include for include in INCLUDES if include in offered]
        trail = self.trail
        if trail.includes is not None:
            attempts = [[include for include in usual if include in trail.includes]]
        elif len(usual) > 1:
            attempts = [usual, *([include] for include in usual), []]
        else:
            attempts = [usual, []]
        for includes in attempts:
            sent = [*plain, *(("_include", include) for include in includes)]
            try:
                bundle = self.call(f"{kind}/_search", form=sent)
            except RefusedError as error:
                if error.status != HTTPStatus.FORBIDDEN or not includes:
                    raise
                continue
            if usual and trail.includes is None:
                trail.includes = includes
                self.save_trail()
            return bundle, sent
        raise AssertionError("the last attempt includes nothing")

    def collect(self, kind: str, criteria: Pairs, most: int) -> tuple[Any, Pairs]:
        """Search and follow pages to `most` matches; return one Bundle and what was sent.

        Raises RefusedError.
        """
        size = self.search_offer(kind).most_count
        plain = [pair for pair in criteria if pair[0] != "_count"]
        sized = [*plain, ("_count", str(min(most, int(size))))] if size else plain
        bundle, sent = self.search(kind, sized)
        entries = [*bundle.get("entry", [])]
        link = step_of(bundle, "next")
        while link and _matches(entries) < most:
            page = self.call("Bundle", query=link)
            entries += page.get("entry", [])
            link = step_of(page, "next")
        return {**bundle, "link": bundle["link"][:1], "entry": entries}, sent

    # ----------------------------------------------------------------------- results

    @property
    def trail(self) -> Trail:
        """What the session remembers."""
        if "trail" not in g:
            g.trail = self.sessions.trail(g.session)
        trail: Trail = g.trail
        return trail

    def save_trail(self) -> None:
        """Store what the session remembers."""
        self.sessions.save_trail(g.session, self.trail)

    def remember_wards(self, results: Results) -> None:
        """Remember the wards of a result by name, for forms."""
        names = {stay.unit: stay.ward for stay in results.stays if stay.unit}
        wards = self.trail.wards
        if not names.keys() <= wards.keys():
            merged = {**names, **{code: name for code, name in wards.items() if name}}
            self.trail.wards = dict(sorted(merged.items())[:MOST_WARDS])
            self.save_trail()

    def stored(self, id: str) -> Result:
        """Return a result of this session, else NotFound."""
        result = self.sessions.result(g.session, id)
        if result is None:
            raise NotFound
        return result

    def unsealed(self, text: str) -> str:
        """Return the reference of an address, NotFound for another session's."""
        reference = self.sessions.unseal(g.session, text)
        if reference is None or not REFERENCE.fullmatch(reference):
            raise NotFound
        return reference


blueprint = Blueprint("explorer", __name__)

explorer: Explorer = LocalProxy(lambda: current_app.extensions["explorer"])  # type: ignore[assignment]
"""The explorer of the request."""


def see(reference: str, **place: Any) -> str:
    """Return the address of the page of a resource, for this session alone."""
    sealed = explorer.sessions.seal(g.session, reference)
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


def columns_of(kind: str) -> Sequence[Column]:
    """Return the columns that the person has chosen for a table, else the usual ones."""
    return chosen_columns(kind, request.cookies.get(f"{COLUMN_COOKIE}{kind}", ""))


def step_of(bundle: Mapping[str, Any], relation: str) -> Pairs:
    """Return the query of a link of a Bundle, [] for none."""
    urls = [link["url"] for link in bundle["link"] if link["relation"] == relation]
    return parse_qsl(urlsplit(urls[0]).query) if urls else []


def _matches(entries: Sequence[Mapping[str, Any]]) -> int:
    return sum(entry["search"]["mode"] == "match" for entry in entries)
