"""What the words of labels say of FHIR codes: "Weiblich" of a gender is female.

A table of stems has a meaning in each line. Labels of a hospital's own tables, and codes that
are words themselves, show a code table that means something else.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TypeAlias

from adapters.folding import fold
from adapters.mapping.model import HIDDEN, REMOVED

CANCELLED = "cancelled"
"""What a label says of a stay that is not served: hidden or removed."""

# English, French, German, Italian, Spanish and Portuguese.
_GENDER = """
male: male man men masculi maschi mann mannlich hombre homme varon homem uomo
female: f female woman women femini femmin femeni weiblich frau mujer femme donna mulher
other: other autre andere altro otro outro divers trans intersex
unknown: unknown unspecif undeterm inconnu indeter unbekan unbestim sconosc desconoc desconhe
"""
_CLASS = """
IMP: inpatient hospitalis hospitaliz stationar ricover internac internam
AMB: outpatient ambulat ambulan consult extern day jour tages giorno dia domicil home partiel
EMER: emergenc urgenc urgence notfall notaufnahm soccorso
PRENC: preadmi
REC: recurr seance
"""
_STATUS = """
planned: planned scheduled booked prevu planifi geplant previst programm pianific agendad
in-progress: progress ongoing cours laufend corso curso andamento admitted hospitalized
finished: finished completed discharge closed termin clotur sorti sortie entlassen beendet
finished: abgeschlossen conclus dimess chius finaliz cerrad encerrad
cancelled: cancel annul storn anulad deleted supprim voided
: patient stay visit sejour encounter appointment aufenthalt
"""
_STEMS = {"gender": _GENDER, "class": _CLASS, "status": _STATUS}

_TURNS = {
    *("no", "not", "non", "sans", "hors", "kein", "nicht", "senza", "sin", "sem", "ex"),
    *("pre", "post", "before", "after", "avant", "apres"),
}
"""Words with which the others say something else."""

_LONGEST = 6
"""A label with more words is a sentence."""


@cache
def meanings(word: str, stems: str) -> frozenset[str]:
    """Return the meanings of a word by a table of stems, a line each.

    A stem of four letters or more is the beginning of a word, a shorter one is all of it.
    """
    rows = (line.partition(": ") for line in stems.strip().splitlines())
    return frozenset(
        meaning
        for meaning, _, listed in rows
        if any(word == s or (len(s) > 3 and word.startswith(s)) for s in listed.split())
    )


def says(slot: str, label: str) -> frozenset[str]:
    """Return the codes of a slot that a label says, none where it may say something else.

    What is completed, in a status, need not be the stay: it has no other long word.
    """
    words, stems = re.findall(r"[a-z]+", fold(label)), _STEMS.get(slot, "")
    of_words = [(word, meanings(word, stems)) for word in words]
    is_whole = slot != "status" or all(of or len(word) < 4 for word, of in of_words)
    if len(words) > _LONGEST or _TURNS.intersection(words) or not is_whole:
        return frozenset()
    return frozenset[str]().union(*(of for _, of in of_words)) - {""}


def contradicts(word: str, code: str) -> bool:
    """Tell whether what a label says cannot become a code.

    What is left open, or not served, is somebody's decision.
    """
    if word == CANCELLED:
        return code not in (HIDDEN, REMOVED)
    is_open = code in ("UNK", "unknown", "other", HIDDEN, REMOVED)
    is_alike = {word, code} in ({"AMB", "REC"}, {"PRENC", "IMP"}, {"PRENC", "AMB"})
    return not (is_open or is_alike) and word != code


Labels: TypeAlias = Mapping[str, Sequence[tuple[str, str]]]
"""By code its labels, each with the column that it comes from."""
