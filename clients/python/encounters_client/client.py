"""The client of one service."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from encounters_client.errors import NotFound, Refused
from encounters_client.progress import OnProgress
from encounters_client.resources import (
    TYPES,
    Encounter,
    Organization,
    Patient,
    Resource,
)
from encounters_client.search import Search
from encounters_client.store import Store
from encounters_client.sync import PAGE_SIZE, Sync, SyncReport
from encounters_client.transport import MISSING, Credentials, Retry, Transport

R = TypeVar("R", bound=Resource)
Value: TypeAlias = str | int | Sequence[str]
"""A value of a parameter, or several of which all must hold; alternatives are `a,b`."""

REQUIRED = ("BASE", "TOKEN_URL", "CLIENT_ID", "CLIENT_SECRET")


class Encounters:
    """A hospital's stays, patients and organizations.

    Use it in a `with` block, which closes its connections. It renews its token and repeats
    requests that may succeed later. One object is for one thread. All methods raise Refused if
    the request, the credentials or the answer is wrong, and Unavailable if repeating did not help.
    """

    def __init__(
        self,
        base: str,
        *,
        token_url: str,
        client_id: str,
        client_secret: str,
        audience: str | None = None,
        scope: str | None = None,
        timeout: float = 60,
        retry: Retry | None = None,
    ) -> None:
        credentials = Credentials(
            token_url=token_url,
            client_id=client_id,
            client_secret=client_secret,
            audience=audience,
            scope=scope,
        )
        self._transport = Transport(
            base, credentials, timeout=timeout, retry=retry or Retry()
        )

    @classmethod
    def from_environment(
        cls, environ: Mapping[str, str] = os.environ, *, retry: Retry | None = None
    ) -> "Encounters":
        """Return the client that the environment describes. Raises ValueError.

        BASE, TOKEN_URL, CLIENT_ID and CLIENT_SECRET are required; AUDIENCE, SCOPE and
        TIMEOUT_SECONDS are optional.
        """
        missing = [name for name in REQUIRED if not environ.get(name)]
        if missing:
            raise ValueError(f"not set: {' '.join(missing)}")
        return cls(
            environ["BASE"],
            token_url=environ["TOKEN_URL"],
            client_id=environ["CLIENT_ID"],
            client_secret=environ["CLIENT_SECRET"],
            audience=environ.get("AUDIENCE"),
            scope=environ.get("SCOPE"),
            timeout=float(environ.get("TIMEOUT_SECONDS") or 60),
            retry=retry,
        )

    def __enter__(self) -> "Encounters":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def search(self, **parameters: Value) -> Search[Encounter]:
        """Return a search for stays: `search(patient="Patient/158", date="ge2024")`.

        Write other names as `**{"service-provider._extension": …}`. Pages have 100 matches
        unless `_count` says otherwise.
        """
        return self._search(Encounter, parameters)

    def patients(self, **parameters: Value) -> Search[Patient]:
        """Return a search for patients: `patients(name="martin")`."""
        return self._search(Patient, parameters)

    def organizations(self, **parameters: Value) -> Search[Organization]:
        """Return a search for hospitals."""
        return self._search(Organization, parameters)

    def stays_of(
        self, patient: Patient | str, **parameters: Value
    ) -> Search[Encounter]:
        """Return a search for the stays of a patient, or of a patient's id."""
        id = patient.id if isinstance(patient, Patient) else patient
        return self.search(**{**parameters, "patient": f"Patient/{id}"})

    def encounter(self, id: str) -> Encounter:
        """Return a stay. Raises NotFound if it was removed, or continues under another id."""
        return self._read(Encounter, id)

    def patient(
        self, id: str | None = None, *, identifier: str | None = None
    ) -> Patient:
        """Return the patient with an id, or with an identifier: `patient(identifier="sys|1")`.

        Raises NotFound if there is none, and Refused if several have the identifier.
        """
        if identifier is None:
            if id is None:
                raise TypeError("patient() requires an id or an identifier")
            return self._read(Patient, id)
        patients = list(self.patients(identifier=identifier))
        host = self._transport.host
        if not patients:
            raise NotFound(host, "no patient has the identifier")
        if len(patients) > 1:
            raise Refused(host, f"{len(patients)} patients have the identifier")
        return patients[0]

    def organization(self, id: str) -> Organization:
        """Return a hospital. Raises NotFound."""
        return self._read(Organization, id)

    def capabilities(self) -> Any:
        """Return the CapabilityStatement: what this deployment offers, and its time zone."""
        answer = self._transport.get(f"{self._transport.base}/metadata")
        return answer.resource("CapabilityStatement")

    def sync(
        self,
        store: Store,
        *,
        full: bool = False,
        types: Iterable[str] = TYPES,
        page_size: int = PAGE_SIZE,
        on_progress: OnProgress | None = None,
    ) -> SyncReport:
        """Bring a store up to date: every few minutes, and every night with `full`.

        Only a full run finds what has no time of change: stays and patients that were deleted,
        cancelled or merged. Each page is stored at once; an interrupted run is continued by
        the next one.
        """
        run = Sync(
            self._transport,
            store,
            full=full,
            page_size=page_size,
            on_progress=on_progress,
        )
        return run.run(types)

    def _search(self, kind: type[R], parameters: Mapping[str, Value]) -> Search[R]:
        form = []
        for name, value in {"_count": PAGE_SIZE, **parameters}.items():
            values = [str(value)] if isinstance(value, str | int) else value
            form += [(name, text) for text in values]
        return Search(self._transport, kind, form)

    def _read(self, kind: type[R], id: str) -> R:
        name = kind.__name__
        answer = self._transport.read(name, id)
        if answer.status in MISSING:
            raise answer.refusal(NotFound)
        return kind(answer.resource(name))
