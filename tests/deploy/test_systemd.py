"""deploy/systemd: a hardened unit with the limits of its workers, nginx, logrotate."""

import re
import shutil
import subprocess

import pytest

from app.config import SETTINGS
from tests.deploy.files import most_bytes, most_tasks
from tests.deploy.proxies import NEEDS_NGINX, Proxy, echoing, running
from tests.live import HOST, ROOT, free_ports

pytestmark = pytest.mark.system

FOLDER = ROOT / "deploy" / "systemd"
ANALYZE, LOGROTATE = map(shutil.which, ("systemd-analyze", "logrotate"))


@pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed here")
def test_the_unit_is_hardened():
    command = [ANALYZE, "security", "--offline=yes", "--threshold=20"]
    subprocess.run([*command, FOLDER / "encounters.service"], check=True)


def test_its_limits_and_times_are_those_of_the_service():
    unit = (FOLDER / "encounters.service").read_text("utf-8")
    values = dict(re.findall(r"^(\w+)=(.*)$", unit, re.MULTILINE))
    first = {s.field: s.first for s in SETTINGS if s.first}
    workers, threads = int(first["workers"]), int(first["threads"])
    assert int(values["TasksMax"]) >= most_tasks(workers, threads)
    assert values["MemoryMax"] == "1G"
    assert most_bytes(workers) < 1024**3
    # gunicorn's graceful_timeout is 30 seconds; an invalid setting ends with status 2.
    assert int(values["TimeoutStopSec"]) > 30
    assert values["RestartPreventExitStatus"] == "2"
    # A reload that comes before Python runs.
    assert values["RestartForceExitStatus"] == "SIGHUP"


@NEEDS_NGINX
def test_nginx_passes_requests_on(tmp_path):
    behind, before = free_ports(), free_ports()
    text = (FOLDER / "nginx.conf").read_text("utf-8")
    text = text.replace("127.0.0.1:8000", f"{HOST}:{behind}")
    with echoing(behind), running(tmp_path, text, before):
        assert Proxy(before, tmp_path).ask("/fhir/v3/metadata").status == 200


@pytest.mark.skipif(LOGROTATE is None, reason="logrotate is not installed here")
def test_logrotate_takes_its_file(tmp_path):
    audit, conf = tmp_path / "audit.jsonl", tmp_path / "conf"
    audit.write_text("{}\n")
    text = (FOLDER / "encounters.logrotate").read_text("utf-8")
    text = text.replace("/var/log/encounters/audit.jsonl", str(audit))
    assert "    su encounters encounters\n" in text
    conf.write_text(text.replace("    su encounters encounters\n", ""))
    command = [LOGROTATE, "--force", "--state", tmp_path / "state", conf]
    subprocess.run(command, check=True)
    assert not audit.exists()
    assert len(list(tmp_path.glob("audit.jsonl-*"))) == 1
