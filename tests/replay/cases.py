"""What is asked of each deployment: every case has a name that stays."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import product
from urllib.parse import quote_plus
from zlib import crc32

from tests.replay import tokens
from tests.replay.hospital import LARGEST_ID

MOST_PAGES = 200
_LONGEST_NAME = 90
BASE = "https://encounters.example.org/fhir/v3"
UNIT = "https://example.org/fhir/StructureDefinition/functional-unit"
H1, H2 = "urn:oid:1.2.250.1.999.1.1", "urn:oid:1.2.250.1.999.1.2"
ACT_CODE = "http://hl7.org/fhir/v3/ActCode"
STATUS = "http://hl7.org/fhir/encounter-status"
GENDER = "http://hl7.org/fhir/administrative-gender"
IPP = "urn:oid:1.2.250.1.999.2"
AWAY = ("redis-away", "keys-away", "database-away", "http-failing", "http-nonsense")
LENIENT = (("Prefer", "handling=lenient"),)
TOO_LARGE = 2**63


@dataclass(frozen=True, slots=True)
class Ask:
    """One request; `follow` is a link of an earlier answer, `edit` what is done to it.

    A header may say `{ETag}`: the value of that header of the answer `of`.
    """

    method: str = "GET"
    target: str = ""
    form: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    client: str = "client-1"
    base: str = ""
    peer: str = ""
    follow: str = ""
    of: int = -1
    edit: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """Requests one after the other; `walk` goes on by `next`, then back by `previous`."""

    name: str
    asks: tuple[Ask, ...]
    walk: bool = False
    is_counted: bool = False

    @property
    def group(self) -> str:
        """Return what it is about, as the first words of its name tell."""
        found = re.match(r"[\w-]+( [\w.-]+)?", self.name)
        return found[0] if found else self.name


def _pairs(text: str) -> str:
    """Return `a=b&c=d` with its values encoded, when they are written plainly."""
    pairs = (pair.partition("=") for pair in text.split("&"))
    return "&".join(f"{name}={quote_plus(value)}" for name, _, value in pairs)


def _post(kind: str, text: str, **more: object) -> Ask:
    return replace(Ask("POST", f"{kind}/_search", _pairs(text)), **more)  # type: ignore[arg-type]


def _get(target: str, **more: object) -> Ask:
    return replace(Ask("GET", target), **more)  # type: ignore[arg-type]


def _searches(kind: str, texts: Iterable[str]) -> Iterator[Case]:
    """Yield searches by POST, and one in four by GET too."""
    for text in texts:
        asks = [_post(kind, text)]
        if crc32(text.encode()) % 4 == 0:
            asks.append(_get(f"{kind}?{_pairs(text)}"))
        yield Case(f"{kind} {text}", tuple(asks))


def _gets(texts: Iterable[str], **more: object) -> Iterator[Case]:
    for text in texts:
        yield Case(f"GET {text}", (_get(text, **more),))


# -------------------------------------------------------------------- searches

_DATES = (
    "2024",
    "2024-03",
    "2024-03-14",
    "2024-03-14T08:15",
    "2024-03-14T08:15:00",
    "2024-03-14T07:15:00Z",
    "2024-03-14T08:15:00+01:00",
    "2024-03-14T23:59:59.999999",
)
_PREFIXES = ("", "eq", "ne", "gt", "ge", "lt", "le")
_MORE_DATES = (
    "date=2024-10-27T02:30",
    "date=2024-10-27T02:30:00+01:00",
    "date=2024-10-27T02:30:00+02:00",
    "date=2024-03-31T02:30",
    "date=ge2024-03-31T02:30&date=lt2024-03-31T03:30",
    "date=ge2024-03-14&date=lt2024-03-15",
    "date=2024-03-14,2024-03-15",
    "date=ge2024-03-14,lt2000&date=ne2024-03-15",
    "date=2024-02-29",
    "date=0001-01-01",
    "date=9999-12-31",
    "date=le9999-12-31T23:59:59Z",
    "date=2024-03-14T00:00:00.000001",
    "date=2024-03-14T08:15-00:00",
    "date=2024-03-13T23:59:59.5",
)
_BAD_DATES = (
    "date=2024-13-01",
    "date=2023-02-29",
    "date=2024-3-1",
    "date=20240314",
    "date=14/03/2024",
    "date=2024-03-14T08",
    "date=2024-03-14T25:00",
    "date=2024-03-14T08:15:61",
    "date=2024-03-14T08:15+25:00",
    "date=2024-03-14 08:15",
    "date=sa2024",
    "date=eb2024",
    "date=ap2024",
    "date=xx2024",
    "date=GE2024",
    "date=",
    "date=ge",
    "date=2024,",
    "date=0000-01-01",
    "date=10000-01-01",
    "date=" + ",".join(["2024"] * 11),
    "&".join(["date=ge2024"] * 11),
    "&".join(["date=ge2000,ge2001"] * 5),
)

ENCOUNTERS = (
    "_count=10",
    *(f"date={p}{d}&_count=100&_sort=date" for p, d in product(_PREFIXES, _DATES)),
    *(f"{text}&_count=50" for text in _MORE_DATES),
    *_BAD_DATES,
    # patient
    *(
        f"patient={value}&_count=100"
        for value in (
            "4",
            "Patient/4",
            f"{BASE}/Patient/4",
            "Patient/4,Patient/3",
            "999,Patient/4",
            "7",
            "8",
            "7,8",
            "5",
            "6",
            "abc",
            "01",
            "-1",
            str(LARGEST_ID),
            str(TOO_LARGE),
            "987654",
            "https://other.example.org/fhir/v3/Patient/4",
            f"{BASE}0/Patient/4",
            f"{BASE}/Encounter/4",
            "Encounter/60",
            "urn:uuid:c757873d-ec9a-4326-a141-556f43239520",
            "patient/4",
            "/4",
            "Patient/",
            "Patient/4/",
            "Patient/4/_history/1",
            "",
            "4,",
        )
    ),
    "patient=4&patient=3",
    "patient=4&patient=Patient/4",
    "patient:Patient=4",
    "patient.name=martin",
    "patient:missing=true",
    # identifier
    *(
        f"identifier={value}&_count=100"
        for value in (
            "000123",
            f"{H1}|000123",
            f"{H2}|000123",
            "|000123",
            f"{H2}|",
            "urn:oid:1.2.3|000123",
            f"{H1}|000123,{H2}|000123",
            "123",
            "00012",
            "V1",
            "v1",
            "V1,v1,V2",
            "A_B",
            "100%",
            "%",
            "O'B",
            '"',
            ":v0",
            " V1",
            "V1 ",
            "A\\,B",
            "A,B",
            "A\\\\B",
            "A\\B",
            "a\\|b",
            "A\\$B",
            "\x00",
            "|",
            "",
            "a|b|c",
            "Z1",
            "W001",
        )
    ),
    "identifier=000123&identifier=123",
    "identifier:of-type=x",
    "identifier:exact=V1",
    # status, class
    *(
        f"status={value}&_count=20&_sort=date"
        for value in (
            "planned",
            "in-progress",
            "finished",
            "planned,in-progress",
            f"{STATUS}|in-progress",
            f"{STATUS}|",
            "http://example.org|in-progress",
            "|in-progress",
            "arrived",
            "cancelled",
            "hidden",
            "removed",
            "Finished",
            "finished,arrived",
            "",
        )
    ),
    "status=planned&status=finished",
    "status:not=finished",
    "status:text=x",
    *(
        f"class={value}&_count=20&_sort=date"
        for value in (
            "EMER",
            "IMP",
            "PRENC",
            "AMB",
            "REC",
            "UNK",
            "EMER,AMB",
            f"{ACT_CODE}|REC",
            "http://example.org|REC",
            "|REC",
            "emer",
            "XXX",
            "",
        )
    ),
    "class=IMP&class=EMER",
    "class:not=IMP",
    # functional unit
    *(
        f"service-provider._extension={value}&_count=50"
        for value in (
            f"{UNIT}|0123",
            f"{UNIT}|123",
            f"{UNIT}|0123 A",
            f"{UNIT}|É",
            f"{UNIT}|e",
            f"{UNIT}|_",
            f"{UNIT}|%",
            f"{UNIT}|'",
            f"{UNIT}|:v0",
            f"{UNIT}|a\\|b",
            f"{UNIT}|a\\,b",
            f"{UNIT}|0123,{UNIT}|123",
            f"{UNIT}|",
            "|0123",
            "0123",
            "https://example.org/other|0123",
            "",
        )
    ),
    "service-provider=H1",
    "service-provider:Organization._extension=x",
    # _id
    *(
        f"_id={value}"
        for value in (
            "1",
            "1,2,3",
            "1,1",
            "3,2,1",
            "abc",
            "01",
            "1.0",
            "-1",
            str(LARGEST_ID),
            str(TOO_LARGE),
            "9" * 64,
            "9" * 65,
            "37",
            "1,37,40,50,51",
            "50",
            "51",
            "Encounter/1",
            "",
            "1,",
            "a b",
            "1,2,3,4,5,6,7,8,9,10",
            "1,2,3,4,5,6,7,8,9,10,11",
        )
    ),
    "_id=1&_id=2",
    "_id=1&_id=1,2",
    "&".join(["_id=1"] * 11),
    "_id:exact=1",
    # combinations
    "patient=20&status=planned&class=SEA",
    "patient=20&status=planned&class=REC&_count=30",
    "patient=20&date=ge2023-05-02&date=lt2023-05-03&class=EMER,AMB&_sort=date",
    f"patient=20&identifier={H1}|W002,{H2}|W003&_sort=_lastUpdated",
    "_id=1000,1001,1002&status=finished,planned&_sort=-_lastUpdated",
    # faulty rows
    "identifier=Z1",
    "identifier=Z9",
    "date=2024-03-14T10:00&_count=20",
    "patient=3&_sort=date&_count=3",
    "patient=1&_sort=_lastUpdated&_count=100",
    "patient=1&_sort=-_lastUpdated&_count=100",
    # sort
    *(
        f"patient=1&_count=100&_sort={value}"
        for value in ("date", "-date", "_lastUpdated", "-_lastUpdated")
    ),
    *(
        f"_sort={value}"
        for value in (
            "",
            "status",
            "_id",
            "date,_lastUpdated",
            "--date",
            "Date",
            "-",
            "+date",
        )
    ),
    "_sort=date&_sort=-date",
    "_sort:desc=date",
    # count
    *(
        f"patient=20&_count={value}"
        for value in (
            *("1", "100", "101", "500", "0", "-1", "1.5", "ten", "", " 5", "+5", "05"),
            *("1,2", "9" * 30, "٣"),
        )
    ),
    "patient=20&_count=5&_count=6",
    "patient=20&_count=5&_count=5",
    # shape of the answer
    *(
        f"patient=4&{text}"
        for text in (
            "_total=none",
            "_total=accurate",
            "_total=estimate",
            "_total=x",
            "_summary=true",
            "_summary=false",
            "_summary=data",
            "_summary=text",
            "_summary=count",
            "_summary=x",
            "_summary=",
            "_summary=true&_summary=count",
            "_elements=status",
            "_elements=status,period",
            "_elements=Encounter.status",
            "_elements=class,subject,nonsense",
            "_elements=",
            "_elements=id",
            "_elements=status&_summary=true",
            "_elements=serviceProvider&_elements=identifier",
            "_pretty=true",
            "_pretty=false",
            "_pretty=x",
            "_format=json",
            "_format=application/json",
            "_format=application/fhir+json",
            "_format=application/fhir+json;fhirVersion=3.0",
            "_format=application/fhir+json; fhirVersion=4.0",
            "_format=xml",
            "_format=application/fhir+xml",
            "_format=html",
            "_format=",
            "_format=json&_format=xml",
        )
    ),
    # not offered
    "length=3",
    "nonsense=1",
    "_lastUpdated=ge2024",
    "_include=Encounter:patient",
    "_tag=a",
    "_text=a",
    "_revinclude=x",
    "_has:Patient=1",
    "_content=x",
    "_query=x",
    "_filter=x",
    "_contained=true",
    "location=1",
    "type=x",
    "participant=1",
    "practitioner=1",
    "_index=1",
    "_searchAfter=x",
    "Date=2024",
    "DATE=2024",
    "subject=Patient/4",
    "_getpages=x",
    "_offset=1",
    "_profile=x",
    "_security=x",
    "=x",
    "access_token=secret-text",
    "status=finished&access_token=secret-text",
    "&".join(["status=planned"] * 51),
    "&".join(["status=planned,finished"] * 40) + "&patient=1",
    "patient=" + ",".join(map(str, range(100))),
    "patient=" + ",".join(map(str, range(101))),
    "identifier=" + ",".join(map(str, range(101))),
)

PATIENTS = (
    "",
    "_count=10",
    *(
        f"name={value}"
        for value in (
            "martin",
            "MARTIN",
            "mart",
            "artin",
            "dupres",
            "duprès",
            "latour",
            "tour",
            "la tour",
            "de la",
            "boeuf",
            "bœuf",
            "strauss",
            "zoé",
            "zoe",
            "eleonore",
            "hermite",
            "l'hermite",
            "obrien",
            "jean",
            "lukasz",
            "nunez",
            "100%",
            "%",
            "_",
            "A_B",
            "a\\\\b",
            "ping !",
            "!",
            "smith jones",
            "martin,latour",
            "x\x00",
            "",
            " ",
            "nobody",
            "foule",
        )
    ),
    "name=martin&name=jean",
    "name=commun&_count=100",
    "family=martin",
    "family=jean",
    "family:exact=Martin",
    "family:exact=martin",
    "family:exact=MARTIN",
    "family:contains=tour",
    "family:contains=ART",
    "given=paul",
    "given=zoe",
    "given:exact=Paul",
    "given:exact=Jean Paul",
    "given:contains=ean",
    "name:exact=Duprès",
    "name:exact=Dupres",
    "name:contains=rien",
    "name:contains=%",
    "name:missing=true",
    "name:text=x",
    "name:=x",
    "family=commun&given=anne&gender=male",
    *(
        f"birthdate={value}&_count=50"
        for value in (
            "1950",
            "1950-02",
            "1950-02-28",
            "ne1950-02-28",
            "gt1999-12-31",
            "ge1999-12-31",
            "lt1960",
            "le1950-02-28",
            "eq2000-02-29",
            "ge1960&birthdate=lt1970",
            "1950,2000",
            "0001",
            "9999-12-31",
            "1950-02-30",
            "1950-02-28T10:00",
            "sa1950",
            "ap1950",
            "",
        )
    ),
    *(
        f"gender={value}"
        for value in (
            "male",
            "female",
            "other",
            "unknown",
            "male,female",
            f"{GENDER}|female",
            "urn:oid:1.2|female",
            f"{GENDER}|",
            "|male",
            "M",
            "",
        )
    ),
    *(
        f"identifier={value}"
        for value in (
            "0042",
            "urn:oid:1.2.3|0042",
            "urn:oid:1.2.4|0042",
            "urn:oid:1.2.4|abc",
            "urn:oid:1.2.4|AbC",
            "urn:oid:1.2.4|",
            "|7",
            "7",
            f"{IPP}|12",
            f"{IPP}|",
            "12",
            "42",
            "",
        )
    ),
    *(
        f"_id={value}"
        for value in (
            "1",
            "1,2,3",
            "7,8",
            "abc",
            str(LARGEST_ID),
            str(TOO_LARGE),
            "",
            "1,2,3,4,5,6,7,8,9,10,11",
        )
    ),
    "_id=1&_id=2",
    *(
        f"name=commun&_sort={v}"
        for v in ("_id", "-_id", "_lastUpdated", "name", "date")
    ),
    "name=commun&_sort=-_lastUpdated&_count=100",
    "name=commun&_count=0",
    "name=commun&_count=101",
    "_id=12&_elements=name",
    "_id=12&_summary=true",
    "_id=12&_summary=data",
    "_id=12&_summary=text",
    "name=commun&_summary=count",
    "_id=12&_total=none",
    "active=true",
    "phone=1",
    "_lastUpdated=ge2020",
    "address=x",
    "organization=H1",
    "_sort=_id",
)

ORGANIZATIONS = (
    "",
    *("_count=5", "_count=100", "_count=101", "_count=0"),
    *(
        f"name={value}"
        for value in (
            "hopital",
            "HÔPITAL",
            "ile",
            "clinique",
            "coeur",
            "100%",
            "maison",
            "x",
            "",
        )
    ),
    "name:exact=Clinique 42",
    "name:exact=clinique 42",
    "name:contains=int",
    *(
        f"identifier={value}"
        for value in (
            "750000001",
            "0042",
            "urn:oid:1.2.250.1.71.4.2.2|750000002",
            "x",
            "",
        )
    ),
    *(
        f"_id={value}"
        for value in ("H1", "H1,H2,h2", "h1", "042", "42", "43", "H-3.b", "")
    ),
    *(f"_count=50&_sort={v}" for v in ("_id", "-_id", "_lastUpdated", "-_lastUpdated")),
    "_sort=name",
    "_id=H1&_summary=true",
    "_id=H1&_elements=name",
    "_summary=count",
    "address=x",
    "partof=H1",
    "_lastUpdated=ge2020",
)

LENIENT_SEARCHES = (
    "length=3&patient=4",
    "length=3&nonsense=1&patient=4",
    "patient=4&_count=500",
    "patient=4&_count=0",
    "patient=4&_count=x",
    "patient=4&_sort=status",
    "patient=4&status:not=finished",
    "patient=4&date=2024-13-01",
    "patient=4&_include=Encounter:patient",
    "patient=4&access_token=secret-text",
    "patient=4&_total=none",
    "patient=4&_lastUpdated=ge2024",
    "patient=3&_count=1&length=3",
    "length=3&_summary=count",
)


def _lenient() -> Iterator[Case]:
    for text in LENIENT_SEARCHES:
        yield Case(f"lenient {text}", (_post("Encounter", text, headers=LENIENT),))
    yield Case(
        "lenient Patient without a criterion",
        (_post("Patient", "nonsense=1", headers=LENIENT),),
    )
    for prefer in (
        "handling=strict",
        "handling=lenient, return=minimal",
        "HANDLING=LENIENT",
        "return=minimal",
        "handling=other",
    ):
        headers = (("Prefer", prefer),)
        ask = _post("Encounter", "length=3&patient=4", headers=headers)
        yield Case(f"Prefer: {prefer}", (ask,))


def _forms() -> Iterator[Case]:
    """Yield requests that differ in how parameters are sent."""
    for name, ask in {
        "query and form": Ask("POST", "Encounter/_search?status=finished", "patient=4"),
        "query and form repeat": Ask("POST", "Encounter/_search?_id=60", "_id=61"),
        "query alone": Ask("POST", "Encounter/_search?patient=4", ""),
        "no body": Ask("POST", "Encounter/_search?patient=4"),
        "nothing at all": Ask("POST", "Encounter/_search", ""),
        "GET of _search": Ask("GET", "Encounter/_search?patient=4"),
        "charset": Ask(
            "POST",
            "Encounter/_search",
            "patient=4",
            (("Content-Type", "application/x-www-form-urlencoded; charset=UTF-8"),),
        ),
        "other charset": Ask(
            "POST",
            "Encounter/_search",
            "patient=4",
            (("Content-Type", "application/x-www-form-urlencoded; charset=latin-1"),),
        ),
        "json": Ask(
            "POST", "Encounter/_search", "{}", (("Content-Type", "application/json"),)
        ),
        "multipart": Ask(
            "POST",
            "Encounter/_search",
            "x",
            (("Content-Type", "multipart/form-data; boundary=x"),),
        ),
        "text": Ask(
            "POST", "Encounter/_search", "patient=4", (("Content-Type", "text/plain"),)
        ),
        "no content type": Ask(
            "POST", "Encounter/_search", "patient=4", (("Content-Type", ""),)
        ),
        "get with a body": Ask("GET", "Encounter?patient=4", "status=planned"),
        "get of one with a body": Ask("GET", "Encounter/1", "status=planned"),
        "get with the type of a body": Ask(
            "GET", "Encounter/1", None, (("Content-Type", "application/fhir+json"),)
        ),
        "plus in a timestamp": Ask("GET", "Encounter?date=2024-03-14T08:15+01:00"),
        "plus encoded": Ask("GET", "Encounter?date=2024-03-14T08:15%2B01:00"),
        "name encoded": Ask("GET", "Encounter?%70atient=4"),
        "semicolon": Ask("GET", "Encounter?patient=4;status=finished"),
        "no value": Ask("GET", "Encounter?patient"),
        "empty pair": Ask("GET", "Encounter?patient=4&&status=finished&"),
        "not UTF-8": Ask("GET", "Encounter?patient=%ff"),
        "not UTF-8 in a form": Ask("POST", "Encounter/_search", "patient=%ff"),
        "half an escape": Ask("GET", "Encounter?patient=%4"),
        "control character": Ask("GET", "Encounter?patient=%0a4"),
        "question mark alone": Ask("GET", "Encounter?"),
        "too long a body": Ask("POST", "Encounter/_search", "patient=" + "1" * 70000),
        "long address": Ask("GET", "Encounter?patient=" + "1" * 3000),
        "escaped backslash": Ask("GET", "Encounter?identifier=A%5C%5CB"),
        "escape at the end": Ask("GET", "Encounter?identifier=A%5C"),
        "unknown escape": Ask("GET", "Encounter?identifier=A%5CB"),
        "search of another type": Ask("POST", "Observation/_search", "patient=4"),
        "search of Bundle": Ask("POST", "Bundle/_search", "_id=x"),
        "system search": Ask("GET", "?_id=1"),
        "system search by POST": Ask("POST", "_search", "_id=1"),
        "compartment": Ask("GET", "Patient/4/Encounter"),
        "everything": Ask("GET", "Patient/4/$everything"),
    }.items():
        yield Case(f"form: {name}", (ask,))


READS = (
    *(
        f"Encounter/{id}"
        for id in (
            *range(1, 10),
            *(*range(22, 44), 50, 51, 52),
            *(60, 61, 62, 63, 64, 65, 70, 71, 72, 73, 76, 81, 82, 90, 91, 92, 93),
            *(
                LARGEST_ID,
                TOO_LARGE,
                "987654",
                "abc",
                "01",
                "1.0",
                "-1",
                "1.",
                "9" * 64,
            ),
            *("9" * 65, "a_b", "a%20b", "%C3%A9", "1%2F2", "_search", "$validate"),
        )
    ),
    *(f"Patient/{id}" for id in (*range(1, 15), 20, 100, LARGEST_ID, "x", "01")),
    *(
        f"Organization/{id}"
        for id in ("H1", "H2", "h2", "H-3.b", "042", "42", "43", "x")
    ),
    "Encounter/1/",
    "Encounter//1",
    "/fhir/v3/encounter/1",
    "Encounter/1/_history",
    "Encounter/1/_history/1",
    "Encounter/_history",
    "_history",
    "Observation",
    "Observation/1",
    "Practitioner/1",
    "Nonsense/1",
    "/fhir/v4/Encounter/1",
    "/",
    "/fhir",
    "/fhir/v3",
    "/fhir/v3/",
    "/favicon.ico",
    "/live",
    "/ready",
    "/metrics",
    "metadata/",
    "Metadata",
    "Binary/1",
    "Encounter/1?nonsense=1",
    "Encounter/1?patient=4",
    "Encounter/1?_pretty=true",
    "Encounter/1?_pretty=x",
    "Encounter/60?_summary=true",
    "Encounter/60?_summary=data",
    "Encounter/60?_summary=text",
    "Encounter/60?_summary=count",
    "Encounter/60?_summary=x",
    "Encounter/60?_elements=status",
    "Encounter/60?_elements=status,period",
    "Encounter/60?_elements=",
    "Encounter/60?_format=json",
    "Encounter/60?_format=xml",
    "Encounter/987654?_pretty=true",
    "Encounter/60?access_token=abc",
    "Encounter/60?_count=1",
    "Patient/12?_elements=name",
    "Patient/12?_summary=true",
    "Patient/7?_summary=text",
    "Organization/H1?_elements=name",
    "Organization/H1?_summary=true",
    "Bundle",
    "Bundle/abc",
    "Bundle?_id=",
    "Bundle?_id=x",
    "Bundle?_id=X_Y",
    "Bundle?nonsense=1",
    "Bundle?_id=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "Bundle?_id=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa&_index=2",
    "Bundle?_index=2&_searchAfter=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
)


def _headers() -> Iterator[Case]:
    for target, accept in product(
        ("Encounter/1", "Encounter?patient=4", "metadata", "Encounter/987654"),
        (
            "application/fhir+json",
            "application/json",
            "application/fhir+xml",
            "text/html",
            "*/*",
            "application/*",
            "application/fhir+xml, application/fhir+json;q=0.5",
            "application/fhir+json;q=0",
            "application/fhir+json; fhirVersion=3.0",
            "application/fhir+json; fhirVersion=4.0",
            "application/fhir+json; fhirVersion=1.0, application/json",
            "nonsense",
            "",
        ),
    ):
        yield Case(
            f"Accept: {accept} {target}", (_get(target, headers=(("Accept", accept),)),)
        )
    yield Case(
        "_format wins over Accept",
        (
            _get(
                "Encounter/1?_format=json",
                headers=(("Accept", "application/fhir+xml"),),
            ),
            _get("Encounter/1?_format=xml", headers=(("Accept", "application/json"),)),
        ),
    )
    for id in ("gateway-17.b", "x" * 64, "x" * 65, "a b", "ä", ""):
        headers = (("X-Request-Id", id),)
        yield Case(f"X-Request-Id: {id}", (_get("Encounter/1", headers=headers),))
    for method, target in product(
        ("HEAD", "OPTIONS", "PUT", "PATCH", "DELETE", "POST", "TRACE", "LINK"),
        (
            "Encounter",
            "Encounter/1",
            "Encounter/987654",
            "Encounter/_search",
            "Patient/1",
            "Patient",
            "Organization/H1",
            "metadata",
            "Bundle",
            "Observation/1",
            "",
        ),
    ):
        yield Case(f"{method} {target}", (Ask(method, target),))
    yield Case("HEAD of a search", (Ask("HEAD", "Encounter?patient=4"),))
    yield Case("HEAD of 410", (Ask("HEAD", "Encounter/51"),))
    yield Case("OPTIONS without a token", (Ask("OPTIONS", "Encounter/1", client=""),))
    yield Case("DELETE without a token", (Ask("DELETE", "Encounter/1", client=""),))
    cors = (
        ("Origin", "https://x.example.org"),
        ("Access-Control-Request-Method", "GET"),
    )
    yield Case("OPTIONS from a browser", (Ask("OPTIONS", "Encounter/1", headers=cors),))
    for name, text in (
        ("Expect", "the-unexpected"),
        ("Range", "bytes=0-9"),
        ("If-Match", '"abc"'),
        ("If-Match", "*"),
        ("If-Unmodified-Since", "Mon, 01 Jan 2001 00:00:00 GMT"),
        ("X-HTTP-Method-Override", "DELETE"),
        ("Accept-Encoding", "gzip"),
        ("Accept-Charset", "latin-1"),
        ("Accept-Language", "fr"),
        ("X-Forwarded-Host", "evil.example.org"),
        ("X-Forwarded-Proto", "http"),
        ("Forwarded", "host=evil.example.org;proto=http"),
        ("Host", "evil.example.org"),
        ("If-None-Exist", "identifier=1"),
    ):
        for target in ("Encounter/1", "Encounter?_id=1"):
            ask = _get(target, headers=((name, text),))
            yield Case(f"{name}: {text} {target}", (ask,))
    yield Case(
        "plain HTTP", (_get("Encounter/1", base="http://encounters.example.org"),)
    )
    yield Case(
        "plain HTTP before anything else",
        (
            Ask(
                "POST", "Nonsense", "x", client="", base="http://encounters.example.org"
            ),
        ),
    )


def _conditional() -> Iterator[Case]:
    for target in (
        "Encounter/1",
        "Encounter/23",
        "Patient/12",
        "Organization/H1",
        "metadata",
    ):
        first = _get(target)
        asks = [first]
        for name, text in (
            ("If-None-Match", "{ETag}"),
            ("If-None-Match", "W/{ETag}"),
            ("If-None-Match", '"abc", {ETag}'),
            ("If-None-Match", '"abc"'),
            ("If-None-Match", "*"),
            ("If-None-Match", "nonsense"),
            ("If-Modified-Since", "{Last-Modified}"),
            ("If-Modified-Since", "Mon, 01 Jan 2001 00:00:00 GMT"),
            ("If-Modified-Since", "Fri, 01 Jan 2100 00:00:00 GMT"),
            ("If-Modified-Since", "nonsense"),
            ("If-Match", "{ETag}"),
            ("If-Match", '"abc"'),
        ):
            asks.append(_get(target, headers=((name, text),), of=0))
        both = (("If-None-Match", '"abc"'), ("If-Modified-Since", "{Last-Modified}"))
        asks.append(_get(target, headers=both, of=0))
        asks.append(Ask("HEAD", target, headers=(("If-None-Match", "{ETag}"),), of=0))
        yield Case(f"conditional {target}", tuple(asks))
    yield Case(
        "conditional parts",
        (
            _get("Encounter/60"),
            _get("Encounter/60?_elements=status"),
            _get(
                "Encounter/60?_elements=status", headers=(("If-None-Match", "{ETag}"),)
            ),
            _get("Encounter/60", headers=(("If-None-Match", "{ETag}"),), of=1),
            _get(
                "Encounter/60?_pretty=true",
                headers=(("If-None-Match", "{ETag}"),),
                of=0,
            ),
        ),
    )
    yield Case(
        "conditional page",
        (
            _post("Encounter", "patient=3&_count=2"),
            Ask(follow="self"),
            Ask(follow="self", headers=(("If-None-Match", "{ETag}"),)),
            Ask(follow="next", of=0, headers=(("If-None-Match", "*"),)),
        ),
    )
    yield Case(
        "conditional search",
        (
            _get("Encounter?patient=3"),
            _get("Encounter?patient=3", headers=(("If-None-Match", "{ETag}"),)),
        ),
    )


def _tokens() -> Iterator[Case]:
    targets = (
        "Encounter/1",
        "Encounter?_id=1",
        "Patient/1",
        "Patient?_id=1",
        "Organization/H1",
        "Organization?_id=H1",
        "Bundle?_id=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "metadata",
        "Nonsense",
    )
    for name in ("", *tokens.ODD):
        asks = tuple(_get(target, client=name) for target in targets)
        yield Case(f"token: {name or 'none'}", asks)
    for text in (
        "",
        "Bearer",
        "Bearer ",
        "Bearer a b",
        "Bearer x.y.z",
        "Bearer abc",
        "bearer abc",
        "Basic dXM6aHVzaA==",
        "Bearer ä",
        "Bearer " + "x" * 5000,
        "Bearer eyJhbGciOiJub25lIn0.e30.",
    ):
        headers = (("Authorization", text),)
        asks = tuple(_get(t, client="", headers=headers) for t in targets[:2])
        yield Case(f"Authorization: {text[:40]}", asks)
    yield Case(
        "401 comes before what is wrong",
        (
            _get("Encounter?nonsense=1", client=""),
            _get("Encounter?_count=0", client=""),
            Ask("POST", "Encounter/_search", "{}", client=""),
            _get("Encounter/1?access_token=abc", client=""),
            _get("Encounter/987654", client=""),
            _get("Encounter/1", client="", headers=(("Accept", "text/html"),)),
        ),
    )
    yield Case(
        "403 comes before what is wrong",
        (
            _get("Encounter?nonsense=1", client="patient-read"),
            _get("Encounter?_count=0", client="patient-read"),
            _get("Encounter/987654", client="patient-read"),
            _get("Encounter/51", client="patient-read"),
            _get("Bundle", client="patient-read"),
            _get("Bundle?_id=x", client="patient-read"),
        ),
    )


def _walks(*, is_long: bool = True) -> Iterator[Case]:
    sorts = ("date", "-date", "_lastUpdated", "-_lastUpdated")
    for sort, count in product(sorts, (7, 25, 50) if is_long else (25,)):
        text = f"patient=20&_sort={sort}&_count={count}"
        yield Case(f"walk {text}", (_post("Encounter", text),), walk=True)
    for text in (
        "patient=20&status=planned&_count=9",
        "patient=5&_count=4",
        "patient=5&_count=5&_sort=date",
        "patient=3&_count=1&_sort=date",
        "patient=1&_count=6",
        "patient=1&_count=6&_sort=-_lastUpdated",
        "patient=1&_count=12&_elements=status",
        "patient=5&_count=7&_summary=true",
        "patient=5&_count=7&_format=json&_pretty=true",
        "patient=5&_count=7&_total=none",
        "patient=8&_count=1",
        "patient=5&_count=15",
        "patient=5&_count=14",
    ):
        yield Case(f"walk {text}", (_post("Encounter", text),), walk=True)
    yield Case(
        "walk by GET", (_get("Encounter?patient=4&_count=2&_sort=date"),), walk=True
    )
    lenient = _post("Encounter", "patient=3&_count=2&length=3", headers=LENIENT)
    yield Case("walk lenient", (lenient,), walk=True)
    for text in (
        "name=commun&_count=10",
        "name=commun&_count=8&_sort=-_id",
        "name=commun&_count=8&_sort=_lastUpdated",
        "name=commun&_count=8&_sort=-_lastUpdated",
    ):
        yield Case(f"walk Patient {text}", (_post("Patient", text),), walk=True)
    for text in ("_count=5", "_count=4&_sort=-_lastUpdated", "_count=7&_sort=-_id"):
        yield Case(
            f"walk Organization {text}", (_post("Organization", text),), walk=True
        )


def _pages(edits: Sequence[str]) -> Iterator[Case]:
    first = _post("Encounter", "patient=20&_count=40&_sort=date")

    def both(client: str) -> tuple[Ask, ...]:
        links = (Ask(follow=name, of=0, client=client) for name in ("self", "next"))
        return (first, *links)

    for edit in edits:
        for relation in ("self", "next") if "id" in edit or "&" in edit else ("next",):
            asks = (first, Ask(follow=relation, of=0, edit=edit))
            yield Case(f"{relation}: {edit}", asks)
    yield Case(
        "previous, changed",
        (
            first,
            Ask(follow="next"),
            Ask(follow="previous", of=1, edit="cursor flipped at the start"),
            Ask(follow="previous", of=1, edit="cursor truncated"),
            Ask(follow="previous", of=1, edit="index of another page"),
            Ask(follow="previous", of=1),
        ),
    )
    for client in ("client-2", "renewed", "azp", "sub", "nobody", ""):
        yield Case(f"page asked for by {client or 'nobody at all'}", both(client))
    for client in ("encounter-read", "patient-search", "organization-read", "no-scope"):
        yield Case(f"page asked for with {client}", both(client))
    yield Case(
        "page of patients asked for with the scope of stays",
        (
            _post("Patient", "name=commun"),
            Ask(follow="self", of=0, client="encounter-search"),
            Ask(follow="next", of=0, client="encounter-search"),
            Ask(follow="next", of=0, client="patient-search"),
        ),
    )
    yield Case(
        "one link twice leads to one page",
        (
            first,
            Ask(follow="next", of=0),
            Ask(follow="next", of=0),
            Ask(follow="self", of=1),
            Ask(follow="self", of=0),
            Ask(follow="next", of=4),
            Ask(follow="previous", of=1),
            Ask(follow="previous", of=1),
            Ask(follow="self", of=6),
            Ask(follow="next", of=6),
        ),
    )
    yield Case(
        "methods of a page",
        (
            first,
            *(
                Ask(method, follow="next", of=0)
                for method in ("HEAD", "OPTIONS", "POST", "DELETE")
            ),
        ),
    )
    accept = (("Accept", "application/fhir+xml"),)
    yield Case("page as XML", (first, Ask(follow="next", headers=accept)))
    yield Case("two searches are two pages", (first, first, Ask(follow="next", of=0)))


METADATA = (
    *_gets(("metadata",)),
    Case("metadata without a token", (_get("metadata", client=""),)),
    *_gets(
        (
            "metadata?_format=json",
            "metadata?_format=xml",
            "metadata?_pretty=true",
            "metadata?_summary=true",
            "metadata?_elements=rest",
            "metadata?nonsense=1",
            "metadata?mode=full",
        ),
        client="",
    ),
)


def _full(edits: Sequence[str]) -> Iterator[Case]:
    yield from _searches("Encounter", ENCOUNTERS)
    yield from _searches("Patient", PATIENTS)
    yield from _searches("Organization", ORGANIZATIONS)
    yield from _lenient()
    yield from _forms()
    yield from _gets(READS)
    yield from _headers()
    yield from _conditional()
    yield from _tokens()
    yield from _walks()
    yield from _pages(edits)
    yield from METADATA


_ASKED = (
    *(
        "date",
        "patient",
        "identifier",
        "status",
        "class",
        "service-provider._extension",
    ),
    *("_id", "name", "family", "given", "birthdate", "gender"),
    *("name:exact", "name:contains", "family:exact", "family:contains", "given:exact"),
)
_SHAPES = re.compile(
    "^patient=4&_|^patient=20&_count=|^(date|birthdate)=(sa|ap|eb|$|&)"
)


def _reaching(texts: Iterable[str]) -> list[str]:
    """Return the searches that a source has a hand in."""
    return [
        text
        for text in texts
        if text.partition("=")[0] in _ASKED
        and text not in _BAD_DATES
        and not _SHAPES.match(text)
    ]


def _other_database() -> Iterator[Case]:
    """Yield what a database has a hand in."""
    yield from _searches("Encounter", _reaching(ENCOUNTERS))
    yield from _searches("Patient", _reaching(PATIENTS))
    yield from _searches("Organization", _reaching(ORGANIZATIONS))
    yield from _gets(READS[:75])
    yield from _walks(is_long=False)
    yield from METADATA[:1]


def _http(edits: Sequence[str]) -> Iterator[Case]:
    yield from _searches("Encounter", ENCOUNTERS)
    yield from _searches("Patient", PATIENTS)
    yield from _searches("Organization", ORGANIZATIONS)
    yield from _lenient()
    yield from _gets(READS[:100])
    yield from _walks(is_long=False)
    yield from _pages(edits)
    yield from METADATA[:1]


def _group(edits: Sequence[str]) -> Iterator[Case]:
    for text in ENCOUNTERS:
        if text.startswith(("date=", "patient=", "_id=", "_count=")) or "|" not in text:
            yield Case(f"Encounter {text}", (_post("Encounter", text),))
    yield from _searches(
        "Encounter",
        (
            *("date=ge2024&date=lt2025", "date=2024,2023", "patient=5&_count=4"),
            *("patient=5&_count=15", "patient=20&_count=100", "patient=20"),
        ),
    )
    yield from _searches("Patient", PATIENTS)
    yield from _searches("Organization", ORGANIZATIONS[:8])
    yield from _lenient()
    yield from _gets(READS)
    yield from _conditional()
    yield from _tokens()
    yield from METADATA
    pages = _post("Encounter", "patient=20&_count=5")
    for edit in edits:
        if edit == "" or "id" in edit:
            yield Case(f"self: {edit}", (pages, Ask(follow="self", edit=edit)))
    yield Case("no page follows", (pages, Ask(follow="next")))
    yield Case(
        "self of another",
        (pages, Ask(follow="self", of=0), Ask(follow="self", of=0, client="client-2")),
    )


def _period() -> Iterator[Case]:
    dates = [t for t in ENCOUNTERS if t.startswith("date=")]
    fitting = (re.sub("_count=(100|50)", "_count=20", text) for text in dates)
    yield from _searches("Encounter", fitting)
    yield from _searches(
        "Encounter",
        [t for t in ENCOUNTERS if t.startswith(("status=", "_lastUpdated", "_sort="))],
    )
    yield from _searches(
        "Encounter", (*("patient=20&_count=20", "patient=20&_count=21", "patient=20"),)
    )
    yield from _searches("Patient", ("", "_count=20", "_sort=-_lastUpdated", "name=x"))
    yield from _gets(READS[:60])
    yield from _conditional()
    yield from METADATA[:1]
    for text in (
        "_count=20&_sort=date",
        "_count=20&_sort=-_lastUpdated",
        "status=planned",
    ):
        yield Case(f"walk {text}", (_post("Encounter", text),), walk=True)


def _strict() -> Iterator[Case]:
    plain = "http://encounters.example.org"
    vouched = (("X-Forwarded-Proto", "https"),)
    for peer, headers in product(
        ("10.1.2.3", "10.9.9.9", "127.0.0.1", "::1", ""),
        (
            (),
            vouched,
            (("X-Forwarded-Proto", "http"),),
            (("X-Forwarded-Proto", "https, http"),),
            (("X-Forwarded-Proto", "http, https"),),
            (("Forwarded", "proto=https"),),
        ),
    ):
        said = " ".join(f"{name}: {text}" for name, text in headers)
        ask = _get("Encounter/1", base=plain, peer=peer or "0.0.0.0", headers=headers)
        yield Case(f"plain HTTP from {peer} {said}", (replace(ask, client="reader"),))
    for client in ("", "client-1", "encounter-read", "no-scope", "expired"):
        asks = tuple(
            _get(target, client=client)
            for target in ("metadata", "Encounter/1", "Patient/1", "Encounter?_id=1")
        )
        yield Case(f"closed metadata: {client or 'none'}", asks)
    long = "patient=" + "1" * 2000
    yield Case("a body too long", (Ask("POST", "Encounter/_search", long),))
    yield Case(
        "a body too long without a token",
        (Ask("POST", "Encounter/_search", long, client=""),),
    )


def _away() -> Iterator[Case]:
    """Yield what is asked of a deployment without one of the systems behind it."""
    for target in (
        "Encounter/1",
        "Encounter/987654",
        "Patient/1",
        "Organization/H1",
        "Encounter?patient=4",
        "Encounter?patient=20",
        "Encounter?patient=20&_count=100",
        "Encounter?patient=4&_summary=count",
        "Encounter?_count=0",
        "Encounter?nonsense=1",
        "Patient?name=martin",
        "Organization",
        "Organization?_count=2",
        "Bundle?_id=x",
        "Bundle?_id=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "metadata",
        "Nonsense",
    ):
        yield Case(f"away: GET {target}", (_get(target),))
    yield Case("away: without a token", (_get("Encounter/1", client=""),))
    yield Case("away: a bad token", (_get("Encounter/1", client="expired"),))
    yield Case(
        "away: self of one page", (_get("Encounter?patient=4"), Ask(follow="self"))
    )


def _limited() -> Iterator[Case]:
    for name, asks in {
        "too many": [_get("Encounter/1", client="limited-1")] * 5,
        "too many of another": [_get("Patient/1", client="limited-2")] * 5,
        "too many errors": [_get("Encounter?nonsense=1", client="limited-3")] * 5,
        "metadata without a limit": [_get("metadata", client="")] * 5,
    }.items():
        yield Case(name, tuple(asks), is_counted=True)


def cases(deployment: str, edits: Sequence[str]) -> list[Case]:
    """Return the cases of a deployment; `edits` are what can be done to links."""
    made = {
        "sqlite": lambda: _full(edits),
        "postgresql": _other_database,
        "mariadb": _other_database,
        "http": lambda: _http(edits),
        "group-a": lambda: _group(edits),
        "group-b": lambda: _group(edits),
        "period": _period,
        "limited": _limited,
        "strict": _strict,
        **dict.fromkeys(AWAY, _away),
    }
    named = (replace(case, name=_name(case.name)) for case in made[deployment]())
    return list({case.name: case for case in named}.values())


def _name(text: str) -> str:
    """Return a name that can be printed, and is not too long."""
    plain = text.encode("unicode_escape").decode()
    if len(plain) <= _LONGEST_NAME:
        return plain
    return f"{plain[:_LONGEST_NAME]}… {sha256(text.encode()).hexdigest()[:6]}"
