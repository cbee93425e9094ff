"""What every view of the explorer needs: the service, the person's session, the searches."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from wsgiref.types import WSGIApplication

import orjson
from flask import Blueprint, current_app, g, redirect, request, url_for
from werkzeug.exceptions import NotFound
from werkzeug.local import LocalProxy
from werkzeug.wrappers import Response as BaseResponse

from app.config import Settings
from app.middleware import requester
from app.redis_client import connect
from explorer.calls import Reply, call
from explorer.failures import RefusedError
from explorer.login import Login
from explorer.offer import Offer, SearchOffer
from explorer.results import REFERENCE, Results
from explorer.sessions import Pairs, Result, Session, Sessions, Trail

INCLUDES = ("Encounter:patient", "Encounter:service-provider")
"""What comes with stays, so that they have names."""

MOST_WARDS = 200


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

    def begin(self, place: str, **values: Any) -> BaseResponse:
        """Begin the session of somebody whose access token the service accepts.

        `place` is the page that follows. Raises RefusedError, AwayError.
        """
        response = redirect(place, HTTPStatus.SEE_OTHER)
        self.sessions.end(g.session, response)
        g.session = None
        self._check_token(Session(id="", **values))
        g.session = self.sessions.begin(response, **values)
        return response

    def _check_token(self, session: Session) -> None:
        """Raise RefusedError where the service does not accept the token of a session.

        Pages need a token, the CapabilityStatement may not. Here no page is named, or the
        token has no scope for pages: it is accepted all the same.
        """
        try:
            call(self.service, session, "Bundle")
        except RefusedError as error:
            if error.status not in {HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN}:
                raise

    def call(self, path: str, *, query: Pairs = (), form: Pairs | None = None) -> Reply:
        """Call the service as the person who is logged in. Raises RefusedError."""
        return call(self.service, g.session, path, query=query, form=form)

    def read_offer(self) -> Offer:
        """Return what the service offers. Raises RefusedError."""
        if self.offer is None:
            self.offer = Offer.of(self.call("metadata").resource)
        return self.offer

    def search_offer(self, kind: str) -> SearchOffer:
        """Return the searches of a resource type, else NotFound."""
        search = self.read_offer().searches.get(kind)
        if search is None:
            raise NotFound
        return search

    # ---------------------------------------------------------------------- searches

    def search(self, kind: str, criteria: Pairs) -> tuple[Reply, Pairs]:
        """Search; return the answer and all parameters that were sent.

        Patients and hospitals come with stays as far as the person may see them: the first
        search finds out. Raises RefusedError.
        """
        plain = [pair for pair in criteria if pair[0] != "_include"]
        offered = self.search_offer(kind).includes
        usual = [include for include in INCLUDES if include in offered]
        trail = self.trail
        attempts = [usual, *([include] for include in usual if usual[1:]), []]
        if trail.includes is not None:
            attempts = [[include for include in usual if include in trail.includes]]
        for includes in attempts:
            sent = [*plain, *(("_include", include) for include in includes)]
            try:
                reply = self.call(f"{kind}/_search", form=sent)
            except RefusedError as error:
                if error.status != HTTPStatus.FORBIDDEN or not includes:
                    raise
                continue
            if usual and trail.includes is None:
                trail.includes = includes
                self.save_trail()
            return reply, sent
        raise AssertionError("the last attempt includes nothing")

    def collect(self, kind: str, criteria: Pairs, most: int) -> Result:
        """Search and follow pages; return the first `most` matches as one Bundle.

        Raises RefusedError.
        """
        size = self.search_offer(kind).most_count
        plain = [pair for pair in criteria if pair[0] != "_count"]
        sized = [*plain, ("_count", str(min(most, int(size))))] if size else plain
        reply, sent = self.search(kind, sized)
        bundle = reply.resource
        entries = bundle.get("entry", [])
        link, matches = step_of(bundle, "next"), _matches(entries)
        while link and matches < most:
            reply = self.call("Bundle", query=link)
            page = reply.resource.get("entry", [])
            entries, matches = [*entries, *page], matches + _matches(page)
            link = step_of(reply.resource, "next")
        whole = {**bundle, "link": bundle["link"][:1], "entry": entries}
        return Result(kind, [], sent, orjson.dumps(whole).decode())

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
        names = {s.unit: s.ward for s in results.stays if s.unit}
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


def step_of(bundle: Mapping[str, Any], relation: str) -> Pairs:
    """Return the query of a link of a Bundle, [] for none."""
    urls = [link["url"] for link in bundle["link"] if link["relation"] == relation]
    return parse_qsl(urlsplit(urls[0]).query) if urls else []


def _matches(entries: Sequence[Mapping[str, Any]]) -> int:
    return sum(entry["search"]["mode"] == "match" for entry in entries)
