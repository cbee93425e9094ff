"""Views of one stay, one patient, one hospital: for reading, what is technical at the end."""

from collections.abc import Sequence
from datetime import timedelta
from hashlib import blake2b
from http import HTTPStatus
from typing import Any

import orjson
from flask import g, render_template, request, url_for
from werkzeug.exceptions import NotFound

from explorer.core import blueprint, explorer, see
from explorer.failures import RefusedError
from explorer.language import gettext, mark
from explorer.records import House, Person, Stay
from explorer.results import REFERENCE, Results, columns_of, elements
from explorer.sessions import Result
from explorer.timeline import Band, timelines, wall
from explorer.words import CLASSES

MOST_STAYS = 1000
"""How many stays of a patient are read."""

PAGE = 10
MANY = 60
"""A timeline of more stays begins with the last twelve months."""

PERIODS = {"": mark("All"), "12": mark("12 months"), "3": mark("3 months")}

_GUTTER = 136
_AROUND = timedelta(days=366)
_BEFORE, _AFTER = timedelta(days=28), timedelta(days=21)


@blueprint.get("/see/<sealed>")
def show(sealed: str) -> str:
    """Show one resource; the address is sealed for this session."""
    reference = _unsealed(sealed)
    kind = reference.partition("/")[0]
    if kind == "Patient":
        return _patient(sealed, reference)
    if kind == "Encounter":
        return _stay(reference)
    house = House(explorer.call(reference))
    return _page("house.html", reference, house.resource, house=house)


@blueprint.post("/see/<sealed>/reveal")
def reveal(sealed: str) -> str:
    """Show the numbers of a patient whole; that is an event of its own."""
    reference = _unsealed(sealed)
    if not reference.startswith("Patient/"):
        raise NotFound
    return _patient(sealed, reference, is_whole=True)


def _unsealed(sealed: str) -> str:
    reference = explorer.sessions.unseal(g.session.id, b"reference", sealed)
    if reference is None or not REFERENCE.fullmatch(reference):
        raise NotFound
    return str(reference)


def _page(template: str, reference: str, resource: Any, **shown: Any) -> str:
    """Return a page of a resource, with the result that it was opened from."""
    origin = request.args.get("origin", "")
    result = explorer.sessions.stored(g.session, origin, Result) if origin else None
    shown |= {"now": explorer.read_offer().now(), "origin": None}
    if result is not None:
        total = result.bundle.get("total")
        shown |= {"origin": origin, "origin_kind": result.kind, "total": total}
        shown |= _neighbours(reference, origin, result)
    raw = orjson.dumps(resource, option=orjson.OPT_INDENT_2).decode()
    shown |= {"elements": list(elements(resource)), "raw": raw}
    return render_template(template, **shown)


def _neighbours(reference: str, origin: str, result: Result) -> dict[str, Any]:
    """Return the place of a resource in a result, and the addresses beside it."""
    matches = Results(result.bundle).matches
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


# --------------------------------------------------------------------------------- stay


def _stay(reference: str) -> str:
    stay = _read_stay(reference)
    stays = _stays_around(stay)
    drawn: list[Any] = []
    if stay.start:
        now = explorer.read_offer().now()
        end = stay.end or (stay.start if stay.status == "planned" else now)
        since, until = wall(stay.start) - _BEFORE, wall(max(stay.start, end)) + _AFTER
        bands = _bands(stays)
        drawn = timelines(bands, now, gutter=_GUTTER, since=since, until=until)
    place = [other.id for other in stays].index(stay.id)
    return _page(
        "stay.html",
        reference,
        stay.resource,
        kind="Encounter",
        stay=stay,
        frise=drawn,
        before=stays[place - 1] if place else None,
        after=stays[place + 1] if place + 1 < len(stays) else None,
    )


def _read_stay(reference: str) -> Stay:
    """Return a stay with patient and hospital, in one request where that is offered."""
    id = reference.partition("/")[2]
    offer = explorer.search_offer("Encounter")
    if offer.includes and "_id" in offer.parameters:
        bundle, _ = explorer.search("Encounter", [("_id", id)])
        if stays := Results(bundle).stays:
            return stays[0]
    # A read tells a removed stay from one that never was.
    stay = Stay(explorer.call(reference))
    if patient := _read(stay.subject):
        stay.patient = Person(patient)
    if house := _read(stay.site):
        stay.house = House(house)
    return stay


def _read(reference: str) -> Any:
    """Return a resource, None where the person may not see it or there is none."""
    if not reference:
        return None
    try:
        return explorer.call(reference)
    except RefusedError as error:
        if error.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.SERVICE_UNAVAILABLE}:
            raise
        return None


def _stays_around(stay: Stay) -> Sequence[Stay]:
    """Return the patient's stays about a stay's time, with itself, in order."""
    offer = explorer.search_offer("Encounter")
    criteria = [("patient", stay.subject)]
    date = offer.parameters.get("date")
    if stay.start and date and date.most != 1:
        around = (("ge", stay.start - _AROUND), ("le", stay.start + _AROUND))
        criteria += [("date", f"{p}{at.date().isoformat()}") for p, at in around]
    if offer.most_count:
        criteria.append(("_count", offer.most_count))
    try:
        bundle = explorer.call("Encounter/_search", form=criteria)
    except RefusedError as error:
        if error.status != HTTPStatus.FORBIDDEN:
            raise
        return [stay]
    dated = [other for other in Results(bundle).stays if other.start]
    if stay.id not in {other.id for other in dated}:
        return [stay]
    return sorted(dated, key=lambda other: (other.start, other.id))


def _bands(stays: Sequence[Stay]) -> list[Band]:
    """Return a band for each type of stay, in the order of the words."""
    return [
        Band(gettext(words), of_type)
        for kind, words in CLASSES.items()
        if (of_type := [stay for stay in stays if stay.kind == kind])
    ]


# ------------------------------------------------------------------------------ patient


def _patient(sealed: str, reference: str, *, is_whole: bool = False) -> str:
    chosen = request.args.get("period")
    listed = max(1, request.args.get("page", 1, type=int))
    if chosen not in {None, *PERIODS}:
        raise NotFound
    digest = blake2b(reference.encode(), digest_size=18).hexdigest()
    # Another period or page of what has been read is no new look at the patient.
    result = None
    if chosen is not None or "page" in request.args:
        result = explorer.sessions.stored(g.session, digest, Result)
    if result is None:
        result = _collected(reference)
        explorer.sessions.store(g.session, digest, result)
    elif is_whole:
        explorer.call(reference)
    results = Results(result.bundle)
    patient, stays = Person(results.included[reference]), results.stays
    now = explorer.read_offer().now()
    period = chosen or ("12" if chosen is None and len(stays) > MANY else "")
    months = {"": None, "12": 365, "3": 91}[period]
    since = wall(now) - timedelta(days=months) if months else None
    drawn = timelines(_bands(stays), now, gutter=_GUTTER, since=since)
    if not drawn and chosen is None:
        period, drawn = "", timelines(_bands(stays), now, gutter=_GUTTER)
    return _page(
        "patient.html",
        reference,
        patient.resource,
        kind="Patient",
        patient=patient,
        house=results.house(patient.site),
        sealed=sealed,
        here_now=[s for s in stays if s.status == "in-progress" and s.took(now)],
        stays=stays[(listed - 1) * PAGE : listed * PAGE],
        whole=len(stays),
        all_stays=results.total,
        most_stays=MOST_STAYS,
        messages=results.messages,
        undated=sum(stay.start is None for stay in stays),
        listed=listed,
        page_size=PAGE,
        places={stay.id: 1 + index // PAGE for index, stay in enumerate(stays)},
        period=period,
        periods=PERIODS,
        frise=drawn,
        is_whole=is_whole,
        columns=columns_of("Encounter"),
    )


def _collected(reference: str) -> Result:
    """Return a patient and all stays, as one Bundle."""
    patient = explorer.call(reference)
    criteria = [("patient", reference)]
    bundle: dict[str, Any] = {"entry": [], "link": []}
    try:
        bundle, _ = explorer.collect("Encounter", criteria, MOST_STAYS)
    except RefusedError as error:
        if error.status != HTTPStatus.FORBIDDEN:
            raise
    bundle["entry"].append({"resource": patient, "search": {"mode": "include"}})
    return Result("Encounter", form=[], criteria=criteria, bundle=bundle)
