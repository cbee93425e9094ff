"""The views of the demo hospital: what its system lets others read, as group B is served.

Other systems never see the tables. `vue_sejour` says in words how far a stay is, and has
the cancelled and the deleted ones too; `vue_patient` is file and person in one row.
"""

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
           uf_courante AS unite, etab_id AS etablissement, maj_utc AS modifie_utc
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
"""A statement each, in SQL that every database takes."""
