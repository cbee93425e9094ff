"""The console script: what it refuses before anything is started, and how it says so."""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import click
import pytest

from app.cli import cli, main
from demo.state import DemoDirectory
from tests.app import provider
from tests.hospital_sql import Tables, mapping_text
from tests.live import HOST, ROOT
from toolkit.contract.hospital import EDGES

LOOPBACK = f"https://{HOST}/fhir/v3"
"""Where the demo may be served: its mapping has identifiers of examples."""

MAPPING = ROOT / "mappings" / "demo" / "demo.yaml"


def encounters(*arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    """Run the script as a process, with these variables and no other settings."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("ENCOUNTERS_")}
    return subprocess.run(
        [sys.executable, "-m", "app.cli", *arguments],
        cwd=ROOT,
        env={**kept, **environ},
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=60,
        check=False,
    )


def refused(**environ: str) -> list[str]:
    """Let `serve` refuse to start; return the lines that say why, without log lines."""
    done = encounters("serve", **environ)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    return [line for line in done.stderr.splitlines() if not line.startswith("{")]


@pytest.mark.system
@pytest.mark.parametrize(
    "locale",
    [
        {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "ascii"},
    ],
)
def test_findings_are_printed_whatever_the_locale(
    tmp_path: Path, locale: dict[str, str]
) -> None:
    mapping = tmp_path / "hôpital.yaml"
    mapping.write_text("mapping: 1\nprénom: 1\n", "utf-8")
    environ = {**provider.environ(mapping), **locale}
    for arguments in (["mapping", "check", str(mapping)], ["serve"]):
        done = encounters(*arguments, **environ)
        assert done.returncode in {1, 2}
        assert ":2:1: " in done.stdout + done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.system
def test_serve_refuses_a_source_without_a_usable_address(tmp_path: Path) -> None:
    for pas, expected in (({}, "PAS_URL"), ({"PAS_URL": "nosuch://x/y"}, "nosuch")):
        (line,) = refused(**provider.environ(MAPPING, BASE_URL=LOOPBACK), **pas)
        assert expected in line
    mapping = tmp_path / "own.yaml"
    mapping.write_text(
        "mapping: 1\nname: Own\nprofile: full\ntime_zone: Europe/Paris\n"
        'source: {kind: "nosuch.pas:Pas"}\nencounter: {}\n'
    )
    (line,) = refused(**provider.environ(mapping, BASE_URL=LOOPBACK))
    assert line.startswith(f"{mapping}:5:16: source.kind: 'nosuch.pas:Pas'")


@pytest.mark.system
def test_serve_refuses_an_account_that_may_write(
    postgresql_url: str, tmp_path: Path
) -> None:
    Tables(postgresql_url, EDGES).close()
    mapping = tmp_path / "hospital.yaml"
    text = mapping_text(EDGES).replace("may_write: true", "timeout_seconds: 60")
    mapping.write_text(text, "utf-8")
    (line,) = refused(
        **provider.environ(mapping, BASE_URL=LOOPBACK), PAS_URL=postgresql_url
    )
    assert "source.may_write" in line


@pytest.mark.system
def test_serve_refuses_identifiers_of_examples_off_loopback(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'pas.db'}"
    Tables(url, EDGES).close()
    (mapping := tmp_path / "hospital.yaml").write_text(mapping_text(EDGES), "utf-8")
    lines = mapping.read_text("utf-8").splitlines()
    named = [
        number
        for number, line in enumerate(lines, 1)
        if "1.2.250.1.999" in line or "example.org" in line
    ]
    (line,) = refused(**provider.environ(mapping), PAS_URL=url)
    assert line.startswith(f"{mapping}:{named[0]}:")
    assert line.endswith(f"lines {', '.join(map(str, named))}")


INVALID = """
no-such-command
demo --port 0
demo --port 65534
demo --stays 999
demo --mapping no-such-file
demo --mapping setup.cfg --group a
doctor --seconds 0
mapping check
mapping preview a.yaml
mapping preview a.yaml --row row.yaml --of stay
mapping new
mapping new --from sqlite:// pas.yaml
mapping diff a.yaml --live
mapping diff a.yaml b.yaml
"""


def test_an_invalid_command_is_refused_with_its_usage(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for arguments in INVALID.splitlines():
        with pytest.raises(SystemExit) as refused:
            main(shlex.split(arguments))
        assert refused.value.code == 2, arguments
        assert "Usage: encounters" in capsys.readouterr().err


def commands(command: click.Command, path: str = "") -> Iterator[str]:
    """Yield the words of each command below one."""
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from commands(child, f"{path} {name}".strip())


def test_each_command_has_a_help(capsys: pytest.CaptureFixture[str]) -> None:
    every = set(commands(cli))
    assert every == {
        *("", "serve", "settings", "doctor", "openapi", "demo", "token"),
        *("workbench", "audit", "audit who", "mapping"),
        *("mapping check", "mapping explain", "mapping test", "mapping preview"),
        *("mapping schema", "mapping new", "mapping confirm"),
        "mapping diff",
    }
    for command in every:
        for option in ("--help", "-h"):
            assert main([*command.split(), option]) == 0
            usage = f"Usage: encounters {command}".strip()
            assert usage in capsys.readouterr().out


def test_a_token_needs_its_demo(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = ["--directory", str(tmp_path)]
    for group, place, start in (
        ("", "", "make run"),
        ("b", "group-b", "make run GROUP=b"),
    ):
        assert main(["token", *directory, "--group", group]) == 2
        text = capsys.readouterr().err
        assert str(tmp_path / place) in text
        assert f"'{start}'" in text
    for command in ("demo", "token"):
        assert main([command, *directory, "--group", "c"]) == 2
        text = capsys.readouterr().err
        assert "'c'" in text
        assert text.count("\n") == 1


def test_a_token_is_printed_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    DemoDirectory(tmp_path).remember_issuer("http://127.0.0.1:1")
    assert main(["token", "--directory", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert (printed.err, printed.out.count("."), printed.out.count("\n")) == ("", 2, 1)


def test_ctrl_c_stops_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **_options: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr("app.cli.run_tool", interrupted)
    assert main(["settings"]) == 130
