"""The mapping file of the tiny hospital's HTTP API."""

from adapters.testing.hospital import (
    FINESS_SYSTEM,
    IPP_SYSTEM,
    KINDS,
    NO_END,
    NO_START,
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
    total: str = "total: total",
    source: str = "",
) -> str:
    """Return the mapping file of a hospital; an empty `paging` for a source without."""
    paged = f", paging: {paging}" if paging else ""
    tables = "\n".join(
        f"  {name}: {{table: {table!r}{otherwise}}}"
        for name, table, otherwise in (
            ("states", STATES, ""),
            ("kinds", KINDS, ", otherwise: UNK"),
            ("sexes", SEXES, ", otherwise: unknown"),
            ("systems", VISIT_SYSTEMS, ""),
        )
    )
    text = _TEXT.replace("CODES", tables).replace("PAGING", f"{total}{paged}")
    split = ', split: " "' if hospital.ids is Ids.TEXTS else ""
    for word, value in (
        ("TWICE", hospital.twice),
        ("NEVER", hospital.never),
        ("SOURCE", source),
        ("SPLIT", split),
        ("NO_START", NO_START),
        ("NO_END", NO_END),
        ("UNIT_URL", UNIT_URL),
        ("IPP_SYSTEM", IPP_SYSTEM),
        ("FINESS_SYSTEM", FINESS_SYSTEM),
    ):
        text = text.replace(word, value)
    return text


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
  list: {path: /sejours, rows: resultats, count: n, fixed: {sauf: "A,X"}, PAGING}
  fields:
    id: {from: stay_id}
    patient_id: {from: patient_id}
    status: {from: state, codes: states}
    class: {from: type, codes: kinds}
    start: {from: began, absent: [NO_START]}
    end: {from: ended, absent: [NO_END]}
    visit_number: {from: venue.numero}
    visit_number_system: {from: hospital, codes: systems}
    functional_unit: {from: uf.code}
    organization_id: {from: hospital}
    last_updated: {from: maj, time_zone: UTC}
  search:
    _id: {send: ids, several: comma}
    patient: {send: ipp, several: comma, merged: true}
    date: {from: du, before: avant}
    identifier: {send: numero, several: comma, system: {send: site, codes: systems}}
    status: {send: etats, several: comma}
    class: {send: types, several: comma}
    service-provider._extension: {send: ufs, several: comma}
  sort: {send: tri, by: {date: began, -date: -began, _lastUpdated: maj, -_lastUpdated: -maj}}
patient:
  read: {path: "/patients/{id}"}
  list: {path: /patients, rows: resultats, count: n, PAGING}
  fields:
    id: {from: id}
    active: {from: actif}
    identifiers:
      - {type: PI, system: 'IPP_SYSTEM', value: {from: id}}
      - rows: numeros
        system: {from: autorite}
        value: {from: valeur}
    names:
      - {use: usual, family: {from: nom.usage}, given: {from: prenomsSPLIT}}
      - {use: old, family: {from: nom.naissance}}
    gender: {from: sexe, codes: sexes}
    birth_date: {from: ne}
    replaced_by: {from: remplacePar}
    last_updated: {from: maj, time_zone: UTC}
  search:
    _id: {send: ids, several: comma}
    identifier: {send: numero, several: comma, system: {send: autorite}}
    name: {send: nom, contains: nomContient, exact: nomExact, several: comma}
    family: {send: famille, contains: familleContient, exact: familleExact, several: comma}
    given: {send: prenom, contains: prenomContient, exact: prenomExact, several: comma}
    birthdate: {from: neDu, before: neAvant}
    gender: {send: sexes, several: comma}
  sort: {send: tri, by: {_id: id, -_id: -id, _lastUpdated: maj, -_lastUpdated: -maj}}
organization:
  read: {path: "/etablissements/{id}"}
  list: {path: /etablissements, rows: resultats, count: n, PAGING}
  fields:
    id: {from: id}
    name: {from: title}
    identifiers: [{type: FINEJ, system: 'FINESS_SYSTEM', value: {from: finess}}]
    last_updated: {from: maj, time_zone: UTC}
  search:
    _id: {send: ids, several: comma}
    identifier: {send: finess, several: comma}
    name: {send: titre, contains: titreContient, exact: titreExact}
  sort: {send: tri, by: {_id: id, -_id: -id, _lastUpdated: maj, -_lastUpdated: -maj}}
"""
