"""What the words of labels say of FHIR codes: "Weiblich" of a gender is female.

A table of stems has a meaning in each line. Labels of a hospital's own tables, and codes that
are words themselves, show a code table that means something else.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import TypeAlias

from adapters.folding import fold
from adapters.mapping.model import HIDDEN, REMOVED

OPEN = ("UNK", "unknown", "other", HIDDEN, REMOVED)
"""What codes become of which somebody decided, or forgot to decide, what they mean."""

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
PRENC: preadmi
EMER: emergenc urgenc urgence notfall notaufnahm soccorso
REC: recurr seance
AMB: outpatient ambulat ambulan consult extern day jour tages giorno dia domicil home partiel
IMP: inpatient hospitalis hospitaliz stationar ricover internac internam
"""
_STATUS = """
cancelled: cancel annul storn anulad deleted supprim voided
planned: planned scheduled booked prevu planifi geplant previst programm pianific agendad
finished: finished completed discharge closed termin clotur sorti sortie entlassen beendet
finished: abgeschlossen conclus dimess chius finaliz cerrad encerrad
in-progress: progress ongoing cours laufend corso curso andamento admitted hospitalized
: patient stay visit sejour encounter appointment aufenthalt
"""
LABELS: Mapping[str, str] = MappingProxyType(
    {"gender": _GENDER, "class": _CLASS, "status": _STATUS}
)
"""By slot what words of labels mean, a line for each meaning; of several, the first counts."""

MARKS = """
cancelled: cancel annul storn anulad
audit: creat crea cree cria insert added regist erstell angelegt erfasst
changed: chang updat modif write maj geand geaend ander aender aggiorn actualiz atualiz
deleted: delet void retired remov supprim geloscht geloescht elimin borrad apagad
active: active aktiv attiv activ ativ enabled
"""
"""What words of the names of columns mean that mark rows, or their changes."""

NAMES = """
given: given first fname forename prenom vorname
family: family last lname surname nom nachname familienname cognom apellid sobrenom
"""
"""What words of the names of columns mean that hold names of people."""

STATES = "state: status statut state etat stato estado zustand"
"""What words of the names of columns mean that hold the state of a row."""

MERGES = "merged: merg fusion replac surviv rempla ersetz sostitu reempla substitu"
"""What words of the names of columns mean that hold the patient who replaced one."""

TABLES = """
organization: organi hospital facilit etabliss institut einricht ospedal struttur establec estabelec
unit: ward unit service depart station abteil fachabt reparto servicio servico enfermar
"""
"""What words of the names of tables mean that stays refer to."""

PEOPLE = """
person: doctor docteur doktor dokter dottor doutor physici practit medico medici. medecin arzt.
person: aerzte nurse. nurses infirmier enfermero enfermeiro person people staff employe mitarbeit
person: dipendent emplead patient. patients patienten. pazient pacient user benutzer utilisat
"""
"""What words of the names of tables mean that hold people."""

_FILLERS = {
    *("at", "by", "on", "dt", "ts", "is", "last", "date", "time", "datetime"),
    *("timestamp", "stamp", "utc", "row", "record", "reason"),
}
"""Words of the names of times that say nothing of what happened."""

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

    A stem of four letters or more is the beginning of a word, a shorter one, or one with a
    dot, is all of it.
    """
    return frozenset(
        meaning for meaning, listed in _lines(stems) if _has(word, listed.split())
    )


def words_of(column: str, stems: str = MARKS) -> frozenset[str]:
    """Return what the words of a column's name mean: rows that are deleted, active, …"""
    return frozenset[str]().union(*(meanings(each, stems) for each in _words(column)))


def is_audit(column: str) -> bool:
    """Tell whether a column says by its whole name when its row was made or changed."""
    return _is_whole(column, {"audit", "changed"})


def is_mark(column: str) -> bool:
    """Tell whether a column says by its whole name that its row was deleted or cancelled."""
    return _is_whole(column, {"deleted", "cancelled"})


def names_only(table: str, meant: str) -> bool:
    """Tell whether a table is by its whole name one of units, or one of organizations."""
    every = {"unit", "organization"} if meant == "unit" else {meant}
    return meant in words_of(table, TABLES) and _is_whole(table, every, TABLES)


def holds_people(table: str) -> bool:
    """Tell whether a table is by its whole name one of people."""
    return _is_whole(table, {"person"}, PEOPLE)


def _is_whole(name: str, meant: set[str], stems: str = MARKS) -> bool:
    words = [each for each in _words(name) if each not in _FILLERS]
    return bool(words) and all(meanings(each, stems) & meant for each in words)


def _words(column: str) -> list[str]:
    return [w.lower() for w in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", column)]


def stem_meanings(stems: str) -> Sequence[str]:
    """Return the meanings of a table of stems, in its order."""
    return [meaning for meaning, _ in _lines(stems)]


def _lines(stems: str) -> Iterator[tuple[str, str]]:
    for line in filter(None, stems.splitlines()):
        meaning, _, listed = line.partition(": ")
        yield meaning, listed


def _has(word: str, stems: Sequence[str]) -> bool:
    is_start = word.startswith(tuple(stem for stem in stems if len(stem) > 3))
    return is_start or word in stems or f"{word}." in stems


def says(slot: str, label: str) -> frozenset[str]:
    """Return the codes of a slot that a label says, none where it may say something else.

    What is completed, in a status, need not be the stay: it has no other long word.
    """
    words, stems = re.findall(r"[a-z]+", fold(label)), LABELS.get(slot, "")
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
    is_alike = {word, code} in ({"AMB", "REC"}, {"PRENC", "IMP"}, {"PRENC", "AMB"})
    return not (code in OPEN or is_alike) and word != code


Labels: TypeAlias = Mapping[str, Sequence[tuple[str, str]]]
"""By code its labels, each with the column that it comes from."""
