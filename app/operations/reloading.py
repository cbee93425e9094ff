"""A new mapping on SIGHUP: checked first, outside the workers, and only then loaded.

Left to itself gunicorn would start workers on whatever stands in the file, and end when
they cannot load it.
"""

import logging
import os
from contextlib import suppress
from typing import Any

from app.operations.beside import Beside
from app.operations.candidate import RefusedError, pass_next
from app.operations.shared import Shared

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
        pass_next(shared, os.environ)
    except RefusedError as error:
        # Where there is no room for it, it stands in the log alone.
        with suppress(OSError):
            shared.refused.write_text(str(error), "utf-8")
        data = {"problems": str(error).splitlines()}
        _log.error("mapping refused", extra={"data": data})
        return False
    shared.refused.unlink(missing_ok=True)
    _log.warning("mapping passed", extra={"data": {"file": str(shared.file)}})
    return True
