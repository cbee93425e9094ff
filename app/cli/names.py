"""What the names of columns say: the words of six languages, and the slots that they fit.

All of it is a guess: `encounters mapping new` marks what it takes from here.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from adapters.sql.catalog import CodeCount, Holds, Table

# English, French, German, Italian, Spanish and Portuguese. A stem of four letters or more is the
# beginning of a word, a shorter one is all of it.
_STEMS = """
stay: stay visit encounter admission episod sejour venue fall aufenthalt ricover degenz ingres
stay: estanci internam atendim
patient: patient pat pid malade pazient pacient
hospital: hospital hopital facilit instit etab etabl organi klinik krankenh einricht osped presidio
unit: unit ward depart dept location servic uf pavillon station abteil repart unidad enfermar
class: class type kind categ art typ tipo genre regime
status: status state statut etat zustand stato estado situac
start: start begin began admit admis arriv entree debut aufnahm beginn ingres inizi inici entrad
start: checked hospitaliz von desde
end: end endtime ended stop discharg exit sortie fin entlass ende dimiss uscita alta salida egres
end: saida bis
planned: plan expect prev sched appoint book onset geplant erwart previst agend
audit: creat crea cree cria insert added regist erstell angelegt erfasst delet void
changed: chang updat modif write maj geand geaend ander aender aggiorn actualiz atualiz
deleted: delet void remov supprim geloscht geloescht elimin borrad apagad
birth: birth dob born naiss ne geburt geboren nascit nacim nascim
death: death dead deceas dod died deces deced verstorb gestorb todes fallec defunc falec obito
sex: sex gender sexe geschlecht sesso sexo genero
family: family surname last lastname lname nachname familienname cognom apellid sobrenom apelid
given: given first firstname fname forename prenom vorname
prefix: title civilit prefix anrede titel titolo tratam
name: name nom nome nomb bezeich label libell denomin raison ragione razon razao
number: number no num nr numer numme ref
identifiers: identifier identifian identifica kennung ipp mrn
code: code codic codig kurz abbr
value: value valeur wert valor
contact: contact kontakt contatt contato telecom
phone: phone tel telef telep mobil cell movil celul
email: mail email courriel correo
lines: street address addr line ligne rue adress strass indiriz direcc endere
city: city town commun ville ort stadt comun citta ciudad municip cidad local
postal_code: postal zip postc plz cap cep
country: country pays land paese pais
replaced_by: merg replac surviv fusion zusammen sostit unific
active: active aktiv attiv activ ativ enabled
part_of: parent
other: other autre guard mother father kin referr provid physic doctor profes employ insur user
other: reason reaso motif previous nation
"""
_NOISE = frozenset(
    {
        *("date", "time", "datetime", "dt", "ts", "datum", "zeit", "data", "fecha"),
        *("hora", "heure", "le", "id", "key", "utc"),
    }
)
"""Words that tell what a type or a key tells."""

_PATTERNS = {
    "visit_number": "stay number, =stay, number, =code, =name",
    "patient_id": "patient",
    "functional_unit": "unit",
    "organization_id": "hospital",
    "last_updated": "changed",
    "gender": "sex",
    "birth_date": "birth",
    "deceased": "death",
    "deceased_at": "death",
    "name": "=name, hospital name, name",
    "family": "family, name",
    "given": "given, =name",
    "identifiers": "identifiers, patient number, number",
    "value": "=value, =identifiers, =number, =code",
    "system": "class",
    "code": "=code, unit code, =number",
    "label": "=code, class code, =name, class name",
}
"""By slot the meanings that the name of its column needs, the best first; `=` allows no other.

A slot that is not here needs the meaning with its own name.
"""

_AUDIT = frozenset({"audit", "changed", "planned", "birth"})


@cache
def _meanings(word: str) -> frozenset[str]:
    rows = (line.partition(": ") for line in _STEMS.strip().splitlines())
    return frozenset(
        meaning
        for meaning, _, stems in rows
        if any(word == s or (len(s) > 3 and word.startswith(s)) for s in stems.split())
    )


def words_of(name: str, prefix: str = "") -> list[str]:
    """Return the words of a name, without accents and those that say nothing."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", plain)
    words = [word.lower() for word in words]
    words = words[1:] if words[:1] == [prefix] else words
    return [word for word in words if word not in _NOISE]


def meanings_of(name: str, prefix: str = "") -> tuple[frozenset[str], ...]:
    """Return what each word of a name means."""
    return tuple(_meanings(word) for word in words_of(name, prefix))


def prefix_of(table: Table) -> str:
    """Return the word that most columns begin with (`ADM_`), "" where there is none."""
    names = [re.split(r"[_\W]", column.name.lower()) for column in table.columns]
    firsts = Counter(words[0] for words in names if len(words) > 1)
    word, number = next(iter(firsts.most_common(1)), ("", 0))
    return word if number >= max(3, 0.6 * len(names)) else ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the rows of a section.

    `words` are the meanings of each word of its name, `select` is what a SELECT says for
    it, after a `join`, and `written` its name there. `refers` is the table.column that it
    leads to, `note` what is open. `absent` are times that stand for none. `counts` returns
    its codes, None where it holds something else; those that fewer than `fewest` rows share
    are not written.
    """

    name: str
    holds: Holds
    words: tuple[frozenset[str], ...]
    counts: Callable[[], Sequence[CodeCount] | None]
    select: str
    written: str
    refers: str = ""
    note: str = ""
    join: str = ""
    is_key: bool = False
    absent: tuple[str, ...] = ()
    fewest: int = 5

    @property
    def meanings(self) -> frozenset[str]:
        """All that its name means."""
        return frozenset[str]().union(*self.words)

    @property
    def selected(self) -> str:
        """What a SELECT lists for it."""
        is_own = self.select.endswith(f".{self.written}")
        return self.select if is_own else f"{self.select} AS {self.written}"

    @property
    def is_audit(self) -> bool:
        """Whether it holds a time of the row itself, or one that is only planned."""
        return bool(self.meanings & _AUDIT)

    def rank(self, patterns: str) -> tuple[int, int] | None:
        """Return how well the name fits, the lowest best; None where it does not."""
        for place, pattern in enumerate(patterns.split(", ")):
            wanted = set(pattern.removeprefix("=").split())
            others = sum(not word & wanted for word in self.words)
            is_strict = pattern.startswith("=") and others
            if wanted <= self.meanings and not is_strict:
                return None if "other" in self.meanings else (place, others)
        return None


def best(columns: Iterable[Column], slot: str) -> tuple[Column | None, str]:
    """Return the column whose name fits a slot best, and what is open about the choice."""
    patterns = _PATTERNS.get(slot, slot)
    ranked = [(rank, c) for c in columns if (rank := c.rank(patterns)) is not None]
    ranked.sort(key=lambda each: each[0])
    if not ranked:
        return None, ""
    others = [c.name for rank, c in ranked[1:4] if rank[0] == ranked[0][0][0]]
    return ranked[0][1], f"by its name{', or ' if others else ''}{', '.join(others)}"
