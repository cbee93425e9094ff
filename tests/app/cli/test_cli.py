"""The console script: what it refuses before anything is started, and how it says so."""

import io
import shlex
from collections.abc import Iterator
from typing import NoReturn

import click
import pytest

from app.cli import cli, main
from demo.state import DemoDirectory

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


def test_an_invalid_command_is_refused_with_its_usage(capsys):
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


def test_each_command_has_a_help(capsys):
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


def test_output_is_utf_8_whatever_the_locale(monkeypatch):
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", stdout)
    assert main(["--version"]) == 0
    assert stdout.encoding == "utf-8"


def test_a_token_is_printed_alone(tmp_path, capsys):
    DemoDirectory(tmp_path).remember_issuer("http://127.0.0.1:1")
    assert main(["token", "--directory", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert (printed.err, printed.out.count("."), printed.out.count("\n")) == ("", 2, 1)


def test_ctrl_c_stops_a_command(monkeypatch):
    def interrupted(*_: object, **_options: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr("app.cli.run_tool", interrupted)
    assert main(["settings"]) == 130
