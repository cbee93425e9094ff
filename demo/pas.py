"""The rows of the made-up hospital as its HTTP API shows them, and the times that they hold."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import lru_cache
from typing import Any, TypeAlias

from demo.rows import Etablissement, IdentifiantPatient, Identite, Patient, Row, Sejour

Json: TypeAlias = dict[str, Any]

DAY = "%d/%m/%Y"
MOMENT = f"{DAY} %H:%M:%S"
FRACTION = f"{MOMENT}.%f"
UNKNOWN = "01/01/1900"
"""The day that stands for one that nobody knows, with or without a time of day."""

_NATIONAL, _QUALIFIED = "INS-NIR", "QUAL"


@dataclass(frozen=True, slots=True)
class Pas:
    """The rows of a hospital as its API shows them, by kind and id."""

    sejours: dict[str, Json] = field(default_factory=dict)
    patients: dict[str, Json] = field(default_factory=dict)
    etablissements: dict[str, Json] = field(default_factory=dict)

    def rows(self, kind: str) -> dict[str, Json] | None:
        """Return the rows of one kind, None when there is no such kind."""
        return getattr(self, kind) if kind in self.__slots__ else None


def hospital(rows: Iterable[Row]) -> Pas:
    """Return what the API shows of the hospital's rows, each patient's file first."""
    pas, qualified = Pas(), set[int]()
    for row in rows:
        match row:
            case Sejour():
                pas.sejours[str(row.sejour_id)] = _sejour(row)
            case Patient():
                pas.patients[str(row.patient_id)] = _patient(row)
            case Identite() | IdentifiantPatient():
                _complete(pas.patients[str(row.patient_id)], row, qualified)
            case Etablissement():
                pas.etablissements[str(row.etab_id)] = _house(row)
    return pas


def _complete(
    patient: Json, row: Identite | IdentifiantPatient, qualified: set[int]
) -> None:
    """Add who a patient is; a national number of a qualified identity only."""
    if isinstance(row, Identite):
        patient |= _identite(row)
        if row.statut == _QUALIFIED:
            qualified.add(row.patient_id)
    elif row.domaine != _NATIONAL or row.patient_id in qualified:
        patient["numeros"].append(_numero(row))


@lru_cache(maxsize=65_536)
def moment(text: str) -> datetime:
    """Return the time that a text says, midnight for a day; raises ValueError."""
    form = DAY if " " not in text else FRACTION if "." in text else MOMENT
    return datetime.strptime(text, form)  # noqa: DTZ007 - local, as all times of the hospital


def known(text: str | None) -> datetime | None:
    """Return the time that a row holds, None where it is not known."""
    return None if not text or text.startswith(UNKNOWN) else moment(text)


def _sejour(row: Sejour) -> Json:
    return {
        "id": row.sejour_id,
        "numVenue": row.num_venue,
        "patient": {"ipp": row.patient_id},
        "etat": row.etat,
        "typeSejour": row.type_sejour,
        "dateEntree": _written(row.date_entree),
        "dateSortie": _written(row.date_sortie),
        "uf": None if row.uf_courante is None else {"code": row.uf_courante},
        "etablissement": {"id": row.etab_id},
        "maj": _written(row.maj_utc),
    }


def _patient(row: Patient) -> Json:
    return {
        "id": row.patient_id,
        "dossier": row.etat_dossier,
        "fusionVers": row.fusion_vers,
        "etablissement": {"id": row.etab_id},
        "numeros": [],
        "maj": _written(row.maj_utc),
    }


def _identite(row: Identite) -> Json:
    return {
        "noms": {
            "naissance": row.nom_naissance,
            "prenoms": row.prenoms,
            "utilise": row.nom_utilise,
            "prenomUtilise": row.prenom_utilise,
        },
        "sexe": row.sexe,
        "dateNaissance": _written(row.date_naissance),
    }


def _numero(row: IdentifiantPatient) -> Json:
    return {"domaine": row.domaine, "valeur": row.valeur}


def _house(row: Etablissement) -> Json:
    return {
        "id": row.etab_id,
        "nom": row.raison_sociale,
        "finess": row.finess_et,
        "maj": _written(row.maj_utc),
    }


def _written(moment: date | None) -> str | None:
    form = MOMENT if isinstance(moment, datetime) else DAY
    return None if moment is None else moment.strftime(form)
