"""SIGHUP loads a mapping that passes its check; one that fails takes nothing down."""

from pathlib import Path
from typing import Any

import pytest

from tests.app.server.running import READ, running
from tests.hospital_sql import Tables, mapping_text
from toolkit.contract.hospital import EDGES

pytestmark = pytest.mark.system

REFUSED = "refused; the earlier one is served"


@pytest.fixture
def mapping(tmp_path):
    """Return a mapping that extends another and names a profile beside it."""
    (tmp_path / "ours.yaml").write_text(
        "profile: ours\npaging: true\nencounter: {patient: {}, _count: {}}\n", "utf-8"
    )
    url = f"sqlite:///{tmp_path / 'pas.db'}"
    Tables(url, EDGES).close()
    base = mapping_text(EDGES, url).replace("profile: full", "profile: ours.yaml")
    (tmp_path / "base.yaml").write_text(base, "utf-8")
    file = tmp_path / "hospital.yaml"
    file.write_text("mapping: 1\nextend: base.yaml\nname: First\n", "utf-8")
    return file


@pytest.fixture
def service(mapping, redis_server):
    with running(mapping.parent, mapping, REDIS_URL=redis_server.url) as started:
        yield started


def name(service):
    return str(service.get("metadata").json["implementation"]["description"])


def next_page(service):
    """Begin a search and return the link to its second page."""
    bundle: Any = service.page("Encounter?_count=1").json
    (link,) = [each["url"] for each in bundle["link"] if each["relation"] == "next"]
    return str(link)


def change(file, old, new):
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new), "utf-8")


def refusal(service):
    """Wait until `/ready` reports a refused mapping; return its problems."""
    service.until(lambda: not (service.part("mapping") or {"ready": True})["ready"])
    first, *problems = service.part("mapping")["problems"]
    assert first == REFUSED
    assert service.operations("/ready").status == 200
    assert service.metric('encounters_part_ready{part="mapping"}') == 0
    return [str(each) for each in problems]


def test_a_mapping_that_passes_is_loaded_and_searches_go_on(service, mapping):
    assert name(service) == "First"
    link = next_page(service)
    change(mapping, "First", "Second")
    assert name(service) == "First"
    service.reload()
    assert name(service) == "Second"
    assert service.events("mapping passed")[0]["file"] == str(mapping)
    assert service.page(link).status == 200
    change(mapping.with_name("base.yaml"), "FROM stays s LEFT", "FROM stays s  LEFT")
    service.reload()
    assert service.page(link).status == 410
    assert next_page(service)


def replace_worker(service):
    """End a worker as `kill -9` does, and wait for the one that takes its place."""
    (worker,) = service.workers()
    worker.kill()
    service.until(lambda: service.workers() not in ([], [worker]))


@pytest.mark.parametrize(
    ("file", "old", "new", "problem"),
    [
        ("hospital.yaml", "name:", "nmae:", "'nmae' is not a key"),
        # A column that the source lacks.
        ("base.yaml", "from: began", "from: begun", "begun"),
    ],
)
def test_a_mapping_that_is_refused_changes_nothing(
    service, mapping, file, old, new, problem
):
    link = next_page(service)
    change(mapping.with_name(file), old, new)
    service.reload()
    problems = refusal(service)
    assert any(problem in text for text in problems)
    assert all(str(mapping.parent) in text for text in problems)
    assert service.events("mapping refused")[-1]["problems"] == problems
    assert service.page(link).status == 200
    change(mapping.with_name(file), new, old)
    service.reload()
    service.until(lambda: service.part("mapping") == {"ready": True, "problems": []})


def test_a_worker_that_is_killed_while_files_are_faulty_or_gone_is_replaced(
    service, mapping
):
    files = [mapping, mapping.with_name("base.yaml"), mapping.with_name("ours.yaml")]
    # In the middle of being written, then gone.
    for change_file in (lambda file: file.write_text("mapping: 1\nex"), Path.unlink):
        for file in files:
            change_file(file)
        replace_worker(service)
        assert name(service) == "First"
        assert service.get(READ).status == 200
    service.reload()
    assert refusal(service)
    replace_worker(service)
    assert name(service) == "First"


def test_a_source_that_is_away_is_a_warning(mapping, redis_server):
    database = mapping.with_name("pas.db")
    away = database.rename(database.with_name("away.db"))
    with running(mapping.parent, mapping, REDIS_URL=redis_server.url) as service:
        (line,) = [
            e for e in service.lines() if "sources" in e and e["level"] == "warning"
        ]
        assert line["sources"] == ["First"]
        assert service.get(READ).status == 503
        service.until(lambda: not (service.part("source") or {"ready": True})["ready"])
        away.rename(database)
        service.until(lambda: service.get(READ).status == 200)
