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
from datetime import UTC, date, datetime, tzinfo
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
from adapters.folding import contains, fold, starts_a_word
from adapters.mapping.load import load_mapping
from adapters.mapping.problems import MappingError
from adapters.mapping.profile import MAX_VALUES, profile_of
from adapters.parameters import SEARCH_PARAMETERS, ParameterType, SearchParameter
from app.cli.check import FINDINGS, FINE, CannotRunError, print_json
from app.config import read_settings
from app.fhir.capability import capability_statement
from app.offer import Offer, OfferedParameter, ResourceOffer, compute_offer
from app.search.parser import modifiers

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


class NotProvedError(Exception):
    """A claim cannot be proved here; the message is the reason."""


class WrongAnswerError(Exception):
    """An answer that no claim allows, as a check that fails."""

    def __init__(self, text: str, expected: int, counted: int) -> None:
        super().__init__(text)
        self.check = Check(text, expected, counted)


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


def result_of(claim: Claim) -> Result:
    """Try a claim: one check that fails makes it false, none at all leaves it open."""
    checks: list[Check] = []
    reason = ""
    try:
        for check in claim.prove():
            checks.append(check)
    except NotProvedError as error:
        reason = str(error)
    except WrongAnswerError as error:
        checks.append(error.check)
    except requests.RequestException as error:
        reason = f"no answer that can be read ({type(error).__name__})"
    except (LookupError, TypeError):
        checks.append(Check("answers with all parts that FHIR requires", 1, 0))
    verdict = Verdict.OPEN if reason or not checks else Verdict.PROVED
    if any(check.expected != check.counted for check in checks):
        verdict = Verdict.FALSE
    return Result(claim.subject, verdict, tuple(checks), reason)


def settled(claim: Claim) -> Result:
    """Try a claim that seems false again: the hospital may have changed meanwhile."""
    result = result_of(claim)
    for _ in range(TRIES - 1):
        if result.verdict is Verdict.FALSE:
            result = result_of(claim)
    return result


class Client:
    """A client of the service at its public address."""

    def __init__(self, base_url: str, token: str, certificate: Path | None) -> None:
        self.base_url = base_url
        self._session = requests.Session()
        # As the service does it: no proxy and no .netrc of the environment.
        self._session.trust_env = False
        self._session.verify = os.environ.get("SSL_CERT_FILE") or True
        self._session.cert = str(certificate) if certificate else None
        self._session.headers["Authorization"] = f"Bearer {token}"

    def get(self, path: str, **headers: str | None) -> requests.Response:
        """GET a path below the base address; a header that is None is not sent."""
        return self._send("GET", path, headers=headers)

    def search(self, kind: str, *pairs: Pair) -> requests.Response:
        """Search by POST."""
        return self._send("POST", f"{kind}/_search", data=pairs)

    def _send(self, method: str, path: str, **options: Any) -> requests.Response:
        options |= {"timeout": TIMEOUT_SECONDS, "allow_redirects": False}
        return self._session.request(method, f"{self.base_url}/{path}", **options)

    def follow(self, bundle: Json, relation: str) -> Json:
        """Return the page that a link leads to; the token is for this service alone."""
        home, url = f"{self.base_url}/", links_of(bundle).get(relation, "")
        if not url.startswith(home):
            raise WrongAnswerError(f"links {relation} of the service", 1, 0)
        return body_of(self.get(url.removeprefix(home)))


def body_of(response: requests.Response) -> Json:
    """Return the body of a success. Raises NotProvedError, WrongAnswerError."""
    if response.status_code in BUSY:
        text = f"status {response.status_code}: busy, or too costly to count"
        raise NotProvedError(text)
    if response.status_code != requests.codes.ok:
        raise WrongAnswerError("status", requests.codes.ok, response.status_code)
    body = response.json()
    if not isinstance(body, dict):
        raise WrongAnswerError("resources in an answer", 1, 0)
    return body


def links_of(bundle: Json) -> Mapping[str, str]:
    """Return the links of a Bundle by relation."""
    return {each["relation"]: each["url"] for each in bundle.get("link", ())}


def matches_of(bundle: Json) -> list[Json]:
    """Return the resources of a Bundle, without messages about them."""
    entries = bundle.get("entry", ())
    return [e["resource"] for e in entries if e["search"]["mode"] == "match"]


def _ids(*resources: Json) -> list[str]:
    return [each["id"] for each in resources]


def _same(text: str, expected: Sequence[object], actual: Sequence[object]) -> Check:
    agreeing = sum(map(eq, expected, actual))
    return Check(text, max(len(expected), len(actual)), agreeing)


def _refused(text: str, *responses: requests.Response) -> Check:
    statuses = [each.status_code for each in responses]
    return Check(
        text, len(statuses), sum(400 <= s < 500 and s not in BUSY for s in statuses)
    )


# Values, and which resources they find


class Trial(NamedTuple):
    """A parameter with its modifier, a value, and which resources it finds."""

    name: str
    text: str
    finds: Callable[[Json], bool]


def _nothing(name: str) -> Trial:
    return Trial(name, NOTHING, lambda _: False)


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
        if self.row.type is ParameterType.DATE:
            prefixes = self.offered.capability.prefixes
            trials = [t for p in Prefix if p in prefixes for t in self.of_prefix(p)]
            if not trials:
                raise NotProvedError("no resource of the sample matches")
            yield trials[0]
        elif self.row.type is ParameterType.STRING:
            yield from self.of_modifier("")
        else:
            system, code = self.all()[0]
            if not self.row.extension:
                yield self._token(None, code)
            if system:
                yield self._token(system, code)
            for other in self.row.codes:
                yield self._token(None, other)
            if not self.row.codes:
                yield self._token(system if self.row.extension else None, NOTHING)

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
            return any(self._compares(prefix, v, day) for v in self.values(resource))

        for day in (*days[middle:], *days[:middle]):
            if any(finds(day, each) for each in self.sample):
                yield Trial(self.row.name, f"{prefix}{day}", partial(finds, day))
                return

    def _compares(self, prefix: Prefix, value: Sequence[Any], day: date) -> bool:
        """Compare with a day: the start, or the whole period (STU3, table of prefixes)."""
        first, last = value
        start = end = self._day(first) if first else date.min
        if self.offered.capability.period:
            end = self._day(last) if last else date.max
        within = start == day == end
        return {
            Prefix.EQ: within,
            Prefix.NE: not within,
            Prefix.GT: end > day,
            Prefix.LT: start < day,
            Prefix.GE: within or end > day,
            Prefix.LE: within or start < day,
        }[prefix]

    def _day(self, text: str) -> date:
        if "T" not in text:
            return date.fromisoformat(text)
        return datetime.fromisoformat(text).astimezone(self.zone).date()

    def of_modifier(self, modifier: str) -> Iterator[Trial]:
        """Yield the trials of a modifier, or without one of the start of a word."""
        name = f"{self.row.name}{modifier}"
        text = max(self.all(), key=len)
        word = max(fold(text).split(), key=len, default="")

        def finds(value: str, resource: Json) -> bool:
            texts = self.values(resource)
            if modifier == ":exact":
                return value in texts
            compare = contains if modifier == ":contains" else starts_a_word
            return any(compare(fold(each), fold(value)) for each in texts)

        values = {"": [word[:3]], ":contains": [word[1:4]]}
        for value in values.get(modifier, [text, text.swapcase()]):
            yield Trial(name, _escaped(value), partial(finds, value))
        yield _nothing(name)


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
        path = VALUES.get(subject) or VALUES.get(name, "[]")
        trials = Trials(row, offered, path, self.zone, self.sample)
        yield Claim(subject, partial(self._filter, trials.plain))
        if offered.values < MAX_VALUES:
            text = f"{subject}: how many values"
            yield Claim(text, partial(self._values, trials))
        if row.type is ParameterType.DATE:
            for prefix in Prefix:
                if prefix in offered.capability.prefixes:
                    prove = partial(self._filter, partial(trials.of_prefix, prefix))
                    yield Claim(f"{subject}={prefix}", prove)
        if row.type is ParameterType.STRING:
            for modifier in modifiers(offered.capability.matches):
                prove = partial(self._filter, partial(trials.of_modifier, modifier))
                yield Claim(f"{subject}{modifier}", prove)

    def _search(self, *pairs: Pair) -> Json:
        return body_of(self.client.search(self.offer.resource_type, *pairs))

    def _filter(self, trials: Callable[[], Iterator[Trial]]) -> Iterator[Check]:
        """Try values alone, and among the resources of the sample."""
        total = 0
        for trial in trials():
            pair = (trial.name, trial.text)
            page = self._search(pair, ("_count", f"{min(self.offer.count_max, 20)}"))
            shown, expected = matches_of(page), sum(map(trial.finds, self.sample))
            total += expected
            text = "resources of the page that match"
            yield Check(text, len(shown), sum(map(trial.finds, shown)))
            if trial.text.endswith(NOTHING):
                yield Check(
                    "matches of a value that nothing has", 0, page.get("total", -1)
                )
            elif expected:
                found = min(1, page.get("total", 0))
                yield Check("searches with a match", 1, found)
            if trial.name != "_id" and (ids := self._sample_ids()):
                both = self._search(("_id", ids), pair)
                yield Check("matches in the sample", expected, both.get("total", -1))
        if not total:
            raise NotProvedError("no resource of the sample matches")

    def _sample_ids(self) -> str:
        ids = self.offer.parameters.get("_id")
        return ",".join(_ids(*self.sample)) if ids and ids.values >= SAMPLE else ""

    def _values(self, trials: Trials) -> Iterator[Check]:
        text, most = next(trials.plain()).text, trials.offered.values
        pairs = [(trials.row.name, ",".join([text] * n)) for n in (most, most + 1)]
        kind = self.offer.resource_type
        answer, refused = (self.client.search(kind, pair) for pair in pairs)
        yield Check(f"searches with {most}", 1, int(answer.ok))
        yield _refused(f"refused searches with {most + 1}", refused)

    def _others(self) -> Iterator[Check]:
        """Try parameters that are not offered, and a modifier that none has."""
        kind, offered = self.offer.resource_type, self.offer.parameters
        names = [NOTHING, *(f"{name}:missing" for name in offered)]
        names += [name for name in SEARCH_PARAMETERS[kind] if name not in offered]
        answers = [self.client.search(kind, (name, "true")) for name in names]
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
        most = self.offer.count_max
        for size, pairs in (
            (self.offer.count_default, ()),
            (most, (("_count", f"{most}"),)),
        ):
            page = self._search(*self._scope(), *pairs)
            # Rows that cannot be shown are messages.
            rows = len(matches_of(page)) + len(jmespath.search(_INVALID, page) or ())
            yield Check("rows of a page", min(size, page.get("total", -1)), rows)
        more = (*self._scope(), ("_count", f"{most + 1}"))
        refused = self.client.search(self.offer.resource_type, *more)
        yield _refused("refused longer pages", refused)

    def _uncounted(self) -> Iterator[Check]:
        page = self._search(*self._scope(), ("_total", "none"))
        yield Check("totals", 0, int("total" in page))

    def _sort(self, sort: str) -> Iterator[Check]:
        key = sort.removeprefix("-")
        if key == "_id":
            # How a hospital compares ids is its own business: the opposite order shows it.
            sorts = sort, key if sort.startswith("-") else f"-{key}"
            pages = [self._search(self._named(), ("_sort", each)) for each in sorts]
            one, two = (_ids(*matches_of(page)) for page in pages)
            yield _same("ids opposite to the other order", one, two[::-1])
            return
        page = self._search(*self._scope(), ("_sort", sort))
        resources = matches_of(page)
        if "next" in links_of(page):
            resources += matches_of(self.client.follow(page, "next"))
        yield _in_order(key, sort.startswith("-"), resources)

    def _default_order(self) -> Iterator[Check]:
        page, default = self._search(*self._scope()), self.offer.default_sort
        if self.offer.sortable:
            sort = f"{'-' if default.descending else ''}{default.key}"
            pages = page, self._search(*self._scope(), ("_sort", sort))
            one, two = (_ids(*matches_of(each)) for each in pages)
            yield _same("ids as in that order", one, two)
        elif self.offer.order or default.key not in _SORTED:
            raise NotProvedError("the order is the hospital system's own")
        else:
            yield _in_order(default.key, default.descending, matches_of(page))

    def _self(self) -> Iterator[Check]:
        page = self._search(*self._scope())
        again = self.client.follow(page, "self")
        yield _same("ids again", _ids(*matches_of(page)), _ids(*matches_of(again)))

    def _pages(self) -> tuple[Json, Json]:
        """Return two pages that follow each other. Raises NotProvedError."""
        first = self._search(*self._scope(), ("_count", "2"))
        if first.get("total", 0) < 4:
            raise NotProvedError("fewer than four resources")
        if self.offer.unpaged and "next" not in links_of(first):
            raise NotProvedError("only searches of one source have further pages")
        return first, self.client.follow(first, "next")

    def _next(self) -> Iterator[Check]:
        if not self.paging:
            page = self._search(*self._scope(), ("_count", "1"))
            links = len(links_of(page).keys() - {"self"})
            yield Check("links of a first page to others", 0, links)
            return
        pages = [each for page in self._pages() for each in matches_of(page)]
        whole = matches_of(self._search(*self._scope(), ("_count", "4")))
        yield _same("ids of two pages as of a long one", _ids(*whole), _ids(*pages))

    def _previous(self) -> Iterator[Check]:
        first, second = self._pages()
        back = self.client.follow(second, "previous")
        yield _same("ids again", _ids(*matches_of(first)), _ids(*matches_of(back)))


def _in_order(key: str, descending: bool, resources: Sequence[Json]) -> Check:
    texts = [jmespath.search(_SORTED[key], each) for each in resources]
    times = list(pairwise(datetime.fromisoformat(text) for text in texts if text))
    if not times:
        raise NotProvedError(f"fewer than two resources show {key}")
    compare = ge if descending else le
    return Check(
        "neighbours in order", len(times), sum(compare(*pair) for pair in times)
    )


# The deployment


def claims_of(
    client: Client, offer: Offer, statement: Json, zone: tzinfo
) -> Iterator[Claim]:
    """Yield all claims of a deployment; `statement` is what its mapping leads to."""
    sample = sample_of(client, offer)
    yield Claim("CapabilityStatement", partial(_statement, client, statement))
    for kind, each in offer.resources.items():
        yield Claim(f"{kind}: read", partial(_read, client, kind, sample[kind]))
        if each.searchable:
            yield from Prover(client, each, offer.paging, zone, sample[kind]).claims()
    for subject, reason in _UNTRIED.items():
        yield Claim(subject, partial(_untried, reason))


def sample_of(client: Client, offer: Offer) -> Mapping[ResourceType, list[Json]]:
    """Return stays from all over a long page, and resources that they refer to."""
    stays = offer.resources[ResourceType.ENCOUNTER]
    criteria = () if stays.unfiltered else (("date", "ge1900"),)
    pairs = (*criteria, ("_count", f"{stays.count_max}"))
    page = matches_of(body_of(client.search(stays.resource_type, *pairs)))
    sample = {ResourceType.ENCOUNTER: page[:: len(page) // SAMPLE + 1]}
    for kind in (ResourceType.PATIENT, ResourceType.ORGANIZATION):
        shown = [each for resources in sample.values() for each in resources]
        references = dict.fromkeys(
            reference
            for each in shown
            for reference in jmespath.search(_REFERENCES, each)
            if str(reference).startswith(f"{kind}/")
        )
        answers = [client.get(path) for path in list(references)[:SAMPLE]]
        sample[kind] = [a.json() for a in answers if a.status_code == requests.codes.ok]
    return sample


def _statement(client: Client, statement: Json) -> Iterator[Check]:
    live = body_of(client.get("metadata"))
    names = [name for name in {**live, **statement} if name != "date"]
    yield _same(
        "parts that are those of the mapping's",
        [statement.get(name) for name in names],
        [live.get(name) for name in names],
    )


def _read(client: Client, kind: str, sample: Sequence[Json]) -> Iterator[Check]:
    bodies = [body_of(client.get(f"{kind}/{each['id']}")) for each in sample]
    if bodies:
        yield _same("resources with this id", _ids(*sample), _ids(*bodies))
        answer = client.get(f"{kind}/{sample[0]['id']}", Authorization=None)
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
    statement = capability_statement(
        offer, base_url, mapping.name, datetime.now(UTC).date()
    )
    client = Client(base_url, token, options.certificate)
    started = datetime.now(UTC)
    try:
        # As JSON has it.
        document = orjson.loads(orjson.dumps(statement))
        claims = claims_of(client, offer, document, mapping.time_zone)
        results = [settled(claim) for claim in claims]
    except (requests.RequestException, NotProvedError, WrongAnswerError) as error:
        text = f"{error}: no sample of stays; check ENCOUNTERS_BASE_URL and the token"
        raise CannotRunError(text) from error
    report = {
        "deployment": mapping.name,
        "base_url": base_url,
        "release": version("encounters"),
        "mapping": fingerprint,
        "date": started.isoformat(timespec="seconds"),
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
    loader = PackageLoader("app.cli", "")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    template = environment.get_template("conformance.html")
    return template.render(report=report, verdicts=Verdict)


def _print(results: Sequence[Result]) -> None:
    for each in results:
        failed = [c for c in each.checks if c.expected != c.counted]
        numbers = [f"{c.text}: {c.counted} of {c.expected}" for c in failed]
        if each.verdict is not Verdict.PROVED:
            print(
                f"{each.verdict:10}  {each.claim}: {'; '.join(numbers) or each.reason}"
            )
    counts = Counter(each.verdict for each in results)
    print(", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict))
