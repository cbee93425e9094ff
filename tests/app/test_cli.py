"""The console script: what it refuses before anything is started, and how it says so."""

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import psutil
import pytest

from adapters.testing.stays import EDGES
from app.cli import DEFAULT_DIRECTORY, STAYS, main
from demo.hospital import LEAST_STAYS
from demo.state import DEFAULT_ROOT, DemoDirectory
from tests.app import provider
from tests.hospital_sql import Tables, mapping_text
from tests.live import HOST, ROOT, answers, free_ports, wait_until

MAPPING = ROOT / "mappings" / "demo" / "demo.yaml"


def encounters(*arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    """Run the script as a process, with these variables and no other settings."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("ENCOUNTERS_")}
    return subprocess.run(
        [sys.executable, "-m", "app.cli", *arguments],
        cwd=ROOT,
        env={**kept, **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_serve_names_every_setting_that_is_missing() -> None:
    refused = encounters("serve")
    assert (refused.returncode, refused.stdout) == (2, "")
    named = [line.split()[0] for line in refused.stderr.splitlines()]
    assert set(named) == {
        "ENCOUNTERS_BASE_URL",
        "ENCOUNTERS_ISSUER",
        "ENCOUNTERS_AUDIENCE",
        "ENCOUNTERS_KEY_SET_URL",
        "ENCOUNTERS_MAPPING",
        "ENCOUNTERS_REDIS_URL",
        "ENCOUNTERS_SEAL_KEYS",
    }


def test_serve_names_every_fault_of_the_mapping_and_its_line(tmp_path: Path) -> None:
    mapping = tmp_path / "faulty.yaml"
    text = MAPPING.read_text().replace("profile: full", "profile: ful")
    mapping.write_text(text.replace("time_zone:", "time_zon:"))
    refused = encounters("serve", **provider.environ(mapping), PAS_URL="sqlite://")
    assert (refused.returncode, refused.stdout) == (2, "")
    told = refused.stderr.splitlines()
    assert all(line.startswith(f"{mapping}:") for line in told)
    assert any("'ful'" in line for line in told)
    assert any("time_zon" in line for line in told)


def test_serve_says_which_variable_of_the_mapping_is_missing() -> None:
    refused = encounters("serve", **provider.environ(MAPPING))
    assert (refused.returncode, refused.stdout) == (2, "")
    (line,) = refused.stderr.splitlines()
    assert line.startswith(str(MAPPING))
    assert "PAS_URL" in line


def test_serve_refuses_a_database_it_does_not_know() -> None:
    refused = encounters("serve", **provider.environ(MAPPING), PAS_URL="nosuch://x/y")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "nosuch" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_serve_refuses_a_class_that_is_not_installed(tmp_path: Path) -> None:
    mapping = tmp_path / "own.yaml"
    mapping.write_text(
        "mapping: 1\nname: Own\nprofile: full\ntime_zone: Europe/Paris\n"
        'source: {kind: "nosuch.pas:Pas"}\nencounter: {}\n'
    )
    refused = encounters("serve", **provider.environ(mapping))
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == (
        f"{mapping}:5:16: source.kind: 'nosuch.pas:Pas' cannot be imported: "
        "No module named 'nosuch'\n"
    )


def test_serve_refuses_an_account_that_may_write(
    postgresql_url: str, tmp_path: Path
) -> None:
    Tables(postgresql_url, EDGES).close()
    mapping = tmp_path / "hospital.yaml"
    patient = mapping_text(EDGES).replace("may_write: true", "timeout_seconds: 60")
    mapping.write_text(patient, "utf-8")
    refused = encounters("serve", **provider.environ(mapping), PAS_URL=postgresql_url)
    assert (refused.returncode, refused.stdout) == (2, "")
    (line,) = refused.stderr.splitlines()
    assert "may change tables" in line
    assert "source.may_write" in line


def test_serve_refuses_a_database_without_a_column_of_the_mapping(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path / 'pas.db'}"
    Tables(url, EDGES).close()
    mapping = tmp_path / "hospital.yaml"
    text = mapping_text(EDGES).replace("{from: visit}", "{from: visite}")
    mapping.write_text(text, "utf-8")
    refused = encounters("serve", **provider.environ(mapping), PAS_URL=url)
    assert (refused.returncode, refused.stdout) == (2, "")
    line = next(n for n, line in enumerate(text.splitlines(), 1) if "visite" in line)
    column = text.splitlines()[line - 1].index("visite") + 1
    assert refused.stderr == (
        f"{mapping}:{line}:{column}: Encounter.identifier.value ← visite:"
        " the SELECT returns no column 'visite'; did you mean 'visit'?\n"
    )


def logged(log: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in log.read_text("utf-8").splitlines()]


def test_serve_becomes_the_service(tmp_path: Path) -> None:
    port = free_ports()
    environ = provider.environ(MAPPING, BIND=f"{HOST}:{port}", WORKERS="1")
    log = tmp_path / "log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "app.cli", "serve"],
            cwd=ROOT,
            env={**os.environ, **environ, "PAS_URL": f"sqlite:///{tmp_path}/x"},
            stderr=file,
        )
    try:
        wait_until(lambda: answers(port), log)
        assert psutil.Process(process.pid).children()
        # The operations process may have told by now what it finds itself.
        (warning,) = (w for w in logged(log) if "sources" in w)
        assert (warning["level"], warning["sources"]) == ("warning", ["Demo hospital"])
        assert "503" in str(warning["event"])
        assert str(tmp_path) not in log.read_text("utf-8")
    finally:
        process.terminate()
        assert process.wait(60) == 0


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["no-such-command"],
        ["demo", "--port", "0"],
        ["demo", "--port", "65534"],
        ["demo", "--port", "http"],
        ["demo", "--stays", "999"],
        ["demo", "--stays", "1e3"],
        ["demo", "--mapping", "no-such-file"],
        ["demo", "--mapping", "setup.cfg", "--stays", "1000"],
    ],
)
def test_a_faulty_command_is_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        main(arguments)
    assert refused.value.code == 2
    assert "usage: encounters" in capsys.readouterr().err


def test_the_fewest_stays_are_what_the_generator_can_make() -> None:
    assert STAYS[0] == LEAST_STAYS


def test_the_demo_is_where_its_lines_take_it_to_be() -> None:
    assert DEFAULT_DIRECTORY == DEFAULT_ROOT


@pytest.mark.parametrize("command", [[], ["serve"], ["demo"], ["token"]])
def test_each_command_explains_itself(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main([*command, "--help"])
    assert left.value.code == 0
    assert "usage: encounters" in capsys.readouterr().out


def test_the_release_is_told_as_the_package_has_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out == f"encounters {version('encounters')}\n"


def test_a_token_needs_a_demo(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["token", "--directory", str(tmp_path)]) == 2
    assert "start it with 'make run'" in capsys.readouterr().err


def test_a_token_of_a_group_needs_that_group(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    DemoDirectory(tmp_path).remember_issuer("http://127.0.0.1:1")
    assert main(["token", "--directory", str(tmp_path), "--group", "b"]) == 2
    assert capsys.readouterr().err == (
        f"There is no demo in {tmp_path / 'group-b'}: "
        "start it with 'make run GROUP=b' first.\n"
    )


@pytest.mark.parametrize("command", ["demo", "token"])
def test_an_unknown_group_is_one_sentence(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--directory", str(tmp_path), "--group", "c"]) == 2
    assert capsys.readouterr().err == (
        "There is no group 'c': choose a or b, or none for the whole service.\n"
    )


def test_a_token_is_printed_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    DemoDirectory(tmp_path).remember_issuer("http://127.0.0.1:1")
    assert main(["token", "--directory", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert (printed.err, printed.out.count("."), printed.out.count("\n")) == ("", 2, 1)


@pytest.mark.parametrize("option", ["--scope", "--client"])
def test_an_empty_word_is_no_token(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["token", option, ""])
    assert ended.value.code == 2
    assert "is empty" in capsys.readouterr().err
