"""The edges at which adapters go wrong, as plain rows; each is here for a reason.

`EDGES` is the hospital that the contract suite searches. Whoever writes an adapter adds
the row on which it failed.
"""

from adapters.testing.hospital import (
    NO_END,
    NO_START,
    Hospital,
    OrganizationRow,
    PatientRow,
    StayRow,
)

LARGEST_ID = 2**63 - 1

CANARIES = ("Serincanari", "Canarinette", "CANARI-0042", "CANARI-V-1", "CANARI-V-2")
"""Names and numbers of one patient, which no log may ever hold."""

_MARCH = "2024-03-14"

TIES = tuple(
    StayRow(number, 5, began=f"{_MARCH} 09:00:00", changed="2024-03-14 08:30:00")
    for number in (*range(10, 22), 420, 421, 422)
)
"""More stays in one minute than a page holds; their ids alone tell the order."""

STAYS = (
    # One day and its edges; an off-by-one in a bound shows at midnight only.
    StayRow(1, began=f"{_MARCH} 08:15:00", ended=f"{_MARCH} 17:30:00", visit="V1"),
    StayRow(2, began=f"{_MARCH} 00:00:00", ended="2024-03-15 00:00:00", visit="v1"),
    StayRow(3, began="2024-03-13 23:59:59", ended=f"{_MARCH} 00:00:00", visit="V2"),
    StayRow(4, began="2024-03-15 00:00:00", ended="2024-03-16 10:00:00"),
    StayRow(5, began=f"{_MARCH} 23:59:59.999999", ended=f"{_MARCH} 23:59:59.999999"),
    StayRow(6, began="2024-03-13 23:59:59.500000", unit="0123"),
    StayRow(7, began=f"{_MARCH} 00:00:00.000001", unit="123"),
    StayRow(8, began="2024-02-29 12:00:00", ended="2024-04-01 12:00:00", unit="0123 A"),
    # Bounds that are not known.
    StayRow(22, began="2024-03-01 09:00:00", state="E"),
    StayRow(23, ended="2024-03-20 10:00:00", changed="2024-03-20 09:00:00.123456"),
    StayRow(24, state="P", changed="2024-03-20 09:00:00.123457"),
    StayRow(25, state="P", changed="2024-03-20 09:00:00"),
    StayRow(26, state="P"),
    StayRow(28, began="", ended="", changed=""),
    StayRow(29, began=NO_START, ended=NO_END),
    StayRow(9, began=NO_START, ended="2024-03-10 10:00:00"),
    StayRow(93, 9, began="9999-12-30 00:00:00", ended=NO_END),
    StayRow(27, 2, state="P", kind="SEA"),
    StayRow(42, 2, "P", began="2024-03-20 09:00:00", changed="2023-01-01 00:00:00"),
    # The hour that happens twice, and the clock changes on both sides.
    StayRow(30, 3, began="2024-10-27 02:30:00", ended="2024-10-27 02:45:00"),
    StayRow(31, 3, began="2024-10-27 01:59:59", ended="2024-10-27 03:00:00"),
    StayRow(32, 3, began="2024-10-27 03:00:00", changed="2024-10-27 02:30:00"),
    StayRow(33, 3, began="2024-03-31 01:59:59", ended="2024-03-31 03:30:00"),
    StayRow(34, 3, began="2024-03-31 03:00:01", changed="2024-03-31 02:30:00"),
    # Rows that cannot be mapped stay in their place (decision 16).
    StayRow(35, 3, began="2024-03-31 02:30:00", visit="G1"),
    StayRow(36, 3, began="2024-03-30 20:00:00", ended="2024-03-31 02:00:00"),
    StayRow(37, state="Z", began=f"{_MARCH} 10:00:00", visit="Z1", kind="URG"),
    StayRow(38, state=None, began=f"{_MARCH} 10:00:00"),
    StayRow(39, state="", changed="2024-03-14 10:00:00"),
    StayRow(40, None, began=f"{_MARCH} 10:00:01", visit="Z1"),
    StayRow(41, hospital="H9", began=f"{_MARCH} 10:00:02", visit="Z9"),
    StayRow(43, began=f"{_MARCH} 10:00:03", ended=f"{_MARCH} 10:00:02"),
    StayRow(423, state="S"),
    # Rows that are never served, or are gone (decision 17).
    StayRow(50, state="A", began=f"{_MARCH} 10:00:00", visit="V1"),
    StayRow(51, state="X", began=f"{_MARCH} 10:00:00", visit="V1"),
    StayRow(52, state="X"),
    # Codes: several for one, none, empty, unknown, other letters.
    StayRow(60, 4, "C", "HP", began="2024-05-01 10:00:00"),
    StayRow(61, 4, "S", None, began="2024-05-02 10:00:00"),
    StayRow(62, 4, "S", "", began="2024-05-03 10:00:00"),
    StayRow(63, 4, "S", "NEW", began="2024-05-04 10:00:00"),
    StayRow(64, 4, "S", "hc", began="2024-05-05 10:00:00"),
    StayRow(65, 4, "E", "EXT", began="2024-05-06 10:00:00"),
    # Visit numbers: the same in two hospitals and in none, leading zeros, odd signs.
    StayRow(70, 6, began="2024-06-01 10:00:00", visit="000123"),
    StayRow(71, 6, began="2024-06-01 10:00:00", visit="000123", hospital="H2"),
    StayRow(72, 6, began="2024-06-01 10:00:00", visit="000123", hospital=None),
    StayRow(73, 6, began="2024-06-01 10:00:00", visit="123", hospital=""),
    StayRow(74, 6, began="2024-06-02 10:00:00", visit="100%", unit="%"),
    StayRow(75, 6, began="2024-06-02 10:00:00", visit="A_B", unit="_"),
    StayRow(76, 6, began="2024-06-02 10:00:00", visit="AXB", unit="É"),
    StayRow(77, 6, began="2024-06-02 10:00:00", visit="A\\B", unit="é"),
    StayRow(78, 6, began="2024-06-02 10:00:00", visit="O'B", unit="'"),
    StayRow(79, 6, began="2024-06-02 10:00:00", visit='"', unit=":v0"),
    StayRow(80, 6, began="2024-06-02 10:00:00", visit=":v0", unit="a|b"),
    StayRow(81, 6, began="2024-06-02 10:00:00", visit="?", unit=""),
    StayRow(82, 6, began="2024-06-02 10:00:00", visit="", unit=None),
    # Recorded on a patient that was merged into another (decision 9).
    StayRow(90, 7, began="2024-07-01 10:00:00"),
    StayRow(91, 8, began="2024-07-02 10:00:00"),
    # The canary's, shown and not to be shown.
    StayRow(94, 14, began="2001-08-01 10:00:00", visit="CANARI-V-1"),
    StayRow(95, 14, "Z", began="2001-08-02 10:00:00", visit="CANARI-V-2"),
    # Far away.
    StayRow(92, 9, began="1999-12-31 23:59:59", changed="1970-01-01 00:00:00"),
    StayRow(LARGEST_ID, 9, began="2024-07-02 10:00:00"),
    *TIES,
)

PATIENTS = (
    PatientRow(1, "Martin", "Duprès", "Jean Paul", "1", "1950-02-28"),
    PatientRow(2, "De La Tour", "de la tour", "Marie-Ève", "2", "1950-03-01"),
    PatientRow(3, "Latour", "MARTIN", "Éléonore", "2", "2000-02-29"),
    PatientRow(4, "O'Brien", "L\u2019Hermite", "Zoe\u0308", "9", "1999-12-31"),
    PatientRow(5, "Le Bœuf", "Strauß", "Œdipe", "", "2000-01-01"),
    PatientRow(6, "100%", "A_B", "Back\\slash", None, None),
    PatientRow(7, "Ancien", None, "Paul", "1", "1970-01-01", 8),
    PatientRow(8, "Nouveau", "Ancien", "Paul", "1", "1970-01-01"),
    PatientRow(9, "Saint-Jean", "Ñuñez", "Łukasz", "1", "1969-12-31"),
    PatientRow(13, "Ping !", "M!0"),
    PatientRow(10, "", "", "", changed="2024-03-14 08:00:00"),
    PatientRow(11, None, None, None, changed="2024-03-14 08:00:00"),
    PatientRow(
        12,
        "Émile",
        "Smith Jones",
        "Ann",
        "2",
        "1960-06-15",
        changed="2024-03-14 08:00:00.000001",
        numbers=(("0042", "urn:oid:1.2.3"), ("AbC", "urn:oid:1.2.4"), ("7", None)),
    ),
    PatientRow(
        14,
        "Serincanari",
        None,
        "Canarinette",
        numbers=(("CANARI-0042", "urn:oid:1.2.5"),),
    ),
    PatientRow(
        LARGEST_ID,
        "X",
        numbers=(("abc", "urn:oid:1.2.4"), ("0042", "urn:oid:1.2.4")),
        changed="2020-01-01 00:00:00",
    ),
)

ORGANIZATIONS = (
    OrganizationRow("H1", "Hôpital de l'Île", "750000001", "2024-01-01 00:00:00"),
    OrganizationRow("H2", "Clinique Saint-Cœur", "750000002", "2024-01-01 00:00:00"),
    OrganizationRow("h2", "HOPITAL DU NORD", None),
    OrganizationRow("H-3.b", "100% Santé", "", "2023-01-01 00:00:00"),
    OrganizationRow("042", None, "0042"),
    OrganizationRow("42", "Clinique 42"),
    # FHIR asks for a name or a number: this one cannot be mapped.
    OrganizationRow("43", ""),
)

EDGES = Hospital(STAYS, PATIENTS, ORGANIZATIONS)
