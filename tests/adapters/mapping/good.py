"""A mapping file that uses each part of the format, and small changes to it."""

from pathlib import Path

from adapters.mapping.load import load_mapping
from adapters.mapping.model import SourceMapping

ENVIRON = {"PAS_URL": "postgresql://reader@pas/pas"}
HTTP_ENVIRON = {
    **{"PAS_URL": "https://pas/api", "KEY": "k"},
    "OLD": "postgresql://pas/pas",
}

MINIMAL = """\
mapping: 1
name: Small
profile: full
time_zone: Europe/Paris
source: {kind: sql, url: {env: PAS_URL}}
codes:
  status: {table: {P: planned, S: finished, A: hidden}}
encounter:
  rows: SELECT a, b, c, d FROM t
  fields:
    id: {from: a}
    patient_id: {from: b}
    status: {from: c, codes: status}
    start: {from: d}
  search: [_id, date]
  sort: [date]
"""

WHOLE = """\
mapping: 1
name: Whole
profile: group-a
time_zone: Europe/Paris
local_times: {twice: second, never: shift}
date: period

constants:
  visit_number_system: urn:oid:1.2.250.1.999.1.1
  identifier_type_system: https://example.org/visit-types
  identifier_type_version: 3.0.2
  identifier_type_display: Numéro de venue
  functional_unit_extension: https://example.org/functional-unit
  class_code_system: http://hl7.org/fhir/v3/ActCode
  class_systems: {REC: https://example.org/classes}
  patient_identifier_type_system: https://example.org/patient-types
  organization_identifier_type_system: https://example.org/organization-types

source:
  kind: sql
  url: {env: PAS_URL}
  timeout_seconds: 2.5
  count_timeout_seconds: 1
  connections: 4
  time_zone: UTC

codes:
  status: {table: {P: planned, S: finished, A: hidden, X: removed}}
  class: {table: {URG: EMER, 01: IMP}, otherwise: UNK}
  sex: {table: {NO: male, 1: female}}
  yes: {table: {O: true, N: false}}

encounter:
  rows: |
    SELECT a, b, c FROM stays -- one row a stay; no more
  fields:
    id: {from: id}
    visit_number: {from: visit, search: visit_upper}
    patient_id: {from: patient}
    status: {from: state, codes: status}
    class: {from: kind, codes: class}
    start: {from: [day, hour], at: "08:00", search: began}
    end:
      from: ended
      format: "%Y%m%d%H%M"
      time_zone: Europe/London
      absent: ["999912312359"]
    functional_unit: {from: unit}
    organization_id: hospital-1
    last_updated: {from: changed, covers: all, twice: first, never: refuse}
  search: [_id, patient, date, identifier, status, class, service-provider._extension]
  sort: [date, _lastUpdated]
  requires: [class, start]

patient:
  rows: SELECT * FROM patients
  fields:
    id: {from: id}
    active: {from: active, codes: yes}
    gender: {from: sex, codes: sex}
    birth_date: {from: born}
    deceased_at: {from: died, at: "00:00"}
    organization_id: {value: hospital-1}
    identifiers:
      - type: PI
        system: urn:oid:1.2.250.1.999.2
        value: {from: ipp}
        assigner: hospital-1
      - type: INS-NIR
        value: {from: ins}
        only_if: {from: ins_state, in: [VALI, "0"]}
      - rows: SELECT patient_id, number FROM other_numbers
        key: patient_id
        system: https://example.org/numbers
        value: {from: number}
    names:
      - use: official
        family: {from: name}
        given: {from: first, split: " "}
        prefix: {from: title}
    telecoms:
      - {system: phone, use: home, value: {from: phone}}
    addresses:
      - use: home
        lines: [{from: street}, {from: street2}]
        city: {from: town}
        postal_code: {from: code}
        country: FR
  search: [_id, name, family, given, birthdate, gender, identifier]
  sort: [_id]

organization:
  rows: SELECT code, label FROM units
  fields:
    id: {from: code}
    name: {from: label}
  search: [_id, name]
"""


HTTP = """\
mapping: 1
name: Small
profile: full
time_zone: Europe/Paris
source:
  kind: http
  url: {env: PAS_URL}
  headers: {X-Api-Key: {env: KEY}}
codes:
  status: {table: {P: planned, S: finished, A: hidden}}
encounter:
  read: {path: "/s/{id}"}
  list:
    path: /s
    rows: rows
    total: n
    count: nb
    fixed: "not=A"
    paging: {offset: from}
  fields:
    id: {from: id}
    patient_id: {from: patient.id}
    status: {from: state, codes: status}
    start: {from: began}
  search:
    _id: {query: "ids={value}"}
    date: {ge: "since={value}", lt: "before={value}", step: day}
    status: {query: "states={value}"}
  sort: {by: {date: by=d, -date: by=-d}}
"""


TWO = """\
mapping: 1
name: Two
profile: full
time_zone: Europe/Paris
sources:
  north: {kind: sql, url: {env: PAS_URL}}
  south: {kind: sql, url: {env: PAS_URL}, time_zone: UTC}
codes:
  status: {table: {S: finished}}
encounter:
  search: [_id, date, class]
  sort: [date]
  sources:
    - source: north
      prefix: n-
      rows: SELECT a, b, c, d FROM t
      fields:
        id: {from: a}
        patient_id: {from: b, source: north}
        status: {from: c, codes: status}
        start: {from: d}
        organization_id: h-1
    - source: south
      prefix: s-
      rows: SELECT a, b, d FROM v
      fields:
        id: {from: a}
        patient_id: {from: b, source: south}
        status: finished
        class: AMB
        start: {from: d}
patient:
  search: [_id]
  sources:
    - {source: north, prefix: n-, rows: SELECT a FROM p, fields: {id: {from: a}}}
    - {source: south, prefix: s-, rows: SELECT a FROM q, fields: {id: {from: a}}}
"""


def load(text: str, directory: Path) -> SourceMapping:
    """Return the mapping of a text."""
    file = directory / "m.yaml"
    file.write_text(text, encoding="utf-8")
    return load_mapping(file, ENVIRON if "kind: sql" in text else HTTP_ENVIRON)


def changed(text: str, *changes: str) -> str:
    """Return the text with each old part replaced by the new one that follows it."""
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text
