"""gunicorn's logger, quieter."""

from typing import Any

from gunicorn.glogging import Logger


class QuietLogger(Logger):
    """gunicorn's logger, without the access line that it composes for nobody to read.

    With a configuration of ours for the logs it takes its own access log for wanted.
    """

    def access(self, *told: Any) -> None:
        """Write an access line, where the operator has asked for one."""
        if self.cfg.accesslog:
            super().access(*told)
