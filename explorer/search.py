"""Views of searches and their results.

What a person looks for is never in an address: a form is posted, and the page it leads to
has the random id of a result that their session stores. Tabs, columns and printing look at
the stored result; sorting, a next page and another condition are searches.
"""

import secrets
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any

from flask import g, render_template, request, url_for
from markupsafe import escape
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response as BaseResponse

from explorer import forms
from explorer.core import blueprint, clock, explorer, go, see, set_choice, step_of
from explorer.failures import PageError
from explorer.forms import FIELDS, Conditions, FieldFault, FormValues
from explorer.language import ReadingError, gettext
from explorer.records import COLUMN_COOKIE, COLUMNS, BundleEntries, Stay, columns_of
from explorer.sessions import SearchResult
from explorer.timeline import Band, Timeline, timelines

STEPS = ("previous", "next")
"""The links of a page of results that lead to another page."""

MOST_PRINTED = 500
MOST_RECENT = 10
MOST_COUNTS = 3

NOBODY = "-"
"""An id that no patient has: a search for the stays of nobody finds none."""

NO_FAULTS: Mapping[str, FieldFault] = {}

PageResponse = BaseResponse | str | tuple[str, int]


# ------------------------------------------------------------------------------- forms


def form_page(
    kind: str, form: FormValues, faults: Mapping[str, FieldFault] = NO_FAULTS
) -> str:
    """Return the page of a form, "" for the home page, filled in, with its faults."""
    offer, today = explorer.offer, explorer.offer.now().date()
    first = kind or next(iter(offer.searches))
    explorer.search_offer(first)
    return render_template(
        "search.html" if kind else "home.html",
        kind=first,
        form=form,
        faults=faults,
        fields=forms.fields_of(offer, first),
        today=today,
        week=today - timedelta(days=6),
    )


@blueprint.get("/")
def home() -> str:
    """Show the search box, or the form that waited for the login, filled in."""
    kind, form = g.session.waiting or ("", ())
    if g.session.waiting:
        g.session.waiting = None
        explorer.sessions.save(g.session)
    return form_page(kind if kind in FIELDS else "", MultiDict(form))


@blueprint.post("/read")
def read() -> str:
    """Return how the text of the search box would be read; nothing is searched."""
    try:
        words, _ = forms.read_box(explorer.offer, request.form.get("q", ""))
    except ReadingError as error:
        return escape(str(error))
    return escape(gettext("Read as: %(words)s.", words=words))


@blueprint.post("/find")
def find() -> PageResponse:
    """Search what the box was filled in with, in every way that it can be read."""
    try:
        words, readings = forms.read_box(explorer.offer, request.form.get("q", ""))
    except ReadingError as error:
        page = form_page("", request.form, {"": FieldFault(str(error))})
        return page, HTTPStatus.UNPROCESSABLE_ENTITY
    results: list[SearchResult] = []
    for kind, form in readings:
        try:
            result = _search(_read(kind, form))
        except PageError as error:
            # Who may not search patients still finds a visit.
            if error.status == HTTPStatus.FORBIDDEN and results:
                continue
            return form_page("", request.form, _faults("", error)), error.status
        results.append(replace(result, read_as=words))
    shown = [result for result in results if result.bundle.get("entry")]
    if not shown:
        # The page of an empty result says so; one is enough.
        shown = [results[-1]]
    ids = [_store(result, is_new=True) for result in shown]
    if len(ids) > 1:
        return go(url_for(".choose", first=ids[0], second=ids[1]))
    return go(url_for(".results", id=ids[0]))


@blueprint.get("/found/<first>/<second>")
def choose(first: str, second: str) -> str:
    """Show the stays and the patients of a number, each under a heading."""
    results = {id: explorer.stored(id) for id in (first, second)}
    parts = [(id, r.kind, BundleEntries(r.bundle)) for id, r in results.items()]
    now = clock(results[first].at)
    return render_template("found.html", parts=parts, columns=columns_of, now=now)


@blueprint.route("/search/<kind>", methods=["GET", "POST"])
def search(kind: str) -> PageResponse:
    """Show the form of a resource type or of a `result`, or run a search."""
    explorer.search_offer(kind)
    if request.method == "GET":
        form: FormValues = MultiDict()
        result_id = request.args.get("result")
        if result_id:
            form = MultiDict(explorer.stored(result_id).form)
        return form_page(kind, form)
    pairs = request.form.items(multi=True)
    return _run(kind, MultiDict([pair for pair in pairs if pair[0] != "csrf"]))


@blueprint.get("/recent/<id>")
def recent(id: str) -> PageResponse:
    """Run a recent search again."""
    for entry in g.session.recent:
        if entry["id"] == id:
            return _run(entry["kind"], MultiDict(entry["form"]))
    raise NotFound


# ---------------------------------------------------------------------------- searching


def _read(kind: str, form: FormValues) -> Conditions:
    return Conditions(explorer.offer, kind, form, g.session.wards)


def _run(kind: str, form: FormValues, sort: str = "") -> PageResponse:
    """Lead to the result of a search; a form that was refused is shown again."""
    conditions = _read(kind, form)
    if conditions.faults:
        page = form_page(kind, form, conditions.faults)
        return page, HTTPStatus.UNPROCESSABLE_ENTITY
    try:
        result = _search(conditions, sort)
    except PageError as error:
        return form_page(kind, form, _faults(kind, error)), error.status
    return go(url_for(".results", id=_store(result, is_new=True)))


def _faults(kind: str, error: PageError) -> dict[str, FieldFault]:
    """Return a refusal as a fault, of its field where it has one; an ended login is raised."""
    if error.status == HTTPStatus.UNAUTHORIZED:
        raise error
    fields = forms.fields_of(explorer.offer, kind) if kind else []
    for field in fields:
        if field.parameter == error.parameter:
            return {field.inputs[0]: FieldFault(gettext(field.title), error.text)}
    return {"": FieldFault(error.text, error.advice)}


def _search(conditions: Conditions, sort: str = "", patients: str = "") -> SearchResult:
    """Search what a form says; its conditions on patients find these first.

    Without a condition on stays the patients are the result. `patients` are the ids of
    those that the conditions find, with commas, where they are known. Raises PageError.
    """
    kind = conditions.kind
    criteria = [*conditions.criteria]
    has_patients = "Patient" in explorer.offer.searches
    if conditions.patients and not criteria and has_patients:
        kind = "Patient"
        criteria = [*conditions.patients]
    elif conditions.patients:
        if not patients:
            sized = [*conditions.patients, ("_count", str(forms.PATIENTS_OF_A_SEARCH))]
            bundle = explorer.call("Patient/_search", form=sized)
            if step_of(bundle, "next"):
                raise PageError(HTTPStatus.UNPROCESSABLE_ENTITY)
            ids = [patient["id"] for patient in BundleEntries(bundle).matches]
            patients = ",".join(ids) or NOBODY
        criteria.append(("patient", patients))
    if sort in explorer.search_offer(kind).sorts:
        criteria.append(("_sort", sort))
    result = explorer.search(kind, criteria)
    return replace(result, form=[*conditions.form.items(multi=True)])


def _store(result: SearchResult, *, is_new: bool = False) -> str:
    """Store a result and return its id; a new one is listed among the recent searches."""
    if is_new:
        session = g.session
        form: FormValues = MultiDict(result.form)
        entry = {
            "id": f"{time.time_ns():x}",
            "time": f"{clock(result.at):%H:%M}",
            "words": _read(result.kind, form).describe(),
            "kind": result.kind,
            "form": result.form,
            "total": result.bundle.get("total"),
        }
        others = [e for e in session.recent if MultiDict(e["form"]) != form]
        session.recent = [entry, *others][:MOST_RECENT]
        explorer.sessions.save(session)
    id = secrets.token_urlsafe(16)
    explorer.sessions.store(g.session.id, id, result)
    return id


# ------------------------------------------------------------------------------ results


@blueprint.get("/results/<id>")
def results(id: str) -> str:
    """Show a page of a result, in one of the tabs."""
    result = explorer.stored(id)
    tab = request.args.get("tab", "table")
    has_times = result.kind == "Encounter"
    tabs = ["table", "timeline", "json"] if has_times else ["table", "json"]
    if tab not in tabs:
        raise NotFound
    return _page(id, result, tab=tab, tabs=tabs)


def _page(id: str, result: SearchResult, *, tab: str, **more: Any) -> str:
    """Return the page of a result; `more` is what its template needs besides."""
    kind = result.kind
    search = explorer.search_offer(kind)
    shown = BundleEntries(result.bundle)
    at = clock(result.at)
    return render_template(
        "results.html" if shown.matches else "none.html",
        id=id,
        kind=kind,
        result=result,
        results=shown,
        rows=shown.rows(kind),
        chips=_read(kind, MultiDict(result.form)).chips,
        last=result.first + len(shown.matches) - 1,
        steps=[relation for relation in STEPS if step_of(result.bundle, relation)],
        sort=dict(result.criteria).get("_sort", search.usual_sort),
        sorts=search.sorts,
        columns=columns_of(kind),
        all_columns=COLUMNS[kind],
        tab=tab,
        frise=_drawn(shown, id, at) if tab == "timeline" else [],
        most_printed=MOST_PRINTED,
        now=at,
        **more,
    )


def _drawn(shown: BundleEntries, id: str, at: datetime) -> list[Timeline]:
    """Return a timeline with a band for each patient, in the order of the list."""
    by_patient: dict[str, list[Stay]] = {}
    for stay in shown.stays:
        by_patient.setdefault(stay.subject, []).append(stay)
    bands = []
    for subject, stays in by_patient.items():
        title = subject
        born = ""
        if patient := stays[0].patient:
            title = patient.name
            born = patient.born or gettext("birth date unknown")
        address = see(subject, origin=id)
        bands.append(Band(title, stays, sub=born, address=address))
    return timelines(bands, at)


@blueprint.get(f"/results/<id>/<any({', '.join(STEPS)}):relation>")
def step(id: str, relation: str) -> BaseResponse:
    """Read the next or the previous page of a result and lead to it, or to its stay."""
    result = explorer.stored(id)
    query = step_of(result.bundle, relation)
    if not query:
        raise NotFound
    bundle = explorer.call("Bundle", query=query)
    matches = BundleEntries(bundle).matches
    first = result.first + len(BundleEntries(result.bundle).matches)
    if relation == "previous":
        first = max(1, result.first - len(matches))
    explorer.remember_wards(result.kind, bundle)
    new = _store(replace(result, bundle=bundle, first=first, at=time.time()))
    if "open" in request.args and matches:
        match = matches[0 if relation == "next" else -1]
        return go(see(f"{match['resourceType']}/{match['id']}", origin=new))
    return go(url_for(".results", id=new, tab=request.args.get("tab")))


@blueprint.get("/results/<id>/again")
def again(id: str) -> PageResponse:
    """Search again: in another order, or without one of the conditions."""
    result = explorer.stored(id)
    dropped = request.args.get("without")
    form: FormValues = MultiDict(result.form)
    if dropped:
        form = forms.without(form, dropped)
        if not _read(result.kind, form).chips:
            return go(url_for(".search", kind=result.kind))
    present = dict(result.criteria).get("_sort", "")
    return _run(result.kind, form, request.args.get("sort", present))


@blueprint.post("/results/<id>/widen")
def widen(id: str) -> str:
    """Count what there is without each condition, to show which one excludes most."""
    result = explorer.stored(id)
    conditions = _read(result.kind, MultiDict(result.form))
    counts: list[tuple[str, str, int]] = []
    for field, words in [*conditions.chips.items()][:MOST_COUNTS]:
        wider = _read(result.kind, forms.without(conditions.form, field.name))
        patients = ""
        if wider.patients == conditions.patients:
            # The result was searched by their ids: they need not be found again.
            patients = dict(result.criteria).get("patient", "")
        try:
            bundle = _search(wider, patients=patients).bundle
        except PageError:
            continue
        counts.append((field.name, words, bundle.get("total") or 0))
    counts.sort(key=lambda count: count[2], reverse=True)
    return _page(id, result, tab="table", tabs=[], counts=counts)


@blueprint.post("/results/<id>/all")
def whole(id: str) -> BaseResponse:
    """Show a result on one page, to print it."""
    result = explorer.stored(id)
    new = explorer.collect(result.kind, result.criteria, MOST_PRINTED)
    return go(url_for(".results", id=_store(replace(new, form=result.form))))


@blueprint.post("/results/<id>/columns")
def columns(id: str) -> BaseResponse:
    """Keep the chosen columns in a cookie."""
    kind = explorer.stored(id).kind
    names = [c.name for c in COLUMNS[kind] if c.name in request.form.getlist("column")]
    response = go(url_for(".results", id=id))
    set_choice(response, f"{COLUMN_COOKIE}{kind}", ".".join(names))
    return response
