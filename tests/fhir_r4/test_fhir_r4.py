"""mappings/fhir-r4 on a FHIR R4 server of somebody else, live or as it was recorded."""

import shutil
from pathlib import Path

import pytest

from adapters.contract import SourceDataError
from adapters.testing.harness import STAY, ask
from app.cli import main
from tests.fhir_r4 import recorded
from tests.fhir_r4.scenario import BASE, HOSPITAL, compare_all, opened
from tests.hospital_http import serving

needs_java = pytest.mark.skipif(
    not (shutil.which("java") and shutil.which("mvn")), reason="Java and Maven"
)


def test_all_that_was_recorded_of_a_real_server_is_equal() -> None:
    replayer = recorded.Replayer(recorded.load())
    with serving(replayer) as url, opened(f"{url}/fhir") as adapter:
        compare_all(adapter)
    assert {*replayer.requests} == {*replayer.answers}


@needs_java
def test_a_real_server_is_equal() -> None:
    with recorded.real_server() as url, opened(url) as adapter:
        compare_all(adapter)


@needs_java
def test_check_live_has_no_error_on_a_real_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "hospital.yaml"
    file.write_text(HOSPITAL, encoding="utf-8")
    with recorded.real_server() as url:
        monkeypatch.setenv("FHIR_URL", url)
        main(["mapping", "check", "--live", str(file)])
        said = capsys.readouterr().out
        assert " is wrong" not in said
        assert "does not filter" not in said
        # A server compares "ge" with the whole stay: the start has to be bound by "sa".
        text = HOSPITAL + (
            "encounter: {search: {date: {from: {send: date, prefix: ge}, before:"
            ' {send: date, prefix: lt}, format: "%Y-%m-%dT%H:%M:%S%:z"}}}\n'
        )
        file.write_text(text, encoding="utf-8")
        assert main(["mapping", "check", "--live", str(file)]) == 1
        assert "'date' does not filter" in capsys.readouterr().out


def test_the_base_is_sound(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FHIR_URL", "https://fhir.example.org/r4")
    assert main(["mapping", "check", str(BASE)]) == 0
    assert "warning" not in capsys.readouterr().out


def test_an_answer_that_is_no_bundle_is_no_empty_list() -> None:
    answers = {key: [200, '{"resourceType": "Basic"}'] for key in recorded.load()}
    replayer = recorded.Replayer(answers)
    with serving(replayer) as url, opened(f"{url}/fhir") as adapter:
        query = ask(of=STAY, count=20)
        with pytest.raises(SourceDataError, match="total"):
            adapter.search(query)
