"""The cases of behaviour.yaml: faults, and what a client does then."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from encounters_client.store import INVALID

from tests.clients.service import FAULTS, Service, status

COMPLETE, REFUSED, USAGE, INCOMPLETE, UNAVAILABLE = range(5)
ERRORS = {REFUSED: "Refused", UNAVAILABLE: "Unavailable"}
STAYS = 25
PARAMETERS = {"_count": "10", "_sort": "date"}
"""Of the search of a case: by id, as no stay has a start."""


@dataclass(frozen=True)
class Case:
    """A row of the file: its faults, and what `copy` and an iterator do."""

    name: str
    rule: str
    faults: Sequence[Mapping[str, Any]] = ()
    exit: int = COMPLETE
    iterator: Mapping[str, Any] = field(default_factory=dict)
    missing: Sequence[int] = ()
    invalid: Sequence[int] = ()
    requests: int | None = None
    tokens: int = 1
    total: int | None = STAYS
    expires_in: int = 3600
    timeout: int = 60

    @property
    def ids(self) -> list[str]:
        """The ids that a client has in the end."""
        return sorted(str(id) for id in {*range(1, STAYS + 1)} - {*self.missing})

    def begin(self, service: Service) -> None:
        """Give a service the stays and the faults."""
        service.open(STAYS)
        for id in self.invalid:
            service.hospital.change("Encounter", id, INVALID)
        service.expires_in = self.expires_in
        faults = {}
        for row in self.faults:
            named = FAULTS.get(row.get("fault", ""))
            fault = named or status(row["status"], row.get("retry_after", ""))
            last = row.get("at", 40)
            faults |= dict.fromkeys(range(row.get("from", last), last + 1), fault)
        service.faults = faults

    def assert_iterated(
        self,
        service: Service,
        error: str | None,
        ids: Sequence[str],
        search: Mapping[str, Any],
    ) -> None:
        """Check what an iterator has returned or raised, and what it has sent."""
        assert error == self.iterator.get("error", ERRORS.get(self.exit))
        requests = self.iterator.get("requests", self.requests)
        assert requests in (None, len(service.requests))
        assert service.tokens == self.tokens
        if error is None:
            assert sorted(set(ids)) == self.ids
            assert search == {
                "total": self.total,
                "invalidRows": len(self.invalid),
                "isComplete": self.exit == COMPLETE,
            }


_FILE = Path(__file__).with_name("behaviour.yaml")
CASES = [Case(**row) for row in yaml.safe_load(_FILE.read_text("utf-8"))]
