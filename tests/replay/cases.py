"""What is asked of each deployment: every case has a name that stays."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import product
from urllib.parse import quote_plus
from zlib import crc32

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
LENIENT = (("Prefer", "handling=lenient"),)
TOO_LARGE = 2**63


@dataclass(frozen=True, slots=True)
class Ask:
    """One request; `follow` is a link of an earlier answer.

    A header may say `{ETag}`: the value of that header of the answer `of`.
    """

    method: str = "GET"
    target: str = ""
    form: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    client: str = "client-1"
    follow: str = ""
    of: int = -1


@dataclass(frozen=True, slots=True)
class Case:
    """Requests one after the other; `walk` goes on by `next`, then back by `previous`."""

    name: str
    asks: tuple[Ask, ...]
    walk: bool = False

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
ENCOUNTERS = (
    "_count=10",
    *(f"date={p}{d}&_count=100&_sort=date" for p, d in product(_PREFIXES, _DATES)),
    *(f"{text}&_count=50" for text in _MORE_DATES),
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
        f"patient=4&{text}"
        for text in (
            "_total=none",
            "_summary=true",
            "_summary=data",
            "_summary=text",
            "_summary=count",
            "_elements=status,period",
            "_pretty=true",
        )
    ),
    "patient=" + ",".join(map(str, range(100))),
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


def _pages() -> Iterator[Case]:
    first = _post("Encounter", "patient=20&_count=40&_sort=date")
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


def _full() -> Iterator[Case]:
    yield from _searches("Encounter", ENCOUNTERS)
    yield from _searches("Patient", PATIENTS)
    yield from _searches("Organization", ORGANIZATIONS)
    yield from _gets(READS)
    yield from _conditional()
    yield from _walks()
    yield from _pages()
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


def _reaching(texts: Iterable[str]) -> list[str]:
    """Return the searches that a source has a hand in."""
    return [
        text
        for text in texts
        if text.partition("=")[0] in _ASKED and not text.startswith("patient=4&_")
    ]


def _other_database() -> Iterator[Case]:
    """Yield what a database has a hand in."""
    yield from _searches("Encounter", _reaching(ENCOUNTERS))
    yield from _searches("Patient", _reaching(PATIENTS))
    yield from _searches("Organization", _reaching(ORGANIZATIONS))
    yield from _gets(READS[:75])
    yield from _walks(is_long=False)
    yield from METADATA[:1]


def _http() -> Iterator[Case]:
    yield from _searches("Encounter", ENCOUNTERS)
    yield from _searches("Patient", PATIENTS)
    yield from _searches("Organization", ORGANIZATIONS)
    yield from _gets(READS[:100])
    yield from _walks(is_long=False)
    yield from _pages()
    yield from METADATA[:1]


def _group() -> Iterator[Case]:
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
    yield from _gets(READS)
    yield from _conditional()
    yield from METADATA
    pages = _post("Encounter", "patient=20&_count=5")
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


_CASES = {
    "sqlite": _full,
    "postgresql": _other_database,
    "mariadb": _other_database,
    "http": _http,
    "group-a": _group,
    "group-b": _group,
    "period": _period,
}


def cases(deployment: str) -> list[Case]:
    """Return the cases of a deployment."""
    named = (replace(case, name=_name(case.name)) for case in _CASES[deployment]())
    return list({case.name: case for case in named}.values())


def _name(text: str) -> str:
    """Return a name that can be printed, and is not too long."""
    plain = text.encode("unicode_escape").decode()
    if len(plain) <= _LONGEST_NAME:
        return plain
    return f"{plain[:_LONGEST_NAME]}… {sha256(text.encode()).hexdigest()[:6]}"
