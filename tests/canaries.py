"""Names and numbers that may stand in nothing that operators see, looked for in the whole run."""

import logging

from prometheus_client import CollectorRegistry, generate_latest

from app.logging import RedactingFormatter
from demo.people import CANARIES as DEMO_CANARIES
from toolkit.contract.hospital import CANARIES as EDGE_CANARIES

CANARIES = tuple(each.lower() for each in (*EDGE_CANARIES, *DEMO_CANARIES))


def canaries_in(text: str) -> list[str]:
    """Return the canaries that a text holds, whatever the case of its letters."""
    lower = text.lower()
    return [each for each in CANARIES if each in lower]


def canaries_counted(registry: CollectorRegistry) -> list[str]:
    """Return the canaries that `/metrics` would tell of what was counted."""
    return canaries_in(generate_latest(registry).decode())


class CanaryWatch(logging.Handler):
    """Writes every record as the service would, and keeps the lines that hold a canary."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(RedactingFormatter())
        self._found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Look through one record."""
        line = self.format(record)
        if canaries_in(line):
            self._found.append(line)

    def taken(self) -> list[str]:
        """Return the lines that were found since the last time."""
        found, self._found = self._found, []
        return found
