"""`encounters doctor --conformance`: proves what the CapabilityStatement claims, live.

Offer → claims → checks → report. The offer of the mapping makes the CapabilityStatement, and
the first claim is that the live one is the same. The others are tried at the public address,
as a client does. A check is a number that the claim leads to expect, beside the number that
was counted: the report has no value of a patient. Filters are compared with what a few
resources show (the sample), so that a parameter that is ignored or misread is noticed.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from enum import StrEnum
from functools import partial
from importlib.metadata import version
from itertools import pairwise
from operator import eq, ge, le
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

import jmespath
import orjson
import requests
from jinja2 import Environment, PackageLoader, StrictUndefined

from adapters import open_adapter
from adapters.contract import AdapterError, Prefix, ResourceType
from adapters.folding import fold
from adapters.mapping.load import load_mapping
from adapters.mapping.problems import MappingError
from adapters.mapping.profile import profile_of
from adapters.matching import compares, matches_text
from adapters.parameters import SEARCH_PARAMETERS, ParameterType, SearchParameter
from app.cli.check import FINDINGS, FINE, CannotRunError, print_json
from app.config import read_settings
from app.fhir.capability import capability_statement
from app.offer import Offer, OfferedParameter, ResourceOffer, compute_offer
from app.search.parser import MATCHES, modifiers

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

VALUES: Mapping[str, str] = {
    "_id": "[[`null`, id]]",
    "_lastUpdated": "[[meta.lastUpdated, meta.lastUpdated]]",
    "Encounter?patient": "[[`null`, subject.reference]]",
    "Encounter?date": "[[period.start, period.end]]",
    "Encounter?identifier": "identifier[].[system, value]",
    "Encounter?status": "[[`null`, status]]",
    "Encounter?class": "[[class.system, class.code]]",
    "Encounter?service-provider._extension": (
        "serviceProvider.extension[].[url, valueString]"
    ),
    "Patient?name": "name[].[family, given, text][][]",
    "Patient?family": "name[].family",
    "Patient?given": "name[].given[]",
    "Patient?birthdate": "[[birthDate, birthDate]]",
    "Patient?gender": "[[`null`, gender]]",
    "Patient?identifier": "identifier[].[system, value]",
    "Organization?name": "[name]",
    "Organization?identifier": "identifier[].[system, value]",
}
"""Where resources show what parameters compare (JMESPath): texts, tokens as [system, code],
dates as [start, end]."""

_SORTED = {"date": "period.start", "_lastUpdated": "meta.lastUpdated"}
_REFERENCES = "[subject, serviceProvider, managingOrganization][].reference"
_INVALID = "entry[].resource.issue[] | [?code == 'exception']"
_UNTRIED: Mapping[str, str] = {
    "scopes": "it needs a token for each of them",
    "no updateCreate": "this report writes nothing",
    "formats, conditionalRead, _summary, _elements, handling=lenient": (
        "the tests of the release show it; it does not depend on the hospital's system"
    ),
}
"""Claims of every CapabilityStatement that are not tried, and why."""


class Verdict(StrEnum):
    """What became of a claim."""

    PROVED = "proved"
    FALSE = "false"
    OPEN = "not proved"


@dataclass(frozen=True, slots=True)
class Check:
    """What was counted, beside the number that the claim leads to expect."""

    text: str
    expected: int
    counted: int

    @property
    def fails(self) -> bool:
        """Whether the claim is false."""
        return self.expected != self.counted


class NotProvedError(Exception):
    """A claim cannot be proved here; the message is the reason."""


class Claim(NamedTuple):
    """What the CapabilityStatement claims, and the function that tries it."""

    subject: str
    prove: Callable[[], Iterable[Check]]


@dataclass(frozen=True, slots=True)
class Result:
    """A claim, what became of it, and why: its checks, or the reason for none."""

    claim: str
    verdict: Verdict
    checks: tuple[Check, ...] = ()
    reason: str = ""


def settled(claim: Claim) -> Result:
    """Try a claim; again while it seems false, as the hospital may have changed meanwhile."""
    result = _result_of(claim)
    for _ in range(TRIES - 1):
        if result.verdict is Verdict.FALSE:
            result = _result_of(claim)
    return result


def _result_of(claim: Claim) -> Result:
    """Try a claim: one check that fails makes it false, none at all leaves it open."""
    checks: list[Check] = []
    reason = ""
    try:
        for check in claim.prove():
            checks.append(check)
    except NotProvedError as error:
        reason = str(error)
    except requests.HTTPError as error:
        status = error.response.status_code
        checks.append(Check("status", requests.codes.ok, status))
    except requests.RequestException as error:
        reason = f"no answer that can be read ({type(error).__name__})"
    except (LookupError, TypeError, ValueError, AttributeError):
        checks.append(Check("answers with all parts that FHIR requires", 1, 0))
    verdict = Verdict.OPEN if reason or not checks else Verdict.PROVED
    if any(check.fails for check in checks):
        verdict = Verdict.FALSE
    return Result(claim.subject, verdict, tuple(checks), reason)


# The service, as its clients see it


class Client:
    """A client of the service at its public address.

    What returns a body raises NotProvedError for a service that is busy, HTTPError for
    another status than 200, and LookupError for an answer that lacks what FHIR requires.
    """

    def __init__(self, base_url: str, token: str, certificate: Path | None) -> None:
        self.base_url = base_url
        self._session = requests.Session()
        # As the service does it: no proxy and no .netrc of the environment.
        self._session.trust_env = False
        self._session.verify = os.environ.get("SSL_CERT_FILE") or True
        self._session.cert = str(certificate) if certificate else None
        self._session.headers["Authorization"] = f"Bearer {token}"

    def send(
        self,
        path: str,
        *,
        form: tuple[Pair, ...] | None = None,
        headers: Mapping[str, None] | None = None,
    ) -> requests.Response:
        """GET a path below the base address, or POST a form; None removes a header."""
        return self._session.request(
            "GET" if form is None else "POST",
            f"{self.base_url}/{path}",
            data=form,
            headers=headers,
            timeout=TIMEOUT_SECONDS,
            allow_redirects=False,
        )

    def read(self, path: str) -> Json:
        """Return the body of an answer to GET."""
        return _body_of(self.send(path))

    def search(self, kind: str, *pairs: Pair) -> Json:
        """Return the Bundle of a search."""
        return _body_of(self.send(f"{kind}/_search", form=pairs))

    def follow(self, bundle: Json, relation: str) -> Json:
        """Return the page that a link leads to; the token is for this service alone."""
        home, url = f"{self.base_url}/", _links_of(bundle)[relation]
        if not url.startswith(home):
            raise LookupError(f"{relation} is not a link of the service")
        return self.read(url.removeprefix(home))


def _body_of(response: requests.Response) -> Json:
    if response.status_code in BUSY:
        text = f"status {response.status_code}: busy, or too costly to count"
        raise NotProvedError(text)
    if response.status_code != requests.codes.ok:
        raise requests.HTTPError(response=response)
    body: Json = response.json()
    return body


def _links_of(bundle: Json) -> Mapping[str, str]:
    return {each["relation"]: each["url"] for each in bundle.get("link", ())}


def _matches_of(bundle: Json) -> list[Json]:
    """Return the resources of a Bundle, without messages about them."""
    entries = bundle.get("entry", ())
    return [e["resource"] for e in entries if e["search"]["mode"] == "match"]


def _ids_of(bundle: Json) -> list[str]:
    return [each["id"] for each in _matches_of(bundle)]


def _same(text: str, expected: Sequence[object], actual: Sequence[object]) -> Check:
    agreeing = sum(map(eq, expected, actual))
    return Check(text, max(len(expected), len(actual)), agreeing)


def _refused(text: str, *responses: requests.Response) -> Check:
    statuses = {each.status_code for each in responses}
    if busy := statuses & BUSY:
        raise NotProvedError(f"status {min(busy)}: busy")
    refused = [each for each in responses if 400 <= each.status_code < 500]
    return Check(text, len(responses), len(refused))


# Filters: values, and which resources they find


class Trial(NamedTuple):
    """A parameter with its modifier, a value, and which resources it finds."""

    name: str
    text: str
    finds: Callable[[Json], bool]


def _escaped(*parts: str) -> str:
    return "|".join(re.sub(r"([\\,|$])", r"\\\1", part) for part in parts)


@dataclass(frozen=True, slots=True)
class Trials:
    """Makes the trials of one parameter, with values of the sample."""

    row: SearchParameter
    offered: OfferedParameter
    path: str
    zone: tzinfo
    sample: Sequence[Json]

    def values(self, resource: Json) -> list[Any]:
        """Return what a resource shows: texts, or pairs whose needed part is there."""
        values = [v for v in jmespath.search(self.path, resource) or () if v]
        if self.offered.capability.period:
            # A bound that is unknown is the earliest or the latest day.
            return values
        needed = {ParameterType.STRING: slice(None), ParameterType.DATE: 0}
        return [v for v in values if v[needed.get(self.row.type, 1)]]

    def all(self) -> list[Any]:
        """Return the values of the sample. Raises NotProvedError."""
        values = [value for each in self.sample for value in self.values(each)]
        if not values:
            raise NotProvedError("no resource of the sample has a value")
        return values

    def plain(self) -> Iterator[Trial]:
        """Yield trials without prefix and modifier."""
        if self.row.type is ParameterType.STRING:
            yield from self.of_modifier("")
        elif self.row.type is ParameterType.DATE:
            prefixes = (p for p in Prefix if p in self.offered.capability.prefixes)
            trials = (trial for p in prefixes for trial in self.of_prefix(p))
            yield from [trial for trial in [next(trials, None)] if trial]
        else:
            system, code = self.all()[0]
            if not self.row.extension:
                yield self._token(None, code)
            if system:
                yield self._token(system, code)
            for other in self.row.codes or (NOTHING,):
                yield self._token(system if self.row.extension else None, other)

    def _token(self, system: str | None, code: str) -> Trial:
        def finds(resource: Json) -> bool:
            tokens = self.values(resource)
            return any(code == c and system in (None, s) for s, c in tokens)

        parts = (code,) if system is None else (system, code)
        return Trial(self.row.name, _escaped(*parts), finds)

    def of_prefix(self, prefix: Prefix) -> Iterator[Trial]:
        """Yield the trial of a prefix, with a day on which resources of the sample match."""
        days = sorted(self._day(start) for start, _ in self.all() if start)
        middle = len(days) // 2

        def finds(day: date, resource: Json) -> bool:
            """Compare the start with a day, or the whole period."""
            periods = [
                (self._day(first, date.min), self._day(last, date.max))
                for first, last in self.values(resource)
            ]
            if not self.offered.capability.period:
                periods = [(start, start) for start, _ in periods]
            tomorrow = day + timedelta(days=1)
            return any(compares(prefix, *each, day, tomorrow) for each in periods)

        for day in (*days[middle:], *days[:middle]):
            if any(finds(day, each) for each in self.sample):
                yield Trial(self.row.name, f"{prefix}{day}", partial(finds, day))
                return

    def _day(self, text: str | None, unknown: date = date.min) -> date:
        if not text:
            return unknown
        if "T" not in text:
            return date.fromisoformat(text)
        return datetime.fromisoformat(text).astimezone(self.zone).date()

    def of_modifier(self, modifier: str) -> Iterator[Trial]:
        """Yield the trials of a modifier, or without one of the start of a word."""
        name, match = f"{self.row.name}{modifier}", MATCHES[modifier.removeprefix(":")]
        text = max(self.all(), key=len)
        word = max(fold(text).split(), key=len, default="")

        def finds(value: str, resource: Json) -> bool:
            texts = self.values(resource)
            return any(matches_text(each, value, match) for each in texts)

        values = {"": [word[:3]], ":contains": [word[1:4]]}
        for value in values.get(modifier, [text, text.swapcase()]):
            yield Trial(name, _escaped(value), partial(finds, value))
        yield Trial(name, NOTHING, lambda _: False)


# Claims


@dataclass(frozen=True, slots=True)
class Prover:
    """Makes the claims of one resource type that is searched, and tries them."""

    client: Client
    offer: ResourceOffer
    paging: bool
    zone: tzinfo
    sample: Sequence[Json]

    def claims(self) -> Iterator[Claim]:
        """Yield what is claimed of searches."""
        offer, kind = self.offer, self.offer.resource_type
        for name, offered in offer.parameters.items():
            yield from self._filter_claims(name, offered)
        yield Claim(f"{kind}: others are refused", self._others)
        yield Claim(f"{kind}?_count", self._count)
        if offer.uncounted:
            yield Claim(f"{kind}?_total=none", self._uncounted)
        for key in offer.sorts if offer.sortable else ():
            for sort in (key, f"-{key}"):
                yield Claim(f"{kind}?_sort={sort}", partial(self._sort, sort))
        yield Claim(f"{kind}: order by default", self._default_order)
        yield Claim(f"{kind}: link self", self._self)
        yield Claim(f"{kind}: link next", self._next)
        if self.paging and offer.backwards:
            yield Claim(f"{kind}: link previous", self._previous)

    def _filter_claims(self, name: str, offered: OfferedParameter) -> Iterator[Claim]:
        kind = self.offer.resource_type
        row, subject = SEARCH_PARAMETERS[kind][name], f"{kind}?{name}"
        path = VALUES.get(subject) or VALUES[name]
        trials = Trials(row, offered, path, self.zone, self.sample)
        claims = {subject: trials.plain}
        if row.type is ParameterType.DATE:
            for prefix in (p for p in Prefix if p in offered.capability.prefixes):
                claims[f"{subject}={prefix}"] = partial(trials.of_prefix, prefix)
        if row.type is ParameterType.STRING:
            for modifier in modifiers(offered.capability.matches):
                claims[f"{subject}{modifier}"] = partial(trials.of_modifier, modifier)
        for claim, make in claims.items():
            yield Claim(claim, partial(self._filter, make))

    def _search(self, *pairs: Pair) -> Json:
        return self.client.search(self.offer.resource_type, *pairs)

    def _answer(self, *pairs: Pair) -> requests.Response:
        return self.client.send(f"{self.offer.resource_type}/_search", form=pairs)

    def _filter(self, trials: Callable[[], Iterator[Trial]]) -> Iterator[Check]:
        """Try values alone, and among the resources of the sample."""
        total = 0
        for trial in trials():
            pair = (trial.name, trial.text)
            page = self._search(pair, ("_count", f"{min(self.offer.count_max, 20)}"))
            shown, expected = _matches_of(page), sum(map(trial.finds, self.sample))
            total += expected
            matching = sum(map(trial.finds, shown))
            yield Check("resources of the page that match", len(shown), matching)
            if trial.text.endswith(NOTHING):
                yield Check("matches of a value that nothing has", 0, page["total"])
            elif expected:
                yield Check("searches with a match", 1, min(1, page["total"]))
            if trial.name != "_id" and (ids := self._sample_ids()):
                both = self._search(("_id", ids), pair)
                yield Check("matches in the sample", expected, both["total"])
        if not total:
            raise NotProvedError("no resource of the sample matches")

    def _sample_ids(self) -> str:
        ids = self.offer.parameters.get("_id")
        is_enough = ids is not None and ids.values >= SAMPLE
        return ",".join(each["id"] for each in self.sample) if is_enough else ""

    def _others(self) -> Iterator[Check]:
        """Try parameters that are not offered, and a modifier that none has."""
        offered = self.offer.parameters
        rows = SEARCH_PARAMETERS[self.offer.resource_type]
        names = [NOTHING, *(f"{name}:missing" for name in offered)]
        names += [name for name in rows if name not in offered]
        answers = [self._answer((name, "true")) for name in names]
        yield _refused("refused parameters and modifiers", *answers)

    def _scope(self) -> tuple[Pair, ...]:
        """Return the criteria of a search that finds several resources."""
        return () if self.offer.unfiltered else (self._named(),)

    def _named(self) -> Pair:
        """Return the criterion that finds the sample. Raises NotProvedError."""
        if ids := self._sample_ids():
            return "_id", ids
        raise NotProvedError("there are no ids to search for")

    def _count(self) -> Iterator[Check]:
        default, most = self.offer.count_default, self.offer.count_max
        for size, pairs in ((default, ()), (most, [("_count", f"{most}")])):
            page = self._search(*self._scope(), *pairs)
            # Rows that cannot be shown are messages.
            rows = len(_matches_of(page)) + len(jmespath.search(_INVALID, page) or ())
            yield Check("rows of a page", min(size, page["total"]), rows)
        answer = self._answer(*self._scope(), ("_count", f"{most + 1}"))
        yield _refused("refused longer pages", answer)

    def _uncounted(self) -> Iterator[Check]:
        page = self._search(*self._scope(), ("_total", "none"))
        yield Check("totals", 0, int("total" in page))

    def _sort(self, sort: str) -> Iterator[Check]:
        key, is_descending = sort.removeprefix("-"), sort.startswith("-")
        if key == "_id":
            # How a hospital compares ids is its own business: the opposite order shows it.
            opposite = key if is_descending else f"-{key}"
            pages = [
                self._search(self._named(), ("_sort", s)) for s in (sort, opposite)
            ]
            one, two = map(_ids_of, pages)
            yield _same("ids opposite to the other order", one, two[::-1])
            return
        page = self._search(*self._scope(), ("_sort", sort))
        resources = _matches_of(page)
        if "next" in _links_of(page):
            resources += _matches_of(self.client.follow(page, "next"))
        yield _in_order(key, is_descending, resources)

    def _default_order(self) -> Iterator[Check]:
        page, default = self._search(*self._scope()), self.offer.default_sort
        if self.offer.sortable:
            sort = f"{'-' if default.descending else ''}{default.key}"
            explicit = self._search(*self._scope(), ("_sort", sort))
            yield _same("ids as in that order", _ids_of(page), _ids_of(explicit))
        elif self.offer.order or default.key not in _SORTED:
            raise NotProvedError("the order is the hospital system's own")
        else:
            yield _in_order(default.key, default.descending, _matches_of(page))

    def _self(self) -> Iterator[Check]:
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

    def _next(self) -> Iterator[Check]:
        if not self.paging:
            page = self._search(*self._scope(), ("_count", "1"))
            links = len(_links_of(page).keys() - {"self"})
            yield Check("links of a first page to others", 0, links)
            return
        ids = [id for page in self._pages() for id in _ids_of(page)]
        whole = self._search(*self._scope(), ("_count", "4"))
        yield _same("ids of two pages as of a long one", _ids_of(whole), ids)

    def _previous(self) -> Iterator[Check]:
        first, second = self._pages()
        back = self.client.follow(second, "previous")
        yield _same("ids again", _ids_of(first), _ids_of(back))


def _in_order(key: str, is_descending: bool, resources: Sequence[Json]) -> Check:
    texts = [jmespath.search(_SORTED[key], each) for each in resources]
    times = list(pairwise(datetime.fromisoformat(text) for text in texts if text))
    if not times:
        raise NotProvedError(f"fewer than two resources show {key}")
    compare = ge if is_descending else le
    ordered = sum(compare(*pair) for pair in times)
    return Check("neighbours in order", len(times), ordered)


# The deployment


def claims_of(
    client: Client, offer: Offer, statement: Json, zone: tzinfo
) -> Iterator[Claim]:
    """Yield all claims of a deployment; `statement` is what its mapping leads to."""
    sample = _sample_of(client, offer)
    yield Claim("CapabilityStatement", partial(_statement, client, statement))
    for kind, each in offer.resources.items():
        yield Claim(f"{kind}: read", partial(_read, client, kind, sample[kind]))
        if each.searchable:
            yield from Prover(client, each, offer.paging, zone, sample[kind]).claims()
    for subject, reason in _UNTRIED.items():
        yield Claim(subject, partial(_untried, reason))


def _sample_of(client: Client, offer: Offer) -> Mapping[ResourceType, list[Json]]:
    """Return stays from all over a long page, and resources that they refer to."""
    stays = offer.resources[ResourceType.ENCOUNTER]
    criteria = () if stays.unfiltered else (("date", "ge1900"),)
    size = ("_count", f"{stays.count_max}")
    page = _matches_of(client.search(stays.resource_type, *criteria, size))
    sample = {ResourceType.ENCOUNTER: page[:: len(page) // SAMPLE + 1]}
    for kind in (ResourceType.PATIENT, ResourceType.ORGANIZATION):
        shown = [each for resources in sample.values() for each in resources]
        references = [str(r) for e in shown for r in jmespath.search(_REFERENCES, e)]
        paths = dict.fromkeys(r for r in references if r.startswith(f"{kind}/"))
        answers = map(client.send, list(paths)[:SAMPLE])
        sample[kind] = [a.json() for a in answers if a.status_code == requests.codes.ok]
    return sample


def _statement(client: Client, statement: Json) -> Iterator[Check]:
    live = client.read("metadata")
    names = [name for name in {**live, **statement} if name != "date"]
    expected, actual = ([each.get(n) for n in names] for each in (statement, live))
    yield _same("parts that are those of the mapping's", expected, actual)


def _read(client: Client, kind: str, sample: Sequence[Json]) -> Iterator[Check]:
    ids = [each["id"] for each in sample]
    bodies = [client.read(f"{kind}/{id}") for id in ids]
    yield _same("resources with this id", ids, [body["id"] for body in bodies])
    for id in ids[:1]:
        answer = client.send(f"{kind}/{id}", headers={"Authorization": None})
        yield _refused("refused reads without a token", answer)


def _untried(reason: str) -> Iterator[Check]:
    raise NotProvedError(reason)


def run(options: SimpleNamespace) -> int:
    """Try all claims and write the report as JSON and as a page."""
    values = read_settings(os.environ).values
    if not (values.get("mapping") and values.get("base_url")):
        raise CannotRunError("Set ENCOUNTERS_MAPPING and ENCOUNTERS_BASE_URL.")
    base_url = str(values["base_url"])
    try:
        token = options.token_file.read_text("utf-8").strip()
        mapping = load_mapping(values["mapping"], os.environ)
        with closing(open_adapter(mapping)) as adapter:
            offer = compute_offer(profile_of(mapping), adapter.capabilities)
            fingerprint = adapter.fingerprint
    except (AdapterError, MappingError, OSError) as error:
        raise CannotRunError(str(error)) from error
    now = datetime.now(UTC)
    statement = capability_statement(offer, base_url, mapping.name, now.date())
    client = Client(base_url, token, options.certificate)
    try:
        # As JSON has it.
        document = orjson.loads(orjson.dumps(statement))
        claims = claims_of(client, offer, document, mapping.time_zone)
        results = [settled(claim) for claim in claims]
    except (requests.RequestException, NotProvedError, LookupError, TypeError) as error:
        text = f"{error}: no sample of stays; check ENCOUNTERS_BASE_URL and the token"
        raise CannotRunError(text) from error
    report = {
        "deployment": mapping.name,
        "base_url": base_url,
        "release": version("encounters"),
        "mapping": fingerprint,
        "date": now.isoformat(timespec="seconds"),
        "claims": [asdict(result) for result in results],
    }
    options.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(report, ensure_ascii=False, indent=2)
    (options.out / "conformance.json").write_text(f"{text}\n", "utf-8")
    (options.out / "conformance.html").write_text(page_of(report), "utf-8")
    if options.json:
        print_json(report)
    else:
        _print(results)
    return FINDINGS if any(r.verdict is Verdict.FALSE for r in results) else FINE


def page_of(report: Mapping[str, object]) -> str:
    """Return a report as an HTML page of its own, without scripts."""
    environment = Environment(
        loader=PackageLoader("app.cli"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    template = environment.get_template("conformance.html")
    return template.render(report=report, verdicts=Verdict)


def _print(results: Sequence[Result]) -> None:
    for each in results:
        failed = [c for c in each.checks if c.fails]
        numbers = "; ".join(f"{c.text}: {c.counted} of {c.expected}" for c in failed)
        if each.verdict is not Verdict.PROVED:
            print(f"{each.verdict:10}  {each.claim}: {numbers or each.reason}")
    counts = Counter(each.verdict for each in results)
    print(", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict))
