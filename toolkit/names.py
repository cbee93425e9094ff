"""What names of tables and columns mean, by words of six languages.

All of it is a guess: `encounters mapping new` marks what it takes from here.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import cache

from adapters.mapping.model import HIDDEN
from toolkit.labels import CANCELLED, LABELS, MARKS, meanings, stem_meanings

Words = tuple[frozenset[str], ...]
"""What each word of a name means."""

# English, French, German, Italian, Spanish and Portuguese; stems as in `toolkit.labels`.
_STEMS = """
stay: stay visit encounter admission episod sejour venue fall faell aufenthalt ricover degenz ingres
stay: encntr csn vst nda iep nosolog estanci internam atend inpatient ipd opd hospitali adm
stay: consultati enc
patient: patient pat pid demograph client resident. malade paz pazient pacient subject
hospital: hospital hopital facilit instit etab organi klinik krankenh einricht osped presidio site
hospital: clinic cliniq empresa compan centr center practice branch tenant establ
unit: unit ward depart dept dep locat servic uf pavil division section station abteil repart unidad
unit: enfermar careunit
class: inout class type tp typ kind categ art tipo genre regime
status: status stat. statu. state statut etat zustand stato estado situac
start: in from open checkin start begin began adm admit admis arriv entree debut aufnahm ingres
start: inizi inici entrad checked hospitaliz von desde adms reg registration beg ing doa
admission: admit admis adms entree aufnahm ingres entrad checked hospitaliz
end: out to until checkout close complet finish leave left end endtime stop dis dch disch exit
end: sorti fin entlass ende dimis uscit alta salid saida bis egres fim departur
planned: plan expect exp prev sched appoint book onset geplant erwart agend
year: year annee jahr anno ano
month: month mois monat mese mes
day: day jour giorno dia
birth: birth dateofbirth dob born naiss ne geburt geboren nasc nacim
death: death dateofdeath dead deceas dod died deces deced verstorb gestorb todes fallec defunc
death: falec obito exitus
sex: sex gender sexe geschl sesso sexo genero
family: family nname surname sname lastname lname nachname familienname cognom ape apellid sobrenom
family: apelid
given: given vname firstname fname forename prenom vorname
prefix: title pname civilit prefix salut anrede titel titolo tratam
name: fullname name nm nom nome nomb bezeich label libell denomin raison ragione razon razao descri
name: beschreib display text. texto testo txt desc. dsc ds designa
number: number nda iep nosolog no num nr nbr nro numer numme ref
identifiers: identifier identifian identifica kennung ipp mrn npi finess matricul hn chart ids hin
identifiers: nhi nhc niss prontuar expedient sanitari cnes cnpj cgc siret siren tax fiscal uhid nid
identifiers: national. nic cnic historia passport aadhaar aadhar ssn nhs cpf cns curp rut dni nir
identifiers: alias medrec tessera versich
code: code c cd cod codic codig kurz abbr
value: value valeur wert valor
contact: contact kontakt contatt contato telecom
phone: phone fone tel telf tele mobil cell landline movil celul natel
fax: fax telefax
email: mail email courriel correo
lines: str street addr line ligne rue lograd adress strass indiriz direcc endere domicil
city: district city town poblac commun ville ort stadt comun citta ciudad municip cidad localid
city: localit distrit
postal_code: pincod pin postal zip postc plz cap cep cp
country: country pays land. paese pais
replaced_by: merg new replac link surviv fusion zusammen sostit unific
part_of: parent partof part.
other: provid physic doctor profes practit pratic nurse staff employ prsnl personn user
other: consultant attending surgeon medec arzt aerzt infirm
person: provid physic doctor profes practit pratic nurse staff employ prsnl personn user
person: consultant attending surgeon medec arzt aerzt infirm
other: other autre guard mother father madre padre mere pere mutter vater spouse conyug
other: room bed lit chamb zimmer bett camera letto habit cama
other: quarto
bed: room bed lit chamb zimmer bett camera letto habit cama quarto
log: log histor archiv
other: uuid guid
emergency: emergenc urgenc notfall
other: orig reaso motif previous nation. marital vital billing payment expire caus kin referr insur
other: nationalit
"""
_STEMS += (
    MARKS + "changed: upd updt mod altera edit lastup lastmod lastchang\n"
    "deleted: inactiv disabl retir desactiv\naudit: ins crt cre reccreat\n"
)
# Words that tell what a type or a key tells.
_TIMES = "datetime date dat time datum zeit data fecha fec hora hour heure ora dttm hr dt tm ts"
_NOISE = {*f"{_TIMES} at on full le id xid key utc tbl tab tb sn yn".split()}
# What names without a sign between words begin or end with.
_JOINED = re.compile(
    f"^(?:{_TIMES.replace(' ', '|')})(?:of)?|(?:{_TIMES.replace(' ', '|')}|id|code|cod|no|nr)$"
)

OF_ROW = frozenset({"audit", "changed", "deleted"})  # Of the row itself.
_NAME_OF_PERSON = re.compile(
    r"\b(?:(last|first) na?me?s?|na?me? (last|first))\b|^(last|first)$"
)

_HINTS = {
    "class": """
PRENC: preadm voraufn preric
EMER: e emer emerg urg urgenz er ed notf notau pronto guardia
AMB: o amb ambu outpat op opd exte consul tagesk poliklin visita
IMP: i inpat imp ip ipd admiss hospitaliz ordinari intern observ surgic
""",
    "status": """
cancelled: anulad delet error void abgesagt
planned: plan sched book pending agendad
finished: finish discharg complet conclu done sorti clos entlass alta
in-progress: initiat arriv active open current admitted aktiv
""",
    "gender": """
male: m masc mascu maenn
female: w femin femme
other: o autre divers
unknown: u unk inconn unbek sconos descon ignor indet
""",
}
"""Codes, and words of labels, that mean a FHIR code in a draft: too little for a finding."""


@cache
def code_of(slot: str, text: str) -> str:
    """Return the code of a slot that a code or label of a source may mean, else ""."""
    stems = LABELS.get(slot, "") + _HINTS.get(slot, "")
    meant = all_of(tuple(meanings(word, stems) for word in words_of(text)))
    first = next((code for code in stem_meanings(stems) if code in meant), "")
    return HIDDEN if first == CANCELLED else first


def words_of(name: str, prefix: str = "") -> list[str]:
    """Return the words of a name, without accents and those that say nothing."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    words = [w.lower() for w in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", plain)]
    words = words[1:] if words[:1] == [prefix] and words[1:] else words
    # The last visit is no family name.
    joined = _NAME_OF_PERSON.sub(r"\1\2\3name", " ".join(words))
    joined = re.sub(r"\b(?:prim|segund|second)\w* nom\w+", "firstname", joined)
    return [word for word in joined.split() if word not in _NOISE]


def without_time(name: str) -> str:
    """Return a name without what says that it is of a day or a time of day."""
    return re.sub(f"{_TIMES.replace(' ', '|')}|_", "", name.lower())


def meanings_of(name: str, prefix: str = "") -> Words:
    """Return what each word of a name means."""
    return tuple(
        meanings(word, _STEMS) or meanings(_JOINED.sub("", word), _STEMS)
        for word in words_of(name, prefix)
    )


def prefix_of(names: Iterable[str]) -> str:
    """Return the word that most names begin with (`ADM_`), "" where there is none."""
    split = [re.split(r"[_\W]", name.lower()) for name in names]
    firsts = Counter(words[0] for words in split if len(words) > 1)
    word, number = next(iter(firsts.most_common(1)), ("", 0))
    is_said = number >= max(3, 0.6 * len(split))
    return word if is_said else ""


def all_of(words: Iterable[frozenset[str]]) -> frozenset[str]:
    """Return all that a name means."""
    return frozenset[str]().union(*words)


def fit(words: Words, patterns: str) -> tuple[int, int] | None:
    """Return how well a name fits, the lowest best; None where it does not.

    Patterns are meanings that it needs, the best first: `=code, unit code`. After `=` it has
    no other word, after `~` none that means something else.
    """
    meanings = all_of(words)
    # What is about the row itself fits only where that is asked.
    if meanings & {"other", *(of for of in OF_ROW if of not in patterns)}:
        return None
    for place, pattern in enumerate(patterns.split(", ")):
        wanted = {*pattern.lstrip("=~").split()}
        # Of a number nothing else needs to be said.
        others = [word for word in words if not word & {*wanted, "number"}]
        is_strict = pattern.startswith("=") or (pattern.startswith("~") and any(others))
        if wanted <= meanings and not (is_strict and others):
            return place, len(others)
    return None
