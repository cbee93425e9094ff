"""What the keys of a mapping file say about each other: one function a rule.

What one key may hold is in the schema. A rule looks at a document whose shape may be
faulty in parts, and yields each fault that it finds; it keeps silent about a part that
the schema has refused already. `RULES`, at the end, lists them, and `RULES_OF_THE_WHOLE`
those that need a file whose every part is right.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations, product
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from adapters.contract import ResourceType
from adapters.mapping.document import (
    Document,
    Section,
    Site,
    VariableError,
    named,
    resolved,
    variable,
)
from adapters.mapping.model import Nulls, Several, Step
from adapters.mapping.paths import path_fault, path_of
from adapters.mapping.problems import MappingError, did_you_mean, one_of
from adapters.mapping.profile import PROFILES, Profile, load_profile, profile_is_there
from adapters.mapping.schema import Fault, constant_fault
from adapters.mapping.slots import LONGEST_ID, REFERS, UNSERVED, Kind, Slot
from adapters.mapping.times import directives, ends_in_a_z, has_clock, sorts_as_text
from adapters.mapping.yaml import KeyPath
from adapters.parameters import SEARCH_PARAMETERS, SORTS, ParameterType

# ------------------------------------------------------------------------------- codes


def code_tables_are_named(doc: Document) -> Iterator[Fault]:
    """Refuse a `codes:` that names no table of the file, and a table that nothing names.

    Where a field names another table, that is the one problem to report. A class of the
    hospital's own may use any.
    """
    holders = {site.path: site.options for site in doc.sites}
    for section in doc.sections:
        for name, call in section.search.items():
            holders[*section.path, "search", name, "system"] = call.get("system", {})
    used = {(*p, "codes"): o["codes"] for p, o in holders.items() if "codes" in o}
    unknown = {path: name for path, name in used.items() if name not in doc.codes}
    for path, name in unknown.items():
        near = did_you_mean(name, doc.codes)
        yield Fault(path, f"there is no code table '{name}' under codes{near}")
    for name in () if doc.is_own or unknown else doc.codes:
        if name not in used.values():
            text = "no field uses this code table: name it with codes:, or remove it"
            yield Fault(("codes", name), text, at_key=True)


def targets_are_allowed(doc: Document) -> Iterator[Fault]:
    """Refuse what a slot cannot hold in the tables that it uses."""
    for site in doc.sites:
        name = site.options.get("codes", "")
        codes = doc.codes.get(name, {})
        targets: dict[KeyPath, str] = {
            ("table", code): target for code, target in codes.get("table", {}).items()
        }
        if "otherwise" in codes:
            targets["otherwise",] = codes["otherwise"]
        for path, target in targets.items():
            if text := _target_fault(site.slot, target):
                yield Fault(("codes", name, *path), text)


def _target_fault(slot: Slot, target: str) -> str:
    if slot.kind is not Kind.CODE:
        return constant_fault(slot, target)
    is_code = target in slot.codes
    return "" if is_code else one_of(target, slot.codes, f"a code of '{slot.name}'")


# ------------------------------------------------------------------------------ fields


def required_slots_are_mapped(doc: Document) -> Iterator[Fault]:
    """Refuse a slot under `requires` that comes from nowhere."""
    for section in doc.sections:
        for index, name in enumerate(section.data.get("requires", ())):
            if name and not doc.holds((*section.path, "fields", name)):
                text = (
                    f"'{name}' is required, but fields does not say where it comes from"
                )
                yield Fault((*section.path, "requires", index), text)


_CONSTANTS: Mapping[str, str] = MappingProxyType(
    {
        "visit_number": "visit_number_system",
        "functional_unit": "functional_unit_extension",
    }
)
"""Fields of stays, and the constant that FHIR needs beside them (spec 2.2 and 2.3)."""


def constants_are_set(doc: Document) -> Iterator[Fault]:
    """Refuse a field without the constant that it needs; the visit's may be a field."""
    for section in doc.sections_of(ResourceType.ENCOUNTER):
        fields = (*section.path, "fields")
        for name, constant in _CONSTANTS.items():
            places = (("constants", constant), (*fields, constant))
            if doc.holds((*fields, name)) and not any(map(doc.holds, places)):
                yield Fault((*fields, name), f"needs constants.{constant}", at_key=True)
    searched = doc.data.get("encounter", {}).get("search", ()) if doc.is_own else ()
    for index, name in enumerate(searched):
        row = SEARCH_PARAMETERS[ResourceType.ENCOUNTER].get(name)
        path = ("constants", "functional_unit_extension")
        if row and row.extension and not doc.holds(path):
            yield Fault(("encounter", "search", index), f"needs {'.'.join(path)}")


# ------------------------------------------------------------------------------- times

Z_IS_A_LETTER = (
    "Z is a letter here, and usually means UTC: say time_zone: UTC beside it"
)


def times_are_whole(doc: Document) -> Iterator[Fault]:
    """Refuse a format without a time of day, or without the zone that its Z stands for."""
    for site in doc.sites:
        form = site.options.get("format")
        if form is None or site.slot.kind is not Kind.TIME:
            continue
        if not has_clock(form) and not doc.holds((*site.path, "at")):
            text = f"'{form}' is a day and no time: say at: \"00:00\" beside it"
            yield Fault((*site.path, "format"), text)
        elif ends_in_a_z(form) and not site.zone_name:
            yield Fault((*site.path, "format"), Z_IS_A_LETTER)


# ------------------------------------------------------------------------------ source

_SKIPPED = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | `[^`]*` | --[^\n]* | /\*.*?\*/""",
    re.VERBOSE | re.DOTALL,
)
_READS = re.compile(r"[\s(]*(SELECT|WITH)\b", re.IGNORECASE)
_DATABASE = re.compile(r"[a-z][a-z0-9+_]*:/")
_SENDABLE = re.compile(r"([!-~\xa1-\xff][\t -~\xa0-\xff]*)?")


def profile_is_known(doc: Document) -> Iterator[Fault]:
    """Refuse a profile that is neither one of ours nor a file."""
    name = doc.data.get("profile")
    if name is not None and not profile_is_there(name, doc.profile_directory, doc.read):
        text = one_of(name, PROFILES, "a profile, nor a file beside this one")
        yield Fault(("profile",), text)


def secrets_can_be_used(doc: Document) -> Iterator[Fault]:
    """Refuse a variable that is not set, or has a sign that no header can carry."""
    for path, source in doc.sources.items():
        for place, name in named(source, path):
            try:
                value = variable(name, doc.environ)
            except VariableError as error:
                yield Fault(place, str(error))
                continue
            if not value:
                yield Fault(place, f"the environment variable {name} is not set")
            elif place[-3] == "headers" and not _SENDABLE.fullmatch(value):
                text = f"the environment variable {name} holds a sign that no header can carry"
                yield Fault(place[:-1], text)


def urls_are_addresses(doc: Document) -> Iterator[Fault]:
    """Refuse what is no address, also in the environment; never quote it."""
    for path, source in doc.sources.items():
        is_http = source.get("kind") == "http"
        oauth2 = source.get("auth", {}).get("oauth2", {})
        for place, value in (
            ((*path, "url"), source.get("url", "")),
            ((*path, "auth", "oauth2", "token_url"), oauth2.get("token_url", "")),
        ):
            url = resolved(value, doc.environ)
            if url and not (_is_http(url) if is_http else _DATABASE.match(url)):
                like = "https://host/path" if is_http else "postgresql://host/database"
                text = f"not an address like {like}"
                text += ", nor {env: NAME}" if isinstance(value, str) else ""
                yield Fault(place, text)


def _is_http(url: str) -> bool:
    if not re.fullmatch(r"https?://[^\s/?#]+[^\s?#]*", url):
        return False
    try:
        whole = urlsplit(url)
        # The port is read when it is asked for.
        return bool(whole.hostname) and whole.port != 0
    except ValueError:
        return False


def _at(data: Any, keys: Iterable[str]) -> Any:
    """Return what the keys lead to, an empty table where there is none."""
    for key in keys:
        data = data.get(key, {}) if isinstance(data, Mapping) else {}
    return data


def rows_only_read(doc: Document) -> Iterator[Fault]:
    """Refuse `rows` that is not one SELECT, or that ends in a semicolon."""
    sections = [section for section in doc.sections if not section.is_http]
    holders = [(s.path, s.data) for s in sections]
    holders += [(item.path, item.options) for s in sections for item in s.items]
    for path, rows in [((*p, "rows"), o["rows"]) for p, o in holders if "rows" in o]:
        bare = _SKIPPED.sub(lambda skipped: re.sub(r"[^\n]", " ", skipped[0]), rows)
        if not _READS.match(bare):
            begin = len(bare) - len(bare.lstrip())
            yield Fault(path, "must be one SELECT (or WITH … SELECT)", offset=begin)
        elif (end := bare.find(";")) >= 0:
            text = "must be one statement without ';'"
            if bare[end:].rstrip() == ";":
                text = "must not end in ';': the service adds WHERE and ORDER BY"
            yield Fault(path, text, offset=end)


# ------------------------------------------------------------------------------ search


class Use(NamedTuple):
    """A slot that a parameter or a sort key needs, and where the file says so.

    The slot has to be in one of `sections`; `several` tells that others may lack it, or
    hold the same code for all their rows.
    """

    path: KeyPath
    word: str
    slots: tuple[str, ...]
    sections: list[Section]
    several: bool = False

    @property
    def sites(self) -> list[Site]:
        """What the file says of these slots."""
        sites = (site for section in self.sections for site in section.sites)
        return [site for site in sites if site.full_name in self.slots]


def searched_slots_have_columns(doc: Document) -> Iterator[Fault]:
    """Refuse a parameter or sort key whose slot comes from nowhere or from no column."""
    for use in () if doc.is_own else _uses(doc):
        sites = use.sites
        if any(site.columns for site in sites):
            continue
        if use.several and any(map(_is_code, sites)):
            continue
        constants = [site for site in sites if site.slot.kind is not Kind.CODE]
        if constants:
            text = f"is always the same; '{use.word}' needs a column: {{from: …}}"
            yield Fault(constants[0].path, text)
        elif not any(site.options.get("value") in UNSERVED for site in sites):
            slots = " or ".join(use.slots)
            text = f"'{use.word}' needs the field {slots}, from a column"
            text += ": here it is always the same" if sites else ""
            yield Fault(use.path, text)


def searched_columns_can_be_compared(doc: Document) -> Iterator[Fault]:
    """Refuse to compare half a time, texts that do not sort as times, or ids in code."""
    uses: dict[KeyPath, tuple[Use, Site]] = {}
    for use in _uses(doc):
        for site in use.sites:
            uses.setdefault(site.path, (use, site))
    for use, site in uses.values():
        if not site.section.is_http:
            for key, text in _faults_of_comparison(use, site):
                yield Fault((*site.path, *key), text)


def _faults_of_comparison(use: Use, site: Site) -> Iterator[tuple[KeyPath, str]]:
    """Yield why the values of a site are not compared as they are."""
    column, form = site.options.get("search"), site.options.get("format")
    if column in site.columns and len(site.columns) > 1:
        text = f"'{column}' alone is not the whole time: "
        yield ("search",), text + "join both in the SELECT, and name that column"
    if column is not None:
        return
    if len(site.columns) > 1:
        text = f"'{use.word}' cannot compare two columns: join them in the SELECT, "
        yield (), text + "or name one column with search:"
    if form is not None and not sorts_as_text(form):
        text = f"'{use.word}' cannot compare texts like {form}: make a date of them in "
        yield ("format",), text + "the SELECT, or name a column of dates with search:"
    if "codes" in site.options and not _compares_codes(use, site):
        text = f"'{use.word}' cannot compare what a code table makes: decode it in the "
        text += "SELECT, or name a column that holds the result with search:"
        yield ("codes",), text


def _compares_codes(use: Use, site: Site) -> bool:
    """Tell whether a database is asked for the codes that stand for a value."""
    row = SEARCH_PARAMETERS[site.section.kind].get(use.word)
    is_number = row is not None and (row.is_id or row.system_slot is not None)
    return row is None or (row.type is ParameterType.TOKEN and not is_number)


def searched_changes_are_whole(doc: Document) -> Iterator[Fault]:
    """Refuse to search by a last change that some change of the resource leaves as it is."""
    for use in _uses(doc):
        partial = [site for site in use.sites if "covers" not in site.options]
        if use.word == "_lastUpdated" and "search" in use.path and partial:
            text = (
                "'_lastUpdated' needs a last_updated that covers every joined table: "
                "clients would miss changes. Add covers: all to the field if it does"
            )
            yield Fault(use.path, text)


def _uses(doc: Document) -> Iterator[Use]:
    """Yield what is searched and sorted; one of several sources may have lists of its own."""
    for kind in ResourceType:
        sections = doc.sections_of(kind)
        if sections:
            yield from _listed(doc, (kind.lower(),), sections[0].whole, sections)
        for each in sections:
            if each.is_entry:
                yield from _listed(doc, each.path, each.data, [each])


def _listed(
    doc: Document, path: KeyPath, data: Mapping[str, Any], sections: list[Section]
) -> Iterator[Use]:
    """Yield what one list of parameters and one of sort keys need of the sections."""
    kind, several = sections[0].kind, sections[0].is_entry
    search, sort = data.get("search", ()), data.get("sort", ())
    # An HTTP API has a table of each: of parameters, and of what its sort keys are.
    is_table = isinstance(search, Mapping)
    for at, name in zip(search, search, strict=True) if is_table else enumerate(search):
        where = (*path, "search", at)
        if row := SEARCH_PARAMETERS[kind].get(name):
            yield Use(where, name, row.slots, sections, several)
        # A period needs an end wherever there is a start.
        if name == "date" and doc.data.get("date") == "period":
            for section in sections:
                if not several or doc.holds((*section.path, "fields", "start")):
                    yield Use(where, "date: period", ("end",), [section])
    for at, name in () if isinstance(sort, Mapping) else enumerate(sort):
        if slot := SORTS[kind].get(name):
            yield Use((*path, "sort", at), name, (slot,), sections, several)


def _is_code(site: Site) -> bool:
    return site.slot.kind is Kind.CODE or site.slot.name == "functional_unit"


# -------------------------------------------------------------------------------- http

_CLOCK = {Step.DAY: "", Step.MINUTE: "HM", Step.SECOND: "HMS"}

_Places: TypeAlias = tuple[tuple[str, str], ...]

_PATHS_OF_SOURCE: _Places = (("error", "path"), ("auth.session", "token"))
_PATHS_OF_SECTION: _Places = (
    ("read", "row"),
    ("list", "rows"),
    ("list", "total"),
    ("list", "paging.next"),
    ("list", "paging.token.path"),
    ("list.counting", "total"),
)
"""Where the file tells of an answer, and the key there that holds a path into it."""

_PARAMETERS = (
    "list.count",
    "list.paging.offset",
    "list.paging.page",
    "list.paging.token.send",
    "sort.send",
)
"""Where a section names parameters, beside its searches."""

_SENT = ("send", "contains", "exact", "excluding", "from", "after", "before", "until")
"""The keys of a search that name a parameter."""


class PathUse(NamedTuple):
    """A path of the file, and what it leads into: an answer, a row, or rows of an item."""

    into: KeyPath
    path: KeyPath
    text: str


def paths_can_be_read(doc: Document) -> Iterator[Fault]:
    """Refuse a path that cannot be parsed, and paths that no answer has at once.

    What holds a value holds no keys.
    """
    uses: list[tuple[PathUse, tuple[str, ...]]] = []
    for use in _path_uses(doc):
        if fault := path_fault(use.text):
            yield Fault(use.path, fault[0], offset=fault[1])
        elif isinstance(path := path_of(use.text), tuple):
            uses.append((use, path))
    texts = {(use.into, path): use.text for use, path in uses}
    for use, path in uses:
        above = [(use.into, path[:length]) for length in range(len(path))]
        if holder := next((texts[each] for each in above if each in texts), None):
            text = (
                f"no answer has '{use.text}': '{holder}' is read as a value or a list"
            )
            yield Fault(use.path, text)


def _path_uses(doc: Document) -> Iterator[PathUse]:
    """Yield every path into the answers of an HTTP API."""
    tables = [(path, data, _PATHS_OF_SOURCE) for path, data in doc.sources.items()]
    sections = doc.http_sections
    tables += [(each.path, each.data, _PATHS_OF_SECTION) for each in sections]
    for path, data, places in tables:
        for holder, key in places:
            into, keys = holder.split("."), key.split(".")
            text = _at(data, (*into, *keys))
            if isinstance(text, str) and text:
                yield PathUse((*path, *into), (*path, *into, *keys), text)
    for section in sections:
        yield from _row_paths(section)


def _row_paths(section: Section) -> Iterator[PathUse]:
    """Yield the paths into a row, and into the rows of its items."""
    own = [site for site in section.sites if site.item is None]
    yield from _column_paths(section.path, own)
    for item in section.items:
        into = section.path
        if rows := item.options.get("rows"):
            yield PathUse(into, (*item.path, "rows"), rows)
            into = item.path
        yield from _column_paths(into, item.sites)
        if column := item.options.get("only_if", {}).get("from"):
            yield PathUse(into, (*item.path, "only_if", "from"), column)


def _column_paths(into: KeyPath, sites: Iterable[Site]) -> Iterator[PathUse]:
    for site in sites:
        is_list = isinstance(site.options.get("from"), list)
        for index, column in enumerate(site.columns):
            place = (*site.path, "from", index)
            yield PathUse(into, place if is_list else place[:-1], column)


def parameters_differ(doc: Document) -> Iterator[Fault]:
    """Refuse to send two things by one parameter: an API takes one of them, or neither."""
    for section in doc.http_sections:
        used: dict[str, KeyPath] = {}
        for path, name, is_bound in _sent_parameters(section):
            other = used.setdefault(name, path)
            if other != path and not (is_bound and other[:-1] == path[:-1]):
                place = ".".join(map(str, other))
                text = (
                    f"'{name}' is sent for {place} already: one parameter, one meaning"
                )
                yield Fault((*section.path, *path), text)


def _sent_parameters(section: Section) -> Iterator[tuple[KeyPath, str, bool]]:
    """Yield each parameter, and whether it is a bound told from others by its prefix."""
    places = [tuple(place.split(".")) for place in _PARAMETERS]
    for name in section.search:
        places += [("search", name, key) for key in (*_SENT, "system")]
    for path in places:
        value = _at(section.data, path)
        if isinstance(value, str) and value:
            yield path, value, False
        elif sent := _at(value, ("send",)):
            is_bound = path[-1] != "system"
            yield path if is_bound else (*path, "send"), sent, is_bound


def order_can_be_kept(doc: Document) -> Iterator[Fault]:
    """Refuse rows without the sort key first, where those with it cannot be asked for."""
    for section in doc.http_sections:
        sort, listed = section.data.get("sort", {}), section.data.get("list", {})
        if sort.get("nulls", Nulls.LAST) == Nulls.LAST:
            continue
        is_numbered = not {"offset", "page"}.isdisjoint(listed.get("paging", {}))
        has_bound = not {"from", "after"}.isdisjoint(section.search.get("date", {}))
        where = (*section.path, "sort", "nulls")
        if not is_numbered or "total" not in listed:
            yield Fault(where, "needs list.total, and list.paging by offset or page")
        elif "date" in sort.get("by", ()) and not has_bound:
            text = "needs search.date.from: by it, the rows with the key are asked for"
            yield Fault(where, text)


def merges_can_be_followed(doc: Document) -> Iterator[Fault]:
    """Refuse `merges` where nothing says into whom a patient was merged."""
    for site in doc.sites:
        if "merges" in site.options and not site.section.is_http:
            text = "needs patients of the same source, with replaced_by from a column"
            if site.slot.name != "patient_id":
                text = "is only for patient_id"
            elif any(_says_merges(doc, site, each) for each in doc.targets(site)):
                continue
            yield Fault((*site.path, "merges"), text, at_key=True)


def _says_merges(doc: Document, site: Site, target: Section) -> bool:
    """Tell whether a section of patients says into whom those of a site were merged."""
    named = [s for s in target.sites if s.slot.name == "replaced_by" and s.columns]
    is_same = target.source_path == site.section.source_path and bool(site.columns)
    return is_same and any(doc.prefix_of(each) == target.prefix for each in named)


def profiles_can_be_served(doc: Document) -> Iterator[Fault]:
    """Refuse a list that cannot page under a profile that does, and searches without a list."""
    profile = _profile(doc)
    for section in doc.http_sections:
        path, name = section.path, profile.name if profile else ""
        offered = profile and profile.resources.get(section.kind)
        is_searched = bool(offered and offered.parameters)
        may_lack = section.kind is ResourceType.ORGANIZATION
        is_alone = len(doc.sections_of(section.kind)) == 1
        if "list" in section.data:
            pages = bool(offered and profile and profile.paging)
            if pages and is_alone and "paging" not in section.data["list"]:
                text = (
                    f"the profile '{name}' has further pages and this list has none: "
                    "say how they are asked for (paging), or take a profile without"
                )
                yield Fault((*path, "list"), text, at_key=True)
        elif section.search:
            text = "search needs list: how rows are asked for"
            yield Fault((*path, "search"), text, at_key=True)
        elif is_searched and not may_lack:
            text = (
                f"the profile '{name}' has searches of {path[0]} and this section has "
                "none: say how rows are asked for (list), or take a profile whose "
                f"section {path[0]} is empty: {{}}"
            )
            yield Fault(path, text, at_key=True)


def _profile(doc: Document) -> Profile | None:
    try:
        name = doc.data.get("profile", "")
        return load_profile(name, doc.profile_directory, doc.read)
    except (MappingError, OSError):
        return None


def unserved_rows_are_filtered(doc: Document) -> Iterator[Fault]:
    """Refuse `hidden` and `removed` where the source itself does not leave them out."""
    for section in doc.http_sections:
        codes = _table_of(doc, section, "status")
        targets = {*codes.get("table", {}).values(), codes.get("otherwise")}
        listed = section.data.get("list", {})
        if listed and targets & {*UNSERVED} and not listed.get("fixed"):
            text = (
                "hidden and removed stays must be left out by the source itself: "
                "write what to send under fixed"
            )
            yield Fault((*section.path, "list"), text, at_key=True)


def codes_can_be_sent(doc: Document) -> Iterator[Fault]:
    """Refuse to send one value where one of our codes is several of the source's."""
    calls = [
        (section, name, section.search[name])
        for section in doc.sections
        for name in ("status", "class", "gender")
        if name in section.search
    ]
    for section, name, call in calls:
        path, codes = (*section.path, "search", name), _table_of(doc, section, name)
        ours = [*codes.get("table", {}).values()]
        twice = sorted({code for code in ours if ours.count(code) > 1} - {*UNSERVED})
        if "excluding" in call and "otherwise" not in codes:
            text = "needs a code table with otherwise: what it excludes are its codes"
            yield Fault((*path, "excluding"), text)
        if twice and call.get("several", Several.ONE) == Several.ONE:
            text = (
                f"'{twice[0]}' is several codes of the source: several (comma or "
                "repeat) must say how they are sent"
            )
            yield Fault(path, text)


def _table_of(doc: Document, section: Section, name: str) -> Mapping[str, Any]:
    """Return the code table of a field, an empty one where it has none."""
    tables = (s.options.get("codes") for s in section.sites if s.full_name == name)
    table: Mapping[str, Any] = doc.codes.get(next(tables, None) or "", {})
    return table


def dates_can_be_sent(doc: Document) -> Iterator[Fault]:
    """Refuse bounds in a format that says less than the step, or that are no instants."""
    for section, name in product(doc.http_sections, ("date", "birthdate")):
        if name not in section.search:
            continue
        bounds, path = section.search[name], (*section.path, "search", name)
        is_birth, form = name == "birthdate", bounds.get("format", "")
        step = Step(bounds.get("step", Step.DAY if is_birth else Step.SECOND))
        starts = [s.zone_name for s in section.sites if s.full_name == "start"]
        says_zone = is_birth or "time_zone" in bounds or any(starts)
        if is_birth and step is not Step.DAY:
            yield Fault((*path, "step"), "a birth date is compared by the day")
        if form and set(_CLOCK[step]) - directives(form):
            text = f"'{form}' says less than the step, a {step}"
            yield Fault((*path, "format"), text)
        if ends_in_a_z(form) and not says_zone:
            yield Fault((*path, "format"), Z_IS_A_LETTER)
        if not is_birth and doc.data.get("date") == "period":
            yield Fault(("date",), "date: period cannot be asked of an HTTP source")


# ----------------------------------------------------------------------------- several


def keys_fit_their_source(doc: Document) -> Iterator[Fault]:
    """Refuse the keys of databases for an HTTP API, and its keys for a database."""
    for section in doc.sections:
        name, is_http = section.data.get("source", ""), section.is_http
        if "kind" not in section.source:
            continue
        holders = [(item.path, item.options) for item in section.items]
        holders += [(site.path, site.options) for site in section.sites]
        refused = {
            "key": "is only for databases: rows is the path of a list in the row",
            "merges": "is only for a database: for an API, search.patient.merged says it",
        }
        text = f"'{name}' is an HTTP API: it is read with read and list"
        if not is_http:
            refused = {
                "strip": "is only for an HTTP API: a SELECT can return the id alone"
            }
            text = f"'{name}' is a database: it is read with rows"
        if (key := "rows" if is_http else "read") in section.data:
            yield Fault((*section.path, key), text, at_key=True)
        for path, options in holders:
            for key in refused.keys() & options.keys():
                yield Fault((*path, key), refused[key], at_key=True)
            if not is_http and "rows" in options and not doc.holds((*path, "key")):
                text = "rows needs key: the column that holds the id of the resource"
                yield Fault((*path, "rows"), text, at_key=True)


def sections_name_their_source(doc: Document) -> Iterator[Fault]:
    """Refuse a section that does not name its source, and a source that none names."""
    names = [str(path[-1]) for path in doc.sources if len(path) > 1]
    for section in doc.sections:
        name, path = section.data.get("source"), (*section.path, "source")
        if name is None and len(names) > 1:
            text = f"say source: which of {', '.join(names)} holds these rows"
            yield Fault(section.path, text, at_key=True)
        elif name is not None and not names:
            text = "the file has one source: names are for those under sources"
            yield Fault(path, text)
        elif name is not None and name not in names:
            yield Fault(path, one_of(name, names, "a source of this file"))
    unused = {*names} - {section.data.get("source") for section in doc.sections}
    for name in unused if len(names) > 1 else ():
        text = "no section reads this source: name it with source:, or remove it"
        yield Fault(("sources", name), text, at_key=True)


def prefixes_tell_sources_apart(doc: Document) -> Iterator[Fault]:
    """Refuse a prefix that begins like another one of the same type."""
    for kind in ResourceType:
        entries = [section for section in doc.sections_of(kind) if section.prefix]
        for other, section in combinations(entries, 2):
            shorter, longer = sorted((other.prefix, section.prefix), key=len)
            if longer.startswith(shorter):
                text = f"'{section.prefix}' and '{other.prefix}': one is the start of the other"
                yield Fault((*section.path, "prefix"), text)


def references_name_their_source(doc: Document) -> Iterator[Fault]:
    """Refuse a reference of which nobody could tell to which source it leads."""
    for site in doc.sites:
        if site.slot.name in REFERS and (text := _reference_fault(doc, site)):
            yield Fault(site.path, text, at_key=True)


def _reference_fault(doc: Document, site: Site) -> str:
    kind, named = REFERS[site.slot.name], site.options.get("source")
    target, sections = kind.lower(), doc.targets(site)
    everywhere = doc.sections_of(kind)
    if not everywhere and named is not None:
        return f"there is no section {target} that source: could name"
    if not everywhere:
        places = {each.source_path for each in doc.sections_of(site.section.kind)}
        text = f"two sources may hold the same id: the file needs a section {target}"
        return text if len(places) > 1 and site.columns else ""
    if not sections:
        known = dict.fromkeys(str(section.source_path[-1]) for section in everywhere)
        return one_of(named or "", known, f"a source of {target}")
    if len(sections) > 1:
        several = f"several sources hold {target}: name it with source:"
        twice = f"'{named}' holds {target} more than once: name the prefix with source:"
        return twice if named else several
    whole = doc.prefix_of(site) + site.options.get("value", "")
    text = f"'{whole}' is longer than an id may be: {LONGEST_ID} characters"
    return text if len(whole) > LONGEST_ID else ""


# ------------------------------------------------------------------------------- rules

_Rule: TypeAlias = Callable[[Document], Iterator[Fault]]

RULES: tuple[_Rule, ...] = (
    profile_is_known,
    secrets_can_be_used,
    urls_are_addresses,
    rows_only_read,
    prefixes_tell_sources_apart,
    targets_are_allowed,
    required_slots_are_mapped,
    keys_fit_their_source,
    times_are_whole,
    searched_columns_can_be_compared,
    unserved_rows_are_filtered,
    dates_can_be_sent,
    codes_can_be_sent,
    paths_can_be_read,
    parameters_differ,
    order_can_be_kept,
)

RULES_OF_THE_WHOLE: tuple[_Rule, ...] = (
    sections_name_their_source,
    code_tables_are_named,
    references_name_their_source,
    constants_are_set,
    searched_slots_have_columns,
    searched_changes_are_whole,
    profiles_can_be_served,
    merges_can_be_followed,
)
