"""The console script: what it refuses before anything is started, and how it says so."""

import io
import shlex

import click
import pytest

from app.cli import cli, main
from demo.state import DemoDirectory

INVALID = """
no-such-command
demo --port 0
demo --stays 999
demo --mapping setup.cfg --group a
mapping check
mapping preview a.yaml --row row.yaml --of stay
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


def test_each_command_has_a_help(capsys):
    names = ["", *cli.list_commands(click.Context(cli))]
    for group in ("mapping", "audit"):
        command = cli.get_command(click.Context(cli), group)
        names += [f"{group} {n}" for n in command.list_commands(click.Context(command))]
    assert {"serve", "audit who", "mapping check"} <= set(names)
    for name in names:
        for option in ("--help", "-h"):
            assert main([*name.split(), option]) == 0
            usage = f"Usage: encounters {name}".strip()
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
    def interrupted(*_, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("app.cli.run_tool", interrupted)
    assert main(["settings"]) == 130
