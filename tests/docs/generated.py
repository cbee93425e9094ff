"""The parts of the pages that are made, not written: what stands there, from its source."""

from collections.abc import Mapping

from adapters.contract import ResourceType
from adapters.mapping.profile import MAX_VALUES, PROFILES, load_profile
from adapters.parameters import RESULT_PARAMETERS, SEARCH_PARAMETERS, SearchParameter
from app.config import SETTINGS, Need, Setting
from tests.live import ROOT


def settings_table() -> str:
    """Return the tables of settings, one for each need, from `app.config`."""
    parts = []
    for need in Need:
        heads = ("Variable", "What it is", "Value", "Default")
        rows = [_setting(setting) for setting in SETTINGS if setting.need is need]
        if need is Need.REQUIRED:
            heads, rows = heads[:-1], [row[:-1] for row in rows]
        lines = [heads, ("---",) * len(heads), *rows]
        text = "".join(f"| {' | '.join(line)} |\n" for line in lines)
        parts.append(f"## {need}\n\n{text}")
    return "\n".join(parts)


def _setting(setting: Setting) -> tuple[str, ...]:
    sentence = f"Secret. {setting.sentence}" if setting.secret else setting.sentence
    mark = "``" if "`" in (setting.default or "") else "`"
    default = f"{mark}{setting.default}{mark}" if setting.default else ""
    return (f"`{setting.name}`", sentence, setting.kind.takes, default)


def compared() -> str:
    """Return the table of the search parameters that compare a field of another name."""
    types: dict[tuple[str, str], list[str]] = {}
    for kind, rows in SEARCH_PARAMETERS.items():
        for name, row in rows.items():
            compared = _slots(row) + _condition(row)
            if compared != name.removeprefix("_"):
                types.setdefault((name, compared), []).append(kind.lower())
    lines = ["| parameter | of | compares |\n|---|---|---|\n"]
    for (name, compared), kinds in types.items():
        of = "all" if len(kinds) == len(ResourceType) else ", ".join(kinds)
        lines.append(f"| `{name}` | {of} | {compared} |\n")
    return "".join(lines)


def _slots(row: SearchParameter) -> str:
    """Return the slots in words: `names: family, given or text`."""
    lists, names = zip(*(slot.rpartition(".")[::2] for slot in row.slots), strict=True)
    several = " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    return f"{lists[0]}: {several}" if lists[0] else several


def _condition(row: SearchParameter) -> str:
    if row.slots == ("last_updated",):
        return ", which must have `covers: all`"
    if row.slots == ("start",):
        return " (with `date: period` also end)"
    if row.extension:
        url = "constants.functional_unit_extension"
        return f"; clients send `URL\\|code`, the URL being `{url}`"
    return ""


def patients() -> str:
    """Return the table of the parameters of patients and organizations."""
    lines = ["| Type | Parameters |\n|---|---|\n"]
    resources = load_profile("full", ROOT).resources
    usual = resources[ResourceType.ENCOUNTER].count_default
    for kind, offered in resources.items():
        names = [f"`{name}`" for name in offered.parameters]
        if offered.count_default != usual:
            own = f"`_count` (default {offered.count_default})"
            names = [own if name == "`_count`" else name for name in names]
        if kind is not ResourceType.ENCOUNTER:
            lines.append(f"| {kind} | {', '.join(names)} |\n")
    return "".join(lines)


def groups() -> str:
    """Return the table of what each profile offers."""
    profiles = [load_profile(name, ROOT) for name in PROFILES]
    lines = ["| Type | full | group A | group B |\n|---|---|---|---|\n"]
    for kind in profiles[0].resources:
        offered = [profile.resources[kind].parameters for profile in profiles]
        cells = ["all", *map(_with_numbers, offered[1:])]
        lines.append(f"| {kind} | {' | '.join(cells)} |\n")
    return "".join(lines)


def _with_numbers(parameters: Mapping[str, int]) -> str:
    """Return the names of parameters, with the number of values where it is limited."""
    texts = []
    for name, number in parameters.items():
        if name in RESULT_PARAMETERS or number == MAX_VALUES:
            texts.append(f"`{name}`")
        else:
            texts.append(f"`{name}` ({number} value{'s' if number > 1 else ''})")
    return ", ".join(texts) or "none"
