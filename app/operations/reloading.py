"""A new mapping on SIGHUP: checked first, outside the workers, and only then loaded.

Left to itself gunicorn would start workers on whatever stands in the file, and end when
they cannot load it. While the check goes on, gunicorn's master does what it does at other
times: it replaces workers that have ended, and stops when it is told to.
"""

import logging
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from app.operations.beside import Beside, let_go
from app.operations.candidate import Check, RefusedError, pass_next
from app.operations.shared import Shared

_log = logging.getLogger(__name__)


class Reloading:
    """Lets a SIGHUP reach the workers once the new mapping has passed."""

    def __init__(self, shared: Shared, operations: Beside) -> None:
        self._shared = shared
        self._operations = operations
        self._check: Check | None = None
        self._again = False

    def attend(self, arbiter: Any) -> None:
        """Come between gunicorn's arbiter and its SIGHUP."""
        reload, manage_workers = arbiter.handle_hup, arbiter.manage_workers

        def handle_hup() -> None:
            # What is being checked may have been read before the file was written.
            self._again = True
            self._look(arbiter, reload)

        def manage() -> None:
            manage_workers()
            self._look(arbiter, reload)

        # gunicorn has no hook that may say no: it looks the handler of a signal up by name.
        # Its loop comes by the workers once a second and whenever a child has ended.
        arbiter.handle_hup, arbiter.manage_workers = handle_hup, manage

    def stop(self) -> None:
        """End the check that goes on, if there is one."""
        if self._check:
            self._check.stop()
            self._check = None

    def _look(self, arbiter: Any, reload: Callable[[], None]) -> None:
        passed = self._passed(arbiter)
        if passed is None:
            return
        # It tells of a mapping that was refused, and looks through one that passed.
        self._operations.poke()
        if passed:
            reload()

    def _passed(self, arbiter: Any) -> bool | None:
        """Begin the check that is wanted, or look how it goes; None while nothing is told."""
        try:
            if self._check is None:
                if not self._again:
                    return None
                self._again = False
                self._check = pass_next(
                    self._shared, os.environ, lambda: let_go(arbiter)
                )
            if self._check.passed(0) is None:
                return None
        except RefusedError as error:
            self._check = None
            self._refuse(str(error))
            return False
        self._check = None
        self._shared.refused.unlink(missing_ok=True)
        data = {"file": str(self._shared.file)}
        _log.warning("mapping passed", extra={"data": data})
        return True

    def _refuse(self, problems: str) -> None:
        # Where there is no room for it, it stands in the log alone.
        with suppress(OSError):
            self._shared.refused.write_text(problems, "utf-8")
        data = {"problems": problems.splitlines()}
        _log.error("mapping refused", extra={"data": data})
