"""What stands around the service in a replay: key set, hospital API, things that fail."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from werkzeug import Response
from werkzeug.middleware.dispatcher import DispatcherMiddleware

from demo.http import Access, Json, Pas, application
from tests.hospital_http import serving as serving_application
from tests.replay.hospital import (
    HOUSES,
    NUMBERS,
    PATIENTS,
    STAYS,
    House,
    Patient,
    Stay,
)

KEYS, FULL, COARSE, FAILING, NONSENSE = "keys", "full", "coarse", "failing", "nonsense"
"""The first segments of the paths that are served."""

KEY = "k-1"
_SURVIVORS = {p.patient_id: p.replaced_by for p in PATIENTS if p.replaced_by}


class Hospital:
    """The rows as the demo's HTTP API shows them; `form` is how it writes times."""

    def __init__(self, form: str) -> None:
        self._form = form
        self.rows: Pas = {
            "sejours": {str(row.stay_id): self._stay(row) for row in STAYS},
            "patients": {str(row.patient_id): self._patient(row) for row in PATIENTS},
            "etablissements": {row.code: self._house(row) for row in HOUSES},
        }

    def _written(self, text: str | None) -> str | None:
        return datetime.fromisoformat(text).strftime(self._form) if text else text

    def _stay(self, row: Stay) -> Json:
        return {
            "id": row.stay_id,
            "numVenue": row.visit,
            "patient": {"ipp": _SURVIVORS.get(row.patient_id or 0, row.patient_id)},
            "etat": row.state,
            "typeSejour": row.kind,
            "dateEntree": self._written(row.began),
            "dateSortie": self._written(row.ended),
            "uf": None if row.unit is None else {"code": row.unit},
            "etablissement": {"id": row.hospital},
            "maj": self._written(row.changed),
        }

    def _patient(self, row: Patient) -> Json:
        numbers = [each for each in NUMBERS if each.patient_id == row.patient_id]
        return {
            "id": row.patient_id,
            "dossier": "A" if row.replaced_by is None else "F",
            "fusionVers": row.replaced_by,
            "noms": {
                "naissance": row.birth_name,
                "utilise": row.used_name,
                "prenomUtilise": row.given,
            },
            "sexe": row.sex,
            "dateNaissance": row.born
            and datetime.fromisoformat(row.born).strftime("%d/%m/%Y"),
            "numeros": [
                {"domaine": each.authority, "valeur": each.number} for each in numbers
            ],
            "maj": self._written(row.changed),
        }

    def _house(self, row: House) -> Json:
        return {
            "id": row.code,
            "nom": row.title,
            "finess": row.finess,
            "maj": self._written(row.changed),
        }


@contextmanager
def serving(key_set: object) -> Iterator[str]:
    """Serve it all on a free port of this machine, and yield the address."""
    hospitals = {
        FULL: Hospital("%d/%m/%Y %H:%M:%S.%f").rows,
        COARSE: Hospital("%d/%m/%Y %H:%M:%S").rows,
    }
    failing = Response(
        '{"erreur": {"code": "PANNE"}}', 500, mimetype="application/json"
    )
    others = {
        KEYS: Response(json.dumps(key_set), mimetype="application/json"),
        FAILING: failing,
        NONSENSE: Response("<html>", mimetype="text/html"),
    }
    api = application(hospitals.get, Access(KEY))
    mounts = {f"/{name}": answer for name, answer in others.items()}
    with serving_application(DispatcherMiddleware(api, mounts)) as address:
        yield address
