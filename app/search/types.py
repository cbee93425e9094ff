"""FHIR's types of search parameters: one class each for how its values are read and described.

A class reads the values of a parameter as a criterion, says in the CapabilityStatement and in
`mapping explain` what this deployment compares, and gives OpenAPI the pattern of one value. How
the criterion is compared is `adapters.matching` in memory, `adapters.sql` and `adapters.http`
for their sources.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from types import MappingProxyType

from adapters.contract import (
    Criterion,
    DateCriterion,
    DateValue,
    Limit,
    ParameterCapability,
    Prefix,
    ReferenceCriterion,
    StringCriterion,
    StringMatch,
    Token,
    TokenCriterion,
)
from adapters.folding import MOST_WORDS, fold, words_of
from adapters.mapping.slots import FHIR_ID, SLOTS, SlotKind
from adapters.parameters import ParameterType, SearchParameter
from app.errors import BadValueError, IssueCode
from app.search.dates import FORMS, DateTextError, parse_date, shortened

ID_FORM = "an id is 1 to 64 of A-Z, a-z, 0-9, '-' and '.'"
"""What an id looks like, for error texts."""

DAYS = "YYYY, YYYY-MM, YYYY-MM-DD"
"""The forms of a date where whole days are compared, for error texts."""

MATCHES: Mapping[str, StringMatch] = MappingProxyType(
    {
        "": StringMatch.STARTS_WITH,
        "exact": StringMatch.EXACT,
        "contains": StringMatch.CONTAINS,
    }
)
"""How each modifier of a string compares."""

_DAY_SLOTS = frozenset(
    slot.name
    for slots in SLOTS.values()
    for slot in slots
    if slot.kind is SlotKind.DATE
)
_TYPE = re.compile(r"[A-Z][A-Za-z]+")
_DAY = re.compile(r"[a-z]{0,2}[0-9]{4}(-[0-9]{2}){0,2}")

# Patterns of one value (JSON Schema). A separator in it is escaped.
_CHARACTER = r"(?:[^\\,|]|\\[\\,|$])"
_DAY_OF_MONTH = r"(?:0[1-9]|[12][0-9]|3[01])"
_DATE_PATTERN = rf"[0-9]{{4}}(?:-(?:0[1-9]|1[0-2])(?:-{_DAY_OF_MONTH})?)?"
_TIME_PATTERN = (
    rf"[0-9]{{4}}-(?:0[1-9]|1[0-2])-{_DAY_OF_MONTH}T(?:[01][0-9]|2[0-3]):[0-5][0-9]"
    r"(?::[0-5][0-9](?:\.[0-9]+)?)?(?:Z|[+-](?:0[0-9]|1[0-4]):[0-5][0-9])?"
)


@dataclass(frozen=True, slots=True)
class Context:
    """What reading values needs of the deployment.

    `class_systems` holds the system of each class code.
    """

    base_url: str
    zone: tzinfo
    class_systems: Mapping[str, str]
    functional_unit_extension: str | None


@dataclass(frozen=True, slots=True)
class Value:
    """One alternative of a parameter: its name, and the parts between unescaped bars."""

    name: str
    parts: Sequence[str]

    @property
    def text(self) -> str:
        """The value as one text."""
        return "|".join(self.parts)

    def bad(self, allowed: str, code: IssueCode | None = None) -> BadValueError:
        """Return the error that refuses this value; `allowed` completes the sentence."""
        return bad_value(self.name, self.text, allowed, code)


def bad_value(
    name: str, text: str, allowed: str, code: IssueCode | None = None
) -> BadValueError:
    """Return the error that refuses `text` as a value of the parameter `name`."""
    problem = f"has no value '{shortened(text)}'" if text else "must not be empty"
    return BadValueError(
        f"Parameter '{name}' {problem}: {allowed}.", f"http.{name}", code=code
    )


class ValueType(ABC):
    """A type of search parameter.

    `is_repeated` says that several criteria of one parameter make sense together: the bounds of
    a range, the parts of a name.
    """

    is_repeated = False

    @abstractmethod
    def read(
        self,
        row: SearchParameter,
        values: Sequence[Value],
        match: StringMatch,
        capability: ParameterCapability,
        context: Context,
    ) -> Criterion:
        """Return the criterion of one repetition. Raises BadValueError."""

    @abstractmethod
    def pattern(self, row: SearchParameter, capability: ParameterCapability) -> str:
        """Return the pattern of one value, "" where nearly any text is one."""

    def sentences(
        self,
        row: SearchParameter,  # noqa: ARG002
        capability: ParameterCapability,  # noqa: ARG002
    ) -> Iterator[str]:
        """Yield what this deployment compares, for the CapabilityStatement."""
        yield from ()

    def matches(self, capability: ParameterCapability) -> Collection[StringMatch]:  # noqa: ARG002
        """Return the comparisons that a modifier chooses from."""
        return ()

    def modifiers(
        self,
        row: SearchParameter,  # noqa: ARG002
        capability: ParameterCapability,
    ) -> tuple[str, ...]:
        """Return the modifiers that are offered, with their colon."""
        offered = self.matches(capability)
        words = [word for word, match in MATCHES.items() if match in offered]
        # The word of the match without a modifier is "".
        return tuple(f":{word}" for word in words if word)


class TokenType(ValueType):
    """Codes, identifiers and ids (decision 6)."""

    def read(
        self,
        row: SearchParameter,
        values: Sequence[Value],
        match: StringMatch,  # noqa: ARG002
        capability: ParameterCapability,  # noqa: ARG002
        context: Context,
    ) -> TokenCriterion:
        """Read ids, codes of a closed list, units behind their extension, or any tokens."""
        if row.extension:
            tokens = self._units(values, context.functional_unit_extension)
        elif row.codes:
            tokens = self._codes(row, values, context)
        elif row.is_id:
            tokens = map(self._id, values)
        else:
            tokens = map(self._token, values)
        return TokenCriterion(row.name, tuple(tokens))

    def pattern(self, row: SearchParameter, capability: ParameterCapability) -> str:  # noqa: ARG002
        """Return the pattern of a code, an id or a unit; an identifier may be anything."""
        if row.codes:
            return rf"(?:{_CHARACTER}*\|)?(?:{'|'.join(row.codes)})|{_CHARACTER}+\|"
        if row.is_id:
            return FHIR_ID.pattern
        return rf"{_CHARACTER}+\|{_CHARACTER}+" if row.extension else ""

    def _id(self, value: Value) -> Token:
        if not is_id(value.text):
            raise value.bad(ID_FORM)
        return Token(None, value.text)

    def _token(self, value: Value) -> Token:
        """Read `code`, `system|code`, `system|` or `|code`."""
        if len(value.parts) == 1:
            return Token(None, value.parts[0])
        if len(value.parts) > 2:
            raise value.bad("use code, system|code, system| or |code")
        system, code = value.parts
        return Token(system, code or None)

    def _units(self, values: Sequence[Value], extension: str | None) -> Iterator[Token]:
        """Yield the codes behind the deployment's extension; others match nothing."""
        for value in values:
            if len(value.parts) != 2 or not all(value.parts):
                raise value.bad(f"use {extension}|<functional unit code>")
            if value.parts[0] == extension:
                yield Token(None, value.parts[1])

    def _codes(
        self, row: SearchParameter, values: Sequence[Value], context: Context
    ) -> Iterator[Token]:
        """Yield codes of a closed list, each once; those of another system match nothing."""
        codes: dict[str, None] = {}
        for value in values:
            token = self._token(value)
            if token.code is not None and token.code not in row.codes:
                allowed = f"use one of {', '.join(row.codes)}"
                raise value.bad(allowed, IssueCode.CODE_INVALID)
            # `system|` stands for every code of the system.
            wanted = row.codes if token.code is None else (token.code,)
            for code in wanted:
                system = row.system or context.class_systems.get(code)
                if token.system is None or token.system == system:
                    codes[code] = None
        return (Token(None, code) for code in codes)


class DateType(ValueType):
    """Dates and times with a prefix that the source can compare (decision 5)."""

    is_repeated = True

    def read(
        self,
        row: SearchParameter,
        values: Sequence[Value],
        match: StringMatch,  # noqa: ARG002
        capability: ParameterCapability,
        context: Context,
    ) -> DateCriterion:
        """Read intervals in the deployment's zone."""
        dates = [self._date(row, value, capability, context.zone) for value in values]
        return DateCriterion(row.name, tuple(dates))

    def pattern(self, row: SearchParameter, capability: ParameterCapability) -> str:
        """Return the pattern of a prefix and a day, or a time where times are compared."""
        prefixes = prefix_list(capability.prefixes).replace(", ", "|")
        date = _DATE_PATTERN
        if not takes_days(row, capability):
            date = f"{_DATE_PATTERN}|{_TIME_PATTERN}"
        return f"(?:{prefixes})?(?:{date})"

    def sentences(
        self,
        row: SearchParameter,  # noqa: ARG002
        capability: ParameterCapability,
    ) -> Iterator[str]:
        """Yield how dates are compared."""
        if capability.period:
            yield "It is compared with the whole stay, from its start to its end."
        yield f"Prefixes {prefix_list(capability.prefixes)}."
        if capability.finest is Limit.DAY:
            yield "It accepts whole days."

    def _date(
        self,
        row: SearchParameter,
        value: Value,
        capability: ParameterCapability,
        zone: tzinfo,
    ) -> DateValue:
        forms = DAYS if takes_days(row, capability) else FORMS
        prefixes = prefix_list(capability.prefixes)
        allowed = f"use the prefixes {prefixes} and {forms}"
        if _DAY_SLOTS.issuperset(row.slots) and not _DAY.fullmatch(value.text):
            raise value.bad(allowed)
        try:
            date = parse_date(value.text, zone)
        except DateTextError as error:
            raise value.bad(f"{error}; {allowed}") from error
        if date.prefix not in capability.prefixes:
            raise value.bad(
                f"the prefix '{date.prefix}' is not supported here; use {prefixes}"
            )
        return date


class StringType(ValueType):
    """Names: the start of a word, or what a modifier says (decision 9)."""

    is_repeated = True

    def read(
        self,
        row: SearchParameter,
        values: Sequence[Value],
        match: StringMatch,
        capability: ParameterCapability,  # noqa: ARG002
        context: Context,  # noqa: ARG002
    ) -> StringCriterion:
        """Read texts, each with a letter or a digit."""
        for value in values:
            if not any(character.isalnum() for character in value.text):
                raise value.bad("a text needs a letter or a digit")
            if match is StringMatch.STARTS_WITH and not words_of(fold(value.text)):
                raise value.bad(f"a text has at most {MOST_WORDS} words")
        return StringCriterion(row.name, tuple(value.text for value in values), match)

    def pattern(self, row: SearchParameter, capability: ParameterCapability) -> str:  # noqa: ARG002
        """Return "": any text may be a name."""
        return ""

    def matches(self, capability: ParameterCapability) -> Collection[StringMatch]:
        """Return how the source compares texts."""
        return capability.matches

    def sentences(
        self, row: SearchParameter, capability: ParameterCapability
    ) -> Iterator[str]:
        """Yield how texts are compared."""
        if capability.own_words:
            yield "The hospital system compares the text, in its own way."
        elif StringMatch.STARTS_WITH in capability.matches:
            yield "Each word of the text starts a word, in any order."
        if words := self.modifiers(row, capability):
            yield f"Modifiers {', '.join(words)}."


class ReferenceType(ValueType):
    """References to resources of this service (decision 7)."""

    def read(
        self,
        row: SearchParameter,
        values: Sequence[Value],
        match: StringMatch,  # noqa: ARG002
        capability: ParameterCapability,  # noqa: ARG002
        context: Context,
    ) -> ReferenceCriterion:
        """Read ids; references to another server or type match nothing."""
        ids = (self._id(value, str(row.target), context.base_url) for value in values)
        return ReferenceCriterion(row.name, tuple(id for id in ids if id is not None))

    def pattern(self, row: SearchParameter, capability: ParameterCapability) -> str:  # noqa: ARG002
        """Return the pattern of an id, a relative or an absolute reference."""
        return rf"(?:[A-Z][A-Za-z]+/)?{FHIR_ID.pattern}|{_CHARACTER}*:{_CHARACTER}*"

    def modifiers(
        self,
        row: SearchParameter,
        capability: ParameterCapability,  # noqa: ARG002
    ) -> tuple[str, ...]:
        """Return the type of the target: a reference to another matches nothing anyway."""
        return (f":{row.target}",)

    def _id(self, value: Value, target: str, base_url: str) -> str | None:
        """Return the id in a reference, None for one to another server or type.

        It is `id`, `type/id` or the address of a resource below `base_url`.
        """
        text = value.text
        home = f"{base_url}/"
        if ":" in text and not text.startswith(home):
            return None
        kind, slash, id = text.removeprefix(home).rpartition("/")
        is_bad_type = slash and not _TYPE.fullmatch(kind)
        is_address_without_type = text == home + id
        if not is_id(id) or is_bad_type or is_address_without_type:
            raise value.bad(f"use {target}/<id>, <id> or an address below {base_url}")
        return id if kind in ("", target) else None


TYPES: Mapping[ParameterType, ValueType] = MappingProxyType(
    {
        ParameterType.TOKEN: TokenType(),
        ParameterType.DATE: DateType(),
        ParameterType.STRING: StringType(),
        ParameterType.REFERENCE: ReferenceType(),
    }
)
"""The class of each type."""


def is_id(text: str) -> bool:
    """Whether the text can be the id of a resource (FHIR STU3, type `id`)."""
    return FHIR_ID.fullmatch(text) is not None


def takes_days(row: SearchParameter, capability: ParameterCapability) -> bool:
    """Whether a date parameter takes days alone, as birth dates do."""
    return _DAY_SLOTS.issuperset(row.slots) or capability.finest is Limit.DAY


def prefix_list(prefixes: Collection[Prefix]) -> str:
    """Return prefixes as text, in FHIR's order."""
    return ", ".join(prefix for prefix in Prefix if prefix in prefixes)
