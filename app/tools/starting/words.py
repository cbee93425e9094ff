"""What the words in names of tables and columns mean, in French and English habits.

A name is cut into words, each word has a meaning: `DT_ENTREE`, `dateEntree`,
`SEJDTENT` and `admission_date` all mean ENTRY and DATE. Data, and the cutting.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from adapters.words import fold

_WORDS = """
ACTIVE      actif active actifs enabled valide valid enservice ouvert open inactif
ADDRESS     adresse address adr addr adresses addresses domicile domiciliation
ALIAS       identifiant identifier identifiants identifiers identification identifications idents alias
APPOINTMENT appointment appointments rdv rendezvous booking bookings reservation preadmission preadm
BED         lit lits bed beds chambre room chamb
BIRTH       naissance naiss nai nais na birth born dob ddn nele bd birthdate dateofbirth maiden patronymique patronyme jeunefille jf
BUILDING    building batiment bat
CANCEL      annule annulation annulee cancel canceled cancelled cancelflag anul ann annul
CHANGED     maj modif modifie modification modifiee updated update modified lastupdated lastmodified changed change write upd mod
CITY        ville commune city town localite municipality vil
CLASS       class classe regime
CLOSED      cloture clos closed archive archived
CODE        code cod cd cde codes
CONTACT     contact contacts coordonnee coordonnees telecom telecoms moyen mechanism
COUNTRY     pays country countries
CREATED     cree creation created create crea insert inserted saisie cre
DATE        date dat dt dte day jour le dated dh datetime timestamp ts horodatage dttm dtm on at d
DEATH       deces decede decedee death deceased dead dod dcd died mort
DELETE      supprime suppression supprimee deleted delete removed efface suppr sup void voided
DOCTOR      medecin doctor physician praticien practitioner resp responsable healthprof attending surgeon md med
DOMAIN      domaine domain autorite authority system systeme issuer namespace
EMAIL       email mail courriel mel emails
EMERGENCY   urgence urgences emergency urg er ed emergencies
END         fin end ended until finish stop finished endtime
ENTRY       entree admission admissions admit admitted entry arrival arrivee adm ent hospitalization in admis entrees arrived checked
EXIT        sortie discharge discharged exit departure depart sor sort disch sorties left out
EXPECTED    prevue prevu prev expected planned scheduled estimated previsionnelle theorique plan sched
FAMILY      nom lastname surname familyname family last nm sname lname noms
FAX         fax telecopie
FILE        dossier dossiers do file dos record doss
FINESS      finess
FLAG        flag ind indicateur is top est bool fl yn
FORMER      ancien ancienne old former previous
GIVEN       prenom prenoms given firstname forename first givenname prenoms pren pnom fname
INPATIENT   inpatient inpatients hospi hosp hospit hospitalisation hospitalisations
INS         ins insi nir nirpp nia matriculeins
INSURANCE   assurance insurance mutuelle caisse payer organisme assure insured
ID          id ids identity pk oid key cle ident uid guid uuid rowid seq
KIND        type typ kind nature categorie category cat nat typ
LABEL       libelle label lib libel description desc intitule raisonsociale designation title
LINE        ligne line lig l
MEDIUM      value valeur val
MERGED      fusion fusionne merged merge replaced survivor absorbe fusionnee remplace replacedby mergedinto vers
MOBILE      mobile portable cell gsm
MODE        mode
MOTHER      mere mother pere father parents
NAME        name named names
NUMBER      num numero no number nb nr n nbr numer nombre
ORGANIZATION etablissement etablis hopital etab hospital hopitaux hospitals etablissements site facility institution organization organisation clinique clinic organizations institutions facilities ej hop entitejuridique company
OUTPATIENT  outpatient outpatients consultation consultations externe consult cons ext ambulatory ambulatoire evaluation evaluations
PARENT      parent pere superieur above rattachement
PATIENT     patient patients pat malade malades benef beneficiaire usager patien
PATIENTNO   ipp nip mrn noipp numipp nopatient medicalrecordnumber pid permanent hospitalnumber urn chartno
PERSON      personne person persons personnes identite individu people party parties individus pers identites usagers
PHONE       telephone phone tel telephones phones teleph landline
PLACE       lieu place loc location lieux
POSTAL      postal postale cp zip postcode zipcode codepostal
REASON      motif reason
RELATIVE    relative proche confiance prevenir kin nok famille
SEARCH      recherche search norm normalise normalized soundex phonetic rech
SEX         sexe sex gender sx genre biological sexe
START       debut deb start started begin begins began since from
STATUS      etat eta statut status state stat sta situation
STAY        sejour sejours stay stays visite visit visits encounter encounters episode episodes venue venues passage passages sej registration registrations spell attendance attendances ven vis
STREET      rue street voie streetname
TIME        heure time hr heu hh clock hour h hre
TITLE       civilite civ salutation titre
UNIT        uf unite unit ward wards units unites ufs dept department departments departement service services serv fonctionnelle fonctionnelles medicale um us
UNITCODE    ufcode codeuf
USAGE       usage usuel usuelle utilise utilisee marital married epouse use preferred prefered utilises called known
USER        user users uid operateur auteur author utilisateur agent by par operator
UTC         utc gmt
VISITNO     nda iep ndossier numvenue visitno visitnumber encounternumber csn accountno fin iepp nosejour numsejour noadm
WORK        travail work bureau office prof professionnel
ZONE        timezone zone tz
"""
"""A meaning, and the words that have it: whole words, abbreviations, words run together."""

MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        word: line.split()[0]
        for line in reversed(_WORDS.strip().splitlines())
        for word in line.split()[1:]
    }
)
"""Each word and its meaning; of two, the first in the list."""

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SHORTEST_START = 3
_WHOLE = 5


class Meaning(NamedTuple):
    """What a name means: the meanings of its words, and how many words have none."""

    known: frozenset[str]
    unknown: int
    words: tuple[str, ...]


@lru_cache(4096)
def meaning(name: str) -> Meaning:
    """Return what the words of a name mean."""
    words = tuple(_words(name))
    found = [MEANINGS.get(word) for word in words]
    known = frozenset(m for m in found if m)
    unknown = sum(m is None and not w.isdigit() for m, w in zip(found, words, strict=True))
    return Meaning(known, unknown, words)


def _words(name: str) -> Iterator[str]:
    plain = fold(name).replace(" ", "_")
    # Accents may change the length of a name; its capitals then part no words.
    cased = name if len(plain) == len(name) else plain
    parts = [part.lower() for part in _PART.findall(cased)]
    joined = "".join(part for part in parts if not part.isdigit())
    if joined in MEANINGS and len(parts) > 1:
        yield joined
        return
    for part in parts:
        yield from (part,) if part in MEANINGS or part.isdigit() else _cut(part)


@lru_cache(4096)
def _cut(word: str) -> tuple[str, ...]:
    """Cut a word of words run together (`sejdtent`); itself when it is none."""
    best: dict[int, tuple[int, tuple[str, ...]]] = {0: (0, ())}
    for end in range(2, len(word) + 1):
        for start in range(max(0, end - 16), end - 1):
            piece = word[start:end]
            whole = _whole(piece)
            if start in best and whole:
                cost, before = best[start]
                # Few and whole pieces before many or cut ones.
                price = cost + 10 + (0 if piece in MEANINGS else 1)
                if end not in best or price < best[end][0]:
                    best[end] = (price, (*before, whole))
    _, pieces = best.get(len(word), (0, (word,)))
    return pieces


def _whole(piece: str) -> str:
    """Return the word that a piece is, or is the start of; "" when there is none."""
    return piece if piece in MEANINGS else _STARTS.get(piece, "")


def _starts() -> Mapping[str, str]:
    """Return the starts of words that are those of one meaning alone."""
    found: dict[str, set[str]] = {}
    for word in MEANINGS:
        for length in range(_SHORTEST_START, len(word)):
            if len(word) >= _WHOLE:
                found.setdefault(word[:length], set()).add(word)
    single: dict[str, str] = {}
    for start, words in found.items():
        if len({MEANINGS[word] for word in words}) == 1 and start not in MEANINGS:
            single[start] = min(words, key=lambda word: (len(word), word))
    return single


_STARTS = _starts()


def common_words(names: Iterable[str]) -> frozenset[str]:
    """Return the first words that many names share: a vendor's or a system's mark."""
    firsts = Counter(meaning(name).words[0] for name in names if meaning(name).words)
    total = sum(firsts.values())
    return frozenset(w for w, n in firsts.items() if n > 2 and n * 3 > total and w not in MEANINGS)
