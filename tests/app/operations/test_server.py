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

READ = """
import json, os, sys
from pathlib import Path
from app.operations.shared import Shared
http, sql = map(Path, sys.argv[1:])
shared = Shared.made(http)
shared.tell(os.environ)
from adapters import read_in
from adapters.mapping.load import load_mapping

def served(mapping):
    os.environ["ENCOUNTERS_MAPPING"] = str(mapping)
    read_in(load_mapping(mapping, os.environ))
    import app.operations.server
    # What follows is a worker's.
    before = set(sys.modules)
    import wsgi
    app.create_app()
    return sorted(set(sys.modules) - before)

told = {"http": served(http), "idle": sorted(sys.modules), "sql": served(sql)}
shared.remove()
print(json.dumps(told))
"""

SMALL = {"wsgi", "mappings", "tzdata", *sys.stdlib_module_names}


def test_all_that_a_mapping_needs_is_read_before_there_are_workers(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path / 'pas.db'}"
    Tables(url, EDGES).close()
    http, sql = tmp_path / "http.yaml", tmp_path / "sql.yaml"
    http.write_text(http_mapping_text(EDGES, paging=OFFSET), "utf-8")
    sql.write_text(mapping_text(EDGES, url), "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", READ, str(http), str(sql)],
        cwd=ROOT,
        env={**os.environ, **provider.environ(http), "PAS_URL": "http://127.0.0.1:9/"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    told = json.loads(done.stdout)
    assert "wsgi" in told["http"]
    for read in (told["http"], told["sql"]):
        assert not [m for m in read if m.partition(".")[0] not in SMALL]
    # And what it does not need is not.
    assert not {"sqlalchemy", "adapters.sql", "adapters.federated"} & {*told["idle"]}
