"""The commands of docs/run for one machine are typed, and the service starts.

What a test machine lacks or must not change is a stand-in: accounts, systemd and Docker.
Everything else is real, below a directory of the test.
"""

import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.app.server.running import fetch, running_as
from tests.deploy.files import COMPOSE, OPERATORS_OWN, composed, env_file
from tests.docs.pages import operators, section
from tests.live import HOST, ROOT, free_ports

pytestmark = pytest.mark.system

STAND_INS = {
    **dict.fromkeys(("useradd", "systemctl", "nginx", "curl", "chgrp"), ""),
    # The same without owners.
    "install": """
        for word; do shift
            if [ "$word" = -o ] || [ "$word" = -g ]; then drop=1
            elif [ "${drop:-}" ]; then drop=
            else set -- "$@" "$word"; fi
        done
        exec /usr/bin/install "$@"
        """,
    "runuser": 'shift 3; exec "$@"',
    # A command of the image: in the folder that is mounted.
    "docker": f"""
        [ "$1" = run ] || exit 0
        cd hospital && shift 5 && exec {sys.executable} -m app.cli "$@"
        """,
    # Paths of a first file of settings are below the directory of the test.
    "encounters": f"""
        set -o pipefail
        {sys.executable} -m app.cli "$@" |
            sed -E "s#=/(etc|var)/#=$PLACE/\\1/#"
        """,
}
"""Programs of the page, and what they do here."""


def type_commands(title, directory, *changes):
    """Type the commands of a section in a directory; return what they print."""
    page = section(operators(), title).partition("\n## ")[0]
    commands = re.findall(r"^ *\$ ((?:.*\\\n)*.*)$", page, re.MULTILINE)
    assert len(commands) > 5
    text = "\n".join(["set -e", *commands])
    for before, after in changes:
        assert before in text, before
        text = text.replace(before, after)
    programs = directory / "bin"
    programs.mkdir()
    for name, script in STAND_INS.items():
        (programs / name).write_text(f"#!/bin/bash\n{script}\n")
        (programs / name).chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    environ = {"PATH": path, "PYTHONPATH": str(ROOT), "PLACE": str(directory)}
    done = subprocess.run(
        ["bash", "-c", text],
        cwd=directory / "work",
        env=os.environ | environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def check_start(directory, environ):
    """Check that the service starts with these settings, and finds its Redis."""
    first = free_ports(2)
    environ |= {
        "ENCOUNTERS_BIND": f"{HOST}:{first}",
        "ENCOUNTERS_OPERATIONS_BIND": f"{HOST}:{first + 1}",
    }
    with running_as(directory, environ, first) as service:
        url = f"http://{HOST}:{first}/fhir/v3/metadata"
        assert fetch(url, {"X-Forwarded-Proto": "https"}, 60).status in {200, 403}
        service.until(lambda: (service.part("redis") or {}).get("ready"))


def test_one_machine_without_containers(tmp_path, redis_server):
    work, etc = tmp_path / "work", tmp_path / "etc"
    for folder in ("systemd/system", "logrotate.d", "nginx/conf.d"):
        (etc / folder).mkdir(parents=True)
    (tmp_path / "var" / "log" / "encounters").mkdir(parents=True)
    work.mkdir()
    for name in ("deploy", "mappings"):
        (work / name).symlink_to(ROOT / name)
    for name in ("pas_key", "encounters.pem", "encounters.key", "clients.pem"):
        (work / name).write_text("k")
    printed = type_commands(
        "One machine without containers",
        tmp_path,
        ("/opt/encounters/bin/", f"{tmp_path}/bin/"),
        ("/etc/", f"{etc}/"),
        ("redis://127.0.0.1:6379/0", redis_server.url),
    )
    assert re.search(r"^settings +ok", printed, re.MULTILINE), printed
    check_start(tmp_path, env_file(etc / "encounters" / "settings.env"))


@pytest.mark.skipif(os.geteuid() != 0, reason="the page has them typed as root")
def test_one_machine_with_compose(tmp_path, redis_server):
    shutil.copytree(ROOT / "mappings", tmp_path / "mappings")
    compose = tmp_path / "deploy" / "compose"
    ignored = shutil.ignore_patterns(*OPERATORS_OWN)
    shutil.copytree(COMPOSE, compose, ignore=ignored)
    (compose / "pas_key").write_text("k")
    (tmp_path / "work").symlink_to(compose)
    type_commands("One machine with containers", tmp_path)
    secrets = compose / "secrets"
    (secrets / "redis_url").chmod(0o600)
    (secrets / "redis_url").write_text(redis_server.url)
    environ = composed()["services"]["encounters-1"]["environment"]
    environ |= env_file(secrets / "hospital.env") | env_file(compose / "settings.env")
    for name, text in environ.items():
        environ[name] = text.replace("/run/secrets", str(secrets))
    environ["ENCOUNTERS_AUDIT"] = str(tmp_path / "audit.jsonl")
    environ["ENCOUNTERS_MAPPING"] = str(compose / "hospital" / "hospital.yaml")
    check_start(tmp_path, environ)
