"""What the keys of a mapping file say about each other: one function a rule.

What one key may hold is in the schema. A rule looks at a document of the right shape, and
yields each fault that it finds. `RULES`, at the end, lists them.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations, product
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import urlsplit

from adapters.contract import Prefix, ResourceType
from adapters.mapping.binary import BinaryForm
from adapters.mapping.document import (
    Document,
    Section,
    Site,
    resolved,
)
from adapters.mapping.model import Nulls, Step
from adapters.mapping.paths import path_fault
from adapters.mapping.problems import MappingError, did_you_mean, one_of
from adapters.mapping.profile import PROFILES, load_profile
from adapters.mapping.schema import Fault, constant_fault
from adapters.mapping.slots import LONGEST_ID, REFERS, UNSERVED, SlotKind
from adapters.mapping.template import TEMPLATES, template_of
from adapters.mapping.times import (
    EPOCHS,
    directives,
    ends_in_a_z,
    has_clock,
    sorts_as_text,
)
from adapters.mapping.yaml import Items, KeyPath, Scalar, Table, find, is_there
from adapters.parameters import SEARCH_PARAMETERS, SORTS, ParameterType

# ------------------------------------------------------------------------------- codes


def code_tables_are_there(doc: Document) -> Iterator[Fault]:
    """Refuse a `codes:` that names no table of the file."""
    holders = [(site.path, site.options) for site in doc.sites]
    for section in doc.sections:
        for name in section.search:
            holders.append(
                ((*section.path, "search", name), section.search.table(name))
            )
    for path, options in holders:
        name = options.text("codes")
        if name and name not in doc.codes:
            near = did_you_mean(name, doc.codes)
            text = f"there is no code table '{name}' under codes{near}"
            yield Fault((*path, "codes"), text)


def targets_are_allowed(doc: Document) -> Iterator[Fault]:
    """Refuse what a slot cannot hold in the tables that it uses."""
    for site in doc.sites:
        slot = site.slot
        codes = doc.codes.get(site.options.text("codes"))
        if codes is None:
            continue
        targets: list[tuple[KeyPath, str]] = [
            (("table", code), word) for code, word in codes.table.items()
        ]
        if codes.otherwise:
            targets.append((("otherwise",), codes.otherwise))
        for path, target in targets:
            if slot.kind is not SlotKind.CODE:
                text = constant_fault(slot, target)
            elif target not in slot.codes:
                text = one_of(target, slot.codes, f"a code of '{slot.name}'")
            else:
                text = ""
            if text:
                yield Fault(("codes", codes.name, *path), text)


# ------------------------------------------------------------------------------ fields


def required_slots_are_mapped(doc: Document) -> Iterator[Fault]:
    """Refuse a slot under `requires` that comes from nowhere."""
    for section in doc.sections:
        for index, name in enumerate(section.data.texts("requires")):
            if name not in section.fields:
                text = f"'{name}' is required, but is not under fields"
                yield Fault((*section.path, "requires", index), text)


_CONSTANTS: Mapping[str, str] = MappingProxyType(
    {
        "visit_number": "visit_number_system",
        "functional_unit": "functional_unit_extension",
    }
)
"""Fields of stays, and the constant that FHIR needs beside them (spec 2.2 and 2.3)."""


def constants_are_set(doc: Document) -> Iterator[Fault]:
    """Refuse a field without the constant that it needs, or a field in place of it."""
    constants = doc.root.table("constants")
    for section in doc.sections_of(ResourceType.ENCOUNTER):
        for name, constant in _CONSTANTS.items():
            if name in section.fields and constant not in {*constants, *section.fields}:
                path = (*section.path, "fields", name)
                yield Fault(path, f"needs constants.{constant}", at_key=True)
    for index, name in enumerate(doc.root.table("encounter").texts("search")):
        row = SEARCH_PARAMETERS[ResourceType.ENCOUNTER][name]
        is_set = "functional_unit_extension" in constants
        if doc.is_own and row.extension and not is_set:
            text = "needs constants.functional_unit_extension"
            yield Fault(("encounter", "search", index), text)


def forms_fit(doc: Document) -> Iterator[Fault]:
    """Refuse a form where no id or number is read from a column, and two of one column."""
    form_of_column: dict[tuple[object, ...], str] = {}
    for site in doc.sites:
        options = site.options
        form = options.text("form")
        is_id = site.slot.kind is SlotKind.ID
        if form and not is_id and site.slot.kind is not SlotKind.EXACT:
            text = "is only for ids and numbers"
            yield Fault((*site.path, "form"), text, at_key=True)
            continue
        if form and (site.section.is_http or "from" not in options):
            text = "is only for columns of a database"
            yield Fault((*site.path, "form"), text, at_key=True)
            continue
        if not form and not is_id:
            continue
        form = form or BinaryForm.HEX
        # A column is one of the SELECT of its section, or of that of its item.
        rows = site.item.options.text("rows") if site.item else ""
        for column in filter(None, (*site.columns, options.text("search"))):
            key = (*site.section.path, rows, column)
            first_form = form_of_column.setdefault(key, form)
            if first_form != form:
                path = (*site.path, "form") if "form" in options else site.path
                text = f"'{column}' is read as {first_form} and as {form}: "
                yield Fault(path, text + "write the same form everywhere")


# ------------------------------------------------------------------------------- times

Z_IS_A_LETTER = "a format does not read the zone Z: if it means UTC, add time_zone: UTC"
_CENTURY = (
    "%y and pivot require each other: pivot: 1970 reads %y as the years 1970 to 2069"
)


def times_are_whole(doc: Document) -> Iterator[Fault]:
    """Refuse a format without a time of day, or without the zone that its Z stands for."""
    for site in doc.sites:
        form = site.options.text("format")
        if not form or site.slot.kind is not SlotKind.TIME:
            continue
        if not has_clock(form) and "at" not in site.options:
            text = f"'{form}' has no time of day: add at: \"00:00\""
            yield Fault((*site.path, "format"), text)
        elif ends_in_a_z(form) and not site.zone_name:
            yield Fault((*site.path, "format"), Z_IS_A_LETTER)
        has_short_year = "y" in directives(form)
        has_pivot = "pivot" in site.options
        if has_short_year and not has_pivot:
            yield Fault((*site.path, "format"), _CENTURY)
        if has_pivot and not has_short_year:
            yield Fault((*site.path, "pivot"), _CENTURY)


# ------------------------------------------------------------------------------ source

_SKIPPED = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | `[^`]*` | --[^\n]* | /\*.*?\*/""",
    re.VERBOSE | re.DOTALL,
)
_READS = re.compile(r"[\s(]*(SELECT|WITH)\b", re.IGNORECASE)
_DATABASE = re.compile(r"[a-z][a-z0-9+_]*:/")


def urls_are_addresses(doc: Document) -> Iterator[Fault]:
    """Refuse what is no address, also the value of a variable; the text never quotes it."""
    for path, source in doc.sources.items():
        is_http = source.text("kind") == "http"
        keys: tuple[KeyPath, ...] = (("url",), ("auth", "oauth2", "token_url"))
        for key in keys:
            url = resolved(find(source, key), doc.values)
            if url and not (_is_http(url) if is_http else _DATABASE.match(url)):
                like = "https://host/path" if is_http else "postgresql://host/database"
                yield Fault((*path, *key), f"not an address like {like}")


def _is_http(url: str) -> bool:
    """Whether a text is the address of an HTTP server, without a query."""
    if not re.fullmatch(r"https?://[^\s/?#]+[^\s?#]*", url):
        return False
    try:
        whole = urlsplit(url)
        # `port` raises ValueError for one that is no number.
        return bool(whole.hostname) and whole.port != 0
    except ValueError:
        return False


def rows_only_read(doc: Document) -> Iterator[Fault]:
    """Refuse `rows` that is not one SELECT, or that ends in a semicolon."""
    holders: list[tuple[KeyPath, Table]] = []
    for section in doc.sections:
        if not section.is_http:
            holders.append((section.path, section.data))
            holders += [(item.path, item.options) for item in section.items]
    for holder, options in holders:
        rows = options.text("rows")
        path = (*holder, "rows")
        if not rows:
            continue
        # Quoted texts and comments become blanks, so that offsets stay.
        bare = _SKIPPED.sub(lambda skipped: re.sub(r"[^\n]", " ", skipped[0]), rows)
        if not _READS.match(bare):
            begin = len(bare) - len(bare.lstrip())
            yield Fault(path, "must be one SELECT (or WITH … SELECT)", offset=begin)
        elif (end := bare.find(";")) >= 0:
            text = "must be one statement without ';': the service adds ORDER BY"
            yield Fault(path, text, offset=end)


# ------------------------------------------------------------------------------ search


class Use(NamedTuple):
    """The slots that a parameter or a sort key needs, and where the file says so.

    One of them has to be in `sections`. With `several` these are entries of several sources:
    one entry may lack the slot, or have the same code for all its rows.
    """

    path: KeyPath
    word: str
    slots: tuple[str, ...]
    sections: list[Section]
    several: bool = False

    @property
    def sites(self) -> list[Site]:
        """The values of these slots in the sections."""
        sites = (site for section in self.sections for site in section.sites)
        return [site for site in sites if site.full_name in self.slots]


def searched_slots_have_columns(doc: Document) -> Iterator[Fault]:
    """Refuse a parameter or sort key whose slot comes from nowhere or from no column."""
    if doc.is_own:
        return
    for use in _uses(doc):
        sites = use.sites
        has_column = any(site.columns for site in sites)
        is_code = any(
            site.slot.kind is SlotKind.CODE or site.slot.name == "functional_unit"
            for site in sites
        )
        # A code may be the same for all rows of one of several sources.
        if has_column or (use.several and is_code):
            continue
        constants = [site for site in sites if site.slot.kind is not SlotKind.CODE]
        is_unserved = any(site.options.text("value") in UNSERVED for site in sites)
        if constants:
            text = f"is a constant; '{use.word}' needs a column: {{from: …}}"
            yield Fault(constants[0].path, text)
        elif not is_unserved:
            slots = " or ".join(use.slots)
            yield Fault(
                use.path, f"'{use.word}' needs the field {slots}, from a column"
            )


def searched_columns_can_be_compared(doc: Document) -> Iterator[Fault]:
    """Refuse a search or sort by values that differ from those in the column.

    Such as a time in two columns, a text that does not sort as its time, or an id or number
    with a code table.
    """
    uses: dict[KeyPath, tuple[Use, Site]] = {}
    for use in _uses(doc):
        for site in use.sites:
            uses.setdefault(site.path, (use, site))
    for use, site in uses.values():
        if not site.section.is_http:
            for key, text in _faults_of_comparison(use, site):
                yield Fault((*site.path, *key), text)


def _faults_of_comparison(use: Use, site: Site) -> Iterator[tuple[KeyPath, str]]:
    """Yield why the column of a site cannot be compared, with the key that is at fault."""
    has_two_columns = len(site.columns) > 1
    if column := site.options.text("search"):
        if has_two_columns and column in site.columns:
            text = (
                f"'{column}' is only a part of the time: combine both columns in the"
                " SELECT, and name the result"
            )
            yield ("search",), text
        return

    def cannot_compare(values: str) -> str:
        return (
            f"'{use.word}' cannot compare {values}: compute one value in the SELECT, or"
            " name another column under search"
        )

    if has_two_columns:
        yield (), cannot_compare("two columns")
    form = site.options.text("format")
    if form and not sorts_as_text(form):
        yield ("format",), cannot_compare(f"texts like {form}")
    if "codes" in site.options and not _compares_words(site, use.word):
        yield ("codes",), cannot_compare("the results of a code table")


def _compares_words(site: Site, name: str) -> bool:
    """Whether a parameter or a sort key can use the codes that stand for a word.

    The words of a status or class are looked up in the code table; ids, numbers, texts and
    times are compared with the column itself.
    """
    parameter = SEARCH_PARAMETERS[site.section.kind].get(name)
    if parameter is None:
        return True
    is_id_or_number = parameter.is_id or parameter.system_slot is not None
    return parameter.type is ParameterType.TOKEN and not is_id_or_number


def searched_changes_are_whole(doc: Document) -> Iterator[Fault]:
    """Refuse `_lastUpdated` by a time that does not change with every change of a resource."""
    for use in _uses(doc):
        partial = [site for site in use.sites if "covers" not in site.options]
        if use.word == "_lastUpdated" and "search" in use.path and partial:
            text = (
                "'_lastUpdated' needs last_updated with covers: all; add it if the time"
                " covers every joined table"
            )
            yield Fault(use.path, text)


def _uses(doc: Document) -> Iterator[Use]:
    """Yield what is searched and sorted; one of several sources may have lists of its own."""
    for kind in ResourceType:
        sections = doc.sections_of(kind)
        if sections:
            yield from _listed(doc, (kind.lower(),), sections[0].whole, sections)
        for section in sections:
            if section.is_entry:
                yield from _listed(doc, section.path, section.data, [section])


def _listed(
    doc: Document, path: KeyPath, data: Table, sections: list[Section]
) -> Iterator[Use]:
    """Yield the slots that one list of parameters and one of sort keys need in sections.

    `data` is the table at `path` that holds both lists.
    """
    kind = sections[0].kind
    several = sections[0].is_entry
    # A database has a list of parameters, an HTTP API a table of them.
    searches: list[tuple[str | int, str]] = [
        (name, name) for name in data.table("search")
    ]
    searches += enumerate(data.texts("search"))
    for step, name in searches:
        where = (*path, "search", step)
        yield Use(
            where,
            name,
            slots=SEARCH_PARAMETERS[kind][name].slots,
            sections=sections,
            several=several,
        )
        # A period needs an end wherever there is a start.
        if name == "date" and doc.root.text("date") == "period":
            for section in sections:
                if not several or "start" in section.fields:
                    yield Use(where, "date: period", slots=("end",), sections=[section])
    for index, name in enumerate(data.texts("sort")):
        if slot := SORTS[kind].get(name):
            yield Use(
                (*path, "sort", index),
                name,
                slots=(slot,),
                sections=sections,
                several=several,
            )


# -------------------------------------------------------------------------------- http

_CLOCK = {Step.DAY: "", Step.MINUTE: "HM", Step.SECOND: "HMS"}

_PATHS_OF_SOURCE: tuple[str, ...] = ("error.path", "auth.session.token")
_PATHS_OF_SECTION = (
    "read.row",
    "list.rows",
    "list.total",
    "list.paging.next",
    "list.paging.token.path",
    "list.counting.total",
)
"""The keys that hold a path into an answer."""

_PARAMETERS = ("count", "paging.offset", "paging.page", "paging.token.query")
"""Where a list has templates."""


def paths_can_be_read(doc: Document) -> Iterator[Fault]:
    """Refuse a path into the answers of an HTTP API that cannot be parsed."""
    for path, text in _paths(doc):
        if fault := path_fault(text):
            fault_text, offset = fault
            yield Fault(path, fault_text, offset=offset)


def _paths(doc: Document) -> Iterator[tuple[KeyPath, str]]:
    """Yield each path into an answer, with the place of its text in the file."""
    for path, source in doc.sources.items():
        yield from _texts_at(path, source, _PATHS_OF_SOURCE)
    for section in doc.http_sections:
        yield from _texts_at(section.path, section.data, _PATHS_OF_SECTION)
        for site in section.sites:
            is_list = isinstance(site.options.get("from"), Items)
            for index, column in enumerate(site.columns):
                path_of_column = (*site.path, "from")
                yield (*path_of_column, index) if is_list else path_of_column, column
        for item in section.items:
            if rows := item.options.text("rows"):
                yield (*item.path, "rows"), rows
            if column := item.options.table("only_if").text("from"):
                yield (*item.path, "only_if", "from"), column


def _texts_at(
    path: KeyPath, table: Table, names: Iterable[str]
) -> Iterator[tuple[KeyPath, str]]:
    """Yield the texts that a table has under dotted names, with their places."""
    for name in names:
        keys = tuple(name.split("."))
        if isinstance(text := find(table, keys), Scalar):
            yield (*path, *keys), text


def parameters_differ(doc: Document) -> Iterator[Fault]:
    """Refuse two templates that send one parameter: an API reads one of them, or neither."""
    for section in doc.http_sections:
        combined = section.data.table("list").table("combine")
        first_use: dict[str, KeyPath] = {}
        for path in _template_paths(section):
            template = template_of(str(find(section.data, path)))
            for name, _ in template.parameters:
                first_path = first_use.setdefault(name, path)
                if name in combined or _is_shared(section, first_path, path):
                    continue
                text = f"{'.'.join(map(str, first_path))} already sends '{name}'"
                yield Fault((*section.path, *path), text)


def _is_shared(section: Section, first: KeyPath, second: KeyPath) -> bool:
    """Whether two templates of a section may send the same parameter.

    Those of one search or of one sort are sent in each other's place; two bounds of a search
    are sent together, so they have to differ.
    """
    if first[:2] != second[:2]:
        return False
    if first == second or second[-1] not in _BOUNDS:
        return True
    return find(section.data, first) != find(section.data, second)


_BOUNDS = ("ge", "gt", "lt", "le")


def _template_paths(section: Section) -> Iterator[KeyPath]:
    """Yield where a section has templates, from its own path on."""
    for place in _PARAMETERS:
        path: KeyPath = ("list", *place.split("."))
        if isinstance(find(section.data, path), Scalar):
            yield path
    by = section.data.table("sort").table("by")
    yield from (("sort", "by", word) for word in by)
    for name in section.search:
        search = section.search.table(name)
        yield from (("search", name, key) for key in TEMPLATES if key in search)


def several_are_sent(doc: Document) -> Iterator[Fault]:
    """Refuse a separator for several parameters, and templates that place values differently."""
    for section in doc.http_sections:
        for name in section.search:
            search = section.search.table(name)
            path = (*section.path, "search", name)
            if "query" not in search or "separator" not in search:
                continue
            template = template_of(search.text("query"))
            if len(template.parameters) > 1:
                text = "needs a query of one parameter, to hold several values"
                yield Fault((*path, "separator"), text)
            for key in ("contains", "exact", "excluding"):
                if key in search:
                    other = template_of(search.text(key))
                    if other.is_list_of_texts != template.is_list_of_texts:
                        text = "needs its values in the same place as in query"
                        yield Fault((*path, key), text)


def order_can_be_kept(doc: Document) -> Iterator[Fault]:
    """Refuse `nulls` other than last where the rows that have the key cannot be requested."""
    for section in doc.http_sections:
        sort = section.data.table("sort")
        listed = section.data.table("list")
        if sort.text("nulls", Nulls.LAST) == Nulls.LAST:
            continue
        is_numbered = not {"offset", "page"}.isdisjoint(listed.table("paging"))
        has_bound = not {"ge", "gt"}.isdisjoint(section.search.table("date"))
        where = (*section.path, "sort", "nulls")
        if not is_numbered or "total" not in listed:
            yield Fault(where, "needs list.total, and list.paging by offset or page")
        elif "date" in sort.table("by") and not has_bound:
            text = "needs search.date.ge, which requests the rows that have the key"
            yield Fault(where, text)


def merges_can_be_followed(doc: Document) -> Iterator[Fault]:
    """Refuse `merges` where nothing says into whom a patient was merged."""
    for site in doc.sites:
        if "merges" not in site.options or site.section.is_http:
            continue
        if site.slot.name != "patient_id":
            text = "is only for patient_id"
        elif not any(_says_merges(doc, site, target) for target in doc.targets(site)):
            text = "needs patients of the same source, with replaced_by from a column"
        else:
            continue
        yield Fault((*site.path, "merges"), text, at_key=True)


def _says_merges(doc: Document, site: Site, target: Section) -> bool:
    """Whether a section of patients says into whom the patients of a site were merged."""
    same_source = target.source_path == site.section.source_path
    if not (same_source and site.columns):
        return False
    survivors = [
        survivor
        for survivor in target.sites
        if survivor.slot.name == "replaced_by" and survivor.columns
    ]
    return any(doc.prefix_of(survivor) == target.prefix for survivor in survivors)


def profile_is_there(doc: Document) -> Iterator[Fault]:
    """Refuse a profile that is neither one of ours nor a file."""
    name = doc.root.text("profile")
    if name not in PROFILES and not is_there(doc.profile_directory / name, doc.read):
        text = one_of(name, PROFILES, "a profile, nor a file beside this one")
        yield Fault(("profile",), text)


def profile_can_be_served(doc: Document) -> Iterator[Fault]:
    """Refuse a profile that offers pages or searches that an API lacks."""
    name = doc.root.text("profile")
    if not doc.http_sections:
        return
    try:
        profile = load_profile(name, doc.profile_directory, doc.read)
    except MappingError:
        # Whoever loads the profile reports it.
        return
    for section in doc.http_sections:
        offered = profile.resources.get(section.kind)
        listed = section.data.table("list")
        if offered is None:
            continue
        may_lack = section.kind is ResourceType.ORGANIZATION or not offered.parameters
        if not listed and not may_lack:
            text = f"the profile '{name}' requires searches: add list, or use another profile"
            yield Fault(section.path, text, at_key=True)
        if listed and profile.paging and "paging" not in listed:
            text = f"the profile '{name}' requires pages: add paging, or use another profile"
            yield Fault((*section.path, "list"), text, at_key=True)


def codes_can_be_sent(doc: Document) -> Iterator[Fault]:
    """Refuse lists with stays that are not served, and searches that cannot hold all codes."""
    for section, name in product(doc.http_sections, ("status", "class", "gender")):
        codes = doc.codes.get(section.fields.table(name).text("codes"))
        fhir_codes = [*codes.table.values()] if codes else []
        otherwise = codes.otherwise if codes else None
        listed = section.data.table("list")
        has_unserved = not {*fhir_codes, otherwise}.isdisjoint(UNSERVED)
        if listed and has_unserved and "fixed" not in listed:
            text = "add fixed, with parameters that exclude hidden and removed stays"
            yield Fault((*section.path, "list"), text, at_key=True)
        search = section.search.table(name)
        path = (*section.path, "search", name)
        if not search:
            continue
        if "excluding" in search and not otherwise:
            text = (
                "needs a code table with otherwise: it excludes the codes of that table"
            )
            yield Fault((*path, "excluding"), text)
        query = template_of(search.text("query"))
        takes_several = query.takes_several(search.text("separator"))
        repeated = {code for code in fhir_codes if fhir_codes.count(code) > 1}
        searched = sorted(repeated - {*UNSERVED})
        if searched and not takes_several:
            text = (
                f"several codes of the source become '{searched[0]}': write {{values}}"
            )
            yield Fault((*path, "query"), text)


def dates_can_be_sent(doc: Document) -> Iterator[Fault]:
    """Refuse bounds whose format is less precise than the step, or has a Z without a zone.

    Also a step of a birth date that is not a day, and a search by periods.
    """
    for section, name in product(doc.http_sections, ("date", "birthdate")):
        if name not in section.search:
            continue
        bounds = section.search.table(name)
        path = (*section.path, "search", name)
        is_birth = name == "birthdate"
        step = Step(bounds.text("step", Step.DAY if is_birth else Step.SECOND))
        start_zones = [
            site.zone_name for site in section.sites if site.full_name == "start"
        ]
        says_zone = is_birth or "time_zone" in bounds or any(start_zones)
        if is_birth and step is not Step.DAY:
            yield Fault((*path, "step"), "a birth date needs the step day")
        for bound in [bound for bound in Prefix if bound in bounds]:
            template = template_of(bounds.text(bound))
            for form in [place.form for place in template.places if place.form]:
                if form not in EPOCHS and set(_CLOCK[step]) - directives(form):
                    text = f"'{form}' is less precise than the step, a {step}"
                    yield Fault((*path, bound), text)
                if ends_in_a_z(form) and not says_zone:
                    yield Fault((*path, bound), Z_IS_A_LETTER)
        if not is_birth and doc.root.text("date") == "period":
            yield Fault(("date",), "date: period is not possible with an HTTP source")


# ----------------------------------------------------------------------------- several


_KEYS_OF_DATABASES = {
    "key": "is only for databases: rows is the path of a list in the row",
    "merges": "is only for databases: for an API use search.patient.merged",
    "search": "is only for databases: for an API use search of the section",
}
_KEYS_OF_APIS = {"strip": "is only for an HTTP API: a SELECT can return the id alone"}


def keys_fit_their_source(doc: Document) -> Iterator[Fault]:
    """Refuse the keys of databases for an HTTP API, and its keys for a database."""
    for section in doc.sections:
        is_http = section.is_http
        if is_http and section.is_entry:
            text = (
                "an HTTP API cannot be one of several sources: make it the only source"
                f" of {section.kind}, or deploy it separately"
            )
            yield Fault(section.path, text, at_key=True)
            continue
        refused = _KEYS_OF_DATABASES if is_http else _KEYS_OF_APIS
        wrong_key = "rows" if is_http else "read"
        if wrong_key in section.data:
            kind = "an HTTP API" if is_http else "a database"
            text = f"'{wrong_key}' cannot be used with this source, which is {kind}"
            yield Fault((*section.path, wrong_key), text, at_key=True)
        holders = [(item.path, item.options) for item in section.items]
        holders += [(site.path, site.options) for site in section.sites]
        for path, options in holders:
            for key in refused.keys() & options.keys():
                yield Fault((*path, key), refused[key], at_key=True)
            if not is_http and "rows" in options and "key" not in options:
                text = "rows needs key: the column that holds the id of the resource"
                yield Fault((*path, "rows"), text, at_key=True)


def sections_name_their_source(doc: Document) -> Iterator[Fault]:
    """Refuse a section that does not name which of several sources it reads."""
    names = [str(path[-1]) for path in doc.sources if len(path) > 1]
    for section in doc.sections:
        name = section.data.text("source")
        if not name and len(names) > 1:
            text = f"name the source of these rows: source: {' or '.join(names)}"
            yield Fault(section.path, text, at_key=True)
        elif name and name not in names:
            text = one_of(name, names, "one of the sources of this file")
            yield Fault((*section.path, "source"), text)


def prefixes_tell_sources_apart(doc: Document) -> Iterator[Fault]:
    """Refuse a prefix that begins like another one of the same type."""
    for kind in ResourceType:
        entries = [section for section in doc.sections_of(kind) if section.prefix]
        for other, section in combinations(entries, 2):
            shorter, longer = sorted((other.prefix, section.prefix), key=len)
            if longer.startswith(shorter):
                text = f"'{longer}' begins with '{shorter}': no prefix may begin with another"
                yield Fault((*section.path, "prefix"), text)


def references_name_their_source(doc: Document) -> Iterator[Fault]:
    """Refuse a reference that may lead to several sources or to none, and an id too long."""
    for site in doc.sites:
        if site.slot.name not in REFERS:
            continue
        kind = REFERS[site.slot.name]
        named = site.options.text("source")
        referred = doc.sections_of(kind)
        targets = doc.targets(site)
        sources = {
            section.source_path for section in doc.sections_of(site.section.kind)
        }
        constant_id = doc.prefix_of(site) + site.options.text("value")
        text = ""
        if named and not targets:
            known = dict.fromkeys(str(section.source_path[-1]) for section in referred)
            text = one_of(named, known, f"a source of {kind.lower()}")
        elif not referred and len(sources) > 1 and site.columns:
            text = f"two sources may have the same id: add a section {kind.lower()}"
        elif len(targets) > 1:
            text = (
                f"several sources have a section {kind.lower()}: name one, or its prefix,"
                " under source"
            )
        elif len(constant_id) > LONGEST_ID:
            text = f"'{constant_id}' has more than {LONGEST_ID} characters, the longest id of FHIR"
        if text:
            yield Fault(site.path, text, at_key=True)


# ------------------------------------------------------------------------------- rules

RULES: tuple[Callable[[Document], Iterator[Fault]], ...] = (
    profile_is_there,
    profile_can_be_served,
    urls_are_addresses,
    rows_only_read,
    sections_name_their_source,
    references_name_their_source,
    prefixes_tell_sources_apart,
    keys_fit_their_source,
    code_tables_are_there,
    targets_are_allowed,
    required_slots_are_mapped,
    constants_are_set,
    forms_fit,
    times_are_whole,
    searched_slots_have_columns,
    searched_columns_can_be_compared,
    searched_changes_are_whole,
    dates_can_be_sent,
    codes_can_be_sent,
    paths_can_be_read,
    parameters_differ,
    several_are_sent,
    order_can_be_kept,
    merges_can_be_followed,
)
