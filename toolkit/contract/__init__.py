"""The contract suite of adapters, for whoever writes one (docs/change/own-adapter.md).

It needs pytest, which the service itself does without.
"""

import pytest

# Before they are imported, so that a failed assertion shows its values.
pytest.register_assert_rewrite(f"{__name__}.harness", f"{__name__}.suite")

from toolkit.contract.harness import Open, Opened  # noqa: E402
from toolkit.contract.hospital import (  # noqa: E402
    KINDS,
    SEXES,
    STATES,
    Hospital,
    Ids,
    OrganizationRow,
    PatientRow,
    StayRow,
)

__all__ = [
    "KINDS",
    "SEXES",
    "STATES",
    "Hospital",
    "Ids",
    "Open",
    "Opened",
    "OrganizationRow",
    "PatientRow",
    "StayRow",
]
