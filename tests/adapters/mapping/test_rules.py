"""Each rule and each part of the shape: a small fault, and the exact words it gets."""

from pathlib import Path

import pytest

from tests.adapters.mapping.good import MINIMAL, WHOLE, changed, problems

CASES = (
    pytest.param(
        MINIMAL,
        (
            "time_zone:",
            "timezone:",
        ),
        ("4:1: timezone: 'timezone' is not a key here; did you mean 'time_zone'?",),
        id="unknown key",
    ),
    pytest.param(
        MINIMAL,
        (
            "  search:",
            "  serach:",
        ),
        ("15:3: encounter.serach: 'serach' is not a key here; did you mean 'search'?",),
        id="unknown key of a section",
    ),
    pytest.param(
        MINIMAL,
        (
            "codes: status}",
            "code: status}",
        ),
        (
            "13:23: Encounter.status ← c: 'code' is not a key here; did you mean "
            "'codes'?",
        ),
        id="unknown option",
    ),
    pytest.param(
        MINIMAL,
        (
            "{from: a}",
            '{from: a, format: "%Y"}',
        ),
        ("11:19: Encounter.id ← a: 'format' is only for times",),
        id="option of another kind",
    ),
    pytest.param(
        MINIMAL,
        (
            "encounter:\n",
            "organization:\n",
        ),
        (
            "1:1: encounter: 'encounter' is missing",
            "12:5: organization.fields.patient_id ← b: 'patient_id' is not a key "
            "here: use id, active, name, part_of, last_updated, identifiers, "
            "telecoms, addresses",
            "13:5: organization.fields.status ← c: 'status' is not a key here: "
            "use id, active, name, part_of, last_updated, identifiers, telecoms, "
            "addresses",
            "14:5: organization.fields.start ← d: 'start' is not a key here: use "
            "id, active, name, part_of, last_updated, identifiers, telecoms, "
            "addresses",
            "15:17: organization.search: 'date' is not a search parameter of "
            "Organization: use _id, name, identifier",
            "16:10: organization.sort: 'date' is not a sort key of Organization: "
            "use _lastUpdated, _id",
        ),
        id="missing section",
    ),
    pytest.param(
        MINIMAL,
        (
            "    id: {from: a}\n",
            "",
        ),
        ("10:3: Encounter.id: 'id' is missing",),
        id="missing field",
    ),
    pytest.param(
        MINIMAL,
        (
            "  rows: SELECT a, b, c, d FROM t\n",
            "",
        ),
        ("8:1: encounter.rows: 'rows' is missing",),
        id="missing rows",
    ),
    pytest.param(
        MINIMAL,
        (
            "source: {kind: sql, url: {env: PAS_URL}}\n",
            "",
        ),
        ("1:1: source: 'source' is missing",),
        id="missing source",
    ),
    pytest.param(
        MINIMAL,
        (
            ", url: {env: PAS_URL}",
            "",
        ),
        ("5:1: source.url: 'url' is missing",),
        id="missing url",
    ),
    pytest.param(
        MINIMAL,
        (
            "name: Small",
            "name:",
        ),
        ("2:6: name: nothing is written here",),
        id="nothing behind a key",
    ),
    pytest.param(
        MINIMAL,
        (
            "name: Small",
            "name: [Small]",
        ),
        ("2:7: name: expected a text here",),
        id="a list for a text",
    ),
    pytest.param(
        MINIMAL,
        (
            "search: [_id, date]",
            "search: _id",
        ),
        ("15:11: encounter.search: expected a list here: [a, b]",),
        id="a text for a list",
    ),
    pytest.param(
        MINIMAL,
        (
            "source: {kind: sql, url: {env: PAS_URL}}",
            "source: sql",
        ),
        ("5:9: source: expected keys and values here",),
        id="a text for a section",
    ),
    pytest.param(
        MINIMAL,
        (
            "{from: a}",
            "{}",
        ),
        ("11:9: Encounter.id: needs 'from' (a column) or 'value' (a constant)",),
        id="neither column nor constant",
    ),
    pytest.param(
        MINIMAL,
        (
            "{from: a}",
            "{from: a, value: x}",
        ),
        ("11:9: Encounter.id ← a: 'from' and 'value' cannot both be given",),
        id="column and constant",
    ),
    pytest.param(
        MINIMAL,
        (
            "start: {from: d}",
            "start: 2024-03-30",
        ),
        ("14:12: Encounter.period.start: cannot be a constant: write {from: column}",),
        id="a time as a constant",
    ),
    pytest.param(
        MINIMAL,
        (
            "start: {from: d}",
            'start: {at: "00:00"}',
        ),
        ("14:12: Encounter.period.start: needs 'from' (a column)",),
        id="a time without a column",
    ),
    pytest.param(
        MINIMAL,
        (
            "{from: a}",
            "{from: [a, b]}",
        ),
        ("11:16: Encounter.id ← a, b: expected the name of one column here",),
        id="two columns for a text",
    ),
    pytest.param(
        MINIMAL,
        (
            "{from: d}",
            "{from: [a, b, c]}",
        ),
        (
            "14:19: Encounter.period.start ← a, b, c: two columns are a date and "
            "its time of day: [date, time]",
        ),
        id="three columns for a time",
    ),
    pytest.param(
        MINIMAL,
        (
            "{from: a}",
            "{from: ''}",
        ),
        ("11:16: Encounter.id: nothing is written here",),
        id="an empty column",
    ),
    pytest.param(
        MINIMAL,
        (
            "{from: a}",
            "[a]",
        ),
        ("11:9: Encounter.id: expected {from: column} or a constant here",),
        id="a list for a value",
    ),
    pytest.param(
        WHOLE,
        (
            'split: " "',
            'split: ""',
        ),
        ("79:37: Patient.name.given ← first: nothing is written here",),
        id="an empty split",
    ),
    pytest.param(
        MINIMAL,
        (
            "kind: sql",
            "kind: sqll",
        ),
        (
            "5:16: source.kind: 'sqll' is not a kind of source (any database is sql); did you "
            "mean 'sql'?",
        ),
        id="kind of source",
    ),
    pytest.param(
        MINIMAL,
        (
            "kind: sql",
            "kind: [sql]",
        ),
        ("5:16: source.kind: expected a text here",),
        id="kind of source that is a list",
    ),
    pytest.param(
        WHOLE,
        (
            "timeout_seconds: 2.5",
            "timeout_seconds: 0",
            "connections: 4",
            "connections: 101",
        ),
        (
            "22:20: source.timeout_seconds: must be from 0.1 to 60",
            "24:16: source.connections: must be from 1 to 100",
        ),
        id="numbers out of range",
    ),
    pytest.param(
        WHOLE,
        (
            "timeout_seconds: 2.5",
            "timeout_seconds: fast",
            "connections: 4",
            "connections: 4.5",
        ),
        (
            "22:20: source.timeout_seconds: expected a number here",
            "24:16: source.connections: expected a whole number here",
        ),
        id="not a number",
    ),
    pytest.param(
        WHOLE,
        (
            "timeout_seconds: 2.5",
            "timeout_seconds: nan",
        ),
        ("22:20: source.timeout_seconds: expected a number here",),
        id="not a finite number",
    ),
    pytest.param(
        WHOLE,
        (
            "twice: second",
            "twice: later",
        ),
        (
            "5:22: local_times.twice: 'later' is not a way to read an hour that "
            "happens twice: use first, second, refuse",
        ),
        id="reading of an odd hour",
    ),
    pytest.param(
        WHOLE,
        (
            "date: period",
            "date: whole",
        ),
        (
            "6:7: date: 'whole' is not a reading of the parameter date: use "
            "start, period",
        ),
        id="reading of date",
    ),
    pytest.param(
        WHOLE,
        (
            'in: [VALI, "0"]',
            "is: VALI",
        ),
        (
            "71:9: Patient.identifier ← ins_state: 'in' is missing",
            "71:36: Patient.identifier ← ins_state: 'is' is not a key here: use "
            "from, in",
        ),
        id="only_if without values",
    ),
    pytest.param(
        WHOLE,
        (
            'in: [VALI, "0"]',
            "in: VALI",
        ),
        ("71:40: Patient.identifier ← ins_state: expected a list here: [a, b]",),
        id="only_if with a text",
    ),
    pytest.param(
        WHOLE,
        (
            "        value: {from: ins}\n",
            "",
        ),
        ("69:9: Patient.identifier.value: 'value' is missing",),
        id="item without its value",
    ),
    pytest.param(
        WHOLE,
        (
            "        family:",
            "        famly:",
        ),
        (
            "78:9: Patient.name ← name: 'famly' is not a key here; did you mean "
            "'family'?",
        ),
        id="unknown slot of an item",
    ),
    pytest.param(
        MINIMAL,
        (
            "{env: PAS_URL}",
            "{environ: PAS_URL}",
        ),
        ("5:27: source.url.environ: 'environ' is not a key here; did you mean 'env'?",),
        id="env",
    ),
    pytest.param(
        MINIMAL,
        (
            "{P: planned, S: finished, A: hidden}",
            "[P, S]",
        ),
        ("7:19: codes.status: expected keys and values here",),
        id="a table that is a list",
    ),
    pytest.param(
        MINIMAL,
        (
            "P: planned",
            "P: [planned]",
        ),
        ("7:23: codes.status: expected a text here",),
        id="a target that is a list",
    ),
    pytest.param(
        WHOLE,
        (
            "class_code_system:",
            "class_system:",
        ),
        (
            "14:3: constants.class_system: 'class_system' is not a key here; did "
            "you mean 'class_systems'?",
        ),
        id="unknown constant",
    ),
    pytest.param(
        MINIMAL,
        (
            "PAS_URL",
            "PAS_URI",
        ),
        ("5:32: source.url.env: the environment variable PAS_URI is not set",),
        id="variable not set",
    ),
    pytest.param(
        MINIMAL,
        (
            "{env: PAS_URL}",
            '"postgresql://pas/pas?user=a&password=b"',
        ),
        (
            "5:26: source.url: holds a password: put it into the environment and "
            "write {env: NAME}",
        ),
        id="password in the query",
    ),
    pytest.param(
        MINIMAL,
        (
            "{env: PAS_URL}",
            "pas.db",
        ),
        (
            "5:26: source.url: not an address like postgresql://host/database, nor "
            "{env: NAME}",
        ),
        id="not an address",
    ),
    pytest.param(
        MINIMAL,
        (
            "profile: full",
            "profile: group-c",
        ),
        (
            "3:10: profile: 'group-c' is not a profile, nor a file beside this "
            "one; did you mean 'group-b'?",
        ),
        id="unknown profile",
    ),
    pytest.param(
        MINIMAL,
        (
            "SELECT a, b, c, d FROM t",
            "DELETE FROM t",
        ),
        ("9:9: encounter.rows: must be one SELECT (or WITH … SELECT)",),
        id="rows writes",
    ),
    pytest.param(
        MINIMAL,
        (
            "FROM t\n",
            "FROM t;\n",
        ),
        (
            "9:33: encounter.rows: must not end in ';': the service adds WHERE and "
            "ORDER BY",
        ),
        id="rows ends in a semicolon",
    ),
    pytest.param(
        MINIMAL,
        (
            "FROM t\n",
            "FROM t; DROP TABLE t\n",
        ),
        ("9:33: encounter.rows: must be one statement without ';'",),
        id="rows is two statements",
    ),
    pytest.param(
        WHOLE,
        (
            "SELECT patient_id, number FROM other_numbers",
            "numbers",
        ),
        ("72:15: Patient.identifier: must be one SELECT (or WITH … SELECT)",),
        id="rows of an item",
    ),
    pytest.param(
        MINIMAL,
        (
            "codes: status}",
            "codes: statuses}",
        ),
        (
            "13:30: Encounter.status ← c: there is no code table 'statuses' under "
            "codes; did you mean 'status'?",
        ),
        id="unknown code table",
    ),
    pytest.param(
        MINIMAL,
        (
            "codes:\n",
            "codes:\n  kinds: {table: {a: b}}\n",
        ),
        (
            "7:3: codes.kinds: no field uses this code table: name it with "
            "codes:, or remove it",
        ),
        id="unused code table",
    ),
    pytest.param(
        MINIMAL,
        (
            ", codes: status",
            "",
        ),
        (
            "13:5: Encounter.status ← c: 'status' needs a code table (codes: …) "
            "that says what each code becomes, even when the column already holds "
            "FHIR's codes",
        ),
        id="status without codes",
    ),
    pytest.param(
        WHOLE,
        (
            ", codes: class}",
            "}",
        ),
        (
            "41:5: Encounter.class ← kind: 'class' needs a code table (codes: …) "
            "that says what each code becomes, even when the column already holds "
            "FHIR's codes",
        ),
        id="class without codes",
    ),
    pytest.param(
        MINIMAL,
        (
            "P: planned",
            "'': planned",
        ),
        (
            "7:20: codes.status: an empty code is no value: say otherwise: for "
            "what is absent",
        ),
        id="an empty source code",
    ),
    pytest.param(
        MINIMAL,
        (
            "P: planned",
            "'P ': planned",
        ),
        ("7:20: codes.status: 'P ' ends in a blank: values are compared without them",),
        id="a source code with a blank",
    ),
    pytest.param(
        MINIMAL,
        (
            "S: finished",
            "S: done",
        ),
        (
            "7:35: codes.status: 'done' is not a code of 'status': use planned, "
            "in-progress, finished, hidden, removed",
        ),
        id="a target that is no code",
    ),
    pytest.param(
        WHOLE,
        (
            "otherwise: UNK",
            "otherwise: OTHER",
        ),
        (
            "29:51: codes.class: 'OTHER' is not a code of 'class': use EMER, IMP, "
            "PRENC, AMB, REC, UNK",
        ),
        id="otherwise that is no code",
    ),
    pytest.param(
        WHOLE,
        (
            "01: IMP",
            "01: hidden",
        ),
        (
            "29:34: codes.class: 'hidden' is a word for status only: use EMER, IMP, "
            "PRENC, AMB, REC, UNK",
        ),
        id="hidden outside status",
    ),
    pytest.param(
        WHOLE,
        (
            "from: label}",
            "from: label, codes: names}",
            "codes:\n  status",
            "codes:\n  names: {table: {a: hidden}}\n  status",
        ),
        ("28:22: codes.names: 'hidden' is a word for status only",),
        id="hidden in a text",
    ),
    pytest.param(
        MINIMAL,
        (
            "{from: c, codes: status}",
            "hidden",
            "codes:\n  status: {table: {P: planned, S: finished, A: hidden}}\n",
            "",
        ),
        ("11:13: Encounter.status: 'hidden' can only stand in a code table",),
        id="hidden as a constant",
    ),
    pytest.param(
        WHOLE,
        (
            "use: official\n",
            "use: oficial\n",
        ),
        (
            "77:14: Patient.name.use: 'oficial' is not a code of 'use'; did you "
            "mean 'official'?",
        ),
        id="a constant that is no code",
    ),
    pytest.param(
        WHOLE,
        (
            "organization_id: hospital-1",
            "organization_id: hospital_1",
        ),
        (
            "49:22: Encounter.serviceProvider: not a FHIR id: up to 64 letters, "
            "digits, '-' and '.'",
        ),
        id="a constant that is no id",
    ),
    pytest.param(
        WHOLE,
        (
            "urn:oid:1.2.250.1.999.2",
            "1.2.250.1.999.2",
        ),
        (
            "66:17: Patient.identifier.system: '1.2.250.1.999.2' is neither "
            "urn:oid:… nor an address (http://…, https://…)",
        ),
        id="a system that is no address",
    ),
    pytest.param(
        WHOLE,
        (
            "urn:oid:1.2.250.1.999.2",
            "urn:oid:1.02",
        ),
        (
            "66:17: Patient.identifier.system: 'urn:oid:1.02' is neither "
            "urn:oid:… nor an address (http://…, https://…)",
        ),
        id="an oid with a leading zero",
    ),
    pytest.param(
        WHOLE,
        (
            "visit_number_system: urn:oid:1.2.250.1.999.1.1",
            "visit_number_system: 1.2.3",
            "{REC: https://example.org/classes}",
            "{REC: classes}",
        ),
        (
            "9:24: constants.visit_number_system: '1.2.3' is neither urn:oid:… "
            "nor an address (http://…, https://…)",
            "15:24: constants.class_systems.REC: 'classes' is neither urn:oid:… "
            "nor an address (http://…, https://…)",
        ),
        id="constants that are no address",
    ),
    pytest.param(
        WHOLE,
        (
            "{REC:",
            "{RECU:",
        ),
        (
            "15:19: constants.class_systems.RECU: 'RECU' is not a class code; did "
            "you mean 'REC'?",
        ),
        id="class_systems of no class",
    ),
    pytest.param(
        WHOLE,
        (
            "O: true",
            "O: oui",
        ),
        ("31:20: codes.yes: 'oui' is not a value of 'active': use true, false",),
        id="a flag that is neither",
    ),
    pytest.param(
        WHOLE,
        (
            "requires: [class, start]",
            "requires: [clas]",
        ),
        (
            "53:14: encounter.requires: 'clas' is not a field of this section; "
            "did you mean 'class'?",
        ),
        id="requires an unknown slot",
    ),
    pytest.param(
        MINIMAL,
        (
            "  sort: [date]",
            "  requires: [class]",
        ),
        (
            "16:14: encounter.requires: 'class' is required, but fields does not "
            "say where it comes from",
        ),
        id="requires an unmapped slot",
    ),
    pytest.param(
        MINIMAL,
        (
            "[_id, date]",
            "[_id, date, _id]",
        ),
        ("15:23: encounter.search: '_id' is listed twice",),
        id="listed twice",
    ),
    pytest.param(
        WHOLE,
        (
            '        family: {from: name}\n        given: {from: first, split: " "}\n',
            "",
            "search: [_id, name, family, given,",
            "search: [_id,",
        ),
        ("77:9: Patient.name: an item of 'names' needs family or given or text",),
        id="item without content",
    ),
    pytest.param(
        WHOLE,
        (
            "        key: patient_id\n",
            "",
        ),
        (
            "72:9: Patient.identifier: rows needs key: the column that holds the "
            "id of the resource",
        ),
        id="rows without key",
    ),
    pytest.param(
        WHOLE,
        (
            "      - use: home\n",
            "      - key: x\n        use: home\n",
        ),
        (
            "84:9: Patient.address: key is only for an item with a SELECT of its "
            "own (rows)",
        ),
        id="key without rows",
    ),
    pytest.param(
        WHOLE,
        (
            "  visit_number_system: urn:oid:1.2.250.1.999.1.1\n",
            "",
        ),
        (
            "37:5: Encounter.identifier.value ← visit: needs "
            "constants.visit_number_system, or the field visit_number_system",
        ),
        id="visit number without a system",
    ),
    pytest.param(
        WHOLE,
        (
            "  functional_unit_extension: https://example.org/functional-unit\n",
            "",
        ),
        (
            "47:5: Encounter.serviceProvider.extension ← unit: needs "
            "constants.functional_unit_extension",
        ),
        id="functional unit without extension",
    ),
    pytest.param(
        WHOLE,
        (
            "Europe/London",
            "europe/london",
        ),
        (
            "46:18: Encounter.period.end ← ended: 'europe/london' is not a time "
            "zone; did you mean 'Europe/London'?",
        ),
        id="zone of a field",
    ),
    pytest.param(
        WHOLE,
        (
            "time_zone: UTC",
            "time_zone: CEST",
        ),
        ("25:14: source.time_zone: 'CEST' is not a time zone; did you mean 'EST'?",),
        id="zone of the source",
    ),
    pytest.param(
        WHOLE,
        (
            'at: "08:00"',
            "at: 8h",
        ),
        (
            "42:36: Encounter.period.start ← day, hour: '8h' is not a time of "
            'day: write "00:00" or "23:59:59"',
        ),
        id="at",
    ),
    pytest.param(
        WHOLE,
        (
            'at: "08:00"',
            'at: "08:00Z"',
        ),
        (
            "42:36: Encounter.period.start ← day, hour: '08:00Z' is not a time of "
            'day: write "00:00" or "23:59:59"',
        ),
        id="at with an offset",
    ),
    pytest.param(
        WHOLE,
        (
            "%Y%m%d%H%M",
            "%d/%m %H:%M",
        ),
        (
            "45:15: Encounter.period.end ← ended: '%d/%m %H:%M' cannot be read: "
            "it needs at least %Y, %m and %d",
        ),
        id="a format without a year",
    ),
    pytest.param(
        WHOLE,
        (
            "%Y%m%d%H%M",
            "yyyyMMdd",
        ),
        (
            "45:15: Encounter.period.end ← ended: 'yyyyMMdd' is not a format: "
            "write it like %d/%m/%Y %H:%M",
        ),
        id="a format without directives",
    ),
    pytest.param(
        WHOLE,
        (
            "%Y%m%d%H%M",
            "%Y%m%d%H%M %Z",
        ),
        (
            "45:15: Encounter.period.end ← ended: %Z (a zone's short name) says "
            "no instant: use %z, or time_zone:",
        ),
        id="a format with a zone name",
    ),
    pytest.param(
        WHOLE,
        (
            "%Y%m%d%H%M",
            "%Y%m%d%Q",
        ),
        (
            "45:15: Encounter.period.end ← ended: '%Y%m%d%Q' cannot be read: it "
            "needs at least %Y, %m and %d",
        ),
        id="a format that nothing reads",
    ),
    pytest.param(
        MINIMAL,
        (
            "[_id, date]",
            "[_id, dates]",
        ),
        (
            "15:17: encounter.search: 'dates' is not a search parameter of "
            "Encounter; did you mean 'date'?",
        ),
        id="unknown parameter",
    ),
    pytest.param(
        WHOLE,
        (
            "search: [_id, name]",
            "search: [_id, name, birthdate]",
        ),
        (
            "97:23: organization.search: 'birthdate' is not a search parameter of "
            "Organization: use _id, name, identifier",
        ),
        id="parameter of another resource",
    ),
    pytest.param(
        MINIMAL,
        (
            "[_id, date]",
            "[_id, _count]",
        ),
        ("15:17: encounter.search: '_count' is always offered: remove it here",),
        id="_count is not listed",
    ),
    pytest.param(
        MINIMAL,
        (
            "[_id, date]",
            "[_id, _sort]",
        ),
        (
            "15:17: encounter.search: '_sort' is not listed here: write sort: "
            "[date, _lastUpdated]",
        ),
        id="_sort is not listed",
    ),
    pytest.param(
        MINIMAL,
        (
            "sort: [date]",
            "sort: [dates]",
        ),
        (
            "16:10: encounter.sort: 'dates' is not a sort key of Encounter; did "
            "you mean 'date'?",
        ),
        id="unknown sort",
    ),
    pytest.param(
        MINIMAL,
        (
            "[_id, date]",
            "[_id, class]",
        ),
        ("15:17: encounter.search: 'class' needs the field class, from a column",),
        id="parameter without its slot",
    ),
    pytest.param(
        WHOLE,
        (
            "class: {from: kind, codes: class}",
            "class: IMP",
            "  class: {table: {URG: EMER, 01: IMP}, otherwise: UNK}\n",
            "",
        ),
        (
            "50:52: encounter.search: 'class' needs the field class, from a "
            "column: here it is always the same",
        ),
        id="parameter on a constant",
    ),
    pytest.param(
        WHOLE,
        (
            "        family: {from: name}\n",
            "",
        ),
        (
            "88:23: patient.search: 'family' needs the field names.family, from a "
            "column",
        ),
        id="parameter without its item",
    ),
    pytest.param(
        MINIMAL,
        (
            "codes:\n",
            "date: period\ncodes:\n",
        ),
        ("16:17: encounter.search: 'date: period' needs the field end, from a column",),
        id="period without an end",
    ),
    pytest.param(
        MINIMAL,
        (
            "sort: [date]",
            "sort: [_lastUpdated]",
        ),
        (
            "16:10: encounter.sort: '_lastUpdated' needs the field last_updated, "
            "from a column",
        ),
        id="sort without its slot",
    ),
    pytest.param(
        MINIMAL,
        (
            "{from: d}",
            "{from: [d, e]}",
        ),
        (
            "14:12: Encounter.period.start ← d, e: 'date' cannot compare two "
            "columns: join them in the SELECT, or name one column with search:",
        ),
        id="two columns searched",
    ),
    pytest.param(
        MINIMAL,
        (
            "{from: d}",
            "{from: [d, e]}",
            "[_id, date]",
            "[_id]",
        ),
        (
            "14:12: Encounter.period.start ← d, e: 'date' cannot compare two "
            "columns: join them in the SELECT, or name one column with search:",
        ),
        id="two columns sorted",
    ),
    pytest.param(
        MINIMAL,
        (
            "{from: d}",
            '{from: d, format: "%d/%m/%Y %H:%M"}',
        ),
        (
            "14:30: Encounter.period.start ← d: 'date' cannot compare texts like "
            "%d/%m/%Y %H:%M: make a date of them in the SELECT, or name a column "
            "of dates with search:",
        ),
        id="unsortable format",
    ),
    pytest.param(
        WHOLE,
        (
            "birth_date: {from: born}",
            'birth_date: {from: born, format: "%d%m%Y"}',
        ),
        (
            "61:38: Patient.birthDate ← born: 'birthdate' cannot compare texts "
            "like %d%m%Y: make a date of them in the SELECT, or name a column of "
            "dates with search:",
        ),
        id="unsortable birth date",
    ),
    pytest.param(
        MINIMAL,
        (
            "start: {from: d}",
            "start: {form: d}",
        ),
        (
            "14:13: Encounter.period.start: 'form' is not a key here; did you "
            "mean 'format'?",
        ),
        id="a faulty slot is one problem",
    ),
    pytest.param(
        WHOLE,
        (
            "family: {from: name}",
            "family: {form: name}",
        ),
        ("78:18: Patient.name.family: 'form' is not a key here; did you mean 'from'?",),
        id="a faulty item is one problem",
    ),
    pytest.param(
        WHOLE,
        (
            "name: {from: label}",
            "name: {from: label}\n    telecoms: [{use: home, value: {from: phone}}]",
        ),
        (
            "97:16: Organization.telecom.system: 'system' is missing",
            "97:22: Organization.telecom.use: 'home' is not a code of 'use': use "
            "work, temp, old, mobile",
        ),
        id="a telecom of an organization",
    ),
)


@pytest.mark.parametrize(("base", "changes", "expected"), CASES)
def test_a_fault_is_said_in_place(
    base: str, changes: tuple[str, ...], expected: tuple[str, ...], tmp_path: Path
) -> None:
    found = problems(changed(base, *changes), tmp_path)
    assert found == [f"m.yaml:{text}" for text in expected]
