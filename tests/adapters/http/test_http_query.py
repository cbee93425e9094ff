"""Searches as the parameters that an HTTP source is sent, and what it cannot be sent."""

import pytest

from adapters.contract import Limit, NotAskableError
from tests.adapters.http_cases import URL, api_and_adapter, opened_at, rows_of
from tests.hospital_http import answer
from toolkit.contract.harness import PATIENT, ask, dates, ids_of, patient, text, token
from toolkit.contract.hospital import EDGES, VISIT_SYSTEMS

MODEL = EDGES.model()
BOTH = ("entreeDu", "entreeAvant")
BOUNDS = (
    'date: {ge: "entreeDu={value:%d/%m/%Y %H:%M:%S}",'
    ' lt: "entreeAvant={value:%d/%m/%Y %H:%M:%S}"}'
)
FORM = "%Y-%m-%dT%H:%M:%S"
DAYS = '{ge: "entreeDu={value}", lt: "entreeAvant={value}", step: day}'
DAYS_IN_UTC = '{ge: "entreeDu={value}", step: day, time_zone: UTC}'
OFFSETS = f"{{ge: 'entreeDu={{value:{FORM}%z}}', le: 'entreeAvant={{value:{FORM}%z}}'}}"
OFFSETS_IN_UTC = f"{{ge: 'entreeDu={{value:{FORM}%z}}', time_zone: UTC}}"
PREFIXED = (
    f"{{gt: 'entreeDu=sa{{value:{FORM}%:z}}', lt: 'entreeAvant=lt{{value:{FORM}%:z}}'}}"
)
EPOCH = '{ge: "entreeDu={value:epoch-ms}"}'
AFTER = '{gt: "entreeDu={value}", step: day}'
ONE = (('_id: {query: "ids={values}", separator: ","}', '_id: {query: "ids={value}"}'),)
MOST = ((ONE[0][0], ONE[0][0].replace("separator", "most: 2, separator")),)
INNER = (
    ('query: "venues={values}"', "query: \"f=v in ('{values}')\""),
    ('"venues={value}&etabs={system}"', "\"f=v eq '{value}' and s eq '{system}'\""),
)
SYSTEMS = tuple(VISIT_SYSTEMS.values())
UNTIL = '{ge: "entreeDu={value}", le: "entreeAvant={value}", step: minute}'
AUTUMN, WINTER = "2024-10-27T02:30:00+0100", "2024-10-27T02:30:00+01:00"


def no_rows(_):
    """Answer without rows: what is sent is of interest."""
    return answer({"resultats": [], "nombre": 0})


def dated(bounds):
    """Return the change that makes these the bounds of dates."""
    return ((BOUNDS, f"date: {bounds}"),) if bounds else ()


SENT = (
    (DAYS, "2024-03-14", {"entreeDu": "2024-03-14", "entreeAvant": "2024-03-15"}),
    # Without the first bound, an API could find 1900-01-01, which is absent.
    (DAYS, "le2024-03-14", {"entreeDu": "1940-01-01", "entreeAvant": "2024-03-15"}),
    (DAYS, "ge2024-03-14T23:00Z", {"entreeDu": "2024-03-15"}),
    (DAYS_IN_UTC, "ge2024-03-14T00:00:00Z", {"entreeDu": "2024-03-14"}),
    ("", "ge2024-10-27T01:30Z", {"entreeDu": "27/10/2024 03:00:00"}),
    (OFFSETS, WINTER, {"entreeDu": AUTUMN, "entreeAvant": AUTUMN}),
    (OFFSETS_IN_UTC, f"ge{WINTER}", {"entreeDu": "2024-10-27T01:30:00+0000"}),
    (PREFIXED, f"ge{WINTER}", {"entreeDu": "sa2024-10-27T02:29:59+01:00"}),
    (EPOCH, "ge2024-03-14T10:00:00+01:00", {"entreeDu": "1710406800000"}),
    (AFTER, "gt2024-03", {"entreeDu": "2024-03-31"}),
)
"""Bounds of a mapping file, a date of a search, and the parameters that are sent."""


@pytest.mark.parametrize(("bounds", "value", "sent"), SENT)
def test_bounds_are_written_as_the_source_takes_them(tmp_path, bounds, value, sent):
    with api_and_adapter(tmp_path, changes=dated(bounds)) as (api, adapter):
        api.strange = no_rows
        adapter.search(ask(dates(value)))
        (request,) = api.requests
        assert {k: v for k, v in request.args.items() if k in BOTH} == sent


REFUSED = (
    (dated(DAYS), dates("ge2024-03-14T10:00:00+01:00"), Limit.DAY),
    (dated(DAYS), dates("2024-03-14T00:00"), Limit.DAY),
    (dated(DAYS_IN_UTC), dates("ge2024-03-14"), Limit.OTHER_DAYS),
    (dated(UNTIL), dates("ge2024-03-14T10:00:30+01:00"), Limit.MINUTE),
    (dated('{ge: "entreeDu={value}", step: day}'), dates("ne2024-03-14"), Limit.PREFIX),
    ((), dates("2024-03-14", "2024-05"), Limit.ONE_VALUE),
    (ONE, token("_id", "1", "2"), Limit.ONE_VALUE),
    (MOST, token("_id", "1", "2", "3"), Limit.MOST),
    ((), token("identifier", *(f"{s}|V1" for s in SYSTEMS)), Limit.ONE_VALUE),
    (INNER, token("identifier", "V1", f"{SYSTEMS[0]}|V1"), Limit.ONE_VALUE),
    ((), token("class", "UNK"), Limit.CODE),
    ((), token("identifier", "|1"), Limit.SYSTEM),
)
"""Changes of a mapping file, what is searched for, and why it is refused."""


def test_what_cannot_be_sent_is_refused(tmp_path, source):
    for changes, criterion, limit in REFUSED:
        adapter = opened_at(URL, tmp_path, changes=changes)
        for call in (adapter.search, adapter.count, adapter.explain):
            with pytest.raises(NotAskableError) as caught:
                call(ask(criterion))
            assert caught.value.limit is limit, criterion
            assert caught.value.parameter == criterion.parameter


def test_patients_who_may_be_one_are_not_taken_for_two(tmp_path):
    """Patient 7 was merged into 8, as the source alone knows."""
    with api_and_adapter(tmp_path) as (api, adapter):
        for values in ((("7",), ("8",)), (("7", "2"), ("8", "2"))):
            with pytest.raises(NotAskableError) as caught:
                adapter.search(ask(*(patient(*each) for each in values)))
            assert caught.value.limit is Limit.ONCE
        assert api.requests == []
        adapter.search(ask(patient("7"), patient("8", "7")))
        found = adapter.search(ask(patient("8", "7"), patient("7", "8")))
        assert ids_of(found) == ["91", "90"]
        assert [request.args["ipp"] for request in api.requests] == ["7", "8,7"]


def test_one_system_of_all_visit_numbers_is_never_sent(tmp_path):
    own = (
        "visit_number_system: {from: etablissement.id, codes: systems}",
        "visit_number_system: {value: 'urn:oid:1.2.3'}",
    )
    with api_and_adapter(tmp_path, changes=(own,)) as (api, adapter):
        api.strange = no_rows
        for other in ("urn:oid:1.2.4|V1", "|V1"):
            assert adapter.count(ask(token("identifier", other))) == 0
        assert api.requests == []
        for value in ("V1", "urn:oid:1.2.3|V1"):
            adapter.search(ask(token("identifier", value)))
        sent = [set(request.args) & {"venues", "etabs"} for request in api.requests]
        assert sent == [{"venues"}, {"venues"}]
        assert [request.args["venues"] for request in api.requests] == ["V1", "V1"]


def test_of_several_codes_of_a_system_the_first_is_sent(tmp_path):
    codes = ("systems: {table: {", f"systems: {{table: {{'H0': '{SYSTEMS[0]}', ")
    with api_and_adapter(tmp_path, changes=(codes,)) as (api, adapter):
        api.strange = no_rows
        adapter.search(ask(token("identifier", f"{SYSTEMS[0]}|V1")))
        assert api.requests[0].args["etabs"] == "H0"


def test_otherwise_is_sent_as_all_other_codes(tmp_path):
    query = 'class: {query: "types={values}"'
    changes = ((query, f'{query}, excluding: "sansTypes={{values}}"'),)
    with api_and_adapter(tmp_path, changes=changes) as (api, adapter):
        api.strange = no_rows
        for codes in (("UNK",), ("UNK", "IMP"), ("IMP",)):
            adapter.search(ask(token("class", *codes)))
        sent = [
            (request.args.get("types"), request.args.get("sansTypes"))
            for request in api.requests
        ]
        others = ((None, "URG,HC,HP,EXT,SEA"), (None, "URG,EXT,SEA"))
        assert sent == [*others, ("HC,HP", None)]


def test_post_sends_a_form(tmp_path):
    change = (("rows: resultats", "rows: resultats, method: post"),)
    with api_and_adapter(tmp_path, changes=change) as (api, adapter):
        assert rows_of(adapter.search(ask())) == rows_of(MODEL.search(ask()))
        assert (api.requests[-1].method, api.requests[-1].query_string) == ("POST", b"")


ABSENT = (
    ("{from: uf.code}", '{from: uf.code, absent: ["0"]}'),
    ("{from: numVenue}", '{from: numVenue, absent: ["0"]}'),
    ("{from: patient.ipp}", '{from: patient.ipp, absent: ["0"]}'),
    ("{from: etat, codes: states}", '{from: etat, codes: states, absent: ["P"]}'),
)


def test_what_no_row_can_match_is_not_asked(tmp_path):
    with api_and_adapter(tmp_path, changes=ABSENT) as (api, adapter):
        for criteria in (
            (token("status", "hidden"),),
            (token("_id", "1"), token("_id", "2")),
            (dates("ge2024-05-01"), dates("lt2024-04-01")),
            (token("_id"),),
            (token("_id", "1" * 65),),
            (token("identifier", "V1\0"),),
            (token("identifier", "V1\ud800"),),
            (token("identifier", "V1,V2"),),
            # What the mapping calls absent (decision 45).
            (token("service-provider._extension", "0"),),
            (token("identifier", "0"),),
            (patient("0"),),
            (token("status", "planned"),),
            (dates("lt1920"),),
        ):
            assert adapter.search(ask(*criteria)).rows == ()
            assert adapter.count(ask(*criteria)) == 0
        for name in ("-", "\u2019 "):
            assert adapter.count(ask(text("family", name), of=PATIENT)) == 0
        assert api.requests == []
