"""Rules about codes, constants and what tables turn codes into."""

from collections.abc import Iterator

from adapters.mapping.checks import FHIR_ID, is_system
from adapters.mapping.document import Document, Site
from adapters.mapping.nodes import KeyPath
from adapters.mapping.problems import MappingProblem, did_you_mean, one_of
from adapters.mapping.slots import CLASSES, UNSERVED, Kind


def tables_exist(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a `codes:` that names no table of the file."""
    for site in doc.sites():
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
    if used - set(doc.codes()) or any(tables_are_given(doc)) or doc.refused:
        return
    for name in doc.codes():
        if name not in used:
            text = "no field uses this code table: name it with codes:, or remove it"
            yield doc.problem(("codes", name), text, at_key=True)


def tables_are_given(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a coded slot that takes a column as it is."""
    for site in doc.sites():
        if site.slot.kind is not Kind.CODE or not site.columns:
            continue
        if "codes" not in site.options and not doc.is_refused(site.path):
            text = (
                f"'{site.slot.name}' needs a code table (codes: …) that says what each "
                "code becomes, even when the column already holds FHIR's codes"
            )
            yield doc.problem(site.path, text, at_key=True)


def table_keys_can_match(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a source code that no cleaned value can be equal to."""
    for name, codes in doc.codes().items():
        for code in codes.get("table", {}):
            path = ("codes", name, "table", code)
            if not code:
                text = "an empty code is no value: say otherwise: for what is absent"
                yield doc.problem(path, text, at_key=True)
            elif code == "otherwise":
                text = "'otherwise' stands beside table, not in it"
                yield doc.problem(path, text, at_key=True)
            elif code != code.rstrip():
                text = f"'{code}' ends in a blank: values are compared without them"
                yield doc.problem(path, text, at_key=True)


def targets_are_allowed(doc: Document) -> Iterator[MappingProblem]:
    """Refuse what a slot cannot hold, in constants and in the tables that it uses."""
    for site in doc.sites():
        for path, target in _targets(doc, site):
            if text := _fault(site, target, path):
                yield doc.problem(path, text)


def _targets(doc: Document, site: Site) -> Iterator[tuple[KeyPath, str]]:
    codes = doc.codes().get(site.options.get("codes", ""), {})
    table: KeyPath = ("codes", site.options.get("codes", ""))
    for code, target in codes.get("table", {}).items():
        yield (*table, "table", code), target
    if "otherwise" in codes:
        yield (*table, "otherwise"), codes["otherwise"]
    if "constant" in site.options and not codes:
        path: KeyPath = (*site.path, "value")
        yield path if doc.holds(path) else site.path, site.options["constant"]


def _fault(site: Site, target: str, path: KeyPath) -> str:
    slot = site.slot
    if target in UNSERVED and slot.name == "status" and path[0] != "codes":
        return f"'{target}' can only stand in a code table"
    if target in UNSERVED and slot.name != "status":
        words = f": use {', '.join(slot.codes)}" if slot.codes else ""
        return f"'{target}' is a word for status only{words}"
    match slot.kind:
        case Kind.CODE if target not in slot.codes and path[-1] in slot.codes:
            return (
                f"the wrong way round: the hospital's code first, {target}: {path[-1]}"
            )
        case Kind.CODE if target not in slot.codes:
            return one_of(target, slot.codes, f"a code of '{slot.name}'")
        case Kind.ID if not FHIR_ID.fullmatch(target):
            return "not a FHIR id: up to 64 letters, digits, '-' and '.'"
        case Kind.SYSTEM if not is_system(target):
            return (
                f"'{target}' is neither urn:oid:… nor an address (http://…, https://…)"
            )
        case Kind.FLAG if target not in ("true", "false"):
            return one_of(target, ("true", "false"), f"a value of '{slot.name}'")
    return ""


def systems_are_addresses(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a constant that names a system and is neither a URN nor an address."""
    constants = dict(doc.data.get("constants", {}))
    named = constants.pop("class_systems", {})
    found: dict[KeyPath, str] = {
        ("constants", "class_systems", code): url for code, url in named.items()
    }
    found |= {
        ("constants", key): value
        for key, value in constants.items()
        if key.endswith(("_system", "_extension"))
    }
    for path, value in found.items():
        if not is_system(value):
            text = (
                f"'{value}' is neither urn:oid:… nor an address (http://…, https://…)"
            )
            yield doc.problem(path, text)


def class_systems_are_classes(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a key of class_systems that is not a class code (spec 2.4)."""
    for code in doc.data.get("constants", {}).get("class_systems", {}):
        if code not in CLASSES.split():
            text = one_of(code, CLASSES.split(), "a class code")
            yield doc.problem(("constants", "class_systems", code), text, at_key=True)
