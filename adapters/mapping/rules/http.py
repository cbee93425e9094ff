"""Rules about HTTP sources: what they can page, filter, count and be trusted with."""

from collections.abc import Iterator, Mapping
from typing import Any

from adapters.contract import ResourceType
from adapters.mapping.checks import directives, ends_in_a_z, is_format, zone
from adapters.mapping.document import Document
from adapters.mapping.http_model import Several, Step
from adapters.mapping.model import HIDDEN, REMOVED
from adapters.mapping.nodes import KeyPath
from adapters.mapping.parameters import SORTS
from adapters.mapping.parts import several_of
from adapters.mapping.problems import MappingError, MappingProblem, one_of
from adapters.mapping.profile import Profile, load_profile
from adapters.mapping.rules.times import Z_IS_A_LETTER

_CLOCK = {Step.DAY: "", Step.MINUTE: "HM", Step.SECOND: "HMS"}


def _sections(
    doc: Document,
) -> Iterator[tuple[KeyPath, ResourceType, Mapping[str, Any]]]:
    for path, kind, section in doc.sections():
        if doc.is_http(section):
            yield path, kind, section


def profiles_are_kept(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a list that cannot page under a profile that does, and searches without a list."""
    profile = _profile(doc)
    for path, kind, section in _sections(doc):
        offered = profile.resources.get(kind) if profile else None
        if doc.is_refused(path):
            continue
        if offered and profile and profile.paging and several_of(doc, kind):
            text = (
                "an HTTP API cannot go on from a row of another source: take a profile "
                "without further pages, or serve it alone"
            )
            yield doc.problem(path, text, at_key=True)
        elif "list" not in section:
            if section.get("search"):
                text = "search needs list: how rows are asked for"
                yield doc.problem((*path, "search"), text, at_key=True)
            elif profile and offered and offered.parameters:
                text = (
                    f"the profile '{profile.name}' has searches of {kind.lower()} and this "
                    "section has none: say how rows are asked for (list), or take a profile "
                    f"whose section {kind.lower()} is empty: {{}}"
                )
                yield doc.problem(path, text, at_key=True)
        elif profile and profile.paging and offered and "paging" not in section["list"]:
            text = (
                f"the profile '{profile.name}' has further pages and this list has none: "
                "say how they are asked for (paging), or take a profile without"
            )
            yield doc.problem((*path, "list"), text, at_key=True)


def _profile(doc: Document) -> Profile | None:
    try:
        name = doc.data.get("profile", "")
        return load_profile(name, doc.profile_directory, doc.read)
    except (MappingError, OSError):
        return None


def lists_tell_a_total(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a list whose number of rows nothing tells (spec 4.3: total), or two things do."""
    for path, _, section in _sections(doc):
        if "list" not in section or doc.is_refused((*path, "list")):
            continue
        if len({"total", "counting"} & set(section["list"])) != 1:
            text = (
                "how many rows match must be told: by total (a path of the answer) "
                "or by counting (a call of its own)"
            )
            yield doc.problem((*path, "list"), text, at_key=True)


def one_way_to_page(doc: Document) -> Iterator[MappingProblem]:
    """Refuse no way or several under `paging`."""
    for path, _, section in _sections(doc):
        paging = section.get("list", {}).get("paging")
        path = (*path, "list", "paging")
        if paging is None or doc.is_refused(path):
            continue
        if len(set(paging) - {"first"}) != 1:
            yield doc.problem(path, "give one of offset, page, next, token")
        if "first" in paging and "page" not in paging:
            yield doc.problem((*path, "first"), "is only for page", at_key=True)


def reads_name_the_id(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a path of reading that does not hold the id once."""
    for path, _, section in _sections(doc):
        address = section.get("read", {}).get("path", "{id}")
        if address.count("{id}") != 1:
            yield doc.problem((*path, "read", "path"), "must hold {id}, once")


def unserved_rows_are_filtered(doc: Document) -> Iterator[MappingProblem]:
    """Refuse `hidden` and `removed` where the source itself does not leave them out."""
    for path, _, section in _sections(doc):
        status = section.get("fields", {}).get("status", {})
        codes = doc.codes().get(status.get("codes", ""), {})
        targets = {*codes.get("table", {}).values(), codes.get("otherwise")}
        if "list" not in section or not targets & {HIDDEN, REMOVED}:
            continue
        if not section["list"].get("fixed"):
            text = (
                "hidden and removed stays must be left out by the source itself: "
                "say what to send under fixed"
            )
            yield doc.problem((*path, "list"), text, at_key=True)


def dates_can_be_asked(doc: Document) -> Iterator[MappingProblem]:
    """Refuse dates without a bound, or in a format that says less or more than the step."""
    for path, _, section in _sections(doc):
        for name in ("date", "birthdate"):
            options = section.get("search", {}).get(name)
            if options is not None:
                for below, text in _date_faults(name, options):
                    yield doc.problem((*path, "search", name, *below), text)
        yield from _zoneless(doc, path, section.get("search", {}).get("date", {}))
        if "date" in section.get("search", {}) and doc.data.get("date") == "period":
            text = "date: period cannot be asked of an HTTP source"
            yield doc.problem(("date",), text)


def _zoneless(
    doc: Document, path: KeyPath, options: Mapping[str, Any]
) -> Iterator[MappingProblem]:
    """Refuse bounds that end in a Z, where nothing says whose clock they are of."""
    is_named = "time_zone" in options or any(
        doc.says_zone(site)
        for site in doc.sites()
        if site.section == path and site.full_name == "start"
    )
    if not is_named and ends_in_a_z(options.get("format", "")):
        yield doc.problem((*path, "search", "date", "format"), Z_IS_A_LETTER)


def _date_faults(
    name: str, options: Mapping[str, Any]
) -> Iterator[tuple[KeyPath, str]]:
    if not {"low", "before", "until"} & set(options):
        yield (), "needs from, before or until: the parameter of a bound"
    if {"before", "until"} <= set(options):
        yield ("until",), "give before or until, not both"
    step = Step(options.get("step", Step.DAY if name == "birthdate" else Step.SECOND))
    if name == "birthdate" and step is not Step.DAY:
        yield ("step",), "a birth date is compared by the day"
    form = options.get("format")
    if form is not None:
        if not is_format(form):
            yield ("format",), f"'{form}' is not a format: write it like %d/%m/%Y"
        elif set(_CLOCK[step]) - directives(form):
            yield ("format",), f"'{form}' says less than the step, a {step}"
    named = options.get("time_zone")
    if named is not None and zone(named) is None:
        yield ("time_zone",), f"'{named}' is not a time zone"


def codes_can_be_sent(doc: Document) -> Iterator[MappingProblem]:
    """Refuse to send one value where one of our codes is several of the source's."""
    for path, _, section in _sections(doc):
        for name in ("status", "class", "gender"):
            options = section.get("search", {}).get(name)
            field = section.get("fields", {}).get(name, {})
            table = doc.codes().get(field.get("codes", ""), {}).get("table", {})
            made = [*table.values()]
            if options is None or options.get("several", Several.ONE) != Several.ONE:
                continue
            twice = sorted({m for m in made if made.count(m) > 1} - {HIDDEN, REMOVED})
            if twice:
                text = (
                    f"'{twice[0]}' is several codes of the source: several (comma or "
                    "repeat) must say how they are sent"
                )
                yield doc.problem((*path, "search", name), text)


def orders_are_whole(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a sort key of one direction only, and an order told beside a sort."""
    for path, kind, section in _sections(doc):
        by = section.get("sort", {}).get("by", {})
        for word in by:
            base = word.removeprefix("-")
            at = (*path, "sort", "by", word)
            if base not in SORTS[kind]:
                text = one_of(base, SORTS[kind], f"a sort key of {kind}")
                yield doc.problem(at, text, at_key=True)
            elif not {base, f"-{base}"} <= set(by):
                text = f"needs both directions: {base} and -{base}"
                yield doc.problem(at, text, at_key=True)
        if by and "order" in section:
            text = "is only for a source that does not sort"
            yield doc.problem((*path, "order"), text, at_key=True)


def items_stand_in_the_row(doc: Document) -> Iterator[MappingProblem]:
    """Refuse the key of a second SELECT: an answer holds its lists itself."""
    asked = {path for path, _, _ in _sections(doc)}
    for item in doc.items():
        if "key" in item.options and item.section in asked:
            text = "is only for databases: rows is the path of a list in the row"
            yield doc.problem((*item.path, "key"), text, at_key=True)


RULES = (
    profiles_are_kept,
    lists_tell_a_total,
    one_way_to_page,
    reads_name_the_id,
    unserved_rows_are_filtered,
    dates_can_be_asked,
    codes_can_be_sent,
    orders_are_whole,
    items_stand_in_the_row,
)
