"""The tables of the pages that are made, not written: what stands there, from its source."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from adapters.contract import ResourceType
from adapters.mapping.profile import MAX_VALUES, PROFILES, load_profile
from adapters.mapping.schema import all_definitions
from adapters.mapping.slots import LISTS
from adapters.parameters import RESULT_PARAMETERS, SEARCH_PARAMETERS, SearchParameter
from app.config import SETTINGS, Need
from bench import report
from tests.docs.pages import BRING, CALL, RUN
from tests.live import ROOT


def settings() -> str:
    """Return the tables of settings, one for each need."""
    parts = []
    for need in Need:
        heads = ["Variable", "What it is", "Value", "Default"]
        rows = [heads, ["---"] * len(heads)]
        for setting in SETTINGS:
            if setting.need is need:
                secret = "Secret. " if setting.secret else ""
                mark = "``" if "`" in (setting.default or "") else "`"
                rows.append(
                    [
                        f"`{setting.name}`",
                        f"{secret}{setting.sentence}",
                        setting.kind.takes,
                        f"{mark}{setting.default}{mark}" if setting.default else "",
                    ]
                )
        if need is Need.REQUIRED:
            rows = [row[:-1] for row in rows]
        text = "".join(f"| {' | '.join(row)} |\n" for row in rows)
        parts.append(f"## {need}\n\n{text}")
    return "\n".join(parts)


def compared() -> str:
    """Return the table of the search parameters that compare a field of another name."""
    types: dict[tuple[str, str], list[str]] = {}
    for kind, rows in SEARCH_PARAMETERS.items():
        for name, row in rows.items():
            compared = _compared(row)
            if compared != name.removeprefix("_"):
                types.setdefault((name, compared), []).append(kind.lower())
    lines = ["| parameter | of | compares |\n|---|---|---|\n"]
    for (name, compared), kinds in types.items():
        of = "all" if len(kinds) == len(ResourceType) else ", ".join(kinds)
        lines.append(f"| `{name}` | {of} | {compared} |\n")
    return "".join(lines)


def _compared(row: SearchParameter) -> str:
    """Return the slots in words: `names: family, given or text`."""
    lists, names = zip(*(slot.rpartition(".")[::2] for slot in row.slots), strict=True)
    slots = " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    if lists[0]:
        slots = f"{lists[0]}: {slots}"
    if row.slots == ("last_updated",):
        return f"{slots}, which must have `covers: all`"
    if row.slots == ("start",):
        return f"{slots} (with `date: period` also end)"
    if row.extension:
        url = "constants.functional_unit_extension"
        return f"{slots}; clients send `URL\\|code`, the URL being `{url}`"
    return slots


def patients() -> str:
    """Return the table of the parameters of patients and organizations."""
    lines = ["| Type | Parameters |\n|---|---|\n"]
    resources = load_profile("full", ROOT).resources
    usual = resources[ResourceType.ENCOUNTER].count_default
    for kind, offered in resources.items():
        names = ", ".join(f"`{name}`" for name in offered.parameters)
        if offered.count_default != usual:
            default = f"`_count` (default {offered.count_default})"
            names = names.replace("`_count`", default)
        if kind is not ResourceType.ENCOUNTER:
            lines.append(f"| {kind} | {names} |\n")
    return "".join(lines)


def groups() -> str:
    """Return the table of what each profile offers."""
    profiles = [load_profile(name, ROOT) for name in PROFILES]
    lines = ["| Type | full | group A | group B |\n|---|---|---|---|\n"]
    for kind in profiles[0].resources:
        cells = ["all"]
        for profile in profiles[1:]:
            texts = []
            for name, number in profile.resources[kind].parameters.items():
                values = f" ({number} value{'s' if number > 1 else ''})"
                if name in RESULT_PARAMETERS or number == MAX_VALUES:
                    values = ""
                texts.append(f"`{name}`{values}")
            cells.append(", ".join(texts) or "none")
        lines.append(f"| {kind} | {' | '.join(cells)} |\n")
    return "".join(lines)


def keys(
    heading: str,
    *definitions: str,
    labels: Mapping[str, str] = MappingProxyType({}),
    below: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    without: tuple[str, ...] = (),
) -> str:
    """Return a table of the keys of definitions of the schema, and of what is below a key.

    `labels` are names of definitions, where a column tells which of them have a key;
    `without` are keys that another table has.
    """
    columns = heading.count("|") + 1
    lines = [f"| {heading} |\n", f"{'|---' * columns}|\n"]
    for key, description, having in _keys(labels or definitions):
        if key in without:
            continue
        label = ""
        if labels:
            names = ", ".join(dict.fromkeys(labels[name] for name in having))
            label = f" {'all' if len(having) == len(labels) else names} |"
        lines.append(f"| `{key}` |{label} {description} |\n")
        for before, others in below.items():
            if before.partition(".")[0] == key:
                lines += [
                    f"| `{before}{k}` | {text} |\n" for k, text, _ in _keys(others)
                ]
    return "".join(lines)


def _keys(
    definitions: Mapping[str, Any] | tuple[str, ...],
) -> Iterator[tuple[str, str, list[str]]]:
    """Yield each key, the description in the first definition that has it, and all that do."""
    schema = {name: all_definitions()[name] for name in definitions}
    for key in dict.fromkeys(k for d in schema.values() for k in d["properties"]):
        having = [name for name in schema if key in schema[name]["properties"]]
        text = schema[having[0]]["properties"][key]["description"]
        if all(key in schema[name].get("required", ()) for name in having):
            first, stop, others = text.partition(". ")
            text = f"{first} (required){stop}{others}"
        yield key, text, having


_FILE = {
    "local_times.": ("LocalTimes",),
    "constants.": ("Constants",),
    "source.": ("SqlSource",),
    "codes.NAME.": ("CodeTable",),
    "known.": ("Known",),
}
_VALUES = {
    "Text": "texts",
    "Reference": "references",
    "Parts": "given names",
    "Date": "days",
    "Time": "times",
    "Updated": "times",
}
_ITEMS = {
    f"Patient{listed.name.title()}Item": listed.name
    for listed in LISTS[ResourceType.PATIENT]
}
_OF_EVERY_SOURCE = (
    *("timeout_seconds", "count_timeout_seconds"),
    *("connections", "wait_seconds", "time_zone"),
)
_HTTP_SECTION = {
    "list.": ("List",),
    "search.NAME.": tuple(
        f"{name}Search" for name in ("Identifier", "Patient", "Text", "Date", "Token")
    ),
}

KEYS, HTTP_KEYS = BRING / "keys.md", BRING / "http-keys.md"
TABLES: tuple[tuple[Path, str, Callable[[], str]], ...] = (
    (RUN / "settings.md", "settings", settings),
    (RUN / "capacity.md", "capacity", report.served),
    (CALL / "search.md", "patients", patients),
    (CALL / "limits.md", "groups", groups),
    (KEYS, "parameters", compared),
    (KEYS, "file-keys", partial(keys, "key | holds", "File", below=_FILE)),
    (KEYS, "section-keys", partial(keys, "key | holds", "EncounterSection")),
    *(
        (
            KEYS,
            f"{kind.lower()}-fields",
            partial(keys, "key | becomes", f"{kind}Fields"),
        )
        for kind in ResourceType
    ),
    (KEYS, "value-keys", partial(keys, "key | for | holds", labels=_VALUES)),
    (KEYS, "item-keys", partial(keys, "key | of | holds", labels=_ITEMS)),
    (KEYS, "profile-keys", partial(keys, "key | holds", "ProfileFile")),
    (BRING / "test.md", "test-keys", partial(keys, "key of a test | holds", "Test")),
    (
        HTTP_KEYS,
        "http-source-keys",
        partial(
            *(keys, "key | holds", "HttpSource"),
            below={"auth.": ("Auth",)},
            without=_OF_EVERY_SOURCE,
        ),
    ),
    (
        HTTP_KEYS,
        "http-section-keys",
        partial(
            *(keys, "key | holds", "EncounterHttpSection"),
            below=_HTTP_SECTION,
            without=("fields", "requires", "source"),
        ),
    ),
)
"""The page of each table, the name of its marks, and what makes it."""
