"""The explorer: pages on which people search stays, with the token of their own login.

It listens on an address of its own and calls the service as any client does (`explorer.calls`).
What a person looks for is never in an address: a form is posted, and the page it leads to
has the random id of a result that their session stores.
"""

import json
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from wsgiref.types import WSGIApplication

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

from app.call import CALL
from app.config import Settings
from app.middleware import Requests, Transport, requester
from app.pages import POLICY, create_pages
from app.redis_client import connect
from explorer.calls import Reply, call
from explorer.failures import LoginError, RefusedError, failure_of
from explorer.forms import form_of, parameters_of
from explorer.login import Login
from explorer.offer import Offer, SearchOffer
from explorer.results import (
    COLUMNS,
    REFERENCE,
    Results,
    as_csv,
    chosen_columns,
    elements,
    hint,
    timeline,
)
from explorer.sessions import Pairs, Result, Session, Sessions
from explorer.snippets import snippets
from explorer.words import RESOURCES

HEADERS = (
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("Content-Security-Policy", POLICY.format("")),
    ("Referrer-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
"""Headers of every page: it loads from this origin alone, and nobody frames it."""

MOST_REASON = 200
PASTED_SECONDS = 3600
"""How long a pasted access token is used at most: one that expires earlier ends earlier."""

PASTED_NAME = "Access token"
"""Who has logged in with a pasted access token, which may name nobody."""

TABS = {
    "table": "Table",
    "timeline": "Timeline",
    "json": "JSON",
    "request": "Request",
}

STEPS = ("previous", "next")
"""The links of a page of results that lead to another page."""


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

    def begin(self, **values: Any) -> BaseResponse:
        """Begin the session of somebody whose access token the service accepts.

        Raises RefusedError, AwayError.
        """
        response = redirect("/", HTTPStatus.SEE_OTHER)
        self.sessions.end(g.session, response)
        g.session = None
        self._check_token(Session(id="", **values))
        self.sessions.begin(response, **values)
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


blueprint = Blueprint("explorer", __name__)


def create_explorer(service: WSGIApplication, settings: Settings) -> Flask:
    """Return the explorer of a service, which it calls; both have the same settings."""
    of_app = Explorer(service, settings)
    pages = create_pages("explorer", Path(__file__).parent)
    pages.config["MAX_CONTENT_LENGTH"] = settings.max_body_bytes
    # A page of another site that resolves to this machine is not served (DNS rebinding).
    pages.config["TRUSTED_HOSTS"] = [urlsplit(of_app.url).hostname]
    pages.extensions["explorer"] = of_app
    pages.jinja_env.globals.update(
        words=RESOURCES,
        see=_see,
        snippets=partial(snippets, settings.base_url),
        timeline=lambda resources: timeline(resources, datetime.now(UTC)),
        hint=hint,
        encode=partial(json.dumps, ensure_ascii=False),
    )
    transport = Transport(
        settings.trusted_proxies, on_loopback=settings.plain_http == "loopback"
    )
    pages.wsgi_app = Requests(  # type: ignore[method-assign] # as Flask documents it
        pages.wsgi_app, transport, headers=HEADERS, is_counted=False
    )
    pages.register_error_handler(Exception, _show_error)
    pages.context_processor(_offered)
    pages.register_blueprint(blueprint)
    return pages


explorer: Explorer = LocalProxy(lambda: current_app.extensions["explorer"])  # type: ignore[assignment]
"""The explorer of the request."""


def _offered() -> dict[str, Any]:
    """Return what the head of each page shows; nothing of the deployment before the login."""
    is_logged_in = g.get("session") is not None and g.session.token
    return {"offer": explorer.offer if is_logged_in else None}


def _see(reference: str) -> str:
    """Return the address of the page of a resource, for this session alone."""
    sealed = explorer.sessions.seal(g.session, reference)
    return url_for("explorer.see", sealed=sealed)


@blueprint.before_app_request
def _require_login() -> BaseResponse | None:
    """Find the session; lead to the login, then to the question for a reason."""
    request.environ[CALL].route = str(request.url_rule or "")
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
    if not is_login and page not in {"reason", "logout"}:
        explorer.read_offer()
    return None


# ------------------------------------------------------------------------------ errors


def _show_error(error: Exception) -> Response | HTTPException:
    if isinstance(error, HTTPException) and (error.code or 0) < HTTPStatus.BAD_REQUEST:
        return error
    failure = failure_of(error)
    response = Response(status=failure.status)
    if failure.status == HTTPStatus.UNAUTHORIZED and g.get("session"):
        # The token has ended, or was withdrawn: so has the session.
        explorer.sessions.end(g.session, response)
        g.session = None
    response.set_data(render_template("error.html", failure=failure))
    return response


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
    token = request.form.get("token", "").strip()
    expires = datetime.now(UTC).timestamp() + PASTED_SECONDS
    return explorer.begin(token=token, name=PASTED_NAME, expires=expires)


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
    kind = next(iter(explorer.read_offer().searches))
    return redirect(f"/search/{kind}", HTTPStatus.SEE_OTHER)


@blueprint.route("/search/<kind>", methods=["GET", "POST"])
def search(kind: str) -> BaseResponse | str | tuple[str, int]:
    """Show the form of a resource type, or run a search and lead to its result."""
    offer = explorer.search_offer(kind)
    if request.method == "GET":
        return render_template("search.html", **form_of(offer, request.form))
    return _run(offer, request.form)


def _run(
    offer: SearchOffer, sent: MultiDict[str, str], tab: str = "table"
) -> BaseResponse | tuple[str, int]:
    """Lead to the result of a search; one that is refused shows its form again."""
    criteria = parameters_of(offer, sent)
    try:
        reply = explorer.call(f"{offer.kind}/_search", form=criteria)
    except RefusedError as error:
        if error.status == HTTPStatus.UNAUTHORIZED:
            raise
        form = form_of(offer, sent)
        page = render_template("search.html", failure=failure_of(error), **form)
        return page, error.status
    form_sent = [pair for pair in sent.items(multi=True) if pair[0] != "csrf"]
    return _lead_to(offer.kind, form_sent, criteria, reply=reply, tab=tab)


def _lead_to(
    kind: str, form: Pairs, criteria: Pairs, *, reply: Reply, **place: Any
) -> BaseResponse:
    """Store a page of results and lead to it."""
    body, took = reply.body.decode(), reply.milliseconds
    result = Result(kind, form, criteria, body=body, milliseconds=took)
    id = explorer.sessions.save_result(g.session, result)
    return redirect(url_for(".results", id=id, **place), HTTPStatus.SEE_OTHER)


def _stored(id: str) -> Result:
    """Return a result of this session, else NotFound."""
    result = explorer.sessions.result(g.session, id)
    if result is None:
        raise NotFound
    return result


@blueprint.get("/results/<id>")
def results(id: str) -> str:
    """Show a page of a result, in one of the tabs."""
    result = _stored(id)
    kind, bundle = result.kind, orjson.loads(result.body)
    hidden = set() if kind == "Encounter" else {"timeline"}
    tabs = {name: title for name, title in TABS.items() if name not in hidden}
    tab = request.args.get("tab", "table")
    if tab not in tabs:
        raise NotFound
    columns = request.args.getlist("column")
    links = {link["relation"]: link["url"] for link in bundle["link"]}
    steps = {
        relation: url_for(".step", id=id, relation=relation, tab=tab, column=columns)
        for relation in STEPS
        if relation in links
    }
    addresses = {links[relation]: address for relation, address in steps.items()}
    return render_template(
        "results.html",
        kind=kind,
        tab=tab,
        tabs=tabs,
        results=Results(bundle),
        bundle=bundle,
        result=result,
        columns=chosen_columns(kind, columns),
        every_column=COLUMNS[kind],
        here={"id": id, "column": columns},
        steps=steps,
        follow=partial(_follow, addresses),
    )


def _follow(addresses: dict[str, str], value: Any) -> str:
    """Return the page that a value of JSON leads to, "" for none."""
    text = value if isinstance(value, str) else ""
    relative = text.removeprefix(f"{explorer.settings.base_url}/")
    if REFERENCE.fullmatch(relative):
        return _see(relative)
    return addresses.get(text, "")


@blueprint.get(f"/results/<id>/<any({', '.join(STEPS)}):relation>")
def step(id: str, relation: str) -> BaseResponse:
    """Read the next or the previous page of a result and lead to it."""
    result = _stored(id)
    links = {
        link["relation"]: link["url"] for link in orjson.loads(result.body)["link"]
    }
    if relation not in links:
        raise NotFound
    query = parse_qsl(urlsplit(links[relation]).query)
    place = {name: request.args.getlist(name) for name in ("tab", "column")}
    reply = explorer.call("Bundle", query=query)
    return _lead_to(result.kind, result.form, result.criteria, reply=reply, **place)


@blueprint.get("/results/<id>/page.csv")
def results_csv(id: str) -> Response:
    """Return the table of a page as CSV."""
    result = _stored(id)
    columns = chosen_columns(result.kind, request.args.getlist("column"))
    text = as_csv(Results(orjson.loads(result.body)).resources, columns)
    response = Response(text.encode("utf-8-sig"), mimetype="text/csv")
    response.headers["Content-Disposition"] = 'attachment; filename="page.csv"'
    return response


@blueprint.get("/results/<id>/change")
def change(id: str) -> str:
    """Show the form of a result again, filled in."""
    result = _stored(id)
    form = form_of(explorer.search_offer(result.kind), MultiDict(result.form))
    return render_template("search.html", **form)


# --------------------------------------------------------------------------- resources


@blueprint.get("/see/<sealed>")
def see(sealed: str) -> str:
    """Show one resource; the address is sealed for this session."""
    reference = _unsealed(sealed)
    reply = explorer.call(reference)
    kind, resource = reference.partition("/")[0], reply.resource
    return render_template(
        "resource.html",
        kind=kind,
        sealed=sealed,
        resource=resource,
        summary=[(c.title, c.cell(resource)) for c in COLUMNS[kind]],
        elements=list(elements(resource)),
        raw=orjson.dumps(resource, option=orjson.OPT_INDENT_2).decode(),
        milliseconds=reply.milliseconds,
    )


@blueprint.post("/see/<sealed>/stays")
def stays(sealed: str) -> BaseResponse | tuple[str, int]:
    """Search the stays of a patient and show them on the time axis."""
    reference = _unsealed(sealed)
    if not reference.startswith("Patient/"):
        raise NotFound
    offer = explorer.search_offer("Encounter")
    return _run(offer, MultiDict([("patient", reference)]), "timeline")


def _unsealed(text: str) -> str:
    """Return the reference of an address, NotFound for another session's."""
    reference = explorer.sessions.unseal(g.session, text)
    if reference is None:
        raise NotFound
    return reference
