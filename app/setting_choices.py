"""The closed lists that settings choose from."""

from enum import StrEnum


class PlainHttp(StrEnum):
    """What happens to a request that did not come over HTTPS (decision 24)."""

    REFUSE = "refuse"
    LOOPBACK = "loopback"


class LogLevel(StrEnum):
    """From which level up our own log lines are written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class AuditPatients(StrEnum):
    """How audit events name the patients of an answer."""

    DIGEST = "digest"
    CLEAR = "clear"


class AuditFailure(StrEnum):
    """What happens to an answer whose audit event cannot be written."""

    REFUSE = "refuse"
    COUNT = "count"
