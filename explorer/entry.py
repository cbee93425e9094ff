"""Who may look: the session of a request, its language, login and logout.

A form that arrives after its session has ended waits for the login, encrypted, and is shown
again, filled in; it is never run by itself, because any site can send one.
"""

import re
import time
from http import HTTPStatus

from flask import Response, g, make_response, render_template, request, url_for
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response as BaseResponse

from app.call import CALL
from explorer.core import blueprint, explorer, go, set_choice
from explorer.failures import LoginError
from explorer.language import LANGUAGES
from explorer.language import mark as _
from explorer.search import form_page
from explorer.sessions import LOGIN_SECONDS, Pairs, SearchResult, Session
from explorer.words import RESOURCES

MOST_REASON = 200
MOST_WAITING = 16_384
"""The size of a form that waits for a login, encrypted, at most."""

PASTED_SECONDS = 3600
"""How long a pasted access token is used at most: one that expires earlier ends earlier."""

LANGUAGE_COOKIE = "language"

_WAITING = ("/search/", "/find")
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
    is_login = page.startswith("login")
    is_post = request.method == "POST"
    if page == "login_start" or (is_login and not is_post):
        return None
    if session is None:
        return expired() if explorer.sessions.cookie() else go("/login")
    if is_post and not session.accepts(request.form.get("csrf", "")):
        raise LoginError(_("This form is of another login: it is not accepted."))
    if not session.token and not is_login:
        return go("/login")
    lacks_reason = explorer.settings.explorer_reason and not session.reason
    if lacks_reason and page not in {"login_token", "reason", "logout"}:
        return go("/reason")
    if not is_login and page not in {"reason", "logout"}:
        explorer.read_offer()
    return None


def expired() -> Response:
    """Say that the session has ended; the form of the page waits for the login."""
    path, form = request.path, request.form
    pairs: Pairs = [pair for pair in form.items(multi=True) if pair[0] != "csrf"]
    match = _RESULT.match(path)
    if shown := match[1] if match else request.args.get("origin"):
        ended = Session(id=explorer.sessions.cookie(), expires=0)
        result = explorer.sessions.stored(ended, shown, SearchResult)
        if result is not None:
            path, pairs = f"/search/{result.kind}", result.form
    parked = ""
    if path.startswith(_WAITING) and pairs:
        parked = explorer.sessions.seal("", b"parked", [time.time(), path, pairs])
    minutes = explorer.settings.explorer_idle_minutes
    if len(parked) > MOST_WAITING:
        parked = ""
    page = render_template("expired.html", parked=parked, minutes=minutes)
    return make_response(page, HTTPStatus.UNAUTHORIZED)


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


@blueprint.route("/login/start", methods=["GET", "POST"])
def login_start() -> BaseResponse:
    """Send the browser to the identity provider; a form waits for it to come back."""
    explorer.count_login()
    url, login = explorer.login.start() if explorer.login else ("/login", {})
    response, waiting = go(url), None
    parked = request.form.get("parked", "")
    if content := explorer.sessions.unseal("", b"parked", parked[:MOST_WAITING]):
        since, path, form = content
        if since + LOGIN_SECONDS > time.time():
            waiting = (path, form)
    explorer.sessions.begin(response, waiting=waiting, login=login)
    return response


@blueprint.get("/login/done")
def login_done() -> BaseResponse:
    """Take the browser back from the identity provider."""
    if explorer.login is None or g.session is None or not g.session.login:
        raise NotFound
    login = g.session.login
    if request.args.get("state", "") != login["state"]:
        raise LoginError(_("This login was not begun in this browser."))
    return explorer.begin(**explorer.login.finish(request.args, login))


@blueprint.post("/login/token")
def login_token() -> BaseResponse:
    """Begin a session with an access token: on loopback, without a provider."""
    if explorer.login is not None:
        raise NotFound
    explorer.count_login()
    token = request.form.get("token", "").strip()
    return explorer.begin(token=token, expires=time.time() + PASTED_SECONDS)


@blueprint.get("/resume")
def resume() -> BaseResponse | str:
    """Show the form that waited for the login, filled in."""
    waiting, g.session.waiting = g.session.waiting, None
    explorer.sessions.save(g.session)
    if waiting is None:
        return go("/")
    path, form = waiting
    kind = path.removeprefix("/search/")
    return form_page(kind if kind in RESOURCES else "", MultiDict(form))


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
    return go("/resume" if g.session.waiting else "/")
