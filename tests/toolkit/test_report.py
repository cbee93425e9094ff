"""`mapping report`: the data quality of a hospital in counts that tell of nobody."""

import json
import re
from collections import Counter
from dataclasses import replace
from datetime import datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.hospital_http import SECRETS, Api, serving
from tests.hospital_http_mapping import http_mapping_text
from tests.hospital_sql import Tables, mapping_text
from tests.toolkit.conftest import Mapping
from tests.toolkit.live_hospital import MONTH, counted, run, written
from toolkit.checks.engine import SAMPLE
from toolkit.contract.hospital import EDGES, StayRow
from toolkit.report import STEP, page, rounded
from toolkit.stays import reading

ALIKE = (
    "INSERT INTO stays SELECT {n} + stay_id, patient_id, state, kind, began, ended, "
    "visit, unit, changed FROM stays WHERE stay_id <= {n}"
)


class Report:
    """What one run has written."""

    def __init__(self, directory: Path) -> None:
        self.html = (directory / "report.html").read_text("utf-8")
        self.text = (directory / "report.json").read_text("utf-8")
        self.document: Any = json.loads(self.text)
        self.tables: dict[str, dict[str, int | None]] = self.document["tables"]


def report(file: Path, mapping: Mapping, *arguments: object) -> Report:
    """Run the command beside the file, which prints no error."""
    directory = file.parent
    printed = mapping(
        *("report", file, "--live", "--out", directory / "report.html"),
        *("--json", directory / "report.json", *arguments),
    )
    assert (printed.status, printed.err) == (0, "")
    return Report(directory)


# What is counted


def test_stays_are_counted_and_what_is_wrong(
    url: str, tmp_path: Path, mapping: Mapping
) -> None:
    run(url, "UPDATE stays SET kind = 'XX' WHERE stay_id < 20")
    tables = report(written(tmp_path), mapping).tables
    status = "CASE state WHEN 'E' THEN 'in-progress' ELSE 'finished' END"
    kind = "CASE kind WHEN 'HC' THEN 'IMP' ELSE 'UNK' END"
    for name, expression in (("status", status), ("class", kind), ("month", MONTH)):
        expected = counted(url, expression, "state <> 'A'")
        assert tables[name] == {code: rounded(n) for code, n in expected.items()}
    assert (tables["figures"]["stays"], tables["figures"]["invalid rows"]) == (120, 0)
    assert tables["codes"] == {"class ← kind: XX → UNK": 20}

    run(
        url,
        "UPDATE stays SET kind = 'HC'",
        "UPDATE stays SET state = 'Q' WHERE stay_id BETWEEN 1 AND 9",
        "UPDATE stays SET ended = '2019-01-01 10:00:00' WHERE stay_id BETWEEN 11 AND 18",
        "UPDATE stays SET ended = NULL, state = 'E' WHERE stay_id BETWEEN 20 AND 31",
        "UPDATE stays SET visit = 'twice' WHERE stay_id IN (50, 51)",
        "UPDATE stays SET visit = 'V53' WHERE stay_id = 52",
        "UPDATE stays SET visit = 'V55' WHERE stay_id = 54",
        "UPDATE stays SET visit = 'V57' WHERE stay_id = 56",
        "UPDATE stays SET visit = 'V59' WHERE stay_id IN (58, 60, 61)",
    )
    tables = report(written(tmp_path), mapping).tables
    assert tables["figures"] == {
        "stays": 100,
        "invalid rows": 15,
        "ends before starts": 10,
        "open for more than a year": 10,
        "visit numbers of several stays": 5,
    }
    assert tables["rules"] == {
        "end ← ended: ends before it starts": 10,
        "status ← state: no entry in codes.states": 10,
    }
    assert tables["codes"] == {"status ← state: Q": 10}


def test_stays_without_a_value_are_counted(
    sqlite: str, tmp_path: Path, mapping: Mapping
) -> None:
    """Months of a year before 1000 have four digits: they are sorted as texts."""
    run(
        sqlite,
        "UPDATE stays SET visit = NULL WHERE stay_id <= 60",
        "UPDATE stays SET unit = '' WHERE stay_id <= 20",
        "UPDATE stays SET ended = NULL WHERE stay_id <= 30",
        "UPDATE stays SET began = '0999-05-01 10:00:00' WHERE stay_id > 90",
    )
    over = counted(sqlite, "state", "state = 'S' AND stay_id <= 30")
    tables = report(written(tmp_path), mapping).tables
    assert tables["empty"] == {
        "visit_number": 60,
        "functional_unit": 20,
        "end": rounded(over["S"]),
        "organization_id": 120,
    }
    assert "0999-05" in tables["month"]


def test_all_pages_are_counted(sqlite: str, tmp_path: Path, mapping: Mapping) -> None:
    """They are read one after the other: one is in memory."""
    run(sqlite, *(ALIKE.format(n=120 * 2**n) for n in range(6)))
    with reading(written(tmp_path)) as ((_, (stays,)),):
        sizes = [len(rows) for rows in stays.pages()]
    assert sizes == [*[SAMPLE] * (64 * 119 // SAMPLE), 64 * 119 % SAMPLE]
    figures = report(written(tmp_path), mapping).tables["figures"]
    assert figures["stays"] == rounded(64 * 119)
    assert figures["visit numbers of several stays"] == rounded(119)
    # A number is repeated within its system.
    run(sqlite, "UPDATE stays SET visit = 'same'")
    systems = ", ".join(f"U{n}: 'urn:oid:1.2.{n}'" for n in range(5))
    field = "  fields:\n    visit_number_system: {from: unit, codes: systems}\n"
    file = written(
        tmp_path,
        ("codes:\n", f"codes:\n  systems: {{table: {{{systems}}}}}\n"),
        ("  fields:\n", field),
    )
    figures = report(file, mapping).tables["figures"]
    assert figures["visit numbers of several stays"] == 5


def test_an_api_is_counted_as_a_database(
    tmp_path: Path, mapping: Mapping, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"sqlite:///{tmp_path}/edges.sqlite"
    Tables(address, EDGES).close()
    file = tmp_path / "hospital.yaml"
    monkeypatch.setenv("PAS_URL", address)
    file.write_text(mapping_text(EDGES), "utf-8")
    of_database = report(file, mapping).tables
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    file.write_text(http_mapping_text(EDGES, source=", timeout_seconds: 60"), "utf-8")
    with serving(Api(EDGES, most=20)) as url:
        monkeypatch.setenv("PAS_URL", url)
        of_api = report(file, mapping).tables
    for name in ("figures", "status", "class", "month", "empty"):
        assert of_api[name] == of_database[name]


def test_an_api_without_further_pages_is_refused(
    tmp_path: Path, mapping: Mapping, monkeypatch: pytest.MonkeyPatch
) -> None:
    stays = tuple(StayRow(n, began="2024-06-01 10:00:00") for n in range(1, 151))
    hospital = replace(EDGES, stays=stays)
    text = http_mapping_text(hospital, paging="", source=", timeout_seconds: 60")
    file = tmp_path / "hospital.yaml"
    file.write_text(text.replace("profile: full", "profile: group-a"), "utf-8")
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    with serving(Api(hospital)) as url:
        monkeypatch.setenv("PAS_URL", url)
        printed = mapping("report", file, "--live", "--out", tmp_path / "no.html")
    assert (printed.status, "100 rows" in printed.err) == (2, True)
    assert not (tmp_path / "no.html").exists()


# What is hidden


def test_no_hidden_count_can_be_computed_from_a_total_and_its_other_parts() -> None:
    """Whatever is shown of a total and its other part, at least two counts are possible."""
    assert [rounded(n) for n in (0, 1, 4, 5, 7, 8, 1002, 1003)] == [
        *(0, None, None, 5, 5, 10, 1000, 1005)
    ]
    hidden: dict[tuple[int | None, int | None], set[int]] = {}
    for other in range(STEP, 200):
        for few in range(1, STEP):
            assert rounded(few) is None
            shown = rounded(other + few), rounded(other)
            hidden.setdefault(shown, set()).add(few)
    # The largest totals are of no larger other part here.
    assert min(len(n) for (total, _), n in hidden.items() if total and total < 195) == 2


def test_few_rows_are_hidden_on_page_and_in_json(
    sqlite: str, tmp_path: Path, mapping: Mapping
) -> None:
    run(
        sqlite,
        "UPDATE stays SET state = 'Q' WHERE stay_id IN (1, 2, 3)",
        "UPDATE stays SET state = 'rare' WHERE stay_id IN (4, 5)",
        "UPDATE stays SET began = '1999-05-05 10:00:00' WHERE stay_id = 6",
    )
    few = report(written(tmp_path), mapping)
    # Codes that few rows have are counted together, and not named.
    assert few.tables["codes"] == {"status ← state: other values": 5}
    assert few.tables["month"]["1999-05"] is None
    assert "rare" not in few.html + few.text
    counts = [count for table in few.tables.values() for count in table.values()]
    assert all(count is None or count % STEP == 0 for count in counts)
    for cell in re.findall(r"<d[dt]>([^<]*)", few.html):
        assert not re.fullmatch(r"[1-4]", cell)


def test_no_value_of_a_person_is_written(
    sqlite: str, tmp_path: Path, mapping: Mapping
) -> None:
    """Names stand where the file has codes, and in visit numbers and units."""
    run(sqlite, *(ALIKE.format(n=120 * 2**n) for n in range(3)))
    name = "(SELECT family FROM patients p WHERE p.patient_id = stays.patient_id)"
    run(
        sqlite,
        "UPDATE stays SET unit = 'Ljungqvist', visit = 'Ljungqvist'",
        f"UPDATE stays SET state = {name}",
    )
    select = "SELECT s.*, family FROM stays s JOIN patients USING (patient_id)"
    file = written(
        tmp_path,
        ("SELECT * FROM stays", select),
        ("from: kind", "from: family"),
        ("codes: states", "codes: states, absent: [x]"),
    )
    names = report(file, mapping)
    assert "jungqvist" not in names.html + names.text
    assert names.tables["codes"] == {
        "class ← family: other values → UNK": 960,
        "status ← state: other values": 960,
    }
    assert names.tables["rules"] == {"status ← state: no entry in codes.states": 960}


# The page


class Elements(HTMLParser):
    """The elements, attributes and texts of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: Counter[str] = Counter()
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes.update(name for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_the_page_has_no_script_no_other_origin_and_hostile_texts_are_texts(
    sqlite: str, tmp_path: Path, mapping: Mapping
) -> None:
    old = tmp_path / "old.json"
    old.write_text(report(written(tmp_path), mapping).text, "utf-8")
    html = report(written(tmp_path), mapping, "--previous", old).html
    plain = Elements(html)
    assert not plain.tags.keys() & {"script", "link", "img", "iframe", "object"}
    assert not plain.attributes.keys() & {"src", "href", "style"}
    assert "url(" not in html
    assert "//" not in html
    assert "default-src 'none'" in html
    run(sqlite, "UPDATE stays SET kind = '<b onclick=''x''>\"&' WHERE stay_id < 20")
    column = "<script>alert(1)</script>"
    file = written(
        tmp_path,
        ("name: Clean", f"name: '{column}'"),
        ("SELECT *", f'SELECT stays.*, kind AS "{column}"'),
        ("from: kind", f"from: '{column}'"),
    )
    old.write_text(report(file, mapping).text, "utf-8")
    hostile = Elements(report(file, mapping, "--previous", old).html)
    line = f"class ← {column}: <b onclick='x'>\"& → UNK"
    assert line in " ".join(hostile.texts)
    assert hostile.tags.keys() == plain.tags.keys()
    assert hostile.attributes.keys() == plain.attributes.keys()
    run(sqlite, "DELETE FROM stays")
    empty = report(written(tmp_path), mapping)
    assert set(empty.tables["figures"].values()) == {0}
    assert "<h1>" in empty.html


def document(tables: dict[str, dict[str, int | None]], hospital: str = "H") -> Any:
    """Return a document with these tables, empty ones for the others."""
    names = ("figures", "status", "class", "month", "empty", "rules", "codes")
    head = {"format": 1, "rounded_to": 5, "mapping": "h.yaml", "version": "1"}
    head |= {"hospital": hospital, "created": "2024-05-06T07:08+00:00"}
    return {**head, "tables": {name: tables.get(name, {}) for name in names}}


def test_the_chart_ends_with_the_last_month_that_is_not_ahead() -> None:
    months: dict[str, int | None] = {"1999-01": 50, "2024-02": 10, "2024-04": 20}
    months |= {"2024-05": None, "2030-01": 90, "no start": 5}
    html = page(document({"month": months}), None)
    bars = re.findall(r'height="([\d.]+)"><title>([\d-]+): ([^<]+)<', html)
    assert len(bars) == 36
    assert bars[0][1] == "2021-06"
    assert bars[-4:] == [
        ("10", "2024-02", "10"),
        ("0", "2024-03", "0"),
        ("20", "2024-04", "20"),
        ("0", "2024-05", "&lt; 5"),
    ]


# The report before


def cells(html: str, label: str) -> list[str]:
    """Return the cells of a line of the page."""
    row = re.search(rf"<tr><th[^>]*>{re.escape(label)}\n.*?</tr>", html, re.DOTALL)
    assert row is not None
    return re.findall(r"<td>([^<]*)</td>", row[0])


def test_a_report_is_compared_with_the_one_before() -> None:
    status: dict[str, int | None]
    status = {"planned": 20, "finished": 100, "in-progress": None}
    before = document({"status": status, "rules": {"gone": 10}}, "Other")
    after = document({"status": {"planned": 25, "finished": None, "in-progress": 15}})
    html = page(after, before)
    assert cells(html, "planned") == ["25", "20", "+5"]
    # A change from or to a hidden count would reveal it.
    assert cells(html, "finished") == ["&lt; 5", "100", ""]
    assert cells(html, "in-progress") == ["15", "&lt; 5", ""]
    # What is no longer there is a result too.
    assert cells(html, "gone") == ["0", "10", "-10"]
    assert "Other" in html
    assert cells(page(after, None), "planned") == ["25"]


def test_the_json_of_a_report_is_the_previous_of_the_next(
    sqlite: str, tmp_path: Path, mapping: Mapping
) -> None:
    first = report(written(tmp_path), mapping)
    assert datetime.fromisoformat(first.document["created"]).tzinfo is not None
    (tmp_path / "old.json").write_text(first.text, "utf-8")
    run(sqlite, "UPDATE stays SET state = 'E'")
    second = report(written(tmp_path), mapping, "--previous", tmp_path / "old.json")
    assert cells(second.html, "in-progress") == ["120", "15", "+105"]


HEAD = '"hospital": "H", "created": "2024"'


def test_what_cannot_be_read_or_written_is_refused(
    sqlite: str, tmp_path: Path, mapping: Mapping, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, old, out = written(tmp_path), tmp_path / "old.json", tmp_path / "report.html"
    blocked = old / "report.html"
    old.touch()
    printed = mapping("report", file, "--live", "--out", blocked)
    assert (printed.status, str(blocked) in printed.err) == (2, True)
    # What is no report is refused before anything is read.
    monkeypatch.setenv("PAS_URL", "sqlite:////nowhere/pas.sqlite")
    for text in (
        "no JSON",
        "[]",
        f'{{"format": 2, {HEAD}, "tables": {{}}}}',
        '{"format": 1, "created": "2024", "tables": {}}',
        f'{{"format": 1, {HEAD}, "tables": {{"status": {{"a": "<b>"}}}}}}',
    ):
        old.write_text(text, "utf-8")
        printed = mapping("report", file, "--live", "--out", out, "--previous", old)
        assert (printed.status, "old.json" in printed.err) == (2, True), text
        assert not out.exists()
