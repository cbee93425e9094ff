"""`encounters doctor --conformance`: proves what the CapabilityStatement claims, live.

Offer → claims → checks → report. The offer of the mapping makes the CapabilityStatement, and
the first claim is that the live one is the same. The others are tried at the public address,
as a client does. Each finding of a claim is a number that the claim leads to expect, beside
the number that was counted: the report has no value of a patient. Filters are compared with
what a few resources show (the sample), so that a parameter that is ignored or misread is
noticed.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from enum import StrEnum
from functools import partial
from importlib.metadata import version
from itertools import pairwise, product
from operator import eq, ge, le
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import jmespath
import orjson
import requests

from adapters import open_adapter
from adapters.contract import AdapterError, Prefix, ResourceType
from adapters.folding import fold
from adapters.http.session import isolated
from adapters.mapping.load import load_mapping
from adapters.mapping.problems import MappingError
from adapters.mapping.profile import profile_of
from adapters.matching import compares, matches_text
from adapters.parameters import SEARCH_PARAMETERS, ParameterType, SearchParameter
from app.cli.doctor import print_outcomes
from app.config import read_settings
from app.console import FINDINGS, FINE, CannotRunError, print_json
from app.fhir.capability import capability_statement
from app.offer import Offer, OfferedParameter, ResourceOffer, compute_offer
from app.search.parser import MATCHES, modifiers
from toolkit.checks.engine import Check, Finding, Outcome, Severity, run_in_turn
from toolkit.console import html_page, show_progress, write_text

Json: TypeAlias = dict[str, Any]
Pair: TypeAlias = tuple[str, str]

SAMPLE = 10
"""How many resources of a type filters are compared with; no `_id` takes more."""

TRIES = 3
TIMEOUT_SECONDS = 30.0
BUSY = frozenset({422, 429, 502, 503, 504})
"""Statuses of a service that cannot answer now, or may not count so many: no proof."""

NOTHING = "zqxjv"
"""A value that no resource has."""

_SORTED = {"date": "period.start", "_lastUpdated": "meta.lastUpdated"}
_REFERENCES = "[subject, serviceProvider, managingOrganization][].reference"
_INVALID = "entry[].resource.issue[] | [?code == 'exception']"
_UNTRIED: Mapping[str, str] = {
    "scopes": "it needs a token for each of them",
    "no updateCreate": "this report writes nothing",
    "formats, conditionalRead, _summary, _elements, refused parameters and requests": (
        "the tests of the release show it; it does not depend on the hospital's system"
    ),
}
"""Claims of every CapabilityStatement that are not tried, and why."""


class Verdict(StrEnum):
    """What became of a claim."""

    PROVED = "proved"
    FALSE = "false"
    OPEN = "not proved"


def count(text: str, expected: int, counted: int) -> Finding:
    """Return what was counted; an error if it is another number than the expected one."""
    severity = Severity.OK if expected == counted else Severity.ERROR
    return Finding.about(f"{counted} of {expected} {text}", severity=severity)


_note = partial(Finding.about, severity=Severity.NOTE)


class NotProvedError(Exception):
    """A claim cannot be proved here; the message is the reason."""


Proof: TypeAlias = Callable[[], Iterable[Finding]]


def settled(prove: Proof) -> list[Finding]:
    """Try a claim; again while it seems false, as the hospital may have changed meanwhile."""
    findings: list[Finding] = []
    for _ in range(TRIES):
        findings = list(_tried(prove))
        if verdict_of(findings) is not Verdict.FALSE:
            break
    return findings


def _tried(prove: Proof) -> Iterator[Finding]:
    try:
        yield from prove()
    except NotProvedError as error:
        yield _note(str(error))
    except requests.HTTPError as error:
        yield count("status", requests.codes.ok, error.response.status_code)
    except requests.RequestException as error:
        yield _note(f"no answer that can be read ({type(error).__name__})")
    except (LookupError, TypeError, ValueError, AttributeError):
        yield count("answers with all parts that FHIR requires", 1, 0)


def verdict_of(findings: Iterable[Finding]) -> Verdict:
    """Return what became of a claim: one number that differs makes it false."""
    severities = {finding.severity for finding in findings}
    if Severity.ERROR in severities:
        return Verdict.FALSE
    return Verdict.PROVED if severities == {Severity.OK} else Verdict.OPEN


# The service, as its clients see it


class Client:
    """A client of the service at its public address.

    What returns a body raises NotProvedError for a service that is busy, HTTPError for
    another status than 200, and LookupError for an answer that lacks what FHIR requires.
    """

    def __init__(self, base_url: str, token: str, certificate: Path | None) -> None:
        self.base_url = base_url
        self._session = isolated(requests.Session())
        self._session.cert = str(certificate) if certificate else None
        self._session.headers["Authorization"] = f"Bearer {token}"

    def send(
        self, path: str, form: tuple[Pair, ...] | None = None
    ) -> requests.Response:
        """GET a path below the base address, or POST a form."""
        return self._session.request(
            "GET" if form is None else "POST",
            f"{self.base_url}/{path}",
            data=form,
            timeout=TIMEOUT_SECONDS,
            allow_redirects=False,
        )

    def read(self, path: str, form: tuple[Pair, ...] | None = None) -> Json:
        """Return the body of an answer."""
        response = self.send(path, form)
        if response.status_code in BUSY:
            text = f"status {response.status_code}: busy, or too costly to count"
            raise NotProvedError(text)
        if response.status_code != requests.codes.ok:
            raise requests.HTTPError(response=response)
        body: Json = response.json()
        return body

    def follow(self, bundle: Json, relation: str) -> Json:
        """Return the page that a link leads to; the token is for this service alone."""
        home, url = f"{self.base_url}/", _links_of(bundle)[relation]
        if not url.startswith(home):
            raise LookupError(f"{relation} is not a link of the service")
        return self.read(url.removeprefix(home))


def _links_of(bundle: Json) -> Mapping[str, str]:
    return {each["relation"]: each["url"] for each in bundle.get("link", ())}


def _matches_of(bundle: Json) -> list[Json]:
    """Return the resources of a Bundle, without messages about them."""
    entries = bundle.get("entry", ())
    return [e["resource"] for e in entries if e["search"]["mode"] == "match"]


def _ids_of(bundle: Json) -> list[str]:
    return [each["id"] for each in _matches_of(bundle)]


def _same(text: str, expected: Sequence[object], actual: Sequence[object]) -> Finding:
    agreeing = sum(map(eq, expected, actual))
    return count(text, max(len(expected), len(actual)), agreeing)


# Filters: values, and which resources they find


class Trial(NamedTuple):
    """A parameter with its modifier, a value, and which resources it finds."""

    name: str
    text: str
    finds: Callable[[Json], bool]


@dataclass(frozen=True, slots=True)
class Filter:
    """A search parameter, and the resources whose values it is tried with."""

    row: SearchParameter
    offered: OfferedParameter
    zone: tzinfo
    sample: Sequence[Json]

    @property
    def variants(self) -> list[str]:
        """What is offered of it: itself (""), its prefixes or its modifiers."""
        able = self.offered.capability
        prefixes = (f"={each}" for each in Prefix if each in able.prefixes)
        is_date = self.row.type is ParameterType.DATE
        return ["", *(prefixes if is_date else modifiers(able.matches))]

    def trials(self, variant: str) -> Iterator[Trial]:
        """Yield trials with values of the sample. Raises NotProvedError if it has none."""
        values = [value for each in self.sample for value in self._values(each)]
        if not values:
            raise NotProvedError("no resource of the sample has a value")
        match self.row.type:
            case ParameterType.STRING:
                return self._texts(variant, max(values, key=len))
            case ParameterType.DATE:
                prefixes = [variant] if variant else self.variants[1:]
                starts = [self._day(start, date.min) for start, _ in values if start]
                return self._days([Prefix(each[1:]) for each in prefixes], starts)
            case _:
                return self._tokens(*values[0])

    def _values(self, resource: Json) -> list[Any]:
        """Return what a resource shows: texts, or pairs whose needed part is there."""
        values = [v for v in jmespath.search(self.row.shown, resource) or () if v]
        if self.offered.capability.period:
            # A bound that is unknown is the earliest or the latest day.
            return values
        needed = {ParameterType.STRING: slice(None), ParameterType.DATE: 0}
        return [v for v in values if v[needed.get(self.row.type, 1)]]

    def _tokens(self, system: str | None, code: str) -> Iterator[Trial]:
        needs_system = bool(self.row.extension)
        tokens: list[tuple[str | None, str]] = [(system, code)] if system else []
        tokens += [] if needs_system else [(None, code)]
        own = system if needs_system else None
        tokens += [(own, other) for other in self.row.codes or (NOTHING,)]
        for token in tokens:
            text = _escaped(*filter(None, token))
            yield Trial(self.row.name, text, partial(self._has, *token))

    def _has(self, system: str | None, code: str, resource: Json) -> bool:
        tokens = self._values(resource)
        return any(code == c and system in (None, s) for s, c in tokens)

    def _days(self, prefixes: list[Prefix], starts: list[date]) -> Iterator[Trial]:
        """Yield the trial of a prefix and of a day with which it finds a resource."""
        days, middle = sorted(starts), len(starts) // 2
        for prefix, day in product(prefixes, (*days[middle:], *days[:middle])):
            finds = partial(self._is_at, prefix, day)
            if any(map(finds, self.sample)):
                yield Trial(self.row.name, f"{prefix}{day}", finds)
                return

    def _is_at(self, prefix: Prefix, day: date, resource: Json) -> bool:
        """Compare the start with a day, or the whole period."""
        is_period, tomorrow = self.offered.capability.period, day + timedelta(days=1)
        for start, end in self._values(resource):
            first = self._day(start, date.min)
            last = self._day(end, date.max) if is_period else first
            if compares(prefix, first, last, day, tomorrow):
                return True
        return False

    def _day(self, text: str | None, unknown: date) -> date:
        if not text:
            return unknown
        if "T" not in text:
            return date.fromisoformat(text)
        return datetime.fromisoformat(text).astimezone(self.zone).date()

    def _texts(self, modifier: str, text: str) -> Iterator[Trial]:
        """Yield the trials of a modifier, or without one of the start of a word."""
        word = max(fold(text).split(), key=len, default="")
        values = {"": [word[:3]], ":contains": [word[1:4]]}
        for value in (*values.get(modifier, [text, text.swapcase()]), NOTHING):
            finds = partial(self._reads, modifier.removeprefix(":"), value)
            yield Trial(f"{self.row.name}{modifier}", _escaped(value), finds)

    def _reads(self, modifier: str, value: str, resource: Json) -> bool:
        texts = self._values(resource)
        return any(matches_text(each, value, MATCHES[modifier]) for each in texts)


def _escaped(*parts: str) -> str:
    return "|".join(re.sub(r"([\\,|$])", r"\\\1", part) for part in parts)


# Claims


def _claim(subject: str, prove: Proof) -> Check:
    return Check(subject, partial(settled, prove))


@dataclass(frozen=True, slots=True)
class Prover:
    """Makes the claims of one resource type that is searched, and tries them."""

    client: Client
    offer: ResourceOffer
    paging: bool
    zone: tzinfo
    sample: Sequence[Json]

    def claims(self) -> Iterator[Check]:
        """Yield what is claimed of searches."""
        offer, kind = self.offer, self.offer.resource_type
        for name, offered in offer.parameters.items():
            subject, row = f"{kind}?{name}", SEARCH_PARAMETERS[kind][name]
            parameter = Filter(row, offered, self.zone, self.sample)
            for variant in parameter.variants:
                trials = partial(parameter.trials, variant)
                yield _claim(f"{subject}{variant}", partial(self._filter, trials))
        yield _claim(f"{kind}?_count", self._count)
        if offer.uncounted:
            yield _claim(f"{kind}?_total=none", self._uncounted)
        for key in offer.sorts if offer.sortable else ():
            for sort in (key, f"-{key}"):
                yield _claim(f"{kind}?_sort={sort}", partial(self._sort, sort))
        yield _claim(f"{kind}: link self", self._self)
        yield _claim(f"{kind}: link next", self._next)
        if self.paging and offer.backwards:
            yield _claim(f"{kind}: link previous", self._previous)

    def _search(self, *pairs: Pair) -> Json:
        return self.client.read(f"{self.offer.resource_type}/_search", pairs)

    def _filter(self, trials: Callable[[], Iterator[Trial]]) -> Iterator[Finding]:
        """Try values alone, and among the resources of the sample."""
        total = 0
        for trial in trials():
            pair = (trial.name, trial.text)
            page = self._search(pair, ("_count", f"{min(self.offer.count_max, 20)}"))
            shown, expected = _matches_of(page), sum(map(trial.finds, self.sample))
            total += expected
            matching = sum(map(trial.finds, shown))
            yield count("resources of the page that match", len(shown), matching)
            if trial.text.endswith(NOTHING):
                yield count("matches of a value that nothing has", 0, page["total"])
            elif expected:
                yield count("searches with a match", 1, min(1, page["total"]))
            if trial.name != "_id" and (ids := self._ids()):
                both = self._search(*ids, pair)
                yield count("matches in the sample", expected, both["total"])
        if not total:
            raise NotProvedError("no resource of the sample matches")

    def _ids(self) -> tuple[Pair, ...]:
        """Return the criterion that finds the sample, none where it takes too few ids."""
        ids = self.offer.parameters.get("_id")
        if ids is None or ids.values < SAMPLE or not self.sample:
            return ()
        return (("_id", ",".join(each["id"] for each in self.sample)),)

    def _scope(self, *, unfiltered: bool = True) -> tuple[Pair, ...]:
        """Return the criteria of a search that finds several resources."""
        if unfiltered and self.offer.unfiltered:
            return ()
        if ids := self._ids():
            return ids
        raise NotProvedError("there are no ids to search for")

    def _count(self) -> Iterator[Finding]:
        default, most = self.offer.count_default, self.offer.count_max
        for size, pairs in ((default, ()), (most, [("_count", f"{most}")])):
            page = self._search(*self._scope(), *pairs)
            # Rows that cannot be shown are messages.
            rows = len(_matches_of(page)) + len(jmespath.search(_INVALID, page) or ())
            yield count("rows of a page", min(size, page["total"]), rows)

    def _uncounted(self) -> Iterator[Finding]:
        page = self._search(*self._scope(), ("_total", "none"))
        yield count("totals", 0, int("total" in page))

    def _sort(self, sort: str) -> Iterator[Finding]:
        key, is_descending = sort.removeprefix("-"), sort.startswith("-")
        if key == "_id":
            # How a hospital compares ids is its own business: the opposite order shows it.
            orders = (sort, key if is_descending else f"-{key}")
            named = self._scope(unfiltered=False)
            pages = (self._search(*named, ("_sort", each)) for each in orders)
            one, two = map(_ids_of, pages)
            yield _same("ids opposite to the other order", one, two[::-1])
            return
        page = self._search(*self._scope(), ("_sort", sort))
        resources = _matches_of(page)
        if "next" in _links_of(page):
            resources += _matches_of(self.client.follow(page, "next"))
        texts = [jmespath.search(_SORTED[key], each) for each in resources]
        times = list(pairwise(datetime.fromisoformat(text) for text in texts if text))
        if not times:
            raise NotProvedError(f"fewer than two resources show {key}")
        compare = ge if is_descending else le
        ordered = sum(compare(*pair) for pair in times)
        yield count("neighbours in order", len(times), ordered)

    def _self(self) -> Iterator[Finding]:
        page = self._search(*self._scope())
        again = self.client.follow(page, "self")
        yield _same("ids again", _ids_of(page), _ids_of(again))

    def _pages(self) -> tuple[Json, Json]:
        """Return two pages that follow each other. Raises NotProvedError."""
        first = self._search(*self._scope(), ("_count", "2"))
        if first["total"] < 4:
            raise NotProvedError("fewer than four resources")
        if self.offer.unpaged and "next" not in _links_of(first):
            raise NotProvedError("only searches of one source have further pages")
        return first, self.client.follow(first, "next")

    def _next(self) -> Iterator[Finding]:
        if not self.paging:
            page = self._search(*self._scope(), ("_count", "1"))
            links = len(_links_of(page).keys() - {"self"})
            yield count("links of a first page to others", 0, links)
            return
        ids = [id for page in self._pages() for id in _ids_of(page)]
        whole = self._search(*self._scope(), ("_count", "4"))
        yield _same("ids of two pages as of a long one", _ids_of(whole), ids)

    def _previous(self) -> Iterator[Finding]:
        first, second = self._pages()
        back = self.client.follow(second, "previous")
        yield _same("ids again", _ids_of(first), _ids_of(back))


# The deployment


def claims_of(
    client: Client, offer: Offer, statement: Json, zone: tzinfo
) -> Iterator[Check]:
    """Yield all claims of a deployment; `statement` is what its mapping leads to."""
    sample = _sample_of(client, offer)
    yield _claim("CapabilityStatement", partial(_statement, client, statement))
    for kind, each in offer.resources.items():
        yield _claim(f"{kind}: read", partial(_read, client, kind, sample[kind]))
        if each.searchable:
            yield from Prover(client, each, offer.paging, zone, sample[kind]).claims()
    for subject, reason in _UNTRIED.items():
        yield Check(subject, partial(iter, [_note(reason)]))


def _sample_of(client: Client, offer: Offer) -> Mapping[ResourceType, list[Json]]:
    """Return stays from all over a long page, and resources that they refer to."""
    stays = offer.resources[ResourceType.ENCOUNTER]
    criteria = () if stays.unfiltered else (("date", "ge1900"),)
    size = ("_count", f"{stays.count_max}")
    page = _matches_of(client.read("Encounter/_search", (*criteria, size)))
    sample = {ResourceType.ENCOUNTER: page[:: len(page) // SAMPLE + 1]}
    for kind in (ResourceType.PATIENT, ResourceType.ORGANIZATION):
        shown = [each for resources in sample.values() for each in resources]
        references = [str(r) for e in shown for r in jmespath.search(_REFERENCES, e)]
        paths = dict.fromkeys(r for r in references if r.startswith(f"{kind}/"))
        answers = map(client.send, list(paths)[:SAMPLE])
        sample[kind] = [a.json() for a in answers if a.status_code == requests.codes.ok]
    return sample


def _statement(client: Client, statement: Json) -> Iterator[Finding]:
    live = client.read("metadata")
    names = [name for name in {**live, **statement} if name != "date"]
    expected, actual = ([each.get(n) for n in names] for each in (statement, live))
    yield _same("parts that are those of the mapping's", expected, actual)


def _read(client: Client, kind: str, sample: Sequence[Json]) -> Iterator[Finding]:
    ids = [each["id"] for each in sample]
    bodies = [client.read(f"{kind}/{id}") for id in ids]
    yield _same("resources with this id", ids, [body["id"] for body in bodies])


# The report


def run(*, token_file: Path, certificate: Path | None, out: Path, as_json: bool) -> int:
    """Try all claims and write the report as JSON and as a page."""
    values = read_settings(os.environ).values
    if not (values.get("mapping") and values.get("base_url")):
        raise CannotRunError("Set ENCOUNTERS_MAPPING and ENCOUNTERS_BASE_URL.")
    base_url = str(values["base_url"])
    try:
        token = token_file.read_text("utf-8").strip()
        mapping = load_mapping(values["mapping"], os.environ)
        with closing(open_adapter(mapping)) as adapter:
            offer = compute_offer(profile_of(mapping), adapter.capabilities)
            fingerprint = adapter.fingerprint
    except (AdapterError, MappingError, OSError) as error:
        raise CannotRunError(str(error)) from error
    now = datetime.now(UTC)
    statement = capability_statement(offer, base_url, mapping.name, now.date())
    client = Client(base_url, token, certificate)
    try:
        # As JSON has it.
        document = orjson.loads(orjson.dumps(statement))
        claims = claims_of(client, offer, document, mapping.time_zone)
        outcomes = list(run_in_turn(claims, float("inf"), show_progress))
    except (requests.RequestException, NotProvedError, LookupError, TypeError) as error:
        text = f"{error}: no sample of stays; check ENCOUNTERS_BASE_URL and the token"
        raise CannotRunError(text) from error
    report: Json = {
        "deployment": mapping.name,
        "base_url": base_url,
        "release": version("encounters"),
        "mapping": fingerprint,
        "date": now.isoformat(timespec="seconds"),
        "claims": [_as_json(outcome) for outcome in outcomes],
    }
    text = json.dumps(report, ensure_ascii=False, indent=2)
    write_text(out / "conformance.json", f"{text}\n")
    page = html_page("conformance.html", report=report, verdicts=Verdict)
    write_text(out / "conformance.html", page)
    verdicts = Counter(each["verdict"] for each in report["claims"])
    if as_json:
        print_json(report)
    else:
        proved = Verdict.PROVED
        print_outcomes(o for o in outcomes if verdict_of(o.findings) is not proved)
        print(", ".join(f"{verdicts[verdict]} {verdict}" for verdict in Verdict))
    return FINDINGS if verdicts[Verdict.FALSE] else FINE


def _as_json(outcome: Outcome) -> Json:
    verdict, findings = verdict_of(outcome.findings), outcome.findings
    notes = [each.text for each in findings if each.severity is Severity.NOTE]
    return {
        "claim": outcome.check.subject,
        "verdict": verdict,
        "checks": [each.text for each in findings if each.text not in notes],
        "reason": "; ".join(notes) if verdict is Verdict.OPEN else "",
    }
