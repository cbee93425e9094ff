"""A new mapping on SIGHUP: checked first, outside the workers, and only then loaded.

Left to itself gunicorn would start workers on whatever stands in the file, and end when
they cannot load it.
"""

import logging
import subprocess
import sys
from typing import Any

from app.operations.beside import Beside
from app.operations.shared import Shared

CHECK_SECONDS = 60
"""How long the check may take: its questions to the source have time-outs of their own."""

_CHECK = (sys.executable, "-m", "app.operations.candidate")

_log = logging.getLogger(__name__)


def check_before_reload(arbiter: Any, shared: Shared, operations: Beside) -> None:
    """Let a SIGHUP reach the workers of gunicorn's arbiter once the new mapping has passed."""
    reload = arbiter.handle_hup

    def handle_hup() -> None:
        passed = _passes(shared)
        # It tells of a mapping that was refused, and looks through one that passed.
        operations.poke()
        if passed:
            reload()

    # gunicorn has no hook that may say no: it looks the handler of a signal up by name.
    arbiter.handle_hup = handle_hup


def _passes(shared: Shared) -> bool:
    try:
        status = subprocess.run(  # noqa: S603 - our own interpreter
            _CHECK, stdin=subprocess.DEVNULL, timeout=CHECK_SECONDS, check=False
        ).returncode
    except subprocess.TimeoutExpired:
        shared.refused.write_text("the check took too long", "utf-8")
        status = 1
    if status == 0:
        _log.warning("mapping passed", extra={"data": {"file": str(shared.file)}})
        return True
    if not shared.refused.is_file():
        shared.refused.write_text(f"the check ended with status {status}", "utf-8")
    problems = shared.refused.read_text("utf-8").splitlines()
    _log.error("mapping refused", extra={"data": {"problems": problems}})
    return False
