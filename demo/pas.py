"""The rows of the made-up hospital as its HTTP API shows them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import groupby
from typing import Any, TypeAlias

from demo.rows import Etablissement, Identite, Patient, Row, Sejour

Json: TypeAlias = dict[str, Any]

MOMENT = "%d/%m/%Y %H:%M:%S"


@dataclass(frozen=True, slots=True)
class Pas:
    """The rows of the hospital as its API shows them, by kind and id."""

    sejours: dict[str, Json] = field(default_factory=dict)
    patients: dict[str, Json] = field(default_factory=dict)
    etablissements: dict[str, Json] = field(default_factory=dict)

    def rows(self, kind: str) -> dict[str, Json] | None:
        """Return the rows of one kind, None when there is no such kind."""
        return getattr(self, kind) if kind in self.__slots__ else None


def hospital(rows: Iterable[Row]) -> Pas:
    """Return what the API shows of the hospital's rows."""
    pas = Pas()
    for kind, of_kind in groupby(rows, type):
        if kind is Sejour:
            pas.sejours.update((str(r[0]), _sejour(r)) for r in of_kind)  # type: ignore[arg-type]
        elif kind is Patient:
            for row in of_kind:
                pas.patients.setdefault(str(row[0]), {}).update(_patient(row))  # type: ignore[arg-type]
        elif kind is Identite:
            for row in of_kind:
                pas.patients.setdefault(str(row[0]), {}).update(_identite(row))  # type: ignore[arg-type]
        elif kind is Etablissement:
            pas.etablissements.update((str(r[0]), _house(r)) for r in of_kind)  # type: ignore[arg-type]
    return pas


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
    }


def _patient(row: Patient) -> Json:
    return {
        "id": row.patient_id,
        "dossier": row.etat_dossier,
        "fusionVers": row.fusion_vers,
        "etablissement": {"id": row.etab_id},
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


def _house(row: Etablissement) -> Json:
    return {"id": row.etab_id, "nom": row.raison_sociale, "finess": row.finess_et}


def _written(moment: date | None) -> str | None:
    form = MOMENT if isinstance(moment, datetime) else "%d/%m/%Y"
    return None if moment is None else moment.strftime(form)
