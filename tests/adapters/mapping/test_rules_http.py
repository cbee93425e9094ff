"""Rules about HTTP sources: a small fault, and the exact words it gets."""
# ruff: noqa: E501

from pathlib import Path

import pytest

from adapters.mapping.load import load_mapping
from adapters.mapping.model import SourceMapping
from adapters.mapping.problems import MappingError

ENVIRON = {"PAS_URL": "https://pas/api", "KEY": "k", "OLD": "postgresql://pas/pas"}

GOOD = """\
mapping: 1
name: Small
profile: full
time_zone: Europe/Paris
source:
  kind: http
  url: {env: PAS_URL}
  headers: {X-Api-Key: {env: KEY}}
codes:
  status: {table: {P: planned, S: finished, A: hidden}}
encounter:
  read: {path: "/s/{id}"}
  list:
    path: /s
    rows: rows
    total: n
    count: nb
    fixed: {not: A}
    paging: {offset: from}
  fields:
    id: {from: id}
    patient_id: {from: patient.id}
    status: {from: state, codes: status}
    start: {from: began}
  search:
    _id: {send: ids}
    date: {from: since, before: before, step: day}
    status: {send: states}
  sort: {send: by, by: {date: d, -date: -d}}
"""

CASES = (
    ("KEY}}", "NONE}}", "8:30: source.headers.X-Api-Key.env: the environment variable NONE is not set"),
    ("{env: KEY}", "abc", "8:24: source.headers.X-Api-Key: put it into the environment and write {env: NAME}"),
    ("{env: PAS_URL}", "{env: OLD}", "7:8: source.url: not an address like https://host/path"),
    ("headers:", "header:", "8:3: source.header: 'header' is not a key here; did you mean 'headers'?"),
    (
        "  headers:",
        "  auth: {}\n  headers:",
        "8:9: source.auth: give one of basic, oauth2, session",
    ),
    (
        "  headers:",
        "  auth: {basic: {user: u, password: geheim}}\n  headers:",
        "8:37: source.auth.basic.password: put it into the environment and write {env: NAME}",
    ),
    ("    total: n\n", "", "13:3: encounter.list: how many rows match must be told: by total (a path of the answer) or by counting (a call of its own)"),
    (
        "    paging: {offset: from}\n",
        "",
        "13:3: encounter.list: the profile 'full' has further pages and this list has none: say how they are asked for (paging), or take a profile without",
    ),
    ("{offset: from}", "{offset: from, page: p}", "19:13: encounter.list.paging: give one of offset, page, next, token"),
    ("{offset: from}", "{offset: from, first: 0}", "19:28: encounter.list.paging.first: is only for page"),
    ("    fixed: {not: A}\n", "", "13:3: encounter.list: hidden and removed stays must be left out by the source itself: say what to send under fixed"),
    ("/s/{id}", "/s/id", "12:16: encounter.read.path: must hold {id}, once"),
    ("    _id: {send: ids}", "    id: {send: ids}", "26:5: encounter.search.id: 'id' is not a search parameter of Encounter; did you mean '_id'?"),
    ("{send: ids}", "{sent: ids}", "26:11: encounter.search._id.sent: 'sent' is not a key here; did you mean 'send'?"),
    ("{send: ids}", "{send: ids, several: many}", "26:31: encounter.search._id.several: 'many' is not a way to send several values: use one, comma, repeat"),
    ("from: since, before: before, ", "", "27:11: encounter.search.date: needs from, before or until: the parameter of a bound"),
    ("before: before,", "before: before, until: u,", "27:48: encounter.search.date.until: give before or until, not both"),
    ("step: day", 'step: minute, format: "%Y-%m-%d"', "27:63: encounter.search.date.format: '%Y-%m-%d' says less than the step, a minute"),
    ("P: planned, S", "P: planned, Q: planned, S", "28:13: encounter.search.status: 'planned' is several codes of the source: several (comma or repeat) must say how they are sent"),
    (", -date: -d", "", "29:25: encounter.sort.by.date: needs both directions: date and -date"),
    ("date: d, -date: -d", "day: d", "29:25: encounter.sort.by.day: 'day' is not a sort key of Encounter: use date, _lastUpdated, _id"),
    ("  sort:", "  order: any\n  sort:", "29:3: encounter.order: is only for a source that does not sort"),
    ("name: Small", "name: Small\ndate: period", "3:7: date: date: period cannot be asked of an HTTP source"),
    ("    start: {from: began}\n", "", "26:11: encounter.search.date: 'date' needs the field start, from a column"),
    ("  read: {path: \"/s/{id}\"}\n", "", "11:1: encounter.read: 'read' is missing"),
    ("  fields:", "  rows: SELECT 1\n  fields:", "20:3: encounter.rows: 'rows' is for a database (kind: sql): an HTTP API is read with read and list"),
)  # fmt: skip


def problems(text: str, directory: Path) -> list[str]:
    file = directory / "m.yaml"
    file.write_text(text, encoding="utf-8")
    try:
        load_mapping(file, ENVIRON)
    except MappingError as error:
        return [str(p).removeprefix(f"{file}:") for p in error.problems]
    return []


def loaded(text: str, directory: Path) -> SourceMapping:
    assert problems(text, directory) == []
    return load_mapping(directory / "m.yaml", ENVIRON)


@pytest.mark.parametrize(("old", "new", "said"), CASES)
def test_fault(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert GOOD.count(old) == 1
    assert said in problems(GOOD.replace(old, new), tmp_path)


@pytest.mark.parametrize(
    "address", ["http://[x/pas", "http://pas:99999", "http://pas:port", "https://:443"]
)
def test_an_address_that_leads_nowhere_is_refused(tmp_path: Path, address: str) -> None:
    said = "7:8: source.url: not an address like https://host/path, nor {env: NAME}"
    assert said in problems(GOOD.replace("{env: PAS_URL}", f"'{address}'"), tmp_path)


def test_a_small_fault_has_two_problems_at_most(tmp_path: Path) -> None:
    alone = [case for case in CASES if "needs the field start" not in case[2]]
    for old, new, said in alone:
        found = problems(GOOD.replace(old, new), tmp_path)
        assert len(found) <= 2, said


def test_every_fault_at_once(tmp_path: Path) -> None:
    text = GOOD
    for old, new, _ in CASES[1:3] + CASES[6:8] + CASES[11:12]:
        text = text.replace(old, new)
    assert len(problems(text, tmp_path)) == 5


def test_fingerprint_tells_calls_apart_and_no_secret(tmp_path: Path) -> None:
    first = loaded(GOOD, tmp_path).fingerprint
    assert (
        loaded(GOOD.replace("name: Small", "name: Other"), tmp_path).fingerprint
        == first
    )
    for old, new in (
        ("path: /s\n", "path: /t\n"),
        ("-date: -d", "-date: e"),
        ("nb", "k"),
    ):
        assert loaded(GOOD.replace(old, new), tmp_path).fingerprint != first
    (tmp_path / "m.yaml").write_text(GOOD)
    again = load_mapping(tmp_path / "m.yaml", {**ENVIRON, "KEY": "other"})
    assert again.fingerprint == first


def test_line_ends_of_a_mounted_secret_are_no_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(GOOD)
    ended = {name: f"{value}\r\n" for name, value in ENVIRON.items()}
    read = load_mapping(tmp_path / "m.yaml", ended)
    assert read.source.url == ENVIRON["PAS_URL"]
    assert read.source.http is not None
    assert dict(read.source.http.headers) == {"X-Api-Key": "k"}


def test_a_variable_of_line_ends_alone_is_not_set(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(GOOD)
    with pytest.raises(MappingError) as refused:
        load_mapping(tmp_path / "m.yaml", {**ENVIRON, "KEY": "\n"})
    assert "the environment variable KEY is not set" in str(refused.value)


@pytest.mark.parametrize("value", ["\ufeffgeheim", "ge\nheim", "€geheim", " geheim"])
def test_a_key_that_no_header_can_carry_is_told_by_name(
    tmp_path: Path, value: str
) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(GOOD)
    with pytest.raises(MappingError) as refused:
        load_mapping(file, {**ENVIRON, "KEY": value})
    assert str(refused.value) == (
        f"{file}:8:24: source.headers.X-Api-Key: the environment variable KEY holds a sign"
        " that no header can carry"
    )


@pytest.mark.parametrize("line", range(GOOD.count("\n")))
def test_any_line_left_out_is_refused_or_read(tmp_path: Path, line: int) -> None:
    lines = GOOD.splitlines(keepends=True)
    del lines[line]
    problems("".join(lines), tmp_path)
