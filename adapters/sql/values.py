"""One field compared with texts and codes, as a filter on the column that holds it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from adapters.contract import StringMatch, Token
from adapters.mapping.model import FieldMapping
from adapters.sql.columns import Column, Kind, can_hold, held
from adapters.sql.conditions import (
    ALWAYS,
    NEVER,
    Filter,
    In,
    InOrReplaced,
    IsNull,
    Matches,
    NotIn,
    NotNull,
    all_of,
    any_of,
)
from adapters.sql.moments import KeyColumn
from adapters.words import fold

LONGEST_PATTERN = 4000
"""In bytes: the least that a database takes in a LIKE (Oracle), and more than a name has."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of one SELECT: their names as they come, the kind of value by name."""

    names: tuple[str, ...]
    kinds: Mapping[str, Kind]
    by_name: Mapping[str, Column]

    @classmethod
    def of(cls, columns: Sequence[Column]) -> "Columns":
        """Return columns as a database tells them."""
        return cls(
            tuple(column.name for column in columns),
            {column.name: column.kind for column in columns},
            {column.name: column for column in columns},
        )

    def column(self, name: str) -> Column:
        """Return a column by its name."""
        return self.by_name[name]

    def among(self, column: str, texts: Iterable[str]) -> Filter:
        """Return where the column holds one of the texts."""
        values = self._held(column, texts)
        if not values:
            return NEVER
        return Filter(In(self.column(column), len(values)), values)

    def not_among(self, column: str, texts: Iterable[str]) -> Filter:
        """Return where the column holds none of the texts, nor NULL."""
        values = self._held(column, texts)
        if not values:
            return Filter(NotNull(self.column(column)))
        return Filter(NotIn(self.column(column), len(values)), values)

    def _held(self, column: str, texts: Iterable[str]) -> tuple[object, ...]:
        kind = self.kinds[column]
        return tuple([value for text in texts for value in held(kind, text)])

    def equal(self, field: FieldMapping, texts: Iterable[str]) -> Filter:
        """Return where the field is one of the texts."""
        own = field.own(texts)
        if field.constant is not None:
            return ALWAYS if field.constant in own else NEVER
        return self.among(field.filter_column or "", own)

    def coded(self, field: FieldMapping, code: str) -> Filter:
        """Return where the field becomes `code`: its source codes, or all the others."""
        codes = field.codes
        if codes is None or not field.columns:
            return self.equal(field, [code])
        named = self.equal(field, codes.sources(code))
        if codes.otherwise != code:
            return named
        name = field.filter_column or ""
        # A code that no entry names, and none at all (decision 17).
        null = Filter(IsNull(self.column(name)))
        others = [self.not_among(name, codes.table), null]
        return any_of([named, *others])

    def key(self, field: FieldMapping) -> KeyColumn:
        """Return the column that an order of the field goes by."""
        return KeyColumn(self.column(field.filter_column or ""), field.absent)

    def matching(self, field: FieldMapping, text: str, match: StringMatch) -> Filter:
        """Return where the field's text meets a searched one (decision 9)."""
        if not can_hold(text) or not (needle := fold(text)):
            return NEVER
        shown = self._shown(field)
        if match is StringMatch.EXACT:
            column = self.column(field.columns[0])
            exactly = Filter(Matches(column, match, folded=False), (text,))
            return all_of([exactly, shown])
        start = "% " if match is StringMatch.STARTS_WITH else "%"
        pattern = f"{start}{_escaped(needle)}%"
        if len(pattern.encode()) > LONGEST_PATTERN:
            return NEVER
        column = self.column(field.filter_column or "")
        condition = Matches(column, match, folded=field.search_column is not None)
        return all_of([Filter(condition, (pattern,)), shown])

    def _shown(self, field: FieldMapping) -> Filter:
        """Return where a text is none of those that stand for no value."""
        if not field.absent:
            return ALWAYS
        return KeyColumn(self.column(field.columns[0]), field.absent).present

    def numbered(
        self, number: FieldMapping, system: FieldMapping | None, token: Token
    ) -> Filter:
        """Return where the number is the token's, and its system too when that is told."""
        if token.code is None:
            parts = [self.key(number).present]
        else:
            parts = [self.equal(number, [token.code])]
        if token.system is not None:
            parts.append(self._of_system(system, token.system))
        return all_of(parts)

    def _of_system(self, field: FieldMapping | None, system: str) -> Filter:
        if field is None:
            return ALWAYS if system == "" else NEVER
        if system != "":
            return self.coded(field, system)
        always = not field.columns or (field.codes and field.codes.otherwise)
        return NEVER if always else self.key(field).missing


@dataclass(frozen=True, slots=True)
class Survivors:
    """Where a merged patient's survivor is found: the patient section's own columns."""

    rows: str
    id: Column
    replaced_by: KeyColumn

    def of(self, column: Column, ids: Sequence[tuple[object, object]]) -> Filter:
        """Return where a column is one of the patients, or what replaced one of them.

        Each id as the column holds it, and as `id` does.
        """
        replaced = self.replaced_by.present
        condition = InOrReplaced(
            column,
            len(ids),
            self.rows,
            self.id,
            self.replaced_by.column,
            replaced.condition,
        )
        here = [id for id, _ in ids]
        there = [value for _, id in ids for value in (id, *replaced.values)]
        return Filter(condition, (*here, *there))


def _escaped(needle: str) -> str:
    """Write a text as part of a LIKE pattern, where ! takes the meaning from % and _."""
    return needle.replace("!", "!!").replace("%", "!%").replace("_", "!_")
