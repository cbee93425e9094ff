"""What codes of hospitals usually mean: habits as data, and a code table from counts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from adapters.sql.samples import CodeCount
from adapters.words import fold


@dataclass(frozen=True, slots=True)
class Entry:
    """A code of the source; `made` is what it becomes, "" where nobody can guess."""

    code: str
    made: str
    rows: int
    is_sure: bool = True


def _habits(text: str) -> Mapping[str, str]:
    return MappingProxyType(
        {
            word: line.split()[0]
            for line in filter(None, text.splitlines())
            for word in line.split()[1:]
        }
    )


FRENCH_LETTERS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "status": _habits("planned p\nin-progress e o r\nfinished s t f c\nhidden a\nremoved x d"),
        "class": _habits("EMER u\nIMP h\nAMB e c a\nREC s"),
    }
)
ENGLISH_LETTERS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "status": _habits("planned p s\nin-progress a i o\nfinished d f\nhidden c x"),
        # HL7 v2 table 0004.
        "class": _habits("EMER e\nIMP i b\nAMB o\nPRENC p\nREC r\nUNK n u"),
    }
)
"""Codes of one letter mean other things in other languages."""

HABITS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "status": _habits(
            """
planned pa pl plan planned prev prevu prevue preadm preadmis preadmission programme program reserve free confirmed booked scheduled waiting attente pending requested arrived rdv
in-progress ec ic encours present presente ouvert open actif active admitted adm hospitalized hospitalise inprogress inp started inhouse checkedin current cours
finished st so sorti sortie termine terminee fin ferme clos cloture closed discharged dis disch finished done complete completed signed facture facturee billed left
hidden an ann annule annulee cancel canceled cancelled cancelle can usercancelled centercancelled noshow abandon
removed sup suppr supprime supprimee deleted del void voided enteredinerror erreur error efface
"""
        ),
        "class": _habits(
            """
EMER urg urgence urgences emer emergency er ed sau uhcd smur
IMP hc hp hs hospi hosp hospit hospitalisation complete inpatient inp imp ip mco ssr psy had maternity routine elective
AMB ext externe cs cons consult consultation consultations hdj hj hja amb ambulatoire ambulatory outpatient op opd out ace homecare telemedicine day daycase visit
PRENC pre pad preadm preadmission prenc preadmit preop
REC sea seance seances dia dialyse recurring rec chimio
"""
        ),
        "gender": _habits(
            """
male m h male homme masculin masc man mr 1
female f w female femme feminin fem woman mme 2
other o a x autre other nb nonbinary div divers 3
unknown i u n indetermine inconnu unknown unk ind na 0 9
"""
        ),
        "yes": _habits(
            "true o oui y yes 1 true t vrai v\nfalse n non no 0 false f faux"
        ),
        "active": _habits(
            "true a act actif active o oui y yes 1 true t v valide ouvert open\n"
            "false i ina inactif inactive n non no 0 false f ferme c clos s archive d merged fusionne"
        ),
        "telecom_system": _habits(
            """
phone tf tp tw td tb tel telephone phone fixe fix p mobile mob port portable gsm cell t home work
fax fx fax f telecopie
email ml em email mail courriel e mel
url url web website site w
sms sms
"""
        ),
        "telecom_use": _habits(
            "home tf td ml home dom domicile fixe p\n"
            "mobile tp mob mobile port portable gsm cell sms\n"
            "work tw tb work bureau pro travail fx"
        ),
        "address_use": _habits(
            "home dom home domicile h p principale princ legal permanent\n"
            "temp tmp temp temporaire t secondaire\n"
            "old anc old ancienne former\nwork work w travail pro bureau"
        ),
        "identifier_type": _habits(
            "PI ipp nip mrn pi mr medicalrecord\nINS-NIR ins insnir nir insi\n"
            "INS-NIA insnia nia\nINS-C insc\nNDP ndp"
        ),
    }
)
"""For each slot what codes become, by the code in small letters without blanks."""


def entries(slot: str, counts: Iterable[CodeCount], *, french: bool) -> tuple[Entry, ...]:
    """Return what each code probably becomes."""
    letters = (FRENCH_LETTERS if french else ENGLISH_LETTERS).get(slot, {})
    return tuple(_entry(slot, count, letters) for count in counts)


def _entry(slot: str, count: CodeCount, letters: Mapping[str, str]) -> Entry:
    bare = "".join(c for c in fold(count.code) if c.isalnum())
    if bare in letters:
        return Entry(count.code, letters[bare], count.rows, is_sure=False)
    return Entry(count.code, _made(slot, bare), count.rows, is_sure=not bare.isdigit())


def _made(slot: str, bare: str) -> str:
    known = HABITS[slot]
    if bare in known or slot != "identifier_type":
        return known.get(bare, "")
    # IPP-CHU, MRN_2: the type is what it begins with.
    starts = [word for word in known if len(word) > 2 and bare.startswith(word)]
    return known[max(starts, key=len)] if starts else ""


def all_known(found: Sequence[Entry]) -> bool:
    """Tell whether every code could be guessed."""
    return all(entry.made for entry in found)
