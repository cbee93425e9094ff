"""Views of one stay, one patient and one hospital."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from hashlib import blake2b
from typing import Any

from flask import g, render_template, request, url_for
from werkzeug.exceptions import NotFound

from explorer.core import blueprint, explorer, see
from explorer.failures import PageError
from explorer.language import gettext
from explorer.records import BundleEntries, Person, Stay, columns_of, site_name
from explorer.sessions import SearchResult
from explorer.timeline import Band, Timeline, timelines, wall
from explorer.words import CLASSES

MOST_STAYS = 1000
"""How many stays of a patient are read."""

PAGE = 10
MANY = 60
"""A timeline of more stays begins with the last twelve months."""

_DAYS = {"": None, "12": 365, "3": 91}
"""The periods of a timeline, by their names in addresses."""

_REFERENCE = re.compile(r"(?:Encounter|Patient|Organization)/[A-Za-z0-9\-.]{1,64}")
"""A reference to a resource that has a page."""

_BEFORE, _AFTER = timedelta(days=28), timedelta(days=21)


@blueprint.route("/see/<sealed>", methods=["GET", "POST"])
def show(sealed: str) -> str:
    """Show one resource, the numbers of a patient whole if a form requests it."""
    reference = explorer.sessions.unseal(g.session.id, sealed)
    if reference is None or not _REFERENCE.fullmatch(reference):
        raise NotFound
    kind = reference.partition("/")[0]
    if kind == "Patient":
        return _patient(sealed, reference, is_whole=request.method == "POST")
    if kind == "Encounter":
        return _stay(reference)
    return _page("house.html", reference, house=explorer.call(reference))


def _page(template: str, reference: str, **shown: Any) -> str:
    """Return a page of a resource, with the result that it was opened from."""
    origin = request.args.get("origin", "")
    result = explorer.sessions.stored(g.session.id, origin) if origin else None
    shown |= {"now": explorer.offer.now(), "origin": None}
    if result is not None:
        total = result.bundle.get("total")
        shown |= {"origin": origin, "origin_kind": result.kind, "total": total}
        shown |= _neighbours(reference, origin, result)
    return render_template(template, **shown)


def _neighbours(reference: str, origin: str, result: SearchResult) -> dict[str, Any]:
    """Return the place of a resource in a result, and the addresses beside it."""
    matches = BundleEntries(result.bundle).matches
    references = [f"{match['resourceType']}/{match['id']}" for match in matches]
    if reference not in references:
        return {}
    place = references.index(reference)
    links = {link["relation"] for link in result.bundle["link"]}
    beside: dict[str, Any] = {"place": result.first + place}
    for relation, index in (("previous", place - 1), ("next", place + 1)):
        if 0 <= index < len(references):
            beside[relation] = see(references[index], origin=origin)
        elif relation in links:
            beside[relation] = url_for(".step", id=origin, relation=relation, open=1)
    return beside


def _bands(stays: Sequence[Stay]) -> list[Band]:
    """Return a band for each type of stay that occurs, in the order of `CLASSES`."""
    bands = []
    for code, words in CLASSES.items():
        of_class = [stay for stay in stays if stay.class_code == code]
        if of_class:
            bands.append(Band(gettext(words), of_class))
    return bands


# --------------------------------------------------------------------------------- stay


def _stay(reference: str) -> str:
    """Return the page of a stay, with those of the same patient before and after it."""
    resource = explorer.call(reference)
    results = _stays_of(Stay(resource).subject)
    stay = Stay(resource, results.included)
    before: Stay | None = None
    after: Stay | None = None
    drawn: list[Timeline] = []
    if stay.start:
        stays = [s for s in results.stays if s.start and s.id != stay.id]
        stays = sorted([*stays, stay], key=lambda stay: (stay.start, stay.id))
        place = stays.index(stay)
        if place > 0:
            before = stays[place - 1]
        if place + 1 < len(stays):
            after = stays[place + 1]
        now = explorer.offer.now()
        if stay.end:
            end = stay.end
        elif stay.status == "planned":
            end = stay.start
        else:
            end = now
        since = wall(stay.start) - _BEFORE
        until = wall(max(stay.start, end)) + _AFTER
        drawn = timelines(_bands(stays), now, since=since, until=until)
    return _page(
        "stay.html",
        reference,
        kind="Encounter",
        stay=stay,
        frise=drawn,
        before=before,
        after=after,
    )


# ------------------------------------------------------------------------------ patient


def _patient(sealed: str, reference: str, *, is_whole: bool) -> str:
    """Return the page of a patient and their stays.

    With `is_whole` it shows the whole numbers of the patient.
    """
    period = request.args.get("period")
    listed = max(1, request.args.get("page", 1, type=int))
    if period not in {None, *_DAYS}:
        raise NotFound
    # Another period or page of what has been read is no new look at the patient.
    is_new = period is None and "page" not in request.args
    resource = explorer.call(reference) if is_new or is_whole else None
    results = _stays_of(reference, resource if is_new else None)
    patient = Person(results.included.get(reference) or explorer.call(reference))
    stays = results.stays
    bands = _bands(stays)
    now = explorer.offer.now()
    periods = [period or ""]
    if period is None and len(stays) > MANY:
        # The last twelve months, or all where these have no stay.
        periods = ["12", ""]
    for shown_period in periods:
        days = _DAYS[shown_period]
        since = wall(now) - timedelta(days) if days else None
        drawn = timelines(bands, now, since=since)
        if drawn:
            break
    return _page(
        "patient.html",
        reference,
        kind="Patient",
        patient=patient,
        site_name=site_name(patient.site, results.included),
        sealed=sealed,
        here_now=[s for s in stays if s.status == "in-progress" and s.took(now)],
        results=results,
        stays=stays,
        most_stays=MOST_STAYS,
        listed=listed,
        page_size=PAGE,
        places={stay.id: 1 + index // PAGE for index, stay in enumerate(stays)},
        period=shown_period,
        frise=drawn,
        is_whole=is_whole,
        columns=columns_of("Encounter"),
    )


def _stays_of(reference: str, patient: Any = None) -> BundleEntries:
    """Return the stays of a patient and the patient, as far as the person may see them.

    They are stored with the results of the session. They are read again where the caller
    has just read the `patient`, which is the resource.
    """
    id = blake2b(reference.encode(), digest_size=18).hexdigest()
    result = None
    if not patient:
        result = explorer.sessions.stored(g.session.id, id)
    if result is None:
        result = SearchResult("Encounter", [], bundle={"entry": [], "link": []})
        with _if_allowed():
            result = explorer.collect("Encounter", [("patient", reference)], MOST_STAYS)
        if patient is None and not explorer.search_offer("Encounter").includes:
            with _if_allowed():
                patient = explorer.call(reference)
        if patient:
            entry = {"resource": patient, "search": {"mode": "include"}}
            result.bundle["entry"].append(entry)
        explorer.sessions.store(g.session.id, id, result)
    return BundleEntries(result.bundle)


@contextmanager
def _if_allowed() -> Iterator[None]:
    """Leave out what the person may not see, or what is no longer there."""
    try:
        yield
    except PageError as error:
        if error.status not in {403, 404, 410}:
            raise
