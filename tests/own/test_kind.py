"""`kind: package.module:Class`: what is loaded, and what is refused, at its line."""

import re
import sys

import pytest

from adapters import open_adapter, open_source
from adapters.contract import ResourceType, SortKey
from adapters.mapping.load import load_mapping
from adapters.mapping.problems import MappingError
from app.cli import main

FILE = """\
mapping: 1
name: Own
profile: full
time_zone: Europe/Paris
source: {kind: "pas:Pas"}
encounter:
  search: [_id, date]
  sort: [date]
patient: {}
"""

WHOLE = """\
from adapters.contract import *
from adapters.contract import ResourceCapabilities as Able, ParameterCapability as Way

class Pas:
    def __init__(self, mapping):
        self.mapping = mapping
        self.fingerprint = mapping.fingerprint
        stays = Able({"_id": Way(), "date": Way()}, (SortKey.DATE, SortKey.ID))
        self.capabilities = {ResourceType.ENCOUNTER: stays, ResourceType.PATIENT: Able()}
    def search(self, query): return Page(())
    def count(self, query): return 0
    def read(self, resource_type, id): raise NotFoundError(id)
    def explain(self, query): return ""
    def check(self): return ()
    def close(self): pass
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Return a directory that modules are found in, for one test."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    yield tmp_path
    # What was loaded must not stand in for the next test's.
    sys.modules.pop("pas", None)


def load(place, file=FILE, **environ):
    path = place / "own.yaml"
    path.write_text(file, "utf-8")
    return load_mapping(path, environ)


def refusal(place, file=FILE):
    """Return the problems with which a file or its class is refused."""
    with pytest.raises(MappingError) as caught:
        open_adapter(load(place, file))
    return [re.sub(r"^.*own\.yaml:", "", str(each)) for each in caught.value.problems]


def test_a_class_is_given_the_whole_mapping(place):
    (place / "pas.py").write_text(WHOLE, "utf-8")
    file = FILE.replace(
        '"pas:Pas"}',
        '"pas:Pas", url: "ipc:/run/pas", timeout_seconds: 2, connections: 3,\n'
        "  options: {site: 007, api_key: {env: KEY}}}\n"
        "constants: {class_code_system: https://example.org/classes}\n"
        "codes: {phases: {table: {1: planned}, otherwise: finished}}",
    )
    mapping = load(place, file, KEY="secret")
    adapter = open_source(mapping)
    assert adapter.mapping is mapping  # type: ignore[attr-defined]
    source = mapping.source
    assert (source.url, source.timeout_seconds) == ("ipc:/run/pas", 2.0)
    assert source.connections == 3
    assert dict(source.options) == {"site": "007", "api_key": "secret"}
    assert "secret" not in repr(mapping)
    assert mapping.codes["phases"].otherwise == "finished"
    stays = mapping.resources[ResourceType.ENCOUNTER]
    assert (stays.parameters, stays.sorts) == (("_id", "date"), (SortKey.DATE,))
    assert mapping.resources[ResourceType.PATIENT].parameters == ()
    # It opens without the variables.
    without = load_mapping(place / "own.yaml", None)
    assert without.source.options["api_key"]
    assert open_adapter(without).capabilities


CLASSES = {
    ("", ""): "cannot be imported: No module named 'pas'",
    ("class Pas", "clas Pas"): "cannot be imported: invalid syntax (pas.py, line 4)",
    ("class Pas", "{}['secret']\nclass Pas"): (
        "cannot be imported: KeyError in PLACE/pas.py, line 4"
    ),
    ("class Pas:", "def Pas(mapping): pass\nclass It:"): (
        "cannot be found: pas has no class 'Pas'"
    ),
    ("    def count(self, query): return 0\n    def read", "    def fetch"): (
        "is not an adapter: it lacks count, read"
    ),
    ("self.mapping = mapping", "raise SourceDataError('options: site is missing')"): (
        "cannot be created: options: site is missing"
    ),
    ("self.mapping = mapping", "mapping.source.options['password']"): (
        "cannot be created: KeyError in PLACE/pas.py, line 6"
    ),
    ("ResourceType.PATIENT: Able()", "'Patient': Able()"): (
        "is not an adapter: its capabilities must be ResourceCapabilities by ResourceType"
    ),
}
"""What changes a class, and why it is refused."""


def test_what_is_no_adapter_is_refused(place):
    for (was, becomes), said in CLASSES.items():
        assert was in WHOLE
        if was:
            (place / "pas.py").write_text(WHOLE.replace(was, becomes), "utf-8")
        (refused,) = refusal(place)
        sys.modules.pop("pas", None)
        wanted = f"5:16: source.kind: 'pas:Pas' {said}".replace("PLACE", str(place))
        assert refused == wanted, becomes


FILES = {
    # Parameters, sort keys and sections that the class or the file lacks.
    ("[_id, date]", "[_id, date, status]"): (
        "6:1: encounter.search: 'status' is listed, but the class does not offer it"
    ),
    ("[_id, date]", "[date]"): (
        "6:1: encounter.search: the class offers '_id', which is not listed"
    ),
    ("  sort: [date]\n", ""): (
        "6:1: encounter.sort: the class offers 'date', which is not listed"
    ),
    ("patient: {}\n", ""): (
        "6:1: patient: the class serves Patient: the file needs a section patient"
    ),
    ("patient: {}", "patient: {}\norganization: {}"): (
        "10:1: organization: the class does not serve Organization"
    ),
    # Secrets, and what a parameter needs.
    ('"pas:Pas"', '"pas:Pas", options: {api_key: abc}'): (
        "5:46: source.options.api_key: put it into the environment and write {env: NAME}"
    ),
    ("[_id, date]", "[service-provider._extension]"): (
        "7:12: encounter.search: needs constants.functional_unit_extension"
    ),
}


def test_what_the_file_may_not_say_is_refused(place):
    (place / "pas.py").write_text(WHOLE, "utf-8")
    for (was, becomes), finding in FILES.items():
        assert was in FILE
        assert finding in refusal(place, FILE.replace(was, becomes))
    # Nothing is imported before the file is right.
    sys.modules.pop("pas", None)
    (place / "pas.py").write_text("raise SystemExit('imported')", "utf-8")
    assert refusal(place, FILE.replace("sort: [date]", "sort: [dates]")) == [
        "8:10: encounter.sort: 'dates' is not a sort key of Encounter; did you mean 'date'?"
    ]


def test_no_screen_has_to_confirm_what_it_serves(place):
    (place / "pas.py").write_text(WHOLE, "utf-8")
    path = place / "own.yaml"
    path.write_text(FILE, "utf-8")
    assert main(["mapping", "check", "--live", str(path)]) == 0
    assert main(["mapping", "confirm", str(path)]) == 2
