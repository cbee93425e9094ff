"""What each parameter takes, as a description in OpenAPI says it.

Several values that any may match are one text, with commas between them. What is given
several times because all have to hold, the bounds of a range or the parts of a name, is an
array (decision 4).
"""

from collections.abc import Iterator
from typing import Any, TypeAlias

from adapters.contract import Limit, ResourceType
from adapters.mapping.checks import FHIR_ID
from app.capabilities import OfferedParameter, ResourceOffer
from app.criteria import ParameterType, SearchParameter, modifiers, read_units
from app.forms import MOST_PARAMETERS
from app.parameters import SEARCH_PARAMETERS
from app.schemas.capability import FORMATS
from app.schemas.summary import ELEMENTS, Summary
from app.statement import parameter_text
from app.values import listed

Node: TypeAlias = dict[str, Any]

_SIGN = r"(?:[^\\,|]|\\[\\,|$])"
"""One sign of a value: those that part values are escaped."""
_DAY = r"(?:0[1-9]|[12][0-9]|3[01])"
_DATE = rf"[0-9]{{4}}(?:-(?:0[1-9]|1[0-2])(?:-{_DAY})?)?"
_TIME = (
    rf"[0-9]{{4}}-(?:0[1-9]|1[0-2])-{_DAY}T(?:[01][0-9]|2[0-3]):[0-5][0-9]"
    r"(?::[0-5][0-9](?:\.[0-9]+)?)?(?:Z|[+-](?:0[0-9]|1[0-4]):[0-5][0-9])?"
)
_TEXT: Node = {"type": "string", "minLength": 1}
_COUNTED = 10
_REPEATED = (ParameterType.DATE, ParameterType.STRING)


def search_parameters(offer: ResourceOffer) -> Iterator[Node]:
    """Yield the parameters of a search; each modifier makes one of its own."""
    rows = SEARCH_PARAMETERS[offer.resource_type]
    for name, offered in offer.parameters.items():
        row = rows[name]
        text = " ".join(parameter_text(row, offered))
        schema = _values(row, offered)
        yield query(name, schema, description=text)
        if row.type is ParameterType.STRING:
            for modifier in modifiers(offered.capability.matches):
                yield query(f"{name}{modifier}", schema)
    size = {"type": "integer", "minimum": 1, "maximum": offer.count_max}
    yield query("_count", {**size, "default": offer.count_default})
    if offer.sortable:
        keys = [f"{sign}{key}" for key in offer.sorts for sign in ("", "-")]
        yield query("_sort", {"type": "string", "enum": keys})


def presentation(kind: ResourceType) -> list[Node]:
    """Return the parameters that say how much of resources is shown, and how."""
    elements = "|".join(sorted(ELEMENTS[kind]))
    return [*_presentation(_several(elements, len(ELEMENTS[kind])))]


def statement_parameters() -> list[Node]:
    """Return those of the CapabilityStatement, which is shown whole whatever they say."""
    return [*_presentation(dict(_TEXT))]


def _presentation(elements: Node) -> Iterator[Node]:
    yield query("_summary", {"type": "string", "enum": [*map(str, Summary)]})
    yield query("_elements", elements)
    yield from formats()


def formats() -> list[Node]:
    """Return the parameters that say how an answer is written."""
    return [
        query("_format", {"type": "string", "enum": list(FORMATS)}),
        query("_pretty", {"type": "string", "enum": ["true", "false"]}),
    ]


def query(
    name: str, schema: Node, *, required: bool = False, description: str = ""
) -> Node:
    """Return a parameter of the address."""
    node: Node = {"name": name, "in": "query", "required": required, "schema": schema}
    return node | ({"description": description} if description else {})


def header(name: str, schema: Node) -> Node:
    """Return a header of a request, which it does without."""
    return {"name": name, "in": "header", "required": False, "schema": schema}


def _values(row: SearchParameter, offered: OfferedParameter) -> Node:
    pattern = _pattern(row, offered)
    one = _several(pattern, offered.values) if pattern else dict(_TEXT)
    if row.type not in _REPEATED or offered.values == 1:
        return one
    most = min(offered.values, MOST_PARAMETERS)
    return {"type": "array", "minItems": 1, "maxItems": most, "items": one}


def _several(one: str, most: int) -> Node:
    """Return what takes up to `most` values of a pattern, with commas between them."""
    # A hundred of them, counted, make a pattern that is slow wherever it is read.
    number = f"{{0,{most - 1}}}" if most <= _COUNTED else "*"
    more = f"(?:,(?:{one})){number}" if most > 1 else ""
    return {"type": "string", "pattern": f"^(?:{one}){more}$"}


def _pattern(row: SearchParameter, offered: OfferedParameter) -> str:
    """Return what one value looks like, nothing where nearly any text is one."""
    if row.codes:
        return rf"(?:{_SIGN}*\|)?(?:{'|'.join(row.codes)})|{_SIGN}+\|"
    if row.name == "_id":
        return FHIR_ID.pattern
    if row.type is ParameterType.REFERENCE:
        return rf"(?:[A-Z][A-Za-z]+/)?{FHIR_ID.pattern}|{_SIGN}*:{_SIGN}*"
    if row.type is ParameterType.DATE:
        days = row.name == "birthdate" or offered.capability.finest is Limit.DAY
        prefixes = listed(offered.capability.prefixes).replace(", ", "|")
        return f"(?:{prefixes})?(?:{_DATE if days else f'{_DATE}|{_TIME}'})"
    return rf"{_SIGN}+\|{_SIGN}+" if row.read is read_units else ""
