"""Who may look: the session of a request, its language, login and logout.

A form that arrives after its session has ended waits for the login, encrypted, and is shown
again, filled in; it is never run by itself, because any site can send one.
"""

import re
from http import HTTPStatus

from flask import g, make_response, render_template, request, url_for
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response as BaseResponse

from app.call import CALL
from app.middleware import requester
from explorer.core import blueprint, explorer, go, set_choice
from explorer.language import LANGUAGES
from explorer.language import mark as _
from explorer.login import LoginProvider, refused

MOST_REASON = 200
MOST_WAITING = 8192
"""The length of the texts of a form that waits for a login, at most."""

LANGUAGE_COOKIE = "language"

_FORM = re.compile(r"/(?:search/(\w+)|find)")
"""Pages whose forms wait for a login."""

_RESULT = re.compile(r"/results/([\w-]+)")


@blueprint.before_app_request
def choose_language() -> BaseResponse | None:
    """Choose the language: the person's choice, else the browser's."""
    chosen = request.args.get("lang", "")
    if chosen in LANGUAGES and request.method == "GET" and request.endpoint:
        # An address of ours, never the path as it came: //host leads elsewhere.
        place = {**request.args.to_dict(), **(request.view_args or {})}
        del place["lang"]
        response = go(url_for(request.endpoint, **place))
        set_choice(response, LANGUAGE_COOKIE, chosen)
        return response
    cookie = request.cookies.get(LANGUAGE_COOKIE, "")
    best = request.accept_languages.best_match(LANGUAGES) or "en"
    g.language = cookie if cookie in LANGUAGES else best
    return None


@blueprint.before_app_request
def require_login() -> BaseResponse | None:
    """Find the session; lead to the login, then to the question for a reason."""
    request.environ[CALL].route = str(request.url_rule or "")
    g.session = None
    if request.endpoint in {None, "static"}:
        # Another host, or no page of ours: Flask refuses it next.
        return None
    g.session = session = explorer.sessions.current()
    page = (request.endpoint or "").removeprefix("explorer.")
    if page.startswith("login"):
        return None
    if session is None:
        return expired() if explorer.sessions.cookie() else go("/login")
    if request.method == "POST" and not session.accepts(request.form.get("csrf", "")):
        raise refused(_("This form belongs to another login and is not accepted."))
    if not session.token:
        return go("/login")
    if page in {"reason", "logout"}:
        return None
    if explorer.settings.explorer_reason and not session.reason:
        return go("/reason")
    return None


def expired() -> BaseResponse:
    """Return a page that says that the session has ended; a form waits for the login.

    It is the form that was sent, or that of the result that the page shows or came from.
    """
    ended = g.session
    g.session = None
    kind = ""
    form: MultiDict[str, str] = MultiDict()
    if form_path := _FORM.match(request.path):
        kind = form_path[1] or ""
        form = request.form
    result_id = request.args.get("origin", request.args.get("result"))
    if result_path := _RESULT.match(request.path):
        result_id = result_path[1]
    if result_id:
        result = explorer.sessions.stored(explorer.sessions.cookie(), result_id)
        if result is not None:
            kind = result.kind
            form = MultiDict(result.form)
    pairs = [pair for pair in form.items(multi=True) if pair[0] != "csrf"]
    waits = 0 < sum(len(text) for _, text in pairs) <= MOST_WAITING
    minutes = explorer.settings.explorer_idle_minutes
    text = render_template("expired.html", waits=waits, minutes=minutes)
    response = make_response(text, HTTPStatus.UNAUTHORIZED)
    if ended:
        # The service no longer accepts the token.
        explorer.sessions.end(ended, response)
    if waits:
        _count_login()
        explorer.sessions.begin(response, waiting=(kind, pairs))
    return response


def _count_login() -> None:
    """Count a login of the requesting address. Raises TooManyRequests."""
    proxies = explorer.settings.trusted_proxies
    explorer.logins.count_address(requester(request.environ, proxies))


def _provider() -> LoginProvider:
    return LoginProvider(explorer.settings, f"{explorer.url.rstrip('/')}/login/done")


@blueprint.get("/login")
def login() -> str:
    """Show how to log in."""
    return render_template("login.html")


@blueprint.get("/login/start")
def login_start() -> BaseResponse:
    """Send the browser to the identity provider; a form waits for it to come back."""
    _count_login()
    started = _provider().start()
    waiting = g.session.waiting if g.session else None
    response = go(started["url"])
    explorer.sessions.begin(response, waiting=waiting, login=started)
    return response


@blueprint.get("/login/done")
def login_done() -> BaseResponse:
    """Take the browser back from the identity provider, and begin the session."""
    begun = g.session
    if begun is None or not begun.login:
        raise NotFound
    if request.args.get("state", "") != begun.login["state"]:
        raise refused(_("This login did not start in this browser."))
    if "code" not in request.args:
        raise refused(_("The identity provider did not log you in."))
    person = _provider().finish(request.args["code"], begun.login)
    response = go("/")
    explorer.sessions.end(begun, response)
    explorer.sessions.begin(response, waiting=begun.waiting, **person)
    return response


@blueprint.post("/logout")
def logout() -> BaseResponse:
    """End the session."""
    response = go("/login")
    explorer.sessions.end(g.session, response)
    return response


@blueprint.route("/reason", methods=["GET", "POST"])
def reason() -> BaseResponse | str:
    """Ask why the person looks at data of patients."""
    text = request.form.get("reason", "").strip()[:MOST_REASON]
    if not text:
        return render_template("reason.html", most=MOST_REASON)
    g.session.reason = text
    explorer.sessions.save(g.session)
    return go("/")
