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

from adapters.inspection import SAMPLE
from adapters.testing.hospital import EDGES, StayRow
from app.cli.report import STEP, page, rounded
from app.cli.stays import reading
from tests.app.cli.conftest import Mapping
from tests.app.cli.live_hospital import MONTH, counted, run, written
from tests.hospital_http import SECRETS, Api, serving
from tests.hospital_http_mapping import http_mapping_text
from tests.hospital_sql import Tables, mapping_text

ALIKE = (
    "INSERT INTO stays SELECT {n} + stay_id, patient_id, state, kind, began, ended, "
)
ALIKE += "visit, unit, changed FROM stays WHERE stay_id <= {n}"


class Report:
    """What one run has written."""

    def __init__(self, directory: Path) -> None:
        self.html = (directory / "report.html").read_text("utf-8")
        self.text = (directory / "report.json").read_text("utf-8")
        self.document: Any = json.loads(self.text)

    def table(self, name: str) -> dict[str, int | None]:
        table: dict[str, int | None] = self.document["tables"][name]
        return table


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


def test_stays_are_counted_by_status_class_and_month(
    url: str, tmp_path: Path, mapping: Mapping
) -> None:
    run(url, "UPDATE stays SET kind = 'XX' WHERE stay_id < 20")
    written_report = report(written(tmp_path), mapping)
    status = "CASE state WHEN 'E' THEN 'in-progress' ELSE 'finished' END"
    kind = "CASE kind WHEN 'HC' THEN 'IMP' ELSE 'UNK' END"
    for name, expression in (("status", status), ("class", kind), ("month", MONTH)):
        expected = counted(url, expression, "state <> 'A'")
        assert written_report.table(name) == {
            value: rounded(number) for value, number in expected.items()
        }
    figures = written_report.table("figures")
    assert (figures["stays"], figures["invalid rows"]) == (120, 0)
    assert written_report.table("codes") == {"class ← kind: XX → UNK": 20}


def test_a_year_before_1000_has_four_digits(
    sqlite: str, tmp_path: Path, mapping: Mapping
) -> None:
    """Months are compared and sorted as texts."""
    run(sqlite, "UPDATE stays SET began = '0999-05-01 10:00:00' WHERE stay_id < 30")
    assert "0999-05" in report(written(tmp_path), mapping).table("month")


def test_what_is_wrong_is_counted(url: str, tmp_path: Path, mapping: Mapping) -> None:
    run(
        url,
        "UPDATE stays SET state = 'Q' WHERE stay_id BETWEEN 1 AND 9",
        "UPDATE stays SET ended = '2019-01-01 10:00:00' WHERE stay_id BETWEEN 11 AND 18",
        "UPDATE stays SET ended = NULL, state = 'E' WHERE stay_id BETWEEN 20 AND 31",
        "UPDATE stays SET visit = 'twice' WHERE stay_id IN (50, 51)",
        "UPDATE stays SET visit = 'V53' WHERE stay_id = 52",
        "UPDATE stays SET visit = 'V55' WHERE stay_id = 54",
        "UPDATE stays SET visit = 'V57' WHERE stay_id = 56",
        "UPDATE stays SET visit = 'V59' WHERE stay_id IN (58, 60, 61)",
    )
    written_report = report(written(tmp_path), mapping)
    assert written_report.table("figures") == {
        "stays": 100,
        "invalid rows": 15,
        "ends before starts": 10,
        "open for more than a year": 10,
        "visit numbers of several stays": 5,
    }
    assert written_report.table("rules") == {
        "end ← ended: ends before it starts": 10,
        "status ← state: no entry in codes.states": 10,
    }
    assert written_report.table("codes") == {"status ← state: Q": 10}


def test_stays_without_a_value_are_counted(
    url: str, tmp_path: Path, mapping: Mapping
) -> None:
    """Of a number that the SELECT looks up under the wrong key no row is at fault."""
    run(
        url,
        "UPDATE stays SET visit = NULL WHERE stay_id <= 60",
        "UPDATE stays SET unit = '' WHERE stay_id <= 20",
        "UPDATE stays SET ended = NULL WHERE stay_id <= 30",
    )
    over = counted(url, "state", "state = 'S' AND stay_id <= 30")
    assert report(written(tmp_path), mapping).table("empty") == {
        "visit_number": 60,
        "functional_unit": 20,
        "end": rounded(over["S"]),
        "organization_id": 120,
    }


def test_all_pages_are_counted(sqlite: str, tmp_path: Path, mapping: Mapping) -> None:
    """They are read one after the other: one is in memory."""
    run(sqlite, *(ALIKE.format(n=120 * 2**n) for n in range(6)))
    with reading(written(tmp_path)) as ((_, (stays,)),):
        sizes = [len(rows) for rows in stays.pages()]
    assert sizes == [*[SAMPLE] * (64 * 119 // SAMPLE), 64 * 119 % SAMPLE]
    figures = report(written(tmp_path), mapping).table("figures")
    assert figures["stays"] == rounded(64 * 119)
    assert figures["visit numbers of several stays"] == rounded(119)


def test_an_api_is_counted_as_a_database(
    tmp_path: Path, mapping: Mapping, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"sqlite:///{tmp_path}/edges.sqlite"
    Tables(address, EDGES).close()
    file = tmp_path / "hospital.yaml"
    monkeypatch.setenv("PAS_URL", address)
    file.write_text(mapping_text(EDGES), "utf-8")
    of_database = report(file, mapping).document["tables"]
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    file.write_text(http_mapping_text(EDGES, source=", timeout_seconds: 60"), "utf-8")
    with serving(Api(EDGES, most=20)) as url:
        monkeypatch.setenv("PAS_URL", url)
        of_api = report(file, mapping).document["tables"]
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
    assert printed.status == 2
    assert "100 rows" in printed.err
    assert not (tmp_path / "no.html").exists()


def test_a_number_is_repeated_within_its_system(
    sqlite: str, tmp_path: Path, mapping: Mapping
) -> None:
    run(sqlite, "UPDATE stays SET visit = 'same'")
    systems = ", ".join(f"U{n}: 'urn:oid:1.2.{n}'" for n in range(5))
    file = written(
        tmp_path,
        ("codes:\n", f"codes:\n  systems: {{table: {{{systems}}}}}\n"),
        (
            "  fields:\n",
            "  fields:\n    visit_number_system: {from: unit, codes: systems}\n",
        ),
    )
    figures = report(file, mapping).table("figures")
    assert figures["visit numbers of several stays"] == 5


# What is hidden


def test_few_stays_are_hidden() -> None:
    assert [rounded(n) for n in (0, 1, 4, 5, 7, 8, 1002, 1003)] == [
        *(0, None, None, 5, 5, 10, 1000, 1005)
    ]


def test_no_hidden_count_can_be_computed_from_a_total_and_its_other_parts() -> None:
    """Whatever is shown of a total and its other part, at least two counts are possible."""
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
    written_report = report(written(tmp_path), mapping)
    # Codes that few rows have are counted together, and not named.
    assert written_report.table("codes") == {"status ← state: other values": 5}
    assert written_report.table("month")["1999-05"] is None
    assert "rare" not in written_report.html + written_report.text
    counts = [
        n
        for table in written_report.document["tables"].values()
        for n in table.values()
    ]
    assert all(count is None or count % STEP == 0 for count in counts)
    for cell in re.findall(r"<d[dt]>([^<]*)", written_report.html):
        assert not re.fullmatch(r"[1-4]", cell)


def test_no_value_of_a_person_is_written(
    sqlite: str, tmp_path: Path, mapping: Mapping
) -> None:
    """Names stand where the file has codes, and in visit numbers and units."""
    run(sqlite, *(ALIKE.format(n=120 * 2**n) for n in range(3)))
    run(sqlite, "UPDATE stays SET unit = 'Ljungqvist', visit = 'Ljungqvist'")
    file = written(
        tmp_path,
        (
            "SELECT * FROM stays",
            "SELECT s.*, family FROM stays s JOIN patients USING (patient_id)",
        ),
        ("from: kind", "from: family"),
        ("codes: states", "codes: states, absent: [x]"),
    )
    run(
        sqlite,
        "UPDATE stays SET state = (SELECT family FROM patients p"
        " WHERE p.patient_id = stays.patient_id)",
    )
    written_report = report(file, mapping)
    assert "jungqvist" not in written_report.html + written_report.text
    assert written_report.table("codes") == {
        "class ← family: other values → UNK": 960,
        "status ← state: other values": 960,
    }
    assert written_report.table("rules") == {
        "status ← state: no entry in codes.states": 960
    }


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


HOSTILE = "<b onclick='x'>\"&"


def test_hostile_texts_are_texts(sqlite: str, tmp_path: Path, mapping: Mapping) -> None:
    (tmp_path / "old.json").write_text(report(written(tmp_path), mapping).text, "utf-8")
    previous = ("--previous", tmp_path / "old.json")
    plain = Elements(report(written(tmp_path), mapping, *previous).html)
    run(sqlite, "UPDATE stays SET kind = '<b onclick=''x''>\"&' WHERE stay_id < 20")
    column = "<script>alert(1)</script>"
    file = written(
        tmp_path,
        ("name: Clean", f"name: '{column}'"),
        ("SELECT *", f'SELECT stays.*, kind AS "{column}"'),
        ("from: kind", f"from: '{column}'"),
    )
    (tmp_path / "old.json").write_text(report(file, mapping).text, "utf-8")
    hostile = Elements(report(file, mapping, *previous).html)
    assert f"class ← {column}: {HOSTILE} → UNK" in " ".join(hostile.texts)
    assert hostile.tags.keys() == plain.tags.keys()
    assert hostile.attributes.keys() == plain.attributes.keys()


def test_the_page_needs_no_other_origin_and_no_script(
    sqlite: str, tmp_path: Path, mapping: Mapping
) -> None:
    html = report(written(tmp_path), mapping).html
    elements = Elements(html)
    assert not elements.tags.keys() & {"script", "link", "img", "iframe", "object"}
    assert not elements.attributes.keys() & {"src", "href", "style"}
    assert "url(" not in html
    assert "//" not in html
    assert "default-src 'none'" in html


def document(
    tables: dict[str, dict[str, int | None]], **members: str
) -> dict[str, Any]:
    """Return a document with these tables, empty ones for the others."""
    names = ("figures", "status", "class", "month", "empty", "rules", "codes")
    head = {
        "hospital": "H",
        "mapping": "h.yaml",
        "version": "1",
        "created": "2024-05-06T07:08+00:00",
    }
    every = {name: tables.get(name, {}) for name in names}
    return {"format": 1, "rounded_to": 5, **head, **members, "tables": every}


def test_the_chart_ends_with_the_last_month_that_is_not_ahead() -> None:
    months: dict[str, int | None] = {
        "1999-01": 50,
        "2024-02": 10,
        "2024-04": 20,
        "2024-05": None,
        "2030-01": 90,
        "no start": 5,
    }
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


def test_a_hospital_without_stays_has_a_page(
    sqlite: str, tmp_path: Path, mapping: Mapping
) -> None:
    run(sqlite, "DELETE FROM stays")
    written_report = report(written(tmp_path), mapping)
    assert set(written_report.table("figures").values()) == {0}
    assert "<h1>" in written_report.html


# The report before


def cells(html: str, label: str) -> list[str]:
    """Return the cells of a line of the page."""
    row = re.search(rf"<tr><th[^>]*>{re.escape(label)}\n.*?</tr>", html, re.DOTALL)
    assert row is not None
    return re.findall(r"<td>([^<]*)</td>", row[0])


def test_a_report_is_compared_with_the_one_before() -> None:
    before = document(
        {
            "status": {"planned": 20, "finished": 100, "in-progress": None},
            "rules": {"gone": 10},
        },
        hospital="Other",
    )
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


@pytest.mark.parametrize(
    "text",
    [
        "no JSON",
        "[]",
        '{"format": 2, "hospital": "H", "created": "2024", "tables": {}}',
        '{"format": 1, "created": "2024", "tables": {}}',
        '{"format": 1, "hospital": "H", "created": "2024", "tables": {"status": {"a": "<b>"}}}',
    ],
)
def test_what_is_no_report_is_refused_before_anything_is_read(
    text: str, tmp_path: Path, mapping: Mapping, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAS_URL", "sqlite:////nowhere/pas.sqlite")
    (tmp_path / "old.json").write_text(text, "utf-8")
    out = tmp_path / "report.html"
    arguments = ("--live", "--out", out, "--previous", tmp_path / "old.json")
    printed = mapping("report", written(tmp_path), *arguments)
    assert printed.status == 2
    assert "old.json" in printed.err
    assert not out.exists()


def test_a_page_that_cannot_be_written_is_named(
    sqlite: str, tmp_path: Path, mapping: Mapping
) -> None:
    (tmp_path / "no").write_text("a file")
    out = tmp_path / "no" / "report.html"
    printed = mapping("report", written(tmp_path), "--live", "--out", out)
    assert printed.status == 2
    assert str(out) in printed.err
