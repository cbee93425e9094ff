"""The rows of the demo hospital, one class a table, columns in the table's order.

Names and codes are the hospital's own. Times are local ones of the hospital, without
offset, save the columns that end in `_utc`.
"""

from datetime import date, datetime
from typing import NamedTuple, TypeAlias


class Etablissement(NamedTuple):
    """A hospital of the group, or the group itself (which has no `parent_id`)."""

    etab_id: int
    raison_sociale: str
    nom_recherche: str
    finess_ej: str | None
    finess_et: str | None
    telephone: str | None
    courriel: str | None
    ligne1: str | None
    code_postal: str | None
    commune: str | None
    parent_id: int | None
    ouvert: str
    maj_utc: datetime


class UniteFonctionnelle(NamedTuple):
    """A functional unit; its code is unique within one hospital only."""

    uf_id: int
    etab_id: int
    code: str
    libelle: str


class Patient(NamedTuple):
    """A patient's file; `fusion_vers` is the last survivor when it was merged away."""

    patient_id: int
    etab_id: int
    etat_dossier: str
    fusion_vers: int | None
    decede: str | None
    date_deces: date | None
    heure_deces: str | None
    maj_utc: datetime | None


class Identite(NamedTuple):
    """Who a patient is, and how far that is proved (`statut`); one a patient.

    PROV is provisional, RECU retrieved, VALI validated, QUAL qualified: only then may
    the national number be given to others.
    """

    patient_id: int
    statut: str | None
    civilite: str | None
    nom_naissance: str
    nom_naissance_recherche: str
    prenoms: str | None
    prenoms_recherche: str | None
    nom_utilise: str | None
    nom_utilise_recherche: str | None
    prenom_utilise: str | None
    prenom_utilise_recherche: str | None
    sexe: str | None
    date_naissance: date | None


class IdentifiantPatient(NamedTuple):
    """A number of a patient in one domain: a hospital's own (IPP) or the national one."""

    identifiant_id: int
    patient_id: int
    domaine: str
    valeur: str | None
    etab_id: int | None


class MoyenContact(NamedTuple):
    """A telephone number or an e-mail address of a patient."""

    contact_id: int
    patient_id: int
    type_contact: str
    valeur: str | None


class Adresse(NamedTuple):
    """An address of a patient."""

    adresse_id: int
    patient_id: int
    type_adresse: str
    ligne1: str | None
    ligne2: str | None
    code_postal: str | None
    commune: str | None
    pays: str | None


class Sejour(NamedTuple):
    """A stay; `uf_courante` is the code of the unit of its last movement."""

    sejour_id: int
    etab_id: int
    num_venue: str | None
    patient_id: int
    etat: str | None
    type_sejour: str | None
    date_prevue: datetime | None
    date_entree: datetime | None
    date_sortie: datetime | None
    uf_courante: str | None
    maj_utc: datetime | None


class Mouvement(NamedTuple):
    """A movement of a stay: an admission (ADM) or a transfer (MUT)."""

    mouvement_id: int
    sejour_id: int
    rang: int
    nature: str
    uf_id: int | None
    date_debut: datetime | None
    date_fin: datetime | None


Row: TypeAlias = (
    Etablissement
    | UniteFonctionnelle
    | Patient
    | Identite
    | IdentifiantPatient
    | MoyenContact
    | Adresse
    | Sejour
    | Mouvement
)
