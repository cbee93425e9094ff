"""Tables, indexes and views of the demo hospital, in types that every database has.

No foreign keys are declared, as in most hospital systems: the application maintains the
references. Names, codes and columns are the hospital's own:

- `sejour` is the heart: one row per stay. `etat` is its state (P, PA planned; E, EC, R
  here; S, T, F left; A, AN cancelled; X, SUP deleted, the row stays). Rows of a system
  that was taken over have states that nobody remembers.
- `date_entree` and `date_sortie` are local times. A planned stay may have only
  `date_prevue`; one that goes on has no `date_sortie`, or 31/12/2999.
- `num_venue` is the visit number. Each house counts for itself, so both have 000000042.
- `mouvement` has one to three rows per stay: an admission (ADM), transfers (MUT).
  `sejour.uf_courante` is the unit of the last one, `uf_libelle` its name. Codes of
  `unite_fonctionnelle` keep their zeros (0123) and are unique within one house only:
  both have an 0123.
- `patient` is the file, `identite` the person. When two files turn out to be one person,
  `fusion_vers` of the old one points to the last survivor, and the stays move there.
- `identite.statut` is PROV, RECU, VALI or QUAL. Only QUAL, qualified, allows the national
  number (INS) to leave the house.
- `identifiant_patient` has the IPP of each house and the INS, `moyen_contact` and
  `adresse` what the desk was told. Unknown values are NULL or '', as they came.
- The columns ending in `_recherche` are names in capitals without accents, for searching.
  `maj_utc` is the last change, in UTC.
"""

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, sqlite

_METADATA = sa.MetaData()

_SECONDS = sqlite.DATETIME(truncate_microseconds=True)  # type: ignore[no-untyped-call]
_LOCAL = sa.DateTime().with_variant(_SECONDS, "sqlite")
_UTC = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")


def _key(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, primary_key=True, autoincrement=False)


def _texts(**lengths: int) -> tuple[sa.Column[str], ...]:
    return tuple(sa.Column(name, sa.String(length)) for name, length in lengths.items())


ETABLISSEMENT = sa.Table(
    "etablissement",
    _METADATA,
    _key("etab_id"),
    *_texts(raison_sociale=80, nom_recherche=80, finess_ej=9, finess_et=9),
    *_texts(telephone=20, courriel=80, ligne1=80, code_postal=10, commune=40),
    sa.Column("parent_id", sa.Integer),
    *_texts(ouvert=1),
    sa.Column("maj_utc", _UTC),
)

UNITE_FONCTIONNELLE = sa.Table(
    "unite_fonctionnelle",
    _METADATA,
    _key("uf_id"),
    sa.Column("etab_id", sa.Integer),
    *_texts(code=5, libelle=60),
)

PATIENT = sa.Table(
    "patient",
    _METADATA,
    _key("patient_id"),
    sa.Column("etab_id", sa.Integer),
    *_texts(etat_dossier=1),
    sa.Column("fusion_vers", sa.Integer),
    *_texts(decede=1),
    sa.Column("date_deces", sa.Date),
    *_texts(heure_deces=5),
    sa.Column("maj_utc", _UTC),
)

IDENTITE = sa.Table(
    "identite",
    _METADATA,
    _key("patient_id"),
    *_texts(statut=4, civilite=5),
    *_texts(nom_naissance=60, nom_naissance_recherche=60),
    *_texts(prenoms=60, prenoms_recherche=60),
    *_texts(nom_utilise=60, nom_utilise_recherche=60),
    *_texts(prenom_utilise=60, prenom_utilise_recherche=60, sexe=1),
    sa.Column("date_naissance", sa.Date),
)

IDENTIFIANT_PATIENT = sa.Table(
    "identifiant_patient",
    _METADATA,
    _key("identifiant_id"),
    sa.Column("patient_id", sa.Integer),
    *_texts(domaine=8, valeur=20),
    sa.Column("etab_id", sa.Integer),
)

MOYEN_CONTACT = sa.Table(
    "moyen_contact",
    _METADATA,
    _key("contact_id"),
    sa.Column("patient_id", sa.Integer),
    *_texts(type_contact=2, valeur=80),
)

ADRESSE = sa.Table(
    "adresse",
    _METADATA,
    _key("adresse_id"),
    sa.Column("patient_id", sa.Integer),
    *_texts(type_adresse=3, ligne1=80, ligne2=80),
    *_texts(code_postal=10, commune=40, pays=40),
)

SEJOUR = sa.Table(
    "sejour",
    _METADATA,
    _key("sejour_id"),
    sa.Column("etab_id", sa.Integer),
    *_texts(num_venue=12),
    sa.Column("patient_id", sa.Integer),
    *_texts(etat=3, type_sejour=3),
    sa.Column("date_prevue", _LOCAL),
    sa.Column("date_entree", _LOCAL),
    sa.Column("date_sortie", _LOCAL),
    *_texts(uf_courante=5, uf_libelle=60),
    sa.Column("maj_utc", _UTC),
)

MOUVEMENT = sa.Table(
    "mouvement",
    _METADATA,
    _key("mouvement_id"),
    sa.Column("sejour_id", sa.Integer),
    sa.Column("rang", sa.Integer),
    *_texts(nature=3),
    sa.Column("uf_id", sa.Integer),
    sa.Column("date_debut", _LOCAL),
    sa.Column("date_fin", _LOCAL),
)

TABLES: tuple[sa.Table, ...] = tuple(_METADATA.tables.values())


def _index(table: sa.Table, *columns: str) -> sa.Index:
    name = "_".join(("ix", table.name, columns[0]))
    return sa.Index(name, *(table.c[column] for column in columns))


INDEXES: tuple[sa.Index, ...] = (
    _index(SEJOUR, "patient_id", "date_entree", "sejour_id"),
    _index(SEJOUR, "date_entree", "sejour_id"),
    _index(SEJOUR, "uf_courante", "date_entree", "sejour_id"),
    _index(SEJOUR, "etat", "date_entree", "sejour_id"),
    _index(SEJOUR, "type_sejour", "date_entree", "sejour_id"),
    _index(SEJOUR, "maj_utc", "sejour_id"),
    _index(SEJOUR, "num_venue"),
    _index(MOUVEMENT, "sejour_id", "rang"),
    _index(MOUVEMENT, "uf_id", "date_debut"),
    _index(PATIENT, "fusion_vers"),
    _index(PATIENT, "maj_utc", "patient_id"),
    _index(IDENTITE, "nom_naissance_recherche", "patient_id"),
    _index(IDENTITE, "nom_utilise_recherche", "patient_id"),
    _index(IDENTITE, "prenoms_recherche", "patient_id"),
    _index(IDENTITE, "prenom_utilise_recherche", "patient_id"),
    _index(IDENTITE, "date_naissance", "patient_id"),
    _index(IDENTIFIANT_PATIENT, "valeur", "domaine"),
    _index(IDENTIFIANT_PATIENT, "patient_id"),
    _index(MOYEN_CONTACT, "patient_id"),
    _index(ADRESSE, "patient_id"),
    _index(UNITE_FONCTIONNELLE, "code", "etab_id"),
)
"""What its statements search and sort by, as a well-maintained system has them."""

VIEWS = (
    """CREATE VIEW vue_sejour AS
    SELECT sejour_id AS numero, num_venue AS venue, patient_id AS dossier,
           CASE WHEN etat IN ('P', 'PA') THEN 'PREVU'
                WHEN etat IN ('E', 'EC', 'R') THEN 'PRESENT'
                WHEN etat IN ('S', 'T', 'F') THEN 'SORTI'
                WHEN etat IN ('A', 'AN') THEN 'ANNULE'
                WHEN etat IN ('X', 'SUP') THEN 'SUPPRIME'
                ELSE etat END AS situation,
           type_sejour AS nature, date_entree AS entree, date_sortie AS sortie,
           uf_courante AS unite, uf_libelle AS unite_nom, etab_id AS etablissement,
           maj_utc AS modifie_utc
    FROM sejour""",
    """CREATE VIEW vue_patient AS
    SELECT p.patient_id AS dossier, p.etat_dossier AS etat, p.fusion_vers AS repris_par,
           p.etab_id AS etablissement, p.maj_utc AS modifie_utc,
           i.sexe AS sexe, i.date_naissance AS naissance,
           i.nom_naissance AS nom, i.nom_naissance_recherche AS nom_cherche,
           i.prenoms AS prenoms, i.prenoms_recherche AS prenoms_cherches,
           i.nom_utilise AS usage_nom, i.nom_utilise_recherche AS usage_nom_cherche,
           i.prenom_utilise AS usage_prenom,
           i.prenom_utilise_recherche AS usage_prenom_cherche
    FROM patient p
    LEFT JOIN identite i ON i.patient_id = p.patient_id""",
    """CREATE VIEW vue_etablissement AS
    SELECT etab_id AS numero, raison_sociale AS nom, finess_et AS finess
    FROM etablissement""",
)
"""What other systems may read, as group B does; in SQL that every database takes."""
