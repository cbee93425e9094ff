"""The explorer: pages on which people search stays, with the token of their own login.

It listens on an address of its own and calls the service as any client does (`explorer.calls`).
What a person looks for is never in an address: a form is posted, and the page it leads to
has the signed id of the result, which is of no use to anybody else.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import orjson
from flask import (
    Blueprint,
    Flask,
    Response,
    current_app,
    g,
    redirect,
    render_template,
    request,
    url_for,
)
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import HTTPException, NotFound
from werkzeug.local import LocalProxy
from werkzeug.wrappers import Response as BaseResponse

from adapters.contract import AdapterError, ResourceType
from adapters.mapping.problems import MappingError
from app.crypto import derived_key
from app.errors import ServiceError
from app.middleware import log_failure, outcome_for, register_transport, requester
from app.observability import Stage, register_request_log, request_id
from app.offer import ResourceOffer
from app.pages import POLICY, create_pages
from app.paging import StoredSearch
from app.rate_limit import Throttle
from app.redis_client import connect
from app.search.parser import parse_search
from app.service import EXTENSION, Service
from app.snippets import snippets
from explorer.calls import Pairs, RefusedError, Reply, call
from explorer.forms import filled, form_of, parameters_of
from explorer.login import Login, LoginError
from explorer.results import (
    COLUMNS,
    REFERENCE,
    Results,
    as_csv,
    chosen_columns,
    hint,
    timeline,
)
from explorer.sessions import Sessions
from toolkit.console import MappingFile
from toolkit.source_rows import SourceReader
from toolkit.trial import Line, TriedRow, leaves, written

HEADERS = (
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("Content-Security-Policy", POLICY.format("")),
    ("Referrer-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
"""Headers of every page: it loads from this origin alone, and nobody frames it."""

LOGINS_PER_MINUTE = 30
"""How many logins an address may begin in a minute."""

MOST_REASON = 200
PASTED_SECONDS = 3600
"""How long a pasted access token is used at most: one that expires earlier ends earlier."""

WORDS: Mapping[str, tuple[str, str]] = {
    "Encounter": ("stay", "stays"),
    "Patient": ("patient", "patients"),
    "Organization": ("hospital", "hospitals"),
}
"""What people call one and several of a resource type."""

TABS = {
    "table": "Table",
    "timeline": "Timeline",
    "json": "JSON",
    "request": "Request",
    "how": "How",
}

ADVICE: Mapping[int, str] = {
    400: "The search uses something that is not offered here. Change the criterion that "
    "the message names.",
    401: "Your login has ended. Log in again.",
    403: "Your login lacks a scope. Ask the operator for it; repeating does not help.",
    404: "There is no such resource or page, or it belongs to somebody else: the address of a "
    "result works for you alone. Search again, or pass on what the tab Request shows.",
    410: "A page is stored for a limited time, and a removed stay is gone. Search again.",
    412: "A value cannot be read. Correct the criterion that the message names.",
    422: "The search is too wide. Add a patient, a range of dates or another criterion.",
    429: "You have sent more requests in this minute than the operator allows. Wait a moment.",
    500: "The hospital's record cannot be shown. The operator finds the reason by the request "
    "id below.",
    502: "The hospital system gave an answer that cannot be read. The operator finds the "
    "reason by the request id below.",
    503: "Something is busy or does not answer. Wait a few seconds and try again.",
}
"""What to do next, as in docs/clients.md, by status."""

STAGES: Mapping[str, str] = {
    Stage.PARSE: "token and parameters",
    Stage.SOURCE: "hospital system",
    Stage.REDIS: "page store",
    Stage.MAP: "rows to FHIR",
    Stage.WRITE: "JSON and audit",
}


class Explorer:
    """What the views need; one for each application."""

    def __init__(self, app: Flask) -> None:
        self.app = app
        self.service: Service = app.extensions[EXTENSION]
        settings = self.settings = self.service.settings
        self.url = settings.explorer_url or f"http://{settings.explorer_bind}"
        client = connect(settings.redis_url)
        self.sessions = Sessions(
            client,
            settings.seal_keys,
            idle=60 * settings.explorer_idle_minutes,
            secure=self.url.startswith("https:"),
        )
        self.throttle = Throttle(
            client,
            clients=None,
            addresses=LOGINS_PER_MINUTE,
            key=derived_key(settings.seal_keys[0], b"login"),
        )
        redirect_uri = f"{self.url.rstrip('/')}/login/done"
        has_provider = settings.explorer_client_id is not None
        self.login = Login(settings, redirect_uri) if has_provider else None

    def count_login(self) -> None:
        """Count a login of the requesting address. Raises TooManyRequestsError."""
        self.throttle.count_address(requester(self.settings.trusted_proxies))

    def begin(self, token: str, **values: Any) -> BaseResponse:
        """Begin the session of somebody whose access token the service accepts.

        Raises UnauthenticatedError, UnavailableError.
        """
        response = redirect("/", HTTPStatus.SEE_OTHER)
        self.sessions.end(g.session, response)
        client = self.service.authenticator.authenticate(f"Bearer {token}")
        is_integrator = self.settings.explorer_integrator_scope in client.scopes
        values = {"name": client.id, "is_integrator": is_integrator, **values}
        self.sessions.begin(response, token=token, **values)
        return response

    def call(self, path: str, *, query: Pairs = (), form: Pairs | None = None) -> Reply:
        """Call the service as the person who is logged in. Raises RefusedError."""
        return call(self.app, g.session, path, query=query, form=form)

    def offer(self, kind: str) -> ResourceOffer:
        """Return what is offered of a resource type that is searched, else NotFound."""
        for each in self.service.offer.resources.values():
            if each.resource_type == kind and each.searchable:
                return each
        raise NotFound


blueprint = Blueprint("explorer", __name__)


def create_explorer(app: Flask) -> Flask:
    """Return the explorer of a service."""
    of_app = Explorer(app)
    pages = create_pages("explorer", Path(__file__).parent)
    pages.config["MAX_CONTENT_LENGTH"] = of_app.settings.max_body_bytes
    # A page of another site that resolves to this machine is not served (DNS rebinding).
    pages.config["TRUSTED_HOSTS"] = [urlsplit(of_app.url).hostname]
    pages.extensions["explorer"] = of_app
    pages.jinja_env.globals.update(
        title=of_app.service.title,
        offer=of_app.service.offer.resources,
        words=WORDS,
        see=_see,
        follow=_follow,
        explained=_explained,
        snippets=partial(snippets, of_app.settings.base_url),
        timeline=lambda resources: timeline(resources, datetime.now(UTC)),
        hint=hint,
        encode=partial(json.dumps, ensure_ascii=False),
    )
    register_request_log(pages)
    register_transport(pages, of_app.settings, HEADERS)
    pages.register_error_handler(Exception, _show_error)
    pages.register_blueprint(blueprint)
    return pages


explorer: Explorer = LocalProxy(lambda: current_app.extensions["explorer"])  # type: ignore[assignment]
"""The explorer of the request."""


def _see(reference: str) -> str:
    """Return the address of the page of a resource, for this session alone."""
    sealed = explorer.sessions.seal(g.session, reference)
    return url_for("explorer.see", sealed=sealed)


@blueprint.before_app_request
def _require_login() -> BaseResponse | None:
    """Find the session; lead to the login, then to the question for a reason."""
    g.session = None
    if request.endpoint in {None, "static"}:
        # Another host, or no page of ours: Flask refuses it next.
        return None
    g.session = session = explorer.sessions.current()
    page = (request.endpoint or "").removeprefix("explorer.")
    is_login = page.startswith("login")
    is_post = request.method == "POST"
    # A form of a session that has ended in the meantime leads to the login, too.
    if session is None and (is_post or not is_login):
        return redirect("/login", HTTPStatus.SEE_OTHER)
    if session is None or (is_login and not is_post):
        return None
    if is_post and not session.accepts(request.form.get("csrf", "")):
        raise LoginError("This form is of another login: it is not accepted.")
    if not session.token and not is_login:
        return redirect("/login", HTTPStatus.SEE_OTHER)
    lacks_reason = explorer.settings.explorer_reason and not session.reason
    if lacks_reason and page not in {"login_token", "reason", "logout"}:
        return redirect("/reason", HTTPStatus.SEE_OTHER)
    return None


# ------------------------------------------------------------------------------ errors


def _show_error(error: Exception) -> Response | HTTPException:
    if isinstance(error, HTTPException) and (error.code or 0) < HTTPStatus.BAD_REQUEST:
        return error
    failure = _failure(error)
    response = Response(status=failure["status"])
    if failure["status"] == HTTPStatus.UNAUTHORIZED and g.get("session"):
        # The token has ended, or was withdrawn: so has the session.
        explorer.sessions.end(g.session, response)
        g.session = None
    response.set_data(render_template("error.html", failure=failure))
    return response


def _failure(error: Exception) -> dict[str, Any]:
    """Return what a page shows of an error: the text, and what to do."""
    id, advice = request_id(), ""
    if isinstance(error, RefusedError):
        status, text, id = error.status, error.text, error.request_id
    elif isinstance(error, LoginError):
        status, text, advice = 403, str(error), "Log in again."
    else:
        outcome = outcome_for(error)
        status, text = outcome.status, outcome.text or ""
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            log_failure(error, status)
    advice = advice or ADVICE.get(status, "")
    return {"status": status, "text": text, "advice": advice, "request_id": id}


# ------------------------------------------------------------------------------- login


@blueprint.get("/login")
def login() -> Response:
    """Show how to log in."""
    response = Response()
    if explorer.login is None and g.session is None:
        # The form for a token needs a session, which its submission ends.
        g.session = explorer.sessions.begin(response)
    page = render_template("login.html", provider=explorer.login is not None)
    response.set_data(page)
    return response


@blueprint.get("/login/start")
def login_start() -> BaseResponse:
    """Send the browser to the identity provider."""
    if explorer.login is None:
        raise NotFound
    explorer.count_login()
    url, values = explorer.login.start()
    response = redirect(url)
    explorer.sessions.begin(response, **values)
    return response


@blueprint.get("/login/done")
def login_done() -> BaseResponse:
    """Take the browser back from the identity provider."""
    session = g.session
    if explorer.login is None or session is None or not session.state:
        raise NotFound
    if request.args.get("state", "") != session.state:
        raise LoginError("This login was not begun in this browser.")
    return explorer.begin(**explorer.login.finish(request.args, session))


@blueprint.post("/login/token")
def login_token() -> BaseResponse:
    """Begin a session with an access token: on loopback, without a provider."""
    if explorer.login is not None:
        raise NotFound
    explorer.count_login()
    expires = datetime.now(UTC).timestamp() + PASTED_SECONDS
    return explorer.begin(request.form.get("token", "").strip(), expires=expires)


@blueprint.post("/logout")
def logout() -> BaseResponse:
    """End the session."""
    response = redirect("/login", HTTPStatus.SEE_OTHER)
    explorer.sessions.end(g.session, response)
    return response


@blueprint.route("/reason", methods=["GET", "POST"])
def reason() -> BaseResponse | str:
    """Ask why the person looks at data of patients."""
    text = request.form.get("reason", "").strip()[:MOST_REASON]
    if not text:
        return render_template("reason.html", most=MOST_REASON)
    explorer.sessions.save(replace(g.session, reason=text))
    return redirect("/", HTTPStatus.SEE_OTHER)


# ------------------------------------------------------------------------------ search


@blueprint.get("/")
def home() -> BaseResponse:
    """Lead to the search for stays."""
    kinds = explorer.service.offer.resources
    kind = next(kind for kind, offer in kinds.items() if offer.searchable)
    return redirect(f"/search/{kind}", HTTPStatus.SEE_OTHER)


@blueprint.route("/search/<kind>", methods=["GET", "POST"])
def search(kind: str) -> BaseResponse | str | tuple[str, int]:
    """Show the form of a resource type, or run a search and lead to its result."""
    offer = explorer.offer(kind)
    if request.method == "GET":
        return render_template("search.html", **form_of(offer, request.form))
    extension = explorer.service.context.functional_unit_extension
    pairs = parameters_of(offer, request.form, extension)
    return _run(offer, pairs, request.form)


def _run(
    offer: ResourceOffer, pairs: Pairs, sent: MultiDict[str, str], tab: str = "table"
) -> BaseResponse | tuple[str, int]:
    """Lead to the result of a search; one that is refused shows its form again."""
    try:
        reply = explorer.call(f"{offer.resource_type}/_search", form=pairs)
    except RefusedError as error:
        if error.status == HTTPStatus.UNAUTHORIZED:
            raise
        form = form_of(offer, sent)
        page = render_template("search.html", failure=_failure(error), **form)
        return page, error.status
    here = _places(reply.resource)["self"]
    return redirect(url_for(".results", tab=tab, **here), HTTPStatus.SEE_OTHER)


def _places(bundle: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the links of a page by relation, as the addresses of pages here have them."""
    return {link["relation"]: _place(link["url"]) for link in bundle["link"]}


def _place(url: str) -> dict[str, Any]:
    query = dict(parse_qsl(urlsplit(url).query))
    return {"id": query.pop("_id"), **query}


@blueprint.get("/results/<id>")
def results(id: str) -> str:
    """Show a page of a result, in one of the tabs."""
    reply, search = _page(id)
    kind = search.resource_type
    hidden = {"timeline"} if kind is not ResourceType.ENCOUNTER else set()
    hidden |= {"how"} if not g.session.is_integrator else set()
    tabs = {name: title for name, title in TABS.items() if name not in hidden}
    tab = request.args.get("tab", "table")
    if tab not in tabs:
        raise NotFound
    columns = request.args.getlist("column")
    places = _places(reply.resource)
    for place in places.values():
        place["column"] = columns
    return render_template(
        "results.html",
        kind=kind,
        tab=tab,
        tabs=tabs,
        results=Results(reply.resource),
        criteria=search.parameters,
        columns=chosen_columns(kind, columns),
        every_column=COLUMNS[kind],
        here=places.pop("self"),
        steps=places,
        reply=reply,
        stages=STAGES,
    )


def _page(id: str) -> tuple[Reply, StoredSearch]:
    """Return a page of a result and its search; a link of the service names the page.

    Raises RefusedError for one that is not this person's.
    """
    names = ("_index", "_searchAfter", "_searchBefore")
    more = [(name, request.args[name]) for name in names if name in request.args]
    reply = explorer.call("Bundle", query=[("_id", id), *more])
    client = explorer.service.authenticator.authenticate(f"Bearer {g.session.token}")
    person = g.session.person
    owner = f"{client.id}/{person}" if person else client.id
    stored = _places(reply.resource)["self"]["id"]
    return reply, explorer.service.sessions.store.load(stored, owner).search


def _follow(value: Any) -> str:
    """Return the page that a value of JSON leads to, "" for none."""
    text = value if isinstance(value, str) else ""
    relative = text.removeprefix(f"{explorer.settings.base_url}/")
    if REFERENCE.fullmatch(relative):
        return _see(relative)
    if relative != text and relative.startswith("Bundle?"):
        return url_for(".results", tab="json", **_place(text))
    return ""


def _explained(kind: ResourceType, parameters: Pairs) -> str:
    service = explorer.service
    offer = service.offer.resources[kind]
    try:
        search = parse_search(parameters, offer, service.context, lenient=True)
        return service.adapter.explain(search.query) or "Nothing: nothing can match."
    except (AdapterError, ServiceError) as error:
        return str(error)


@blueprint.get("/results/<id>/page.csv")
def results_csv(id: str) -> Response:
    """Return the table of a page as CSV."""
    reply, search = _page(id)
    columns = chosen_columns(search.resource_type, request.args.getlist("column"))
    text = as_csv(Results(reply.resource).resources, columns)
    response = Response(text.encode("utf-8-sig"), mimetype="text/csv")
    response.headers["Content-Disposition"] = 'attachment; filename="page.csv"'
    return response


@blueprint.get("/results/<id>/change")
def change(id: str) -> str:
    """Show the form of a result again, filled in."""
    _, search = _page(id)
    offer = explorer.offer(search.resource_type)
    sent = filled(search.resource_type, search.parameters)
    return render_template("search.html", **form_of(offer, sent))


# --------------------------------------------------------------------------- resources


@blueprint.get("/see/<sealed>")
def see(sealed: str) -> str:
    """Show one resource; the address is sealed for this session."""
    reference = _unsealed(sealed)
    reply = explorer.call(reference)
    kind, _, id = reference.partition("/")
    resource = reply.resource
    return render_template(
        "resource.html",
        kind=kind,
        sealed=sealed,
        resource=resource,
        summary=[(c.title, c.cell(resource)) for c in COLUMNS[kind]],
        elements=[(path, written(value)) for path, value in leaves(resource)],
        origins=_origins(ResourceType(kind), id) if g.session.is_integrator else None,
        raw=orjson.dumps(resource, option=orjson.OPT_INDENT_2).decode(),
        reply=reply,
    )


@blueprint.post("/see/<sealed>/stays")
def stays(sealed: str) -> BaseResponse | tuple[str, int]:
    """Search the stays of a patient and show them on the time axis."""
    reference = _unsealed(sealed)
    if not reference.startswith("Patient/"):
        raise NotFound
    pairs, kind = [("patient", reference)], ResourceType.ENCOUNTER
    return _run(explorer.offer(kind), pairs, filled(kind, pairs), "timeline")


def _unsealed(text: str) -> str:
    """Return the reference of an address, NotFound for another session's."""
    reference = explorer.sessions.unseal(g.session, text)
    if reference is None:
        raise NotFound
    return reference


def _origins(kind: ResourceType, id: str) -> list[Line] | str:
    """Return where each element comes from: the column, its value, the rule and its line."""
    try:
        file = MappingFile.open(explorer.settings.mapping, os.environ)
        with SourceReader(file) as reader:
            row = reader.row(kind, id)
    except (MappingError, AdapterError):
        return "The row cannot be read at the moment."
    return [*TriedRow.of(file, row).elements()]
