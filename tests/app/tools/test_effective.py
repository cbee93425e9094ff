"""`encounters settings`: every setting, where it is from, and no secret."""

import json
from pathlib import Path

import pytest

from app.cli import main
from app.setting_table import SETTINGS
from tests.app import provider


@pytest.fixture
def mapping(tmp_path: Path) -> Path:
    file = tmp_path / "hospital.yaml"
    file.write_text("mapping: 1\n")
    return file


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> "pytest.MonkeyPatch":
    for setting in SETTINGS:
        monkeypatch.delenv(setting.name, raising=False)
    monkeypatch.delenv("GUNICORN_CMD_ARGS", raising=False)
    return monkeypatch


def told(
    given: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], **environ: str
) -> tuple[int, str]:
    for name, text in environ.items():
        given.setenv(name, text)
    return main(["settings"]), capsys.readouterr().out


def test_it_says_where_each_is_from_and_hides_secrets(
    given: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], mapping: Path
) -> None:
    environ = provider.environ(mapping, REDIS_URL="redis://:hunter2@h", WORKERS="4")
    seal = mapping.with_name("seal_keys")
    seal.write_text(environ.pop("ENCOUNTERS_SEAL_KEYS"))
    environ["ENCOUNTERS_SEAL_KEYS_FILE"] = str(seal)
    status, text = told(given, capsys, **environ)
    lines = {line.split()[0]: line.split()[1:] for line in text.splitlines()}
    assert status == 0
    assert list(lines) == [setting.name for setting in SETTINGS]
    assert lines["ENCOUNTERS_WORKERS"] == ["environment", "4"]
    assert lines["ENCOUNTERS_THREADS"] == ["default", "16"]
    assert lines["ENCOUNTERS_REDIS_URL"] == ["environment", "(hidden)"]
    assert lines["ENCOUNTERS_SEAL_KEYS"] == ["file", "(hidden)"]
    assert lines["ENCOUNTERS_OPERATIONS_BIND"] == ["not", "given"]
    assert "hunter2" not in text
    assert seal.read_text() not in text


def test_what_is_at_fault_is_told_at_once_and_not_quoted(
    given: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], mapping: Path
) -> None:
    bad = {"WORKERS": "hunter2", "REDIS_URL": "hunter2", "AUDIT": "stdout"}
    status, text = told(given, capsys, **provider.environ(mapping, **bad))
    assert status == 1
    assert [line for line in text.splitlines() if line.endswith("at fault")] == [
        line
        for line in text.splitlines()
        if line.split()[0] in {"ENCOUNTERS_REDIS_URL", "ENCOUNTERS_WORKERS"}
        and "cannot" not in line
    ]
    assert text.splitlines()[-3:] == [
        "ENCOUNTERS_REDIS_URL cannot be read: expected redis://, rediss://, unix:// or "
        "redis+sentinel://h:1,h:2/master (URL).",
        "ENCOUNTERS_WORKERS cannot be read: expected 1 to 64 (whole number).",
        "ENCOUNTERS_AUDIT_KEY is missing: ENCOUNTERS_AUDIT needs it.",
    ]
    assert "hunter2" not in text


def test_a_name_that_is_mistyped_is_told_and_counts_for_nothing(
    given: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], mapping: Path
) -> None:
    typed = {"ENCOUNTERS_WORKER": "3", "ENCOUNTERS_PORT": "tcp://10.0.0.1:80"}
    overriding = {"GUNICORN_CMD_ARGS": "--workers 9"}
    environ = provider.environ(mapping) | typed | overriding
    status, text = told(given, capsys, **environ)
    assert status == 0
    assert text.splitlines()[-3:] == [
        "note: ENCOUNTERS_PORT is no setting and is left alone",
        "note: ENCOUNTERS_WORKER is no setting and is left alone; did you mean "
        "ENCOUNTERS_WORKERS?",
        "note: GUNICORN_CMD_ARGS is given: what it says of workers, threads or bind wins",
    ]


def test_as_json_it_is_the_same(
    given: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], mapping: Path
) -> None:
    environ = provider.environ(mapping, SEAL_KEYS=None, WORKERS="0")
    for name, text in environ.items():
        given.setenv(name, text)
    assert main(["settings", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    rows = {row["name"]: row for row in document["settings"]}
    assert list(rows) == [setting.name for setting in SETTINGS]
    assert rows["ENCOUNTERS_REDIS_URL"] == {
        "name": "ENCOUNTERS_REDIS_URL",
        "from": "environment",
        "value": None,
        "secret": True,
        "fault": None,
    }
    assert rows["ENCOUNTERS_LEEWAY_SECONDS"]["value"] == "30"
    assert rows["ENCOUNTERS_WORKERS"]["fault"] in document["faults"]
    assert len(document["faults"]) == 2


def test_what_the_mapping_names_is_told_and_never_shown(
    given: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], mapping: Path
) -> None:
    source = "{kind: http, url: {env: PAS_URL}, headers: {X: {env: PAS_KEY}}}"
    mapping.write_text(f"mapping: 1\nsource: {source}\nname: {{env: x, y: z}}\n")
    given.delenv("PAS_KEY", raising=False)
    status, text = told(
        given, capsys, **provider.environ(mapping), PAS_URL="https://hunter2.example"
    )
    lines = text.splitlines()
    assert status == 1
    assert [line.split() for line in lines[-3:]] == [
        ["PAS_URL", "environment", "(hidden)"],
        ["PAS_KEY", "not", "given", "at", "fault"],
        ["PAS_KEY", "is", "missing:", "the", "mapping", "names", "it."],
    ]
    assert "hunter2" not in text
    assert main(["settings", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["mapping"] == {"PAS_URL": True, "PAS_KEY": False}
