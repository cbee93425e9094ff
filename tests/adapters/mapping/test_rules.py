"""Rules: what the keys of a file say wrongly about each other, at the line to mend."""
# ruff: noqa: E501

from pathlib import Path

import pytest

from adapters.mapping.load import load_mapping
from tests.adapters.mapping.good import (
    HTTP,
    HTTP_ENVIRON,
    MINIMAL,
    WHOLE,
    assert_problems,
    changed,
    load,
    problems,
)

CASES = (
    (MINIMAL, ("PAS_URL", "PAS_URI"), ("5 source.url.env",)),
    (MINIMAL, ("profile: full", "profile: group-c"), ("3 profile group-b",)),
    (MINIMAL, ("SELECT a, b, c, d FROM t", "DELETE FROM t"), ("9 encounter.rows",)),
    (MINIMAL, ("FROM t\n", "FROM t;\n"), ("9 encounter.rows ;",)),
    (MINIMAL, ("FROM t\n", "FROM t; DROP TABLE t\n"), ("9 encounter.rows ;",)),
    (WHOLE, ("SELECT patient_id, number FROM other_numbers", "numbers"), ("72 Patient.identifier",)),
    (MINIMAL, ("codes: status}", "codes: statuses}"), ("13 Encounter.status statuses",)),
    (MINIMAL, ("codes:\n", "codes:\n  kinds: {table: {a: b}}\n"), ("7 codes.kinds",)),
    (MINIMAL, ("S: finished", "S: done"), ("7 codes.status done",)),
    (WHOLE, ("otherwise: UNK", "otherwise: OTHER"), ("29 codes.class OTHER",)),
    (WHOLE, ("01: IMP", "01: hidden"), ("29 codes.class hidden",)),
    (WHOLE, ("from: label}", "from: label, codes: names}", "codes:\n  status", "codes:\n  names: {table: {a: hidden}}\n  status"), ("28 codes.names hidden",)),
    (WHOLE, ("O: true", "O: oui"), ("31 codes.yes active",)),
    (MINIMAL, ("  sort: [date]", "  requires: [class]"), ("16 encounter.requires class",)),
    (WHOLE, ("        key: patient_id\n", ""), ("72 Patient.identifier",)),
    (WHOLE, ("      - use: home\n", "      - key: x\n        use: home\n"), ("84 Patient.address",)),
    (WHOLE, ("  visit_number_system: urn:oid:1.2.250.1.999.1.1\n", ""), ("37 Encounter.identifier.value",)),
    (WHOLE, ("  functional_unit_extension: https://example.org/functional-unit\n", ""), ("47 Encounter.serviceProvider.extension",)),
    (WHOLE, ("Europe/London", "europe/london"), ("46 Encounter.period.end Europe/London",)),
    (WHOLE, ("time_zone: UTC", "time_zone: CEST"), ("25 source.time_zone EST",)),
    (WHOLE, ("%Y%m%d%H%M", "%d/%m %H:%M"), ("45 Encounter.period.end",)),
    (WHOLE, ("%Y%m%d%H%M", "yyyyMMdd"), ("45 Encounter.period.end yyyyMMdd",)),
    (WHOLE, ("%Y%m%d%H%M", "%Y%m%d%H%M %Z"), ("45 Encounter.period.end",)),
    (WHOLE, ("%Y%m%d%H%M", "%Y%m%d%Q"), ("45 Encounter.period.end %Y%m%d%Q",)),
    (MINIMAL, ("[_id, date]", "[_id, class]"), ("15 encounter.search class",)),
    (WHOLE, ("class: {from: kind, codes: class}", "class: IMP", "  class: {table: {URG: EMER, 01: IMP}, otherwise: UNK}\n", ""), ("50 encounter.search class",)),
    (WHOLE, ("        family: {from: name}\n", ""), ("88 patient.search family",)),
    (MINIMAL, ("codes:\n", "date: period\ncodes:\n"), ("16 encounter.search",)),
    (MINIMAL, ("sort: [date]", "sort: [_lastUpdated]"), ("16 encounter.sort _lastUpdated",)),
    (MINIMAL, ("{from: d}", "{from: [d, e]}"), ("14 Encounter.period.start date",)),
    (MINIMAL, ("{from: d}", "{from: [d, e]}", "[_id, date]", "[_id]"), ("14 Encounter.period.start date",)),
    (MINIMAL, ("{from: d}", '{from: d, format: "%d/%m/%Y %H:%M"}'), ("14 Encounter.period.start date",)),
    (WHOLE, ("birth_date: {from: born}", 'birth_date: {from: born, format: "%d%m%Y"}'), ("61 Patient.birthDate birthdate",)),
    (HTTP, ("KEY}}", "NONE}}"), ("8 source.headers.X-Api-Key.env NONE",)),
    (HTTP, ("{env: KEY}", "abc"), ("8 source.headers.X-Api-Key",)),
    (HTTP, ("{env: PAS_URL}", "{env: OLD}"), ("7 source.url",)),
    (HTTP, ("  headers:", "  auth: {basic: {user: u, password: geheim}}\n  headers:"), ("8 source.auth.basic.password",)),
    (HTTP, ("    paging: {offset: from}\n", ""), ("13 encounter.list full",)),
    (HTTP, ("    fixed: {not: A}\n", ""), ("13 encounter.list",)),
    (HTTP, ("step: day", 'step: minute, format: "%Y-%m-%d"'), ("27 encounter.search.date.format %Y-%m-%d",)),
    (HTTP, ("P: planned, S", "P: planned, Q: planned, S"), ("28 encounter.search.status planned",)),
    (HTTP, ("name: Small", "name: Small\ndate: period"), ("3 date", "28 encounter.search.date",)),
    (HTTP, ("    start: {from: began}\n", ""), ("26 encounter.search.date",)),
)  # fmt: skip


@pytest.mark.parametrize(("base", "changes", "expected"), CASES)
def test_a_fault_is_found_at_its_line(
    base: str, changes: tuple[str, ...], expected: tuple[str, ...], tmp_path: Path
) -> None:
    assert_problems(changed(base, *changes), tmp_path, expected)


@pytest.mark.parametrize(
    "address", ["http://[x/pas", "http://pas:99999", "http://pas:port", "https://:443"]
)
def test_an_address_that_leads_nowhere_is_refused(tmp_path: Path, address: str) -> None:
    text = changed(HTTP, "{env: PAS_URL}", f"'{address}'")
    assert_problems(text, tmp_path, ("7 source.url",))


def test_all_faults_are_found_at_once(tmp_path: Path) -> None:
    text = changed(
        HTTP,
        *("{env: KEY}", "abc", "{env: PAS_URL}", "{env: OLD}"),
        *("    fixed: {not: A}\n", "", "/s/{id}", "/s/id"),
    )
    lines = ("7 source.url", "8 source.headers.X-Api-Key", "12 encounter.read.path")
    assert_problems(text, tmp_path, (*lines, "13 encounter.list"))


def test_fingerprint_tells_calls_apart_and_no_secret(tmp_path: Path) -> None:
    first = load(HTTP, tmp_path).fingerprint
    assert load(changed(HTTP, "Small", "Other"), tmp_path).fingerprint == first
    for change in (("path: /s\n", "path: /t\n"), ("-date: -d", "-date: e")):
        assert load(changed(HTTP, *change), tmp_path).fingerprint != first
    file = tmp_path / "m.yaml"
    file.write_text(HTTP)
    again = load_mapping(file, {**HTTP_ENVIRON, "KEY": "other"})
    assert again.fingerprint == first


def test_line_ends_of_a_mounted_secret_are_no_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(HTTP)
    ended = {name: f"{value}\r\n" for name, value in HTTP_ENVIRON.items()}
    mapping = load_mapping(tmp_path / "m.yaml", ended)
    assert mapping.source.url == HTTP_ENVIRON["PAS_URL"]
    assert mapping.source.http is not None
    assert dict(mapping.source.http.headers) == {"X-Api-Key": "k"}
    unset = problems(HTTP, tmp_path, {**HTTP_ENVIRON, "KEY": "\n"})
    assert ["KEY is not set" in problem for problem in unset] == [True]


@pytest.mark.parametrize(
    "value", ["\ufeffhunter2", "hun\nter2", "€hunter2", " hunter2"]
)
def test_a_key_that_no_header_can_carry_is_named_and_not_quoted(
    tmp_path: Path, value: str
) -> None:
    (problem,) = problems(HTTP, tmp_path, {**HTTP_ENVIRON, "KEY": value})
    assert problem.startswith("m.yaml:8:24: source.headers.X-Api-Key: ")
    assert "KEY" in problem
    assert "ter2" not in problem


@pytest.mark.parametrize("line", range(HTTP.count("\n")))
def test_any_line_left_out_is_refused_or_read(tmp_path: Path, line: int) -> None:
    lines = HTTP.splitlines(keepends=True)
    del lines[line]
    problems("".join(lines), tmp_path)
