"""The mapping file of the tiny hospital behind the demo's HTTP API."""

from demo.http import FRACTION, IPP, MOMENT
from tests.hospital_http_rows import NO_END, NO_START
from toolkit.contract.hospital import (
    FINESS_SYSTEM,
    IPP_SYSTEM,
    KINDS,
    SEXES,
    STATES,
    UNIT_URL,
    VISIT_SYSTEMS,
    Hospital,
    Ids,
)

OFFSET = "{offset: debut}"


def http_mapping_text(
    hospital: Hospital,
    *,
    paging: str = OFFSET,
    total: str = "total: nombre",
    source: str = "",
) -> str:
    """Return the mapping file of a hospital; an empty `paging` for a source without."""
    paged = f", paging: {paging}" if paging else ""
    text = _TEXT.replace("CODES", _codes(hospital))
    text = text.replace("PAGING", f"{total}{paged}")
    given = "noms.prenomUtilise"
    if hospital.ids is Ids.TEXTS:
        given = 'noms.prenoms, split: " "'
    for word, value in (
        ("TWICE", hospital.twice),
        ("NEVER", hospital.never),
        ("SOURCE", source),
        ("GIVEN", given),
        ("NO_START", NO_START),
        ("NO_END", NO_END),
        ("UNIT_URL", UNIT_URL),
        ("IPP_SYSTEM", IPP_SYSTEM),
        ("FINESS_SYSTEM", FINESS_SYSTEM),
        ("FRACTION", FRACTION),
        ("MOMENT", MOMENT),
    ):
        text = text.replace(word, value)
    return text


def _codes(hospital: Hospital) -> str:
    domains = {
        system: system
        for patient in hospital.patients
        for _, system in patient.numbers
        if system
    }
    return "\n".join(
        f"  {name}: {{table: {table!r}{otherwise}}}"
        for name, table, otherwise in (
            ("states", STATES, ""),
            ("kinds", KINDS, ", otherwise: UNK"),
            ("sexes", SEXES, ", otherwise: unknown"),
            ("systems", VISIT_SYSTEMS, ""),
            ("domains", {IPP: IPP_SYSTEM, **domains}, ""),
            ("files", {"A": "true", "F": "false"}, ""),
        )
    )


_TEXT = """\
mapping: 1
name: Tiny hospital
profile: full
time_zone: Europe/Paris
local_times: {twice: TWICE, never: NEVER}
constants: {functional_unit_extension: UNIT_URL}
source: {kind: http, url: {env: PAS_URL}SOURCE}
codes:
CODES
encounter:
  read: {path: "/sejours/{id}"}
  list: {path: /sejours, rows: resultats, count: nb, fixed: "sansEtats=A,X", PAGING}
  fields:
    id: {from: id}
    patient_id: {from: patient.ipp}
    status: {from: etat, codes: states}
    class: {from: typeSejour, codes: kinds}
    start: {from: dateEntree, format: "FRACTION", absent: [NO_START]}
    end: {from: dateSortie, format: "FRACTION", absent: [NO_END]}
    visit_number: {from: numVenue}
    visit_number_system: {from: etablissement.id, codes: systems}
    functional_unit: {from: uf.code}
    organization_id: {from: etablissement.id}
    last_updated: {from: maj, format: "FRACTION", time_zone: UTC}
  search:
    _id: {query: "ids={values}", separator: ","}
    patient: {query: "ipp={values}", separator: ",", merged: true}
    date: {ge: "entreeDu={value:MOMENT}", lt: "entreeAvant={value:MOMENT}"}
    identifier: {query: "venues={values}",
      system: "venues={value}&etabs={system}", codes: systems, separator: ","}
    status: {query: "etats={values}", separator: ","}
    class: {query: "types={values}", separator: ","}
    service-provider._extension: {query: "ufs={values}", separator: ","}
  sort: {by: {date: tri=entree, -date: tri=-entree, _lastUpdated: tri=maj, -_lastUpdated: tri=-maj}}
patient:
  read: {path: "/patients/{id}"}
  list: {path: /patients, rows: resultats, count: nb, PAGING}
  fields:
    id: {from: id}
    active: {from: dossier, codes: files}
    identifiers:
      - {type: PI, system: 'IPP_SYSTEM', value: {from: id}}
      - rows: numeros
        system: {from: domaine, codes: domains}
        value: {from: valeur}
    names:
      - {use: usual, family: {from: noms.utilise}, given: {from: GIVEN}}
      - {use: old, family: {from: noms.naissance}}
    gender: {from: sexe, codes: sexes}
    birth_date: {from: dateNaissance, format: "%d/%m/%Y"}
    replaced_by: {from: fusionVers}
    last_updated: {from: maj, format: "FRACTION", time_zone: UTC}
  search:
    _id: {query: "ids={values}", separator: ","}
    identifier: {query: "numeros={values}",
      system: "numeros={value}&domaine={system}", codes: domains, separator: ","}
    name: {query: "nom={values}", contains: "nomContient={values}",
      exact: "nomExact={values}", separator: ","}
    family: {query: "famille={values}", contains: "familleContient={values}",
      exact: "familleExact={values}", separator: ","}
    given: {query: "prenom={values}", contains: "prenomContient={values}",
      exact: "prenomExact={values}", separator: ","}
    birthdate: {ge: "neDu={value:%d/%m/%Y}", lt: "neAvant={value:%d/%m/%Y}", step: day}
    gender: {query: "sexes={values}", separator: ","}
  sort: {by: {_id: tri=id, -_id: tri=-id, _lastUpdated: tri=maj, -_lastUpdated: tri=-maj}}
organization:
  read: {path: "/etablissements/{id}"}
  list: {path: /etablissements, rows: resultats, count: nb, PAGING}
  fields:
    id: {from: id}
    name: {from: nom}
    identifiers: [{type: FINEJ, system: 'FINESS_SYSTEM', value: {from: finess}}]
    last_updated: {from: maj, format: "FRACTION", time_zone: UTC}
  search:
    _id: {query: "ids={values}", separator: ","}
    identifier: {query: "finess={values}", separator: ","}
    name: {query: "nom={values}", contains: "nomContient={values}",
      exact: "nomExact={values}", separator: ","}
  sort: {by: {_id: tri=id, -_id: tri=-id, _lastUpdated: tri=maj, -_lastUpdated: tri=-maj}}
"""
