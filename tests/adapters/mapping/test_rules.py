"""What a mapping file says wrongly, at the line to mend, beside the files of tests/mapping."""
# ruff: noqa: E501

from adapters import open_adapter
from adapters.contract import ResourceType
from adapters.mapping.profile import profile_of
from app.offer import compute_offer
from tests.adapters.mapping.good import (
    HTTP,
    MINIMAL,
    TWO,
    WHOLE,
    assert_problems,
    changed,
    load,
)

NUMBERS = """\
patient:
  read: {path: '/p/{id}'}
  fields: {id: {from: id}, identifiers: [{rows: ids,
    key: x, value: {from: value}}]}
"""
"""A section of patients whose numbers are a list in the answer."""

CASES = (
    (MINIMAL, ("name: Small", "name: [Small]"), ("2 name",)),
    (MINIMAL, ("{from: a}", "{from: [a, b]}"), ("11 Encounter.id",)),
    (MINIMAL, ("{from: a}", "{from: a, form: guid}"), ("11 Encounter.id guid",)),
    (MINIMAL, ("{from: b}", "{from: a, form: uuid}"), ("12 Encounter.subject same form",)),
    (WHOLE, ("{value: hospital-1}", "{value: hospital-1, form: uuid}"), ("63 Patient.managingOrganization column",)),
    (HTTP, ("{from: patient.id}", "{from: patient.id, form: uuid}"), ("22 Encounter.subject database",)),
    (MINIMAL, ("kind: sql", "kind: [sql]"), ("5 source.kind",)),
    (WHOLE, ("timeout_seconds: 2.5", "timeout_seconds: nan"), ("22 source.timeout_seconds",)),
    (MINIMAL, ("P: planned", "'': planned"), ("7 codes.status",)),
    (MINIMAL, ("P: planned", "'P ': planned"), ("7 codes.status",)),
    (WHOLE, ("organization_id: hospital-1", "organization_id: hospital_1"), ("49 Encounter.serviceProvider .",)),
    (HTTP, ("  headers:", "  auth: {}\n  headers:"), ("8 source.auth",)),
    (HTTP, ("{offset: from}", "{offset: from, first: 0}"), ("19 encounter.list.paging.first",)),
    (HTTP, ("ids={value}", "ids={number}"), ("26 encounter.search._id.query {value}",)),
    (HTTP, ('ge: "since={value}", lt: "before={value}", ', ""), ("27 encounter.search.date",)),
    (HTTP, ('lt: "', 'gt: "b={value}", lt: "'), ("27 encounter.search.date.gt",)),
    (HTTP, ("since={value}", "since={values}"), ("27 encounter.search.date.ge {values}",)),
    (HTTP, ('"states={value}"', '"states={value}", excluding: "no={values}"'), ("28 encounter.search.status.excluding otherwise",)),
    (HTTP, ("by: {date: by", "nulls: top, by: {date: by"), ("29 encounter.sort.nulls top",)),
    (HTTP, ('"not=A"', '"not=A&=B"'), ("18 encounter.list.fixed",)),
    (HTTP, ("count: nb", "count: states"), ("28 encounter.search.status.query states",)),
    (WHOLE, ("organization_id: hospital-1", "organization_id: {from: h, strip: O/}"), ("49 Encounter.serviceProvider SELECT",)),
    (HTTP, ("{from: began}", "{from: began, search: b}"), ("24 Encounter.period.start databases",)),
    (HTTP, ("  sort:", "  order: any\n  sort:"), ("29 encounter.order",)),
    (MINIMAL, ("FROM t\n", "FROM t; DROP TABLE t\n"), ("9 encounter.rows ;",)),
    (WHOLE, ("O: true", "O: oui"), ("31 codes.yes active",)),
    (WHOLE, ("      - use: home\n", "      - key: x\n        use: home\n"), ("84 Patient.address",)),
    (WHOLE, ("  functional_unit_extension: https://example.org/functional-unit\n", ""), ("47 Encounter.serviceProvider.extension",)),
    (WHOLE, ("%Y%m%d%H%M", "%d/%m/%y %H:%M"), ("45 Encounter.period.end pivot", "45 Encounter.period.end texts")),
    (WHOLE, ('"%Y%m%d%H%M"', "epoch\n      pivot: 1970"), ("46 Encounter.period.end %y",)),
    (WHOLE, ("{from: born}", "{from: born, pivot: 1970}"), ("61 Patient.birthDate last",)),
    (WHOLE, ("class: {from: kind, codes: class}", "class: IMP", "  class: {table: {URG: EMER, 01: IMP}, otherwise: UNK}\n", ""), ("50 encounter.search class",)),
    (WHOLE, ("        family: {from: name}\n", ""), ("88 patient.search family",)),
    (MINIMAL, ("codes:\n", "date: period\ncodes:\n"), ("16 encounter.search",)),
    (WHOLE, ("birth_date: {from: born}", 'birth_date: {from: born, format: "%d%m%Y"}'), ("61 Patient.birthDate birthdate",)),
    (HTTP, ("KEY}}", "NONE}}"), ("8 source.headers.X-Api-Key.env NONE",)),
    (HTTP, ("{env: PAS_URL}", "{env: OLD}"), ("7 source.url",)),
    (HTTP, ('    fixed: "not=A"\n', ""), ("13 encounter.list",)),
    (HTTP, ("since={value}", "since={value:%Y-%m-%d}", "step: day", "step: minute"), ("27 encounter.search.date.ge %Y-%m-%d",)),
    (HTTP, ("P: planned, S", "P: planned, Q: planned, S"), ("28 encounter.search.status.query planned",)),
    (HTTP, ('    status: {query: "states={value}"}\n', '    identifier: {query: "n={value}", system: "n={value}&s={system}", codes: sites}\n'), ("28 encounter.search.identifier", "28 encounter.search.identifier.codes sites")),
    (HTTP, ('"ids={value}"', '"ids={value}&a=1", separator: ","'), ("26 encounter.search._id.separator",)),
    (HTTP, ("A: hidden}}", "A: hidden}, otherwise: planned}", '"states={value}"', '"s=({values})", excluding: "n={value}", separator: ","'), ("28 encounter.search.status.excluding",)),
    (HTTP, ('"ids={value}"', '"ids={value:%Y}"'), ("26 encounter.search._id.query %Y",)),
    (HTTP, ('"ids={value}"', '"{value}={value}"'), ("26 encounter.search._id.query name",)),
    (HTTP, ("  headers:", "  encoding: latin-x\n  headers:"), ("8 source.encoding latin-x",)),
    (HTTP, ("name: Small", "name: Small\ndate: period"), ("3 date", "28 encounter.search.date",)),
    (TWO, ("organization_id: h-1", "organization_id: {from: b}"), ("22 Encounter.serviceProvider",)),
    (TWO, ("organization_id: h-1", "organization_id: {value: h, source: north}"), ("22 Encounter.serviceProvider",)),
    (TWO, ("search: [_id, date, class]", "search: [_id, date, identifier]"), ("11 encounter.search identifier",)),
    (TWO, ("id: {from: a}\n        patient_id: {from: b, source: north}", "id: {from: a, source: x}\n        patient_id: {from: b, source: north}"), ("18 Encounter.id source",)),
    (HTTP, ("{offset: from}", "{next: n}", "by: {date: by", "nulls: high, by: {date: by"), ("29 encounter.sort.nulls offset",)),
    (HTTP, ("  sort: {by: {date: by=d, -date: by=-d}}\n", NUMBERS), ("29 patient searches", "32 Patient.identifier databases")),
    (MINIMAL, ("{from: b}", "{from: b, codes: people}", "codes:\n", "codes:\n  people: {table: {A: p-1}}\n", "[_id, date]", "[_id, date, patient]"), ("13 Encounter.subject patient",)),
    (MINIMAL, ("{from: b}", "{from: b, merges: follow}"), ("12 Encounter.subject replaced_by",)),
    (TWO, ("patient_id: {from: b, source: north}", f"patient_id: {{value: {'x' * 63}, source: north}}"), ("19 Encounter.subject 64",)),
)  # fmt: skip


def test_a_fault_is_found_at_its_line(tmp_path):
    for base, changes, expected in CASES:
        assert_problems(changed(base, *changes), tmp_path, expected)
    for address in ("//[x/pas", "//pas:99999", "//pas:port", "//:443"):
        text = changed(HTTP, "{env: PAS_URL}", f"'http:{address}'")
        assert_problems(text, tmp_path, ("7 source.url",))


def test_an_unknown_parameter_of_a_class_is_refused(tmp_path):
    own = changed(MINIMAL, "kind: sql", "kind: 'ours.pas:Pas'")
    head, _, rest = own.partition("  rows:")
    _, _, tail = rest.partition("  search: [_id, date]\n")
    text = f"{head}  search: [_id, dates]\n{tail}"
    assert_problems(text, tmp_path, ("9 encounter.search dates",))


def test_an_organization_may_be_read_alone(tmp_path):
    """Under a profile that searches organizations; stays and patients need their list."""
    read = (
        "\n  read: {path: '/o/{id}'}\n  fields: {id: {from: id}, name: {from: name}}\n"
    )
    mapping = load(f"{HTTP}organization:{read}", tmp_path)
    offer = compute_offer(profile_of(mapping), open_adapter(mapping).capabilities)
    assert not offer.resources[ResourceType.ORGANIZATION].searchable
    assert offer.resources[ResourceType.ENCOUNTER].searchable
    patient = read.replace(", name: {from: name}", "")
    assert_problems(f"{HTTP}patient:{patient}", tmp_path, ("30 patient searches",))
