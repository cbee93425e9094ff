"""The explorer: pages on which people search stays, with the token of their own login.

It listens on an address of its own and asks the service as any client does (`app.ui.calls`).
What a person looks for never stands in an address: a form is posted, and the page it leads to
has the signed id of the result, which is of no use to anybody else.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import orjson
from flask import (
    Blueprint,
    Flask,
    Response,
    abort,
    current_app,
    g,
    redirect,
    render_template,
    request,
)
from werkzeug.exceptions import Forbidden, HTTPException, NotFound
from werkzeug.wrappers import Response as BaseResponse

from adapters.contract import AdapterError, ResourceType
from adapters.inspection import find_row
from adapters.mapping.problems import MappingError
from app.cli.check import MappingFile
from app.cli.preview import Preview
from app.cli.rows import MappedRow
from app.errors import ServiceError, UnauthenticatedError
from app.middleware import log_failure, outcome_for, register_transport, requester
from app.paging import derived_key
from app.rate_limit import Throttle
from app.redis_client import connect
from app.search.parser import parse_search
from app.service import EXTENSION, Service
from app.snippets import snippets
from app.stages import Stage, register_request_log
from app.ui import calls, create_pages
from app.ui.calls import Pairs, Reply
from app.ui.forms import PARAMETERS, filled, form_of, parameters_of, title_of
from app.ui.login import Login, LoginError
from app.ui.results import (
    COLUMNS,
    Results,
    as_csv,
    chosen_columns,
    elements,
    reference_in,
    timeline,
    tree,
)
from app.ui.sessions import Sessions

HEADERS = (
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    (
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    ),
    ("Referrer-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
"""Headers of every page: it loads from this origin alone, and nobody frames it."""

LOGINS_PER_MINUTE = 30
"""How many logins an address may begin in a minute."""

MOST_REASON = 200
PASTED_SECONDS = 3600
"""How long a pasted access token is used at most: it says itself when it ends earlier."""

TABS = {
    "table": "Table",
    "timeline": "Timeline",
    "json": "JSON",
    "request": "Request",
    "how": "How",
}

ADVICE: Mapping[int, str] = {
    400: "The search asks for something that is not offered here. Change the criterion that "
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
"""What to do next, as docs/clients.md says it; by status."""

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
        settings = self.service.settings
        self.settings = settings
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

    def begin(self, token: str, response: BaseResponse, **values: Any) -> None:
        """Begin the session of somebody whose access token the service accepts.

        Raises UnauthenticatedError, UnavailableError.
        """
        client = self.service.authenticator.authenticate(f"Bearer {token}")
        scope = self.settings.explorer_integrator_scope
        values.setdefault("name", client.id)
        is_integrator = scope in client.scopes
        self.sessions.begin(
            response, token=token, is_integrator=is_integrator, **values
        )


blueprint = Blueprint("explorer", __name__)


def create_explorer(app: Flask) -> Flask:
    """Return the explorer of a service."""
    explorer = Explorer(app)
    pages = create_pages()
    pages.config["MAX_CONTENT_LENGTH"] = explorer.settings.max_body_bytes
    # A page of another site that resolves to this machine is not served (DNS rebinding).
    pages.config["TRUSTED_HOSTS"] = [urlsplit(explorer.url).hostname]
    pages.extensions["explorer"] = explorer
    pages.jinja_env.globals.update(
        title=explorer.service.title,
        offer=explorer.service.offer.resources,
        seal=lambda reference: explorer.sessions.seal(g.session, reference),
    )
    register_request_log(pages)
    register_transport(pages, explorer.settings, HEADERS)
    pages.register_error_handler(Exception, _show_error)
    pages.register_blueprint(blueprint)
    return pages


def _explorer() -> Explorer:
    explorer: Explorer = current_app.extensions["explorer"]
    return explorer


def _show_error(error: Exception) -> tuple[str, int] | HTTPException:
    if isinstance(error, HTTPException) and (error.code or 0) < HTTPStatus.BAD_REQUEST:
        return error
    outcome = outcome_for(error)
    if outcome.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        log_failure(error, outcome.status)
    return _error_page(outcome.status, outcome.text or ""), outcome.status


def _error_page(status: int, text: str) -> str:
    return render_template(
        "error.html", status=status, text=text, advice=ADVICE.get(status, "")
    )


@blueprint.before_app_request
def _require_login() -> BaseResponse | None:
    """Find the session; who is not logged in comes to the login."""
    explorer = _explorer()
    g.session = None
    if request.endpoint in {None, "static"}:
        # Another host, or no page of ours: Flask refuses it next.
        return None
    g.session = explorer.sessions.current()
    if request.method == "POST":
        token = request.form.get("csrf", "")
        if g.session is None or not g.session.accepts(token):
            raise Forbidden
    is_login = (request.endpoint or "").startswith("explorer.login")
    if not is_login and (g.session is None or not g.session.token):
        return redirect("/login", HTTPStatus.SEE_OTHER)
    return None


# ------------------------------------------------------------------------------- login


@blueprint.get("/login")
def login() -> Response:
    """Show how to log in."""
    explorer = _explorer()
    response = Response(status=HTTPStatus.OK, content_type="text/html; charset=utf-8")
    if explorer.login is None and g.session is None:
        # The form for a token needs a session, which its submission ends.
        g.session = explorer.sessions.begin(response)
    page = render_template("login.html", provider=explorer.login is not None)
    response.set_data(page)
    return response


@blueprint.get("/login/start")
def login_start() -> BaseResponse:
    """Send the browser to the identity provider."""
    explorer = _explorer()
    if explorer.login is None:
        raise NotFound
    explorer.throttle.count_address(requester(explorer.settings.trusted_proxies))
    started = explorer.login.start()
    response = redirect(started.url)
    explorer.sessions.begin(
        response, state=started.state, nonce=started.nonce, verifier=started.verifier
    )
    return response


@blueprint.get("/login/done")
def login_done() -> BaseResponse | tuple[str, int]:
    """Take the browser back from the identity provider."""
    explorer, session = _explorer(), g.session
    state = request.args.get("state", "")
    if explorer.login is None or session is None or not session.state:
        raise NotFound
    if state != session.state:
        return _error_page(403, "This login was not begun in this browser."), 403
    try:
        person = explorer.login.finish(request.args, session.nonce, session.verifier)
    except LoginError as error:
        return _error_page(403, str(error)), 403
    response = redirect("/", HTTPStatus.SEE_OTHER)
    explorer.sessions.end(session, response)
    explorer.begin(
        person.token,
        response,
        person=person.subject,
        name=person.name,
        expires=person.expires,
    )
    return response


@blueprint.post("/login/token")
def login_token() -> BaseResponse | tuple[str, int]:
    """Begin a session with an access token: on loopback, without a provider."""
    explorer = _explorer()
    if explorer.login is not None:
        raise NotFound
    explorer.throttle.count_address(requester(explorer.settings.trusted_proxies))
    response = redirect("/", HTTPStatus.SEE_OTHER)
    explorer.sessions.end(g.session, response)
    token = request.form.get("token", "").strip()
    expires = datetime.now(UTC).timestamp() + PASTED_SECONDS
    try:
        explorer.begin(token, response, expires=expires)
    except UnauthenticatedError as error:
        return _error_page(401, error.text), 401
    return response


@blueprint.post("/logout")
def logout() -> BaseResponse:
    """End the session."""
    response = redirect("/login", HTTPStatus.SEE_OTHER)
    _explorer().sessions.end(g.session, response)
    return response


@blueprint.route("/reason", methods=["GET", "POST"])
def reason() -> BaseResponse | str:
    """Ask why the person looks at data of patients."""
    text = request.form.get("reason", "").strip()[:MOST_REASON]
    if not text:
        return render_template("reason.html", most=MOST_REASON)
    _explorer().sessions.save(replace(g.session, reason=text))
    return redirect("/", HTTPStatus.SEE_OTHER)


def _lacks_reason() -> bool:
    return _explorer().settings.explorer_reason and not g.session.reason


# ------------------------------------------------------------------------------ search


@blueprint.get("/")
def home() -> BaseResponse:
    """Lead to the search for stays."""
    kinds = _explorer().service.offer.resources
    kind = next(kind for kind, offer in kinds.items() if offer.searchable)
    return redirect(f"/search/{kind}", HTTPStatus.SEE_OTHER)


@blueprint.route("/search/<kind>", methods=["GET", "POST"])
def search(kind: str) -> BaseResponse | str | tuple[str, int]:
    """Show the form of a resource type, or run a search and lead to its result."""
    explorer = _explorer()
    if _lacks_reason():
        return redirect("/reason", HTTPStatus.SEE_OTHER)
    offer = explorer.service.offer.resources.get(_kind(kind))
    if offer is None or not offer.searchable:
        raise NotFound
    if request.method == "GET":
        return render_template("search.html", form=form_of(offer, request.form))
    extension = explorer.service.context.functional_unit_extension
    pairs = parameters_of(offer, request.form, extension)
    return _run(kind, pairs, request.form)


def _kind(name: str) -> ResourceType:
    if name not in COLUMNS:
        raise NotFound
    return ResourceType(name)


def _run(
    kind: str, pairs: Pairs, sent: Any, tab: str = "table"
) -> BaseResponse | tuple[str, int]:
    explorer = _explorer()
    reply = calls.search(explorer.app, g.session, kind, pairs)
    if reply.status == HTTPStatus.UNAUTHORIZED:
        return _show_failure(reply)
    if not reply.is_ok:
        offer = explorer.service.offer.resources[ResourceType(kind)]
        form = form_of(offer, sent)
        page = render_template("search.html", form=form, failure=_failure(reply))
        return page, reply.status
    link = _links(reply.resource)["self"]
    id = dict(parse_qsl(urlsplit(link).query))["_id"]
    return redirect(f"/results/{id}?tab={tab}", HTTPStatus.SEE_OTHER)


def _links(bundle: Mapping[str, Any]) -> Mapping[str, str]:
    return {link["relation"]: link["url"] for link in bundle["link"]}


def _failure(reply: Reply) -> Mapping[str, str | int]:
    issue = reply.resource["issue"][0]
    name = "".join(issue.get("location", ())).removeprefix("http.")
    return {
        "field": title_of(name) if name in PARAMETERS else "",
        "status": reply.status,
        "text": issue.get("diagnostics", ""),
        "advice": ADVICE.get(reply.status, ""),
        "request_id": reply.headers.get("X-Request-Id", ""),
    }


def _show_failure(reply: Reply) -> Response:
    response = Response(content_type="text/html; charset=utf-8")
    if reply.status == HTTPStatus.UNAUTHORIZED:
        # The token has ended, or was withdrawn: so has the session.
        _explorer().sessions.end(g.session, response)
        g.session = None
    response.set_data(render_template("error.html", **_failure(reply)))
    response.status_code = reply.status
    return response


@blueprint.get("/results/<id>")
def results(id: str) -> Response | str:
    """Show a page of a result, in one of the tabs."""
    reply = _page(id)
    if not reply.is_ok:
        return _show_failure(reply)
    bundle = reply.resource
    stored = _stored(bundle)
    kind = stored.search.resource_type
    tab = request.args.get("tab", "table")
    if tab not in _tabs(kind):
        abort(HTTPStatus.NOT_FOUND)
    shown = Results.of(bundle, kind)
    columns = request.args.getlist("column")
    return render_template(
        "results.html",
        id=id,
        kind=kind,
        tab=tab,
        tabs={name: TABS[name] for name in _tabs(kind)},
        results=shown,
        criteria=stored.search.parameters,
        columns=chosen_columns(kind, columns),
        every_column=COLUMNS[kind],
        kept={"column": columns} if columns else {},
        here=_query(_links(bundle)["self"]),
        steps={
            name: _query(url)
            for name, url in shown.links.items()
            if name in {"previous", "next"}
        },
        reply=reply,
        stages=STAGES,
        **_tab(tab, kind, reply, shown, stored.search.parameters),
    )


def _page(id: str) -> Reply:
    """Return a page of a result; the address names it as a link of the service does."""
    query = [("_id", id)]
    for name in ("_index", "_searchAfter", "_searchBefore"):
        if name in request.args:
            query.append((name, request.args[name]))
    return calls.get(_explorer().app, g.session, "Bundle", query)


def _query(url: str) -> Mapping[str, str]:
    return dict(parse_qsl(urlsplit(url).query))


def _stored(bundle: Mapping[str, Any]) -> Any:
    """Return the search of a Bundle, which the service has just returned to this person."""
    explorer = _explorer()
    client = explorer.service.authenticator.authenticate(f"Bearer {g.session.token}")
    person = g.session.person
    owner = f"{client.id}/{person}" if person else client.id
    id = _query(_links(bundle)["self"])["_id"]
    return explorer.service.sessions.store.load(id, owner)


def _tabs(kind: str) -> list[str]:
    tabs = list(TABS)
    if kind != ResourceType.ENCOUNTER:
        tabs.remove("timeline")
    if not g.session.is_integrator:
        tabs.remove("how")
    return tabs


def _tab(
    tab: str, kind: ResourceType, reply: Reply, shown: Results, parameters: Pairs
) -> dict[str, Any]:
    """Return what one tab shows, besides the results."""
    explorer = _explorer()
    match tab:
        case "timeline":
            return {"timeline": timeline(shown.resources, datetime.now(UTC))}
        case "json":
            return {"tree": tree(reply.resource, _encoded), "follow": _follow}
        case "request":
            base_url = explorer.settings.base_url
            return {"snippets": snippets(base_url, kind, parameters)}
        case "how":
            return {"sent": _explained(kind, parameters)}
    return {}


def _encoded(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _follow(text: str) -> str:
    """Return the page that a link of JSON leads to, "" for none."""
    base_url = _explorer().settings.base_url
    if reference := reference_in(text, base_url):
        return f"/see/{_explorer().sessions.seal(g.session, reference)}"
    if text.startswith(f"{base_url}/Bundle?"):
        query = dict(_query(text))
        rest = "".join(
            f"&{name}={value}" for name, value in query.items() if name != "_id"
        )
        return f"/results/{query['_id']}?tab=json{rest}"
    return ""


def _explained(kind: ResourceType, parameters: Pairs) -> str:
    service = _explorer().service
    offer = service.offer.resources[kind]
    try:
        search = parse_search(parameters, offer, service.context, lenient=True)
        return service.adapter.explain(search.query) or "Nothing: nothing can match."
    except (AdapterError, ServiceError) as error:
        return str(error)


@blueprint.get("/results/<id>/page.csv")
def results_csv(id: str) -> Response:
    """Return the table of a page as CSV."""
    reply = _page(id)
    if not reply.is_ok:
        return _show_failure(reply)
    kind = _stored(reply.resource).search.resource_type
    columns = chosen_columns(kind, request.args.getlist("column"))
    text = as_csv(Results.of(reply.resource, kind).resources, columns)
    return _download(text.encode("utf-8-sig"), "text/csv; charset=utf-8", "page.csv")


@blueprint.get("/results/<id>/page.json")
def results_json(id: str) -> Response:
    """Return the exact bytes of a page."""
    reply = _page(id)
    if not reply.is_ok:
        return _show_failure(reply)
    return _download(reply.body, "application/json", "page.json")


def _download(body: bytes, kind: str, name: str) -> Response:
    response = Response(body, content_type=kind)
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


# --------------------------------------------------------------------------- resources


@blueprint.get("/see/<text>")
def see(text: str) -> Response | str:
    """Show one resource; the address is sealed for this session."""
    explorer = _explorer()
    if _lacks_reason():
        return redirect("/reason", HTTPStatus.SEE_OTHER)  # type: ignore[return-value]
    reference = explorer.sessions.unseal(g.session, text)
    if reference is None:
        raise NotFound
    reply = calls.get(explorer.app, g.session, reference)
    if not reply.is_ok:
        return _show_failure(reply)
    kind, _, id = reference.partition("/")
    resource = reply.resource
    return render_template(
        "resource.html",
        kind=kind,
        sealed=text,
        resource=resource,
        summary=[(c.title, c.cell(resource)) for c in COLUMNS[kind]],
        elements=list(elements(resource)),
        origins=_origins(ResourceType(kind), id) if g.session.is_integrator else None,
        raw=orjson.dumps(resource, option=orjson.OPT_INDENT_2).decode(),
        reply=reply,
    )


@blueprint.post("/see/<text>/stays")
def stays(text: str) -> BaseResponse | tuple[str, int]:
    """Search the stays of a patient and show them on the time axis."""
    reference = _explorer().sessions.unseal(g.session, text) or ""
    if not reference.startswith("Patient/"):
        raise NotFound
    pairs = [("patient", reference)]
    return _run("Encounter", pairs, filled(ResourceType.ENCOUNTER, pairs), "timeline")


@blueprint.get("/results/<id>/change")
def change(id: str) -> Response | str:
    """Show the form of a result again, filled in."""
    reply = _page(id)
    if not reply.is_ok:
        return _show_failure(reply)
    search = _stored(reply.resource).search
    offer = _explorer().service.offer.resources[search.resource_type]
    sent = filled(search.resource_type, search.parameters)
    return render_template("search.html", form=form_of(offer, sent))


def _origins(kind: ResourceType, id: str) -> list[dict[str, Any]] | str:
    """Return where each element comes from: the column, its value, the rule and its line."""
    settings = _explorer().settings
    try:
        file = MappingFile.open(settings.mapping, os.environ)
        row = find_row(file.mapping, kind, id)
    except (MappingError, AdapterError):
        return "The row cannot be read at the moment."
    preview = Preview(MappedRow.of(file, row), is_redacted=False)
    lines: list[dict[str, Any]] = preview.as_json()["elements"]  # type: ignore[assignment]
    return lines
