"""The contract suite of adapters, for whoever writes one (docs/own-adapter.md).

It needs pytest, which the service itself does without.
"""

import pytest

pytest.register_assert_rewrite(
    *(f"{__name__}.{part}" for part in ("asking", "searches", "dates", "pages"))
)

from adapters.testing.hospital import (  # noqa: E402 - rewritten first
    FINESS_SYSTEM,
    IPP_SYSTEM,
    KINDS,
    NO_END,
    NO_START,
    PARIS,
    SEXES,
    STATES,
    UNIT_URL,
    VISIT_SYSTEMS,
    Hospital,
    Ids,
    OrganizationRow,
    PatientRow,
    StayRow,
)
from adapters.testing.opened import Open, Opened  # noqa: E402
from adapters.testing.stays import EDGES  # noqa: E402

__all__ = [
    "EDGES",
    "FINESS_SYSTEM",
    "IPP_SYSTEM",
    "KINDS",
    "NO_END",
    "NO_START",
    "PARIS",
    "SEXES",
    "STATES",
    "UNIT_URL",
    "VISIT_SYSTEMS",
    "Hospital",
    "Ids",
    "Open",
    "Opened",
    "OrganizationRow",
    "PatientRow",
    "StayRow",
]
