"""A client of the Encounter Information Service.

from encounters_client import Encounters

with Encounters(base, token_url=…, client_id=…, client_secret=…, audience=…) as hospital:
    for stay in hospital.search(patient="Patient/158", date="ge2024"):
        print(stay.id, stay.status, stay.start)
"""

from encounters_client.client import Encounters
from encounters_client.copying import CopyReport
from encounters_client.errors import (
    EncountersError,
    Issue,
    NotFound,
    Refused,
    ResultExpired,
    Unavailable,
)
from encounters_client.progress import Progress
from encounters_client.resources import (
    Encounter,
    Identifier,
    Organization,
    Patient,
    Resource,
)
from encounters_client.search import Page, Search
from encounters_client.store import SqliteStore, Store
from encounters_client.sync import SyncReport
from encounters_client.transport import Retry

__all__ = [
    "CopyReport",
    "Encounter",
    "Encounters",
    "EncountersError",
    "Identifier",
    "Issue",
    "NotFound",
    "Organization",
    "Page",
    "Patient",
    "Progress",
    "Refused",
    "Resource",
    "ResultExpired",
    "Retry",
    "Search",
    "SqliteStore",
    "Store",
    "SyncReport",
    "Unavailable",
]
