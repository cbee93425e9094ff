"""What is asked of the edge cases, and what has to be found: the contract's tables.

Rows are named by their number, and so are ids in `_id`, `patient` and the hospital's own
patient number: the suite writes them as the hospital's ids.
"""

from adapters.contract import Criterion, StringMatch, TokenCriterion
from adapters.testing.asking import dates, patient, text, token
from adapters.testing.hospital import IPP_SYSTEM, VISIT_SYSTEMS
from adapters.testing.stays import LARGEST_ID

H1 = VISIT_SYSTEMS["H1"]
EXTENSION = "service-provider._extension"
CONTAINS, EXACT = StringMatch.CONTAINS, StringMatch.EXACT

_MALE = token("gender", "male")

STAYS_FOUND: tuple[tuple[str, tuple[Criterion, ...], tuple[int, ...]], ...] = (
    ("visit number", (token("identifier", "V1"),), (1,)),
    ("visit number, other case", (token("identifier", "v1"),), (2,)),
    ("visit number, part of it", (token("identifier", "V"),), ()),
    ("visit number, zeros count", (token("identifier", "123"),), (73,)),
    ("visit number in all systems", (token("identifier", "000123"),), (72, 71, 70)),
    ("visit number in one", (token("identifier", f"{H1}|000123"),), (70,)),
    ("visit number in none", (token("identifier", "|000123"),), (72,)),
    ("visit number in none, ''", (token("identifier", "|123"),), (73,)),
    ("visit number in an unknown one", (token("identifier", "urn:x|000123"),), ()),
    (
        "any visit number of a system",
        (token("identifier", f"{VISIT_SYSTEMS['H2']}|"),),
        (71,),
    ),
    ("several visit numbers", (token("identifier", "V1", "A_B"),), (75, 1)),
    ("per cent", (token("identifier", "%"), token("identifier", "100%")), ()),
    ("a % is a letter", (token("identifier", "100%"),), (74,)),
    ("a _ is a letter", (token("identifier", "A_B"),), (75,)),
    ("a \\ is a letter", (token("identifier", "A\\B"),), (77,)),
    ("a quote is a letter", (token("identifier", "O'B"),), (78,)),
    ("quotes are letters", (token("identifier", '"'),), (79,)),
    ("no placeholder", (token("identifier", ":v0", "?"),), (81, 80)),
    ("no empty number", (token("identifier", "|"),), (73, 72)),
    ("functional unit", (token(EXTENSION, "0123"),), (6,)),
    ("functional unit without zeros", (token(EXTENSION, "123"),), (7,)),
    ("functional unit with accent", (token(EXTENSION, "É"),), (76,)),
    ("functional unit, %", (token(EXTENSION, "%"),), (74,)),
    ("functional unit, _", (token(EXTENSION, "_"),), (75,)),
    ("class", (token("class", "REC"),), (27,)),
    ("class of several codes", (token("class", "IMP"), patient("4")), (60,)),
    ("otherwise", (token("class", "UNK"),), (64, 63, 62, 61)),
    ("class in other case", (token("class", "amb"),), ()),
    ("a source's code is no class", (token("class", "HC", "URG"),), ()),
    ("status", (token("status", "in-progress"),), (65, 22)),
    ("hidden is no status", (token("status", "hidden", "removed"),), ()),
    ("a source's code is no status", (token("status", "A", "X", "Z", "S"),), ()),
    (
        "half a second before midnight",
        (dates("ge2024-03-13T23:59:59.5+01:00"), dates("lt2024-03-14T00:00+01:00")),
        (6,),
    ),
    (
        "a microsecond after midnight",
        (
            dates("gt2024-03-14T00:00:00.000000+01:00"),
            dates("lt2024-03-14T00:01+01:00"),
        ),
        (7,),
    ),
    ("the last microsecond", (dates("2024-03-14T23:59:59.999999+01:00"),), (5,)),
    ("merged patient", (patient("7"),), (91, 90)),
    ("survivor", (patient("8"),), (91, 90)),
    ("both", (patient("7", "8"),), (91, 90)),
    ("no such patient", (patient("999"),), ()),
    ("a patient is no id in a url", (patient("Patient/8"),), ()),
    ("one patient and, no other", (patient("8"), patient("2")), ()),
    ("one patient or another", (patient("8", "2"),), (91, 90, 42, 27)),
    ("_id twice is and", (token("_id", "1"), token("_id", "2")), ()),
    ("no values", (TokenCriterion("_id", ()),), ()),
    ("no values of dates", (dates(),), ()),
    ("no values of patients", (patient(), token("_id", "1")), ()),
)
"""Numbers of stays in the order newest first; ids of patients by number."""


PATIENTS_FOUND: tuple[tuple[str, tuple[Criterion, ...], tuple[int, ...]], ...] = (
    ("family", (text("family", "martin"),), (1, 3)),
    ("family in capitals, cut", (text("family", "MART"),), (1, 3)),
    ("family with accent for none", (text("family", "mârtin"),), (1, 3)),
    ("family without accent for one", (text("family", "dupres"),), (1,)),
    ("inside a word", (text("family", "artin"),), ()),
    ("inside a word, contains", (text("family", "artin", match=CONTAINS),), (1, 3)),
    ("a later word", (text("family", "tour"),), (2,)),
    ("a phrase", (text("family", "de la tour"),), (2,)),
    ("a phrase, cut", (text("family", "la to"),), (2,)),
    ("words in another order", (text("family", "tour la"),), ()),
    ("run together", (text("family", "latour"),), (3,)),
    ("apostrophe", (text("family", "brien"),), (4,)),
    ("other apostrophe", (text("family", "l'hermite"),), (4,)),
    ("blank for apostrophe", (text("family", "l hermite"),), (4,)),
    ("ligature", (text("family", "boeuf"),), (5,)),
    ("ligature asked for", (text("family", "BŒUF"),), (5,)),
    ("sharp s", (text("family", "strauss"),), (5,)),
    ("hyphen", (text("family", "jean"),), (9,)),
    ("blank for hyphen", (text("family", "saint jean"),), (9,)),
    ("hyphen for blank", (text("family", "la-tour"),), (2,)),
    ("tilde", (text("family", "nunez"),), (9,)),
    ("stroke", (text("given", "lukasz"),), (9,)),
    ("diaeresis in two characters", (text("given", "zoé"),), (4,)),
    ("ligature in capitals", (text("given", "oedipe"),), (5,)),
    ("given, second", (text("given", "paul"),), (1, 7, 8)),
    ("given, both", (text("given", "jean paul"),), (1,)),
    ("given is not family", (text("given", "martin"),), ()),
    ("name is either", (text("name", "jean"),), (1, 9)),
    ("name, one of several", (text("name", "nunez", "zoe"),), (4, 9)),
    ("name, all of several", (text("name", "martin"), text("name", "jean")), (1,)),
    ("per cent", (text("name", "%"),), ()),
    ("per cent in it", (text("name", "100%"),), (6,)),
    ("underscore", (text("name", "_"),), ()),
    ("underscore in it", (text("name", "a_b"),), (6,)),
    ("underscore, no wildcard", (text("name", "m_rtin"),), ()),
    ("backslash", (text("name", "back\\"),), (6,)),
    ("escape character", (text("name", "ping !", "m!0"),), (13,)),
    ("escape character, no wildcard", (text("name", "!%", "m!!", "m!_"),), ()),
    ("quote in SQL", (text("name", "' OR 1=1 --"),), ()),
    ("nothing but a hyphen", (text("name", "-", match=CONTAINS),), ()),
    ("nothing but a blank", (text("name", " "),), ()),
    ("no character", (text("name", "\x00", "mar\x00tin", "\ud83d"),), ()),
    ("exact", (text("family", "Martin", match=EXACT),), (1,)),
    ("exact, capitals", (text("family", "MARTIN", match=EXACT),), (3,)),
    ("exact, part", (text("family", "Mart", match=EXACT),), ()),
    ("exact, without accent", (text("family", "Dupres", match=EXACT),), ()),
    ("exact, with accent", (text("family", "Duprès", match=EXACT),), (1,)),
    ("exact, one of a phrase", (text("family", "Jones", match=EXACT),), ()),
    ("exact, wildcard", (text("family", "%", "_", match=EXACT),), ()),
    ("contains, over a blank", (text("family", "e la t", match=CONTAINS),), (2,)),
    ("contains, two words", (text("name", "th jo", match=CONTAINS),), (12,)),
    ("gender", (token("gender", "male"),), (1, 7, 8, 9)),
    ("gender, otherwise", (token("gender", "unknown"), text("name", "b")), (5, 4, 6)),
    ("a source's code is no gender", (token("gender", "1"),), ()),
    ("day of birth", (dates("1950-02-28", parameter="birthdate"),), (1,)),
    ("day of birth, not", (dates("ne1950", parameter="birthdate"), _MALE), (7, 8, 9)),
    ("year of birth", (dates("1950", parameter="birthdate"),), (1, 2)),
    ("month of birth", (dates("1950-02", parameter="birthdate"),), (1,)),
    ("born after", (dates("gt1999-12-31", parameter="birthdate"),), (3, 5)),
    ("born from", (dates("ge1999-12-31", parameter="birthdate"),), (3, 4, 5)),
    ("born before", (dates("lt1950-03-01", parameter="birthdate"),), (1,)),
    ("born up to", (dates("le1950-03-01", parameter="birthdate"),), (1, 2)),
    ("born in one of", (dates("1950", "2000-02", parameter="birthdate"),), (1, 2, 3)),
    ("number, any system", (token("identifier", "0042"),), (12, LARGEST_ID)),
    ("number, one system", (token("identifier", "urn:oid:1.2.3|0042"),), (12,)),
    ("number, zeros count", (token("identifier", "42", "00042"),), ()),
    ("number, case counts", (token("identifier", "abc"),), (LARGEST_ID,)),
    ("number of another's system", (token("identifier", "urn:oid:1.2.3|AbC"),), ()),
    ("number without system", (token("identifier", "|7"),), (12,)),
    ("any number of a system", (token("identifier", "urn:oid:1.2.3|"),), (12,)),
    ("own number", (token("identifier", f"{IPP_SYSTEM}|1"),), (1,)),
    ("a merged patient is there", (token("_id", "7"),), (7,)),
)  # fmt: skip
"""Numbers of patients, in any order."""


ORGANIZATIONS_FOUND: tuple[tuple[str, Criterion, tuple[str, ...]], ...] = (
    ("name", text("name", "hopital"), ("H1", "h2")),
    ("name after apostrophe", text("name", "ile"), ("H1",)),
    ("name with ligature", text("name", "coeur"), ("H2",)),
    ("name with %", text("name", "100%"), ("H-3.b",)),
    ("exact", text("name", "HOPITAL DU NORD", match=EXACT), ("h2",)),
    ("id", token("_id", "H1", "042"), ("042", "H1")),
    ("id in other case", token("_id", "H-3.B"), ()),
    ("number", token("identifier", "0042"), ("042",)),
    ("empty number", token("identifier", "urn:oid:1.2.250.1.71.4.2.2|"), ("042", "H1", "H2",)),
)  # fmt: skip


SOME: tuple[Criterion, ...] = (
    dates("ge2024-03-14"),
    dates("lt2024-06-02"),
    dates("ne2024-03-14"),
    dates("2024-03-14", "2024-06"),
    token("status", "finished"),
    token("status", "planned", "in-progress"),
    token("class", "IMP", "AMB"),
    token("class", "UNK", "EMER"),
    token("identifier", "V1", "000123", "Z1"),
    token("identifier", f"{H1}|"),
    token(EXTENSION, "0123", "123"),
    patient("5", "6", "7"),
    patient("1", "2"),
    token("_id", "1", "2", "12", "37", "90"),
)
