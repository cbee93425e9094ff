"""Files that extend others: what they make together, and where their faults are reported."""

import re
from pathlib import Path

from adapters.contract import ResourceType, SortKey
from adapters.mapping.load import load_mapping
from tests.adapters.mapping.good import ENVIRON, MINIMAL, TWO, WHOLE


def layered(directory, base, *own):
    """Load `own` laid over `base`."""
    (directory / "base.yaml").write_text(base, encoding="utf-8")
    text = "\n".join(("mapping: 1", "extend: base.yaml", *own, ""))
    (directory / "own.yaml").write_text(text, encoding="utf-8")
    return load_mapping(directory / "own.yaml", ENVIRON)


def stays(mapping):
    return mapping.resources[ResourceType.ENCOUNTER]


def test_what_it_says_replaces_what_the_base_says(tmp_path):
    """Codes one by one; a value and a list whole."""
    own = layered(
        tmp_path,
        MINIMAL,
        "name: Other",
        "codes: {status: {table: {P: in-progress, C: finished}}}",
        "encounter: {rows: 'SELECT a, b, c, d FROM u', search: [date]}",
    )
    assert own.name == "Other"
    assert stays(own).rows.endswith("FROM u")
    assert (stays(own).sorts, stays(own).parameters) == ((SortKey.DATE,), ("date",))
    table = {"P": "in-progress", "S": "finished", "A": "hidden", "C": "finished"}
    assert own.codes["status"].table == table
    fields = "encounter: {fields: {status: finished}}"
    status = stays(layered(tmp_path, MINIMAL, fields)).fields["status"]
    assert (status.columns, status.constant, status.codes) == ((), "finished", None)


def test_entries_are_told_apart_by_their_prefix(tmp_path):
    own = layered(
        tmp_path,
        TWO,
        "patient:",
        "  sources:",
        "    - {prefix: s-, rows: SELECT a FROM other}",
        "    - {source: south, prefix: c-, rows: SELECT a FROM c, fields: {id: {from: a}}}",
        "encounter:",
        "  sources: [{prefix: s-, fields: {patient_id: {from: b, source: c-}}}]",
    )
    rows = [part.section.rows.rpartition(" ")[2] for part in own.parts]
    assert rows == ["t", "v", "p", "other", "c"]


def test_the_example_of_the_guide(tmp_path):
    guide = (Path(__file__).parents[3] / "docs" / "bring" / "extend.md").read_text(
        encoding="utf-8"
    )
    examples = re.findall(r"```yaml\n(.*?)```", guide, re.DOTALL)
    (example,) = (text for text in examples if "\nextend: vendor.yaml" in text)
    unit = "    functional_unit: {from: uf}\n    end: {from: e}\n"
    constants = (
        "constants:\n  visit_number_system: urn:oid:1.2.3\n"
        "  functional_unit_extension: https://example.org/unit\n"
    )
    vendor = MINIMAL.replace("encounter:", f"{constants}encounter:")
    vendor = vendor.replace("    start: {from: d}\n", f"    start: {{from: d}}\n{unit}")
    (tmp_path / "vendor.yaml").write_text(vendor, encoding="utf-8")
    file = tmp_path / "own.yaml"
    file.write_text(example, encoding="utf-8")
    mapping = load_mapping(file, {"SAINT_ROCH_URL": "sqlite:///s.db"})
    assert mapping.name == "Saint-Roch hospital"
    assert mapping.codes["status"].table["CL"] == "finished"
    assert stays(mapping).parameters == ("_id", "patient", "date")
    assert mapping.constants.visit_number_system == "urn:oid:1.2.250.1.999.2.1"


def test_a_base_that_comes_with_the_service_is_extended_from_anywhere(tmp_path):
    file = tmp_path / "own.yaml"
    file.write_text("mapping: 1\nextend: fhir-r4/fhir-r4.yaml\nname: Own\n", "utf-8")
    environ = {"FHIR_URL": "https://r4.example"}
    assert load_mapping(file, environ).name == "Own"
    # A file beside it comes first.
    (tmp_path / "fhir-r4").mkdir()
    (tmp_path / "fhir-r4" / "fhir-r4.yaml").write_text(WHOLE, "utf-8")
    assert load_mapping(file, ENVIRON).source.kind == "sql"
