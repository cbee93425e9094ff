"""What words of labels and of names of columns mean, for drafts: tables of stems."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType

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

_FILLERS = {
    *("at", "by", "on", "dt", "ts", "is", "last", "date", "time", "datetime"),
    *("timestamp", "stamp", "utc", "row", "record", "reason"),
}
"""Words of the names of times that say nothing of what happened."""


@cache
def meanings(word: str, stems: str) -> frozenset[str]:
    """Return the meanings of a word by a table of stems, a line each.

    A stem of four letters or more is the beginning of a word, a shorter one, or one with a
    dot, is all of it.
    """
    return frozenset(
        meaning for meaning, listed in _lines(stems) if _has(word, listed.split())
    )


def is_mark(column: str) -> bool:
    """Tell whether a column says by its whole name that its row was deleted or cancelled."""
    return _is_whole(column, {"deleted", "cancelled"})


def _is_whole(name: str, meant: set[str]) -> bool:
    words = [each for each in _words(name) if each not in _FILLERS]
    return bool(words) and all(meanings(each, MARKS) & meant for each in words)


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
