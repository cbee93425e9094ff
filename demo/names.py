"""What people, streets and towns are called: all of it made up or common.

Telephone numbers come from the ranges that ARCEP keeps for fiction, e-mail addresses
from example.org (RFC 2606).
"""

import unicodedata

FAMILIES: tuple[str, ...] = (
    "Martin", "Bernard", "Dubois", "Thomas", "Robert", "Richard", "Petit", "Durand",
    "Leroy", "Moreau", "Simon", "Laurent", "Lefèvre", "Michel", "Garcia", "David",
    "Bertrand", "Roux", "Vincent", "Fournier", "Morel", "Girard", "André", "Lefebvre",
    "Mercier", "Dupont", "Lambert", "Bonnet", "François", "Martínez", "Legrand",
    "Garnier", "Faure", "Rousseau", "Blanc", "Guérin", "Müller", "Henry", "Roussel",
    "Nicolas", "Perrin", "Morin", "Mathieu", "Clément", "Gauthier", "Dumont", "López",
    "Fontaine", "Chevalier", "Robin", "Masson", "Sánchez", "Gérard", "Nguyễn", "Boyer",
    "Denis", "Lemaître", "Dûchêne", "Le Goff", "de La Tour", "d’Artagnan", "D'Angelo",
    "L’Hôpital", "L'Herbier", "Lebœuf", "Cœurdevey", "Louÿs", "Croÿ", "Łukasik",
    "Sørensen", "Bjørnson", "Ébrard", "Çelik", "Ünal", "Noël", "Haÿ", "Saint-Aubin",
    "Ben Saïd", "O'Connor", "N’Diaye", "Traoré", "Diarra", "Benoît", "Zoë", "Île",
)  # fmt: skip

GIVEN_M: tuple[str, ...] = (
    "Jean", "Pierre", "Michel", "André", "Philippe", "René", "Louis", "Alain",
    "Jacques", "Bernard", "Marcel", "Daniel", "Roger", "Robert", "Paul", "Claude",
    "Christian", "Henri", "Georges", "Nicolas", "François", "Jean-Pierre", "Gérard",
    "Noël", "Jérôme", "Stéphane", "Loïc", "Raphaël", "Anaël", "Jean‑Noël", "Gaëtan",
    "Théo", "Léo", "Hélios", "Maël", "Côme", "Søren", "Łukasz", "D’Angelo", "Ýmir",
)  # fmt: skip

GIVEN_F: tuple[str, ...] = (
    "Marie", "Jeanne", "Françoise", "Monique", "Catherine", "Nathalie", "Isabelle",
    "Jacqueline", "Anne", "Sylvie", "Martine", "Madeleine", "Nicole", "Suzanne",
    "Hélène", "Marie-Claude", "Éléonore", "Zoé", "Chloé", "Inès", "Léa", "Maëlys",
    "Anaïs", "Noëlle", "Cécile", "Thérèse", "Andrée", "Agnès", "Mégane", "Bérénice",
    "Françoise-Hélène", "Ambre", "Œnone", "Ève", "Margaux", "Aimée", "Clémence",
)  # fmt: skip

STREETS: tuple[str, ...] = (
    "rue de l’Église", "rue de la République", "avenue du Général-Leclerc",
    "place de l'Hôtel-de-Ville", "chemin des Érables", "rue Pasteur", "quai des Grèves",
    "boulevard Émile-Zola", "impasse du Chêne-Vert", "allée des Œillets", "rue du Bœuf",
)  # fmt: skip

TOWNS: tuple[tuple[str, str], ...] = (
    ("69003", "Lyon"), ("38000", "Grenoble"), ("42000", "Saint-Étienne"),
    ("01000", "Bourg-en-Bresse"), ("07000", "Privas"), ("26000", "Valence"),
    ("63000", "Clermont-Ferrand"), ("94240", "L’Haÿ-les-Roses"), ("59000", "Lille"),
    ("02600", "Villers-Cotterêts"), ("2A004", "Ajaccio"), ("97400", "Saint-Denis"),
)  # fmt: skip

UNITS: tuple[str, ...] = (
    "Médecine interne", "Chirurgie digestive", "Maternité", "Pédiatrie", "Néonatologie",
    "Réanimation", "Cardiologie", "Gériatrie aiguë", "Hôpital de jour", "Psychiatrie",
    "Consultations externes", "Hémodialyse", "Oncologie", "Neurologie", "ORL",
)  # fmt: skip

LANDLINES: tuple[str, ...] = ("019900", "026191", "035301", "046571", "053649")
MOBILES = "063998"

_LETTERS = str.maketrans(
    {"œ": "oe", "æ": "ae", "ø": "o", "ł": "l", "đ": "d", "ß": "ss"}
    | dict.fromkeys("-‐‑–'’‘", " ")
)


def search_form(text: str) -> str:
    """Return a text as the hospital's search columns hold it.

    Upper case without accents, and blanks for hyphens and apostrophes.
    """
    letters = unicodedata.normalize("NFKD", text.lower().translate(_LETTERS))
    bare = "".join(c for c in letters if not unicodedata.combining(c))
    return " ".join(bare.upper().split())
