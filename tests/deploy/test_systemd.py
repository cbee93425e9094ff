"""deploy/systemd: a hardened unit with the limits of its workers, nginx, logrotate."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from app.config import SETTINGS
from tests.certificates import certify
from tests.deploy.files import most_bytes, most_tasks
from tests.deploy.proxies import NGINX, around
from tests.live import HOST, ROOT, free_ports

pytestmark = pytest.mark.system

FOLDER = ROOT / "deploy" / "systemd"
UNIT = (FOLDER / "encounters.service").read_text("utf-8")
ANALYZE, LOGROTATE = map(shutil.which, ("systemd-analyze", "logrotate"))


def value(name: str) -> str:
    (found,) = re.findall(rf"^{name}=(.*)$", UNIT, re.MULTILINE)
    return str(found)


@pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed here")
def test_the_unit_is_hardened() -> None:
    command = [str(ANALYZE), "security", "--offline=yes", "--threshold=20"]
    done = subprocess.run(
        [*command, str(FOLDER / "encounters.service")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_its_limits_and_times_are_those_of_the_service() -> None:
    first = {s.field: s.first for s in SETTINGS if s.first}
    workers, threads = int(first["workers"]), int(first["threads"])
    assert int(value("TasksMax")) >= most_tasks(workers, threads)
    assert value("MemoryMax") == "1G"
    assert most_bytes(workers) < 1024**3
    # gunicorn's graceful_timeout is 30 seconds; an invalid setting ends with status 2.
    assert int(value("TimeoutStopSec")) > 30
    assert value("RestartPreventExitStatus") == "2"
    # A reload that comes before Python runs.
    assert value("RestartForceExitStatus") == "SIGHUP"


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed here")
def test_nginx_takes_its_file(tmp_path: Path) -> None:
    for name in ("encounters", "clients"):
        certify(tmp_path, name)
    text = (FOLDER / "nginx.conf").read_text("utf-8")
    for placed, meant in (
        ("/etc/nginx/tls", str(tmp_path)),
        ("/var/log/nginx", str(tmp_path)),
        ("listen 443", f"listen {HOST}:{free_ports()}"),
    ):
        assert placed in text
        text = text.replace(placed, meant)
    file = tmp_path / "nginx.conf"
    file.write_text(around(tmp_path, text))
    command = [str(NGINX), "-t", "-c", str(file), "-e", str(tmp_path / "errors")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "[warn]" not in done.stderr


@pytest.mark.skipif(LOGROTATE is None, reason="logrotate is not installed here")
def test_logrotate_takes_its_file(tmp_path: Path) -> None:
    text = (FOLDER / "encounters.logrotate").read_text("utf-8")
    audit = tmp_path / "audit.jsonl"
    audit.write_text("{}\n")
    text = text.replace("/var/log/encounters/audit.jsonl", str(audit))
    assert "    su encounters encounters\n" in text
    (tmp_path / "conf").write_text(text.replace("    su encounters encounters\n", ""))
    command = [str(LOGROTATE), "--force", "--state", str(tmp_path / "state")]
    subprocess.run([*command, str(tmp_path / "conf")], check=True)
    assert not audit.exists()
    assert len(list(tmp_path.glob("audit.jsonl-*"))) == 1
