"""What the keys of a mapping file say about each other: one function a rule.

What one key may hold is in the schema. A rule looks at a document whose shape may be
faulty in parts, and yields each problem that it finds; it keeps silent about a part that
the schema has refused already. `RULES`, at the end, lists them.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from adapters.contract import ResourceType
from adapters.mapping.document import Document, Site, named, resolved, variable
from adapters.mapping.model import (
    HIDDEN,
    REMOVED,
    Several,
    Step,
)
from adapters.mapping.problems import MappingError, MappingProblem, did_you_mean, one_of
from adapters.mapping.profile import PROFILES, Profile, load_profile, profile_is_there
from adapters.mapping.slots import FHIR_ID, REFERS, UNSERVED, Kind, Slot
from adapters.mapping.times import (
    directives,
    ends_in_a_z,
    is_format,
    sorts_as_text,
    zone,
    zone_names,
)
from adapters.mapping.yaml import KeyPath
from adapters.parameters import SEARCH_PARAMETERS, SORTS

_OID_URN = re.compile(r"urn:oid:[0-2](\.(0|[1-9][0-9]*))+")
_UUID_URN = re.compile(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_URL = re.compile(r"https?://[^\s/]+(/\S*)?")

# ------------------------------------------------------------------------------- codes


def tables_exist(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a `codes:` that names no table of the file."""
    for site in doc.sites:
        name = site.options.get("codes")
        if ("codes",) in doc.refused:
            return
        if name is not None and not doc.holds(("codes", name)):
            near = did_you_mean(name, doc.codes())
            text = f"there is no code table '{name}' under codes{near}"
            yield doc.problem((*site.path, "codes"), text)


def tables_are_used(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a code table that no field names.

    Where a field names another table, or none, that is the one problem to report. A class
    of the hospital's own may use any.
    """
    if doc.is_own:
        return
    used = set(doc.texts_of("codes"))
    if used - set(doc.codes()) or doc.refused:
        return
    for name in doc.codes():
        if name not in used:
            text = "no field uses this code table: name it with codes:, or remove it"
            yield doc.problem(("codes", name), text, at_key=True)


def targets_are_allowed(doc: Document) -> Iterator[MappingProblem]:
    """Refuse what a slot cannot hold in the tables that it uses."""
    for site in doc.sites:
        name = site.options.get("codes", "")
        codes = doc.codes().get(name, {})
        targets: dict[KeyPath, str] = {
            ("codes", name, "table", code): target
            for code, target in codes.get("table", {}).items()
        }
        if "otherwise" in codes:
            targets["codes", name, "otherwise"] = codes["otherwise"]
        for path, target in targets.items():
            if text := _fault(site.slot, target, str(path[-1])):
                yield doc.problem(path, text)


def _fault(slot: Slot, target: str, code: str) -> str:
    if target in UNSERVED and slot.name != "status":
        words = f": use {', '.join(slot.codes)}" if slot.codes else ""
        return f"'{target}' is a word for status only{words}"
    match slot.kind:
        case Kind.CODE if target not in slot.codes and code in slot.codes:
            return f"the wrong way round: the hospital's code first, {target}: {code}"
        case Kind.CODE if target not in slot.codes:
            return one_of(target, slot.codes, f"a code of '{slot.name}'")
        case Kind.ID if not FHIR_ID.fullmatch(target):
            return "not a FHIR id: up to 64 letters, digits, '-' and '.'"
        case Kind.SYSTEM if not _is_system(target):
            return f"'{target}' is neither urn:oid:… nor an address (https://…)"
        case Kind.FLAG if target not in ("true", "false"):
            return one_of(target, ("true", "false"), f"a value of '{slot.name}'")
    return ""


def _is_system(text: str) -> bool:
    """Tell whether the text is an OID URN, a UUID URN or an absolute URL."""
    return any(form.fullmatch(text) for form in (_OID_URN, _UUID_URN, _URL))


# ------------------------------------------------------------------------------ fields


def required_slots_are_mapped(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a slot under `requires` that comes from nowhere."""
    for key, _, section in doc.sections():
        for index, name in enumerate(section.get("requires", ())):
            if name and not doc.holds((*key, "fields", name)):
                text = (
                    f"'{name}' is required, but fields does not say where it comes from"
                )
                yield doc.problem((*key, "requires", index), text)


def item_rows_have_a_key(doc: Document) -> Iterator[MappingProblem]:
    """Refuse `rows` without `key` in a list item, and `key` without `rows`."""
    for item in doc.items():
        bare = "rows" in item.options and not doc.holds((*item.path, "key"))
        if bare and not doc.is_http(doc.section(item.section)):
            text = "rows needs key: the column that holds the id of the resource"
            yield doc.problem((*item.path, "rows"), text, at_key=True)
        if "key" in item.options and not doc.holds((*item.path, "rows")):
            text = "key is only for an item with a SELECT of its own (rows)"
            yield doc.problem((*item.path, "key"), text, at_key=True)


_CONSTANTS: Mapping[str, str] = MappingProxyType(
    {
        "visit_number": "visit_number_system",
        "functional_unit": "functional_unit_extension",
    }
)
"""Fields of stays, and the constant that FHIR needs beside them (spec 2.2 and 2.3)."""


def constants_are_set(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a field without the constant that it needs; the visit's may be a field."""
    for section, kind, _ in doc.sections():
        for name, constant in _CONSTANTS.items():
            path = (*section, "fields", name)
            if kind is ResourceType.ENCOUNTER and doc.holds(path):
                beside = (*path[:-1], constant)
                if not (_is_set(doc, constant) or doc.holds(beside)):
                    text = f"needs constants.{constant}"
                    yield doc.problem(path, text, at_key=True)
    searched = doc.data.get("encounter", {}).get("search", ()) if doc.is_own else ()
    for index, name in enumerate(searched):
        row = SEARCH_PARAMETERS[ResourceType.ENCOUNTER][name]
        if row.extension and not _is_set(doc, "functional_unit_extension"):
            text = "needs constants.functional_unit_extension"
            yield doc.problem(("encounter", "search", index), text)


def _is_set(doc: Document, constant: str) -> bool:
    """Tell whether a constant is there; a misspelt or misplaced one is told as that."""
    path: KeyPath = ("constants", constant)
    return doc.holds(path) or path in doc.refused or (constant,) in doc.refused


# ------------------------------------------------------------------------------- times

Z_IS_A_LETTER = (
    "Z is a letter here, and usually means UTC: say time_zone: UTC beside it"
)


def zones_are_known(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a time zone that is not an IANA name."""
    holders: list[tuple[KeyPath, Mapping[str, Any]]] = [((), doc.data)]
    holders += doc.sources().items()
    holders += [(site.path, site.options) for site in doc.sites]
    for path, options in holders:
        name = options.get("time_zone")
        if name is not None and zone(name) is None:
            near = did_you_mean(name, sorted(zone_names()))
            text = f"'{name}' is not a time zone{near or ': write Europe/Paris or UTC'}"
            yield doc.problem((*path, "time_zone"), text)


def formats_can_be_read(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a format that leaves out day or time, or the zone that its Z stands for."""
    for site in doc.sites:
        form = site.options.get("format")
        if form is not None and (text := _format_fault(doc, site, form)):
            yield doc.problem((*site.path, "format"), text)


def _format_fault(doc: Document, site: Site, form: str) -> str:
    if "%" not in form:
        return f"'{form}' is not a format: write it like %d/%m/%Y %H:%M"
    if "Z" in directives(form):
        return "%Z (a zone's short name) says no instant: use %z, or time_zone:"
    if not is_format(form):
        return f"'{form}' cannot be read: it needs at least %Y, %m and %d"
    if site.slot.kind is not Kind.TIME:
        return ""
    if not directives(form) & set("HIMSf") and not doc.holds((*site.path, "at")):
        return f"'{form}' is a day and no time: say at: \"00:00\" beside it"
    return Z_IS_A_LETTER if ends_in_a_z(form) and not doc.says_zone(site) else ""


# ------------------------------------------------------------------------------ source

_SKIPPED = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | `[^`]*` | --[^\n]* | /\*.*?\*/""",
    re.VERBOSE | re.DOTALL,
)
_READS = re.compile(r"[\s(]*(SELECT|WITH)\b", re.IGNORECASE)


def secrets_are_set(doc: Document) -> Iterator[MappingProblem]:
    """Refuse an environment variable that is named and not set, where there are any."""
    if doc.environ is None:
        return
    for path, source in doc.sources().items():
        for place, name in named(source, path):
            if not variable(name, doc.environ):
                text = f"the environment variable {name} is not set"
                yield doc.problem(place, text)


def urls_have_a_scheme(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a variable for the address that does not hold one; never quote it."""
    for path, source in doc.sources().items():
        url = resolved(source.get("url", ""), doc.environ)
        is_http = source.get("kind") == "http"
        if url and not is_http and not re.match(r"[a-z][a-z0-9+_]*:/", url):
            text = "not an address like postgresql://host/database"
            yield doc.problem((*path, "url"), text)


def rows_only_read(doc: Document) -> Iterator[MappingProblem]:
    """Refuse `rows` that is not one SELECT, or that ends in a semicolon."""
    for path, statement in _statements(doc):
        bare = _SKIPPED.sub(
            lambda skipped: re.sub(r"[^\n]", " ", skipped[0]), statement
        )
        if not _READS.match(bare):
            begins = len(bare) - len(bare.lstrip())
            text = "must be one SELECT (or WITH … SELECT)"
            yield doc.problem(path, text, offset=begins)
        elif ";" in bare:
            text = "must be one statement without ';'"
            if bare.rstrip().endswith(";") and bare.count(";") == 1:
                text = "must not end in ';': the service adds WHERE and ORDER BY"
            yield doc.problem(path, text, offset=bare.index(";"))


def _statements(doc: Document) -> Iterator[tuple[KeyPath, str]]:
    read = {path: data for path, _, data in doc.sections() if not doc.is_http(data)}
    for path, section in read.items():
        if "rows" in section:
            yield (*path, "rows"), section["rows"]
    for item in doc.items():
        if "rows" in item.options and item.section in read:
            yield (*item.path, "rows"), item.options["rows"]


def profile_is_known(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a profile that is neither one of ours nor a file."""
    name = doc.data.get("profile")
    if name is not None and not profile_is_there(name, doc.profile_directory, doc.read):
        text = one_of(name, PROFILES, "a profile, nor a file beside this one")
        yield doc.problem(("profile",), text)


# ------------------------------------------------------------------------------ search


class Use(NamedTuple):
    """A slot that a parameter or a sort key needs, and where the file says so.

    `sections` are the paths in one of which the slot has to be; `several` tells that
    others may lack it, or hold the same code for all their rows.
    """

    path: KeyPath
    word: str
    slots: tuple[str, ...]
    sections: tuple[KeyPath, ...]
    several: bool = False


def searched_slots_have_columns(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a parameter or sort key whose slot comes from nowhere or from no column."""
    if doc.is_own:
        return
    for use in _uses(doc):
        sites = _sites(doc, use)
        if any(site.columns for site in sites) or _refused(doc, use):
            continue
        if use.several and any(map(_is_code, sites)):
            continue
        constants = [site for site in sites if site.slot.kind is not Kind.CODE]
        if constants:
            text = f"is always the same; '{use.word}' needs a column: {{from: …}}"
            yield doc.problem(constants[0].path, text)
        elif not any(site.options.get("value") in UNSERVED for site in sites):
            slots = " or ".join(use.slots)
            text = f"'{use.word}' needs the field {slots}, from a column"
            text += ": here it is always the same" if sites else ""
            yield doc.problem(use.path, text)


def searched_columns_are_single(doc: Document) -> Iterator[MappingProblem]:
    """Refuse to search or sort by a time that two columns make."""
    for use, site in _searched(doc):
        if len(site.columns) > 1:
            text = (
                f"'{use.word}' cannot compare two columns: join them in the SELECT, "
                "or name one column with search:"
            )
            yield doc.problem(site.path, text)


def searched_columns_are_whole(doc: Document) -> Iterator[MappingProblem]:
    """Refuse to search a time of two columns by one of them, a day without its time."""
    for site in doc.sites:
        named = site.options.get("search")
        if named in site.columns and len(site.columns) > 1:
            text = (
                f"'{named}' alone is not the whole time: join both in the SELECT, and "
                "name that column"
            )
            yield doc.problem((*site.path, "search"), text)


def searched_texts_sort(doc: Document) -> Iterator[MappingProblem]:
    """Refuse to search or sort by texts that do not sort as the times they stand for."""
    for use, site in _searched(doc):
        form = site.options.get("format")
        if form is not None and is_format(form) and not sorts_as_text(form):
            text = (
                f"'{use.word}' cannot compare texts like {form}: make a date of them in "
                "the SELECT, or name a column of dates with search:"
            )
            yield doc.problem((*site.path, "format"), text)


def _uses(doc: Document) -> Iterator[Use]:
    """Yield what is searched and sorted; one of several sources may have lists of its own."""
    period = doc.data.get("date") == "period"
    for path, kind, data, sections in _listings(doc):
        several = len(path) > 1 or "sources" in data
        for at, name in _places(data, "search"):
            if row := SEARCH_PARAMETERS[kind].get(name):
                where = (*path, "search", at)
                yield Use(where, name, row.slots, sections, several)
            # A period needs an end wherever there is a start.
            for section in sections if name == "date" and period else ():
                if not several or doc.holds((*section, "fields", "start")):
                    yield Use(
                        (*path, "search", at), "date: period", ("end",), (section,)
                    )
        for at, name in _places(data, "sort"):
            if slot := SORTS[kind].get(name):
                yield Use((*path, "sort", at), name, (slot,), sections, several)


def _listings(
    doc: Document,
) -> Iterator[tuple[KeyPath, ResourceType, Mapping[str, Any], tuple[KeyPath, ...]]]:
    """Yield what may list parameters, and the paths of the sections that it speaks of."""
    for key, kind, whole in doc.wholes():
        entries = [(path, data) for path, of, data in doc.sections() if of is kind]
        yield (key,), kind, whole, tuple(path for path, _ in entries)
        for path, data in entries if "sources" in whole else ():
            yield path, kind, data, (path,)


def _places(section: Mapping[str, Any], part: str) -> tuple[tuple[int | str, str], ...]:
    """Return the words of a list, or the parameters of an HTTP source, with their places."""
    listed = section.get(part, ())
    if not isinstance(listed, Mapping):
        return tuple(enumerate(listed))
    return tuple((name, name) for name in listed) if part == "search" else ()


def _searched(doc: Document) -> Iterator[tuple[Use, Site]]:
    """Yield what a database compares by its own columns, each value once."""
    paths: set[KeyPath] = set()
    for use in _uses(doc):
        for site in _sites(doc, use):
            if doc.is_http(doc.section(site.section)):
                continue
            if "search" not in site.options and site.path not in paths:
                paths.add(site.path)
                yield use, site


def _sites(doc: Document, use: Use) -> list[Site]:
    return [
        site
        for site in doc.sites
        if site.section in use.sections and site.full_name in use.slots
    ]


def _is_code(site: Site) -> bool:
    return site.slot.kind is Kind.CODE or site.slot.name == "functional_unit"


def _refused(doc: Document, use: Use) -> bool:
    """Tell whether a slot is in the file with a fault that is reported elsewhere."""
    names = {slot.partition(".")[0] for slot in use.slots}
    if not all(doc.holds((*section, "fields")) for section in use.sections):
        return True
    return any(
        doc.is_unclear((*section, *at, name))
        for section in use.sections
        for name in names
        for at in ((), ("fields",))
    )


# ------------------------------------------------------------------------- http source

_SENDABLE = re.compile(r"([!-~\xa1-\xff][\t -~\xa0-\xff]*)?")
_SECRET = re.compile(r"auth|pass|pwd|secret|key|token|motdepasse|mdp", re.IGNORECASE)


def _is_address(url: str) -> bool:
    if not re.fullmatch(r"https?://[^\s/?#]+[^\s?#]*", url):
        return False
    try:
        whole = urlsplit(url)
        # The port is read when it is asked for.
        return bool(whole.hostname) and whole.port != 0
    except ValueError:
        return False


def addresses_are_http(doc: Document) -> Iterator[MappingProblem]:
    """Refuse an address that is none of HTTP; never quote it."""
    for path, source in doc.http_sources().items():
        oauth2 = source.get("auth", {}).get("oauth2", {})
        for below, value in (
            (("url",), source.get("url", "")),
            (("auth", "oauth2", "token_url"), oauth2.get("token_url", "")),
        ):
            url = resolved(value, doc.environ)
            if url and not _is_address(url):
                text = "not an address like https://host/path"
                text += ", nor {env: NAME}" if isinstance(value, str) else ""
                yield doc.problem((*path, *below), text)


def keys_can_be_sent(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a variable with a sign that no header can carry; never quote it."""
    for path, source in doc.http_sources().items():
        for header, value in source.get("headers", {}).items():
            for _, name in named(value):
                if not _SENDABLE.fullmatch(resolved(value, doc.environ)):
                    text = f"the environment variable {name} holds a sign that no header can carry"
                    yield doc.problem((*path, "headers", header), text)


def keys_are_not_written(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a password, key or token in clear, of an HTTP API or a class."""
    for path, source in doc.sources().items():
        for below, key in _written(source):
            text = "put it into the environment and write {env: NAME}"
            yield doc.problem((*path, *below, key), text)


def _written(source: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    """Yield what stands in clear under a key that speaks of a secret."""
    auth = source.get("auth", {})
    login = auth.get("session", {})
    for path, values in (
        (("headers",), source.get("headers", {})),
        (("options",), source.get("options", {})),
        (("auth", "basic"), auth.get("basic", {})),
        (("auth", "oauth2"), auth.get("oauth2", {})),
        (("auth", "session", "body"), login.get("body", {})),
        (("auth", "session", "form"), login.get("form", {})),
    ):
        for key, value in values.items():
            bare = re.sub(r"[\W_]", "", key)
            if isinstance(value, str) and _SECRET.search(bare) and key != "token_url":
                yield path, key


def several_of(doc: Document, kind: ResourceType) -> bool:
    """Whether resources of this type come from more than one section."""
    return sum(of is kind for _, of, _ in doc.sections()) > 1


def targets(doc: Document, site: Site) -> dict[KeyPath, Mapping[str, Any]]:
    """Return the sections that a reference may lead to: all, or those that it names.

    It names a source, or the prefix of one of its tables.
    """
    named = site.options.get("source")
    return {
        path: section
        for path, kind, section in doc.sections()
        if kind is REFERS[site.slot.name]
        and named in (None, doc.source_of(section)[-1], section.get("prefix"))
    }


def prefix_of(doc: Document, site: Site) -> str:
    """Return what stands before an id of a source in the ids that clients see."""
    if site.slot.name == "id" and not site.listed:
        own = (data for path, _, data in doc.sections() if path == site.section)
        return str(next(own).get("prefix", ""))
    if site.slot.name in REFERS:
        sections = list(targets(doc, site).values())
        return str(sections[0].get("prefix", "")) if sections else ""
    return ""


# -------------------------------------------------------------------------------- http

_CLOCK = {Step.DAY: "", Step.MINUTE: "HM", Step.SECOND: "HMS"}


def _sections(
    doc: Document,
) -> Iterator[tuple[KeyPath, ResourceType, Mapping[str, Any]]]:
    for path, kind, section in doc.sections():
        if doc.is_http(section):
            yield path, kind, section


def sections_fit_their_source(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a section that reads one of several sources in the way of another kind."""
    for path, _, section in doc.sections():
        name = section.get("source", "")
        if doc.is_http(section) and "rows" in section:
            text = f"'{name}' is an HTTP API: it is read with read and list"
            yield doc.problem((*path, "rows"), text, at_key=True)
        elif "read" in section and not doc.is_http(section) and not doc.refused:
            text = f"'{name}' is a database: it is read with rows"
            yield doc.problem((*path, "read"), text, at_key=True)


def profiles_can_be_served(doc: Document) -> Iterator[MappingProblem]:
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


def dates_can_be_sent(doc: Document) -> Iterator[MappingProblem]:
    """Refuse dates without a bound, or in a format that says less or more than the step."""
    for path, _, section in _sections(doc):
        for name in ("date", "birthdate"):
            options = section.get("search", {}).get(name)
            if options is not None:
                for below, text in _date_faults(name, options):
                    yield doc.problem((*path, "search", name, *below), text)
        bounds = section.get("search", {}).get("date", {})
        if ends_in_a_z(bounds.get("format", "")) and not _says_zone(doc, path, bounds):
            yield doc.problem((*path, "search", "date", "format"), Z_IS_A_LETTER)
        if "date" in section.get("search", {}) and doc.data.get("date") == "period":
            text = "date: period cannot be asked of an HTTP source"
            yield doc.problem(("date",), text)


def _says_zone(doc: Document, path: KeyPath, bounds: Mapping[str, Any]) -> bool:
    """Tell whether the bounds of a search, or what they are compared with, say a zone."""
    starts = (s for s in doc.sites if s.section == path and s.full_name == "start")
    return "time_zone" in bounds or any(map(doc.says_zone, starts))


def _date_faults(
    name: str, options: Mapping[str, Any]
) -> Iterator[tuple[KeyPath, str]]:
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
            ours = [*table.values()]
            if options is None or options.get("several", Several.ONE) != Several.ONE:
                continue
            twice = sorted(
                {code for code in ours if ours.count(code) > 1} - {HIDDEN, REMOVED}
            )
            if twice:
                text = (
                    f"'{twice[0]}' is several codes of the source: several (comma or "
                    "repeat) must say how they are sent"
                )
                yield doc.problem((*path, "search", name), text)


def items_stand_in_the_row(doc: Document) -> Iterator[MappingProblem]:
    """Refuse the key of a second SELECT: an answer holds its lists itself."""
    sections = {path for path, _, _ in _sections(doc)}
    for item in doc.items():
        if "key" in item.options and item.section in sections:
            text = "is only for databases: rows is the path of a list in the row"
            yield doc.problem((*item.path, "key"), text, at_key=True)


# ----------------------------------------------------------------------------- several

_LONGEST_ID = 64


def sections_name_their_source(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a section that names no source of the file, or none where there are several."""
    if not doc.refused.isdisjoint((("source",), ("sources",))):
        return
    names = [str(path[-1]) for path in doc.sources() if len(path) > 1]
    for path, _, section in doc.sections():
        name = section.get("source")
        if name is None and len(names) > 1:
            text = f"say source: which of {', '.join(names)} holds these rows"
            yield doc.problem(path, text, at_key=True)
        elif name is not None and not names:
            text = "the file has one source: names are for those under sources"
            yield doc.problem((*path, "source"), text)
        elif name is not None and not doc.holds(("sources", name)):
            text = one_of(name, names, "a source of this file")
            yield doc.problem((*path, "source"), text)


def sources_are_used(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a source that no section names."""
    used = {str(section.get("source")) for _, _, section in doc.sections()}
    if len(doc.sources()) < 2 or doc.refused:
        return
    for path in doc.sources():
        if path[-1] not in used:
            text = "no section reads this source: name it with source:, or remove it"
            yield doc.problem(path, text, at_key=True)


def prefixes_tell_sources_apart(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a prefix that begins like another one of the same type."""
    prefixes: dict[ResourceType, list[str]] = {}
    for path, kind, section in doc.sections():
        if (prefix := section.get("prefix")) is None:
            continue
        for other in prefixes.setdefault(kind, []):
            if prefix.startswith(other) or other.startswith(prefix):
                text = f"'{prefix}' and '{other}': one is the start of the other"
                yield doc.problem((*path, "prefix"), text)
        prefixes[kind].append(prefix)


def references_name_their_source(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a reference of which nobody could tell to which source it leads."""
    for site in doc.sites:
        if site.slot.name in REFERS and not doc.refused:
            if text := _unclear(doc, site):
                yield doc.problem(site.path, text, at_key=True)
            elif text := _too_long(doc, site):
                yield doc.problem(site.path, text)


def _unclear(doc: Document, site: Site) -> str:
    target = REFERS[site.slot.name].lower()
    named = site.options.get("source")
    sections = targets(doc, site)
    everywhere = [s for _, kind, s in doc.sections() if kind is REFERS[site.slot.name]]
    if not everywhere:
        return _unserved(doc, site, target)
    if not sections:
        known = [str(doc.source_of(section)[-1]) for section in everywhere]
        return one_of(named or "", dict.fromkeys(known), f"a source of {target}")
    if len(sections) > 1 and named is None:
        return f"several sources hold {target}: say which one with source:"
    if len(sections) > 1:
        return f"'{named}' holds {target} more than once: name the prefix with source:"
    return ""


def _unserved(doc: Document, site: Site, target: str) -> str:
    """Return what is wrong with a reference to what the file does not have."""
    if "source" in site.options:
        return f"there is no section {target} that source: could name"
    places = {doc.source_of(s) for _, kind, s in doc.sections() if kind is site.kind}
    if len(places) > 1 and site.columns:
        return f"two sources may hold the same id: the file needs a section {target}"
    return ""


def _too_long(doc: Document, site: Site) -> str:
    whole = prefix_of(doc, site) + site.options.get("value", "")
    if len(whole) > _LONGEST_ID:
        return f"'{whole}' is longer than an id may be: {_LONGEST_ID} characters"
    return ""


# ------------------------------------------------------------------------------- rules

Rule: TypeAlias = Callable[[Document], Iterator[MappingProblem]]

RULES: tuple[Rule, ...] = (
    profile_is_known,
    secrets_are_set,
    urls_have_a_scheme,
    rows_only_read,
    sections_name_their_source,
    sources_are_used,
    prefixes_tell_sources_apart,
    references_name_their_source,
    tables_exist,
    tables_are_used,
    targets_are_allowed,
    required_slots_are_mapped,
    item_rows_have_a_key,
    constants_are_set,
    zones_are_known,
    formats_can_be_read,
    searched_slots_have_columns,
    searched_columns_are_single,
    searched_columns_are_whole,
    searched_texts_sort,
    addresses_are_http,
    keys_can_be_sent,
    keys_are_not_written,
    sections_fit_their_source,
    profiles_can_be_served,
    unserved_rows_are_filtered,
    dates_can_be_sent,
    codes_can_be_sent,
    items_stand_in_the_row,
)
