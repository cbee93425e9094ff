"""gunicorn's configuration: what is read once, before there are workers."""

import json
import os
import subprocess
import sys
from pathlib import Path

from adapters.testing.stays import EDGES
from tests.app import provider
from tests.hospital_http_mapping import OFFSET, http_mapping_text
from tests.hospital_sql import Tables, mapping_text
from tests.live import ROOT

READ_BY_A_WORKER = """
import json, os, sys
import app.operations.server
before = set(sys.modules)
import wsgi
from app import create_app
os.environ |= {"ENCOUNTERS_MAPPING": sys.argv[1], "PAS_URL": "http://127.0.0.1:9/"}
create_app()
print(json.dumps(sorted(set(sys.modules) - before)))
"""

SMALL = {"wsgi", "mappings", "tzdata", *sys.stdlib_module_names}

OF_THE_DATABASE = "sqlalchemy.dialects."
"""Its driver is known when the mapping is, in a worker."""


def test_a_worker_reads_no_modules_before_it_takes_requests(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'pas.db'}"
    Tables(url, EDGES).close()
    sql, http = tmp_path / "sql.yaml", tmp_path / "http.yaml"
    sql.write_text(mapping_text(EDGES), "utf-8")
    http.write_text(http_mapping_text(EDGES, paging=OFFSET), "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", READ_BY_A_WORKER, str(http)],
        cwd=ROOT,
        env={**os.environ, **provider.environ(sql), "PAS_URL": url},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    read = [m for m in json.loads(done.stdout) if not m.startswith(OF_THE_DATABASE)]
    assert "wsgi" in read
    assert not [m for m in read if m.partition(".")[0] not in SMALL]
