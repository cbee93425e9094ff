"""The special cases of the demo hospital, each with a statement that counts it."""

SAME_MINUTE = """SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM sejour
  WHERE date_entree IS NOT NULL GROUP BY date_entree) AS x"""
SHARED_VISIT_NUMBERS = """SELECT COUNT(*) FROM (SELECT num_venue FROM sejour
  WHERE num_venue <> '' GROUP BY num_venue HAVING COUNT(DISTINCT etab_id) = 2) AS x"""
STAYS_OF_ONE = """SELECT COUNT(*) FROM (SELECT patient_id FROM sejour
  GROUP BY patient_id HAVING COUNT(*) {}) AS x"""
SEVERAL = """SELECT COUNT(*) FROM (SELECT patient_id FROM {}
  GROUP BY patient_id HAVING COUNT(*) > 2) AS x"""

CASES = {
    "cancelled": ("SELECT COUNT(*) FROM sejour WHERE etat IN ('A', 'AN')", 40),
    "deleted": ("SELECT COUNT(*) FROM sejour WHERE etat IN ('X', 'SUP')", 10),
    "open without end": (
        "SELECT COUNT(*) FROM sejour WHERE etat IN ('E', 'EC', 'R')"
        " AND date_sortie IS NULL",
        10,
    ),
    "open until 2999": (
        "SELECT COUNT(*) FROM sejour WHERE date_sortie > '2999-01-01'",
        5,
    ),
    "finished without end": (
        "SELECT COUNT(*) FROM sejour WHERE etat IN ('S', 'T', 'F')"
        " AND date_sortie IS NULL",
        2,
    ),
    "planned without start": (
        "SELECT COUNT(*) FROM sejour WHERE etat IN ('P', 'PA') AND date_entree IS NULL",
        10,
    ),
    "planned with start": (
        "SELECT COUNT(*) FROM sejour WHERE etat IN ('P', 'PA')"
        " AND date_entree IS NOT NULL",
        10,
    ),
    "state nobody mapped": (
        "SELECT COUNT(*) FROM sejour WHERE etat IN ('Q7', '?')",
        3,
    ),
    "state null": ("SELECT COUNT(*) FROM sejour WHERE etat IS NULL", 1),
    "state empty": ("SELECT COUNT(*) FROM sejour WHERE etat = ''", 1),
    "kind nobody mapped": ("SELECT COUNT(*) FROM sejour WHERE type_sejour = 'ZZZ'", 5),
    "kind null": ("SELECT COUNT(*) FROM sejour WHERE type_sejour IS NULL", 5),
    "kind empty": ("SELECT COUNT(*) FROM sejour WHERE type_sejour = ''", 5),
    "states for finished": (
        "SELECT COUNT(DISTINCT etat) FROM sejour WHERE etat IN ('S', 'T', 'F')",
        3,
    ),
    "one minute": (SAME_MINUTE, 100),
    "02:30 in autumn": (
        "SELECT COUNT(*) FROM sejour WHERE date_entree IN"
        " ('2023-10-29 02:30:00', '2024-10-27 02:30:00')",
        3,
    ),
    "end at 02:30 in autumn": (
        "SELECT COUNT(*) FROM sejour WHERE date_sortie = '2024-10-27 02:30:00'",
        1,
    ),
    "over a spring night": (
        "SELECT COUNT(*) FROM sejour WHERE date_entree = '2024-03-30 08:15:00'"
        " AND date_sortie = '2024-03-31 17:00:00'",
        1,
    ),
    "at midnight": (
        "SELECT COUNT(*) FROM sejour WHERE date_entree = '2024-01-01 00:00:00'",
        1,
    ),
    "unit with zeros": ("SELECT COUNT(*) FROM sejour WHERE uf_courante = '0123'", 100),
    "unit null": ("SELECT COUNT(*) FROM sejour WHERE uf_courante IS NULL", 2),
    "unit empty": ("SELECT COUNT(*) FROM sejour WHERE uf_courante = ''", 2),
    "unit of both houses": (
        "SELECT COUNT(DISTINCT etab_id) FROM unite_fonctionnelle WHERE code = '0123'",
        2,
    ),
    "visit numbers of both houses": (SHARED_VISIT_NUMBERS, 500),
    "visit number null": ("SELECT COUNT(*) FROM sejour WHERE num_venue IS NULL", 2),
    "visit number empty": ("SELECT COUNT(*) FROM sejour WHERE num_venue = ''", 2),
    "changed never": ("SELECT COUNT(*) FROM sejour WHERE maj_utc IS NULL", 4),
    "changed at once": (
        "SELECT COUNT(*) FROM sejour WHERE maj_utc = '2021-03-14 02:00:00.120000'",
        20,
    ),
    "three movements": (
        "SELECT COUNT(*) FROM mouvement WHERE rang = 3",
        100,
    ),
    "exactly ten stays": (STAYS_OF_ONE.format("= 10"), 5),
    "hundreds of stays": (STAYS_OF_ONE.format(">= 300"), 1),
    "merged": ("SELECT COUNT(*) FROM patient WHERE fusion_vers IS NOT NULL", 6),
    "unidentified": (
        "SELECT COUNT(*) FROM identite WHERE nom_naissance LIKE 'INCONNU%'",
        2,
    ),
    "dead, known when": (
        "SELECT COUNT(*) FROM patient WHERE decede = 'O' AND date_deces IS NOT NULL",
        5,
    ),
    "dead, unknown when": (
        "SELECT COUNT(*) FROM patient WHERE decede = 'O' AND date_deces IS NULL",
        5,
    ),
    "several addresses": (SEVERAL.format("adresse"), 10),
    "several telephones": (SEVERAL.format("moyen_contact"), 10),
    "national number not qualified": (
        "SELECT COUNT(*) FROM identifiant_patient n JOIN identite i"
        " ON i.patient_id = n.patient_id WHERE n.domaine = 'INS-NIR'"
        " AND COALESCE(i.statut, '') <> 'QUAL'",
        20,
    ),
    "identity without status": (
        "SELECT COUNT(*) FROM identite WHERE statut IS NULL",
        1,
    ),
    "birth date unknown": (
        "SELECT COUNT(*) FROM identite WHERE date_naissance = '1900-01-01'",
        3,
    ),
    "sex nobody mapped": ("SELECT COUNT(*) FROM identite WHERE sexe = 'Z'", 2),
    "used name null": (
        "SELECT COUNT(*) FROM identite WHERE nom_utilise IS NULL",
        10,
    ),
    "used name empty": ("SELECT COUNT(*) FROM identite WHERE nom_utilise = ''", 10),
    "straight apostrophe": (
        "SELECT COUNT(*) FROM identite WHERE nom_naissance LIKE '%''%'",
        2,
    ),
    "curly apostrophe": (
        "SELECT COUNT(*) FROM identite WHERE nom_naissance LIKE '%’%'",
        2,
    ),
}
"""A statement that counts the case, and how many there are at least of 2,000 stays."""
