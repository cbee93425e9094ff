"""Views of one stay, one patient, one hospital: for reading, what is technical at the end."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import blake2b
from http import HTTPStatus
from typing import Any

import orjson
from flask import g, render_template, request, url_for
from werkzeug.exceptions import NotFound

from explorer.core import blueprint, columns_of, explorer, see
from explorer.failures import RefusedError
from explorer.language import gettext, mark
from explorer.people import House, Person
from explorer.results import Results, elements
from explorer.sessions import Pairs, Result
from explorer.stays import Stay
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
    reference = explorer.unsealed(sealed)
    kind = reference.partition("/")[0]
    if kind == "Patient":
        return _patient(sealed, reference)
    if kind == "Encounter":
        return _stay(reference)
    resource = explorer.call(reference)
    house = House.of(resource)
    return render_template("house.html", house=house, **_technical(resource), **_list())


@blueprint.post("/see/<sealed>/reveal")
def reveal(sealed: str) -> str:
    """Show the numbers of a patient whole; that is an event of its own."""
    return _patient(sealed, explorer.unsealed(sealed), is_whole=True)


def _technical(resource: Any) -> dict[str, Any]:
    raw = orjson.dumps(resource, option=orjson.OPT_INDENT_2).decode()
    return {"elements": list(elements(resource)), "raw": raw}


def _list(reference: str = "") -> dict[str, Any]:
    """Return the result that the page was opened from, and its neighbours there."""
    origin = request.args.get("origin", "")
    result = explorer.sessions.result(g.session, origin) if origin else None
    now = explorer.read_offer().now()
    shown: dict[str, Any] = {"origin": None, "now": now, "kind": "Encounter"}
    if result is None:
        return shown
    results = Results(result.bundle)
    shown |= {"origin": origin, "origin_kind": result.kind, "total": results.total}
    references = [f"{r['resourceType']}/{r['id']}" for r in results.matches]
    if reference not in references:
        return shown
    place = references.index(reference)
    links = {link["relation"] for link in result.bundle["link"]}
    shown["place"] = result.first + place
    for relation, index in (("previous", place - 1), ("next", place + 1)):
        if 0 <= index < len(references):
            shown[relation] = see(references[index], origin=origin)
        elif relation in links:
            shown[relation] = url_for(".step", id=origin, relation=relation, open=1)
    return shown


# --------------------------------------------------------------------------------- stay


def _stay(reference: str) -> str:
    stay = _read_stay(reference)
    near, neighbours = _near(stay)
    drawn: list[Any] = []
    if stay.start:
        now = explorer.read_offer().now()
        start = end = wall(stay.start)
        if stay.status != "planned":
            end = wall(stay.end) if stay.end else max(start, wall(now))
        since, until = start - _BEFORE, end + _AFTER
        bands = _bands(near)
        drawn = timelines(bands, now, gutter=_GUTTER, since=since, until=until)
    return render_template(
        "stay.html",
        stay=stay,
        frise=drawn,
        neighbours=neighbours,
        **_technical(stay.resource),
        **_list(reference),
    )


def _read_stay(reference: str) -> Stay:
    """Return a stay with patient and hospital, in one request where that is offered."""
    id = reference.partition("/")[2]
    offer = explorer.search_offer("Encounter")
    if offer.includes and "_id" in offer.parameters:
        try:
            bundle, _ = explorer.search("Encounter", [("_id", id)])
        except RefusedError as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise
        else:
            results = Results(bundle)
            explorer.remember_wards(results)
            if results.stays:
                return results.stays[0]
    # A read tells a removed stay from one that never was.
    stay = Stay.of(explorer.call(reference))
    patient, house = _read(stay.subject), _read(stay.site)
    return replace(
        stay,
        patient=Person.of(patient) if patient else None,
        house=House.of(house) if house else None,
    )


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


def _near(stay: Stay) -> tuple[Sequence[Stay], dict[str, Stay]]:
    """Return the patient's stays about a stay's time, and those just before and after."""
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
        return [stay], {}
    dated = [s for s in Results(bundle).stays if s.start]
    dated.sort(key=lambda s: (s.start, s.id))
    ids = [s.id for s in dated]
    if stay.id not in ids:
        return [stay], {}
    place = ids.index(stay.id)
    neighbours = {}
    if place:
        neighbours["before"] = dated[place - 1]
    if place + 1 < len(dated):
        neighbours["after"] = dated[place + 1]
    return dated, neighbours


def _bands(stays: Sequence[Stay]) -> list[Band]:
    """Return a band for each type of stay, in the order of the words."""
    return [
        Band(gettext(words), of_type)
        for kind, words in CLASSES.items()
        if (of_type := [stay for stay in stays if stay.kind == kind])
    ]


# ------------------------------------------------------------------------------ patient


def _patient(sealed: str, reference: str, *, is_whole: bool = False) -> str:
    period = request.args.get("period")
    listed = max(1, request.args.get("page", 1, type=int))
    if not reference.startswith("Patient/") or period not in {None, *PERIODS}:
        raise NotFound
    digest = blake2b(reference.encode(), digest_size=18).hexdigest()
    # Another period or page of what has been read is no new look at the patient.
    result = None
    if period is not None or "page" in request.args:
        result = explorer.sessions.result(g.session, digest)
    if result is None:
        result = _collected(reference)
        explorer.sessions.save_result(g.session, result, digest)
    elif is_whole:
        explorer.call(reference)
    results = Results(result.bundle)
    patient, stays = Person.of(results.included[reference]), results.stays
    now = explorer.read_offer().now()
    if period is None:
        period = "12" if len(stays) > MANY else ""
    since: datetime | None = None
    if period:
        since = wall(now) - timedelta(days=int(365.25 / 12 * int(period)))
    drawn = timelines(_bands(stays), now, gutter=_GUTTER, since=since)
    if not drawn and period and request.args.get("period") is None:
        period, drawn = "", timelines(_bands(stays), now, gutter=_GUTTER)
    here = next((s for s in stays if s.status == "in-progress" and s.took(now)), None)
    places = {stay.id: 1 + index // PAGE for index, stay in enumerate(stays)}
    return render_template(
        "patient.html",
        patient=patient,
        house=results.house(patient.site),
        sealed=sealed,
        here_now=here,
        stays=stays[(listed - 1) * PAGE : listed * PAGE],
        whole=len(stays),
        all_stays=results.total,
        most_stays=MOST_STAYS,
        messages=results.messages,
        undated=sum(stay.start is None for stay in stays),
        listed=listed,
        page_size=PAGE,
        places=places,
        period=period,
        periods=PERIODS,
        frise=drawn,
        is_whole=is_whole,
        columns=columns_of("Encounter"),
        **_technical(patient.resource),
        **{**_list(reference), "kind": "Patient"},
    )


def _collected(reference: str) -> Result:
    """Return a patient and all stays, as one Bundle."""
    patient = explorer.call(reference)
    criteria: Pairs = [("patient", reference)]
    bundle: dict[str, Any] = {"entry": [], "link": []}
    try:
        bundle, _ = explorer.collect("Encounter", criteria, MOST_STAYS)
    except RefusedError as error:
        if error.status != HTTPStatus.FORBIDDEN:
            raise
    bundle["entry"].append({"resource": patient, "search": {"mode": "include"}})
    return Result("Encounter", form=[], criteria=criteria, bundle=bundle)
