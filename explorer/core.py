"""What every view of the explorer needs: the service, the person's session, the searches."""

from collections.abc import Iterator, Sequence
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

from app.call import CALL
from app.config import BASE_PATH, Settings
from app.crypto import derived_key
from app.in_process import PERSON, REASON
from app.middleware import REQUEST_ID_HEADER
from app.rate_limit import Throttle
from app.redis_client import connect
from explorer.failures import PageError
from explorer.offer import PublishedOffer, SearchOffer
from explorer.records import BundleEntries
from explorer.sessions import FormPairs, SearchResult, Sessions

INCLUDES = ("Encounter:patient", "Encounter:service-provider")
"""The references of stays that are included, for the names of patients and hospitals."""

LOGINS_PER_MINUTE = 30
"""How many logins an address may begin in a minute."""

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
        self.is_secure = self.url.startswith("https:")
        client = connect(settings.redis_url)
        self.sessions = Sessions(client, settings, secure=self.is_secure)
        self.logins = Throttle(
            client,
            clients=None,
            addresses=LOGINS_PER_MINUTE,
            key=derived_key(settings.seal_keys[0], b"login"),
        )
        self._offer: PublishedOffer | None = None

    @property
    def offer(self) -> PublishedOffer:
        """What the service offers. Raises PageError."""
        # Read once, by whoever comes first: another mapping is served by other processes.
        if self._offer is None:
            self._offer = PublishedOffer(self.call("metadata"))
        return self._offer

    def search_offer(self, kind: str) -> SearchOffer:
        """Return the searches of a resource type, else NotFound."""
        search = self.offer.searches.get(kind)
        if search is None:
            raise NotFound
        return search

    def call(
        self, path: str, *, query: FormPairs = (), form: FormPairs | None = None
    ) -> Any:
        """Return the resource at a path of the service, for the person who is logged in.

        The call goes through all of the service without a network: token, scopes, rate
        limit, audit. A form is posted. Raises PageError.
        """
        session = g.session
        environ = {n: request.environ[n] for n in _PASSED_ON if n in request.environ}
        environ |= {PERSON: session.person, REASON: session.reason or None}
        content: dict[str, Any] = {"query_string": _encoded(query)}
        if form is not None:
            content = {
                "method": "POST",
                "data": _encoded(form),
                "content_type": "application/x-www-form-urlencoded",
            }
        # In another context: the service has a request of its own.
        response = copy_context().run(
            Client(self.service).open,
            f"{BASE_PATH}/{path}",
            headers=[
                ("Authorization", f"Bearer {session.token}"),
                (REQUEST_ID_HEADER, request.environ[CALL].id),
            ],
            environ_overrides=environ,
            buffered=True,
            **content,
        )
        resource = orjson.loads(response.get_data())
        if response.status_code != HTTPStatus.OK:
            location = resource["issue"][0].get("location") or [""]
            raise PageError(
                response.status_code,
                parameter=location[0].removeprefix("http."),
                request_id=response.headers.get(REQUEST_ID_HEADER, ""),
            )
        return resource

    def search(
        self, kind: str, criteria: FormPairs, includes: Sequence[str] = INCLUDES
    ) -> SearchResult:
        """Search; the criteria of the result are all parameters that were sent.

        Patients and hospitals come with stays as far as the person may see them: the first
        search of the session finds out. Raises PageError.
        """
        plain = [pair for pair in criteria if pair[0] != "_include"]
        offered = self.search_offer(kind).includes
        usual = [include for include in includes if include in offered]
        # With all of them; if that is forbidden with a single one, at last with none.
        attempts = [usual, *([include] for include in usual), []]
        allowed = g.session.includes
        if allowed is not None:
            attempts = [[include for include in usual if include in allowed], []]
        for included in attempts:
            sent = [*plain, *(("_include", include) for include in included)]
            try:
                bundle = self.call(f"{kind}/_search", form=sent)
                break
            except PageError as error:
                if error.status != HTTPStatus.FORBIDDEN or not included:
                    raise
        if usual and allowed is None:
            g.session.includes = included
            self.sessions.save(g.session)
        self.remember_wards(kind, bundle)
        return SearchResult(kind, sent, bundle)

    def pages(
        self,
        kind: str,
        criteria: FormPairs,
        most: int,
        includes: Sequence[str] = INCLUDES,
    ) -> Iterator[SearchResult]:
        """Search, and yield the pages of the result until they have `most` matches.

        The last one may have more. Raises PageError.
        """
        sized = [pair for pair in criteria if pair[0] != "_count"]
        if size := self.search_offer(kind).most_count:
            sized.append(("_count", str(min(most, size))))
        page = self.search(kind, sized, includes)
        left = most
        while True:
            yield page
            left -= len(BundleEntries(page.bundle).matches)
            next_query = step_of(page.bundle, "next")
            if not next_query or left <= 0:
                return
            page = replace(page, bundle=self.call("Bundle", query=next_query))

    def collect(self, kind: str, criteria: FormPairs, most: int) -> SearchResult:
        """Search and follow pages to `most` matches, as one Bundle. Raises PageError."""
        pages = [*self.pages(kind, criteria, most)]
        entries = [entry for page in pages for entry in page.bundle.get("entry", [])]
        bundle = {**pages[0].bundle, "link": [], "entry": entries}
        return replace(pages[0], bundle=bundle)

    def remember_wards(self, kind: str, bundle: Any) -> None:
        """Remember the names of the wards of stays by their codes, for forms."""
        if kind != "Encounter":
            return
        stays = BundleEntries(bundle).stays
        new_names = {stay.unit: stay.ward for stay in stays if stay.unit}
        wards = g.session.wards
        if new_names.keys() <= wards.keys():
            return
        # A name that is known already stays.
        known_names = {code: name for code, name in wards.items() if name}
        merged = {**new_names, **known_names}
        g.session.wards = dict(sorted(merged.items())[:MOST_WARDS])
        self.sessions.save(g.session)

    def stored(self, id: str) -> SearchResult:
        """Return a result of this session, else NotFound."""
        stored = self.sessions.stored(g.session.id, id)
        if stored is None:
            raise NotFound
        return stored


blueprint = Blueprint("explorer", __name__)

explorer: Explorer = LocalProxy(lambda: current_app.extensions["explorer"])  # type: ignore[assignment]
"""The explorer of the request."""


def see(reference: str, **place: Any) -> str:
    """Return the address of the page of a resource, for this session alone."""
    sealed = explorer.sessions.seal(g.session.id, reference)
    return url_for("explorer.show", sealed=sealed, **place)


def go(address: str) -> BaseResponse:
    """Lead to another page."""
    return redirect(address, HTTPStatus.SEE_OTHER)


def clock(seconds: float) -> datetime:
    """Return the time of some seconds since 1970 in the hospital's time zone."""
    return datetime.fromtimestamp(seconds, explorer.offer.zone)


def set_choice(response: BaseResponse, cookie: str, text: str) -> None:
    """Store a choice of the person in their browser for a year."""
    response.set_cookie(
        cookie,
        text,
        max_age=365 * 86400,
        secure=explorer.is_secure,
        httponly=True,
        samesite="Lax",
    )


def step_of(bundle: Any, relation: str) -> FormPairs:
    """Return the query of a link of a Bundle, [] for none."""
    urls = [link["url"] for link in bundle["link"] if link["relation"] == relation]
    return parse_qsl(urlsplit(urls[0]).query) if urls else []


def _encoded(pairs: FormPairs) -> str:
    return urlencode([(name, text) for name, text in pairs])
