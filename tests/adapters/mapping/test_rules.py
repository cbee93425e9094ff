"""What a mapping file says wrongly, at the line to mend, beside the files of tests/mapping."""
# ruff: noqa: E501

import pytest

from adapters import open_adapter
from adapters.contract import ResourceType
from adapters.mapping.problems import MappingError
from adapters.mapping.profile import profile_of
from app.offer import compute_offer
from tests.adapters.mapping.good import (
    HTTP,
    MINIMAL,
    TWO,
    WHOLE,
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
    (WHOLE, ("timeout_seconds: 2.5", "timeout_seconds: nan"), ("22 source.timeout_seconds",)),
    (MINIMAL, ("P: planned", "'': planned"), ("7 codes.status",)),
    (MINIMAL, ("P: planned", "'P ': planned"), ("7 codes.status",)),
    (WHOLE, ("organization_id: hospital-1", "organization_id: hospital_1"), ("49 Encounter.serviceProvider .",)),
    (HTTP, ("  headers:", "  auth: {}\n  headers:"), ("8 source.auth",)),
    (HTTP, ("{offset: from}", "{offset: from, first: 0}"), ("19 encounter.list.paging.first",)),
    (HTTP, ("ids={value}", "ids={number}"), ("26 encounter.search._id.query {value}",)),
    (HTTP, ('ge: "since={value}", lt: "before={value}", ', ""), ("27 encounter.search.date",)),
    (HTTP, ('lt: "', 'gt: "b={value}", lt: "'), ("27 encounter.search.date.gt",)),
    (HTTP, ('"states={value}"', '"states={value}", excluding: "no={values}"'), ("28 encounter.search.status.excluding otherwise",)),
    (HTTP, ("by: {date: by", "nulls: top, by: {date: by"), ("29 encounter.sort.nulls top",)),
    (HTTP, ('"not=A"', '"not=A&=B"'), ("18 encounter.list.fixed",)),
    (WHOLE, ("organization_id: hospital-1", "organization_id: {from: h, strip: O/}"), ("49 Encounter.serviceProvider SELECT",)),
    (HTTP, ("{from: began}", "{from: began, search: b}"), ("24 Encounter.period.start databases",)),
    (HTTP, ("  sort:", "  order: any\n  sort:"), ("29 encounter.order",)),
    (MINIMAL, ("FROM t\n", "FROM t; DROP TABLE t\n"), ("9 encounter.rows ;",)),
    (WHOLE, ("O: true", "O: oui"), ("31 codes.yes active",)),
    (WHOLE, ("      - use: home\n", "      - key: x\n        use: home\n"), ("84 Patient.address",)),
    (WHOLE, ("%Y%m%d%H%M", "%d/%m/%y %H:%M"), ("45 Encounter.period.end pivot", "45 Encounter.period.end texts")),
    (WHOLE, ('"%Y%m%d%H%M"', "epoch\n      pivot: 1970"), ("46 Encounter.period.end %y",)),
    (WHOLE, ("{from: born}", "{from: born, pivot: 1970}"), ("61 Patient.birthDate last",)),
    (WHOLE, ("class: {from: kind, codes: class}", "class: IMP", "  class: {table: {URG: EMER, 01: IMP}, otherwise: UNK}\n", ""), ("50 encounter.search class",)),
    (WHOLE, ("        family: {from: name}\n", ""), ("88 patient.search family",)),
    (MINIMAL, ("codes:\n", "date: period\ncodes:\n"), ("16 encounter.search",)),
    (HTTP, ("KEY}}", "NONE}}"), ("8 source.headers.X-Api-Key.env NONE",)),
    (HTTP, ("{env: PAS_URL}", "{env: OLD}"), ("7 source.url",)),
    (HTTP, ('    fixed: "not=A"\n', ""), ("13 encounter.list",)),
    (HTTP, ("since={value}", "since={value:%Y-%m-%d}", "step: day", "step: minute"), ("27 encounter.search.date.ge %Y-%m-%d",)),
    (HTTP, ("P: planned, S", "P: planned, Q: planned, S"), ("28 encounter.search.status.query planned",)),
    (HTTP, ('    status: {query: "states={value}"}\n', '    identifier: {query: "n={value}", system: "n={value}&s={system}", codes: sites}\n'), ("28 encounter.search.identifier", "28 encounter.search.identifier.codes sites")),
    (HTTP, ('"ids={value}"', '"ids={value}&a=1", separator: ","'), ("26 encounter.search._id.separator",)),
    (HTTP, ("A: hidden}}", "A: hidden}, otherwise: planned}", '"states={value}"', '"s=({values})", excluding: "n={value}", separator: ","'), ("28 encounter.search.status.excluding",)),
    (HTTP, ('"ids={value}"', '"ids={value:%Y}"'), ("26 encounter.search._id.query %Y",)),
    (HTTP, ("  headers:", "  encoding: latin-x\n  headers:"), ("8 source.encoding latin-x",)),
    (HTTP, ("name: Small", "name: Small\ndate: period"), ("3 date", "28 encounter.search.date",)),
    (TWO, ("organization_id: h-1", "organization_id: {from: b}"), ("22 Encounter.serviceProvider",)),
    (TWO, ("organization_id: h-1", "organization_id: {value: h, source: north}"), ("22 Encounter.serviceProvider",)),
    (TWO, ("id: {from: a}\n        patient_id: {from: b, source: north}", "id: {from: a, source: x}\n        patient_id: {from: b, source: north}"), ("18 Encounter.id source",)),
    (HTTP, ("{offset: from}", "{next: n}", "by: {date: by", "nulls: high, by: {date: by"), ("29 encounter.sort.nulls offset",)),
    (HTTP, ("  sort: {by: {date: by=d, -date: by=-d}}\n", NUMBERS), ("29 patient searches", "32 Patient.identifier databases")),
    (MINIMAL, ("{from: b}", "{from: b, codes: people}", "codes:\n", "codes:\n  people: {table: {A: p-1}}\n", "[_id, date]", "[_id, date, patient]"), ("13 Encounter.subject patient",)),
    (MINIMAL, ("{from: b}", "{from: b, merges: follow}"), ("12 Encounter.subject replaced_by",)),
    (TWO, ("patient_id: {from: b, source: north}", f"patient_id: {{value: {'x' * 63}, source: north}}"), ("19 Encounter.subject 64",)),
)  # fmt: skip


def assert_problems(text, directory, expected):
    """Fail unless these and no others are found: line, element, and a word of the text."""
    with pytest.raises(MappingError) as refused:
        load(text, directory)
    for problem, said in zip(refused.value.problems, expected, strict=True):
        line, element, word = (*said.split(" "), "")[:3]
        assert (problem.mark.line, problem.element.split(" ← ")[0]) == (
            int(line),
            element,
        )
        assert word in problem.text


def test_a_fault_is_found_at_its_line(tmp_path):
    for base, changes, expected in CASES:
        assert_problems(changed(base, *changes), tmp_path, expected)
    for address in ("//[x/pas", "//pas:99999", "//pas:port", "//:443"):
        text = changed(HTTP, "{env: PAS_URL}", f"'http:{address}'")
        assert_problems(text, tmp_path, ("7 source.url",))


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
