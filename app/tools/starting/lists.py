"""Lists of a patient: names, numbers, telephones and addresses in the columns of its row."""

from collections.abc import Sequence

from adapters.sql.tables import Table
from adapters.sql.tallies import rows_with
from app.tools.starting.belongings import Child
from app.tools.starting.building import Builder
from app.tools.starting.children import (
    PATIENT_SYSTEM,
    address_rows,
    name_rows,
    number_rows,
    telecom_rows,
)
from app.tools.starting.draft import Found, Item, Line, Part, Value
from app.tools.starting.qualified import QUALIFIED
from app.tools.starting.reached import addresses, telecoms
from app.tools.starting.sight import Sight

_NAMES = (
    ("official", "birth_family", "given"),
    ("official", "family", "given"),
    ("usual", "used_family", "used_given"),
)
"""The names that a person may have: their use, family name, and given names."""

_FRENCH_NAMES = (
    ("official", "birth_family", "given"),
    ("usual", "used_family", "used_given"),
    ("usual", "family", ""),
)
_ENGLISH_NAMES = (
    ("official", "family", "given"),
    ("maiden", "birth_family", ""),
    ("usual", "used_family", "used_given"),
)
"""The same where a table has a name of birth beside another one."""


class Lists:
    """Fills the lists of a section of patients; `key` is the column of its id."""

    def __init__(
        self, builder: Builder, part: Part, sight: Sight, patient: Table, key: str
    ) -> None:
        self._builder = builder
        self._part = part
        self._sight = sight
        self._patient = patient.by_name[key], patient

    def put(self) -> None:
        """Fill all lists."""
        self._identifiers()
        self._names()
        self._reached()

    def _child(self, name: str) -> Child | None:
        """Return the table of a list, None where none of its rows is anybody's."""
        child = self._builder.roles.children.get(name)
        if child is None:
            return None
        table, column = child.table, child.reference.column
        counted = rows_with(self._builder.database, table, column)
        if counted is None or counted[1]:
            return child
        self._part.told.append(
            f"{name}: {table.name} is not read: {column} is empty in all of its {counted[0]} rows"
        )
        return None

    def _list(self, name: str, items: Sequence[Item]) -> None:
        if items:
            self._part.lists.setdefault(name, []).extend(items)

    def _identifiers(self) -> None:
        items: list[Item] = []
        question = "the system of these numbers (urn:oid:…)"
        number = self._sight.first("number")
        if number is None and (number := self._sight.named("ref")):
            question = f"is it the number of the patient? And {question}"
        if number:
            items.append(self._number("PI", number, PATIENT_SYSTEM, question))
        if ins := self._sight.first("ins"):
            items += self._national(ins)
        if child := self._child("identifiers"):
            items.append(number_rows(self._builder, child, *self._patient))
        if items:
            self._part.searchable.add("identifiers.value")
        else:
            text = (
                "identifiers: no column looks like the number of a patient (IPP, MRN)"
            )
            self._part.questions.append(text)
        self._list("identifiers", items)

    def _national(self, ins: Found) -> list[Item]:
        """Return the item of a national number, where a state tells that it may go out."""
        state = self._sight.first("ins_status")
        counts = state and self._builder.counts(state.table, state.column)
        fine: list[Value] = [c.code for c in counts or () if c.code in QUALIFIED]
        if state is None or not fine:
            self._part.questions.append(
                f"identifiers: {ins.column.name} seems to be the INS; it goes out only when"
                " its identity is qualified, and no column says so: it is left out"
            )
            return []
        item = self._number("INS-NIR", ins, "", "")
        only: Value = {"from": self._part.read(state), "in": fine}
        question = "the states of a qualified identity?"
        return [Item([*item.lines, Line("only_if", only, question)])]

    def _number(self, type_: str, found: Found, system: str, question: str) -> Item:
        lines = [Line("type", type_)]
        if system:
            lines.append(Line("system", system))
        lines.append(Line("value", {"from": self._part.read(found)}))
        return Item(lines, question=question)

    def _names(self) -> None:
        wanted = _FRENCH_NAMES if self._builder.is_french else _ENGLISH_NAMES
        if not (self._sight.first("birth_family") and self._sight.first("family")):
            wanted = _NAMES
        items = [item for of in wanted if (item := self._name(*of))]
        if not items and (child := self._child("names")):
            items.append(name_rows(self._builder, child, *self._patient))
            self._part.searchable |= {"names.family", "names.given"}
        elif not items and (name := self._sight.first("name")):
            text: Value = {"from": self._part.read(name)}
            items.append(Item([Line("use", "official"), Line("text", text)]))
            self._part.searchable.add("names.text")
        if not items:
            self._part.questions.append("names: no column looks like a name")
        self._list("names", items)

    def _name(self, use: str, family: str, given: str) -> Item | None:
        if self._sight.first(family) is None:
            return None
        item = Item([Line("use", use)])
        self._add_name(item, "family", family)
        if given and not self._add_name(item, "given", given) and given == "given":
            self._add_bare_name(item)
        if use == "official" and (title := self._sight.first("title")):
            item.lines.append(Line("prefix", {"from": self._part.read(title)}))
        return item

    def _add_name(self, item: Item, key: str, slot: str) -> bool:
        """Add the column of a slot to a name; return whether there is one."""
        found = self._sight.first(slot)
        if found is None:
            return False
        name = self._part.read(found)
        value: dict[str, Value] = {"from": name}
        if folded := self._sight.first(f"{slot}_search"):
            value["search"] = self._part.read(folded)
        if key == "given" and name.lower().endswith("s"):
            value["split"] = " "
        item.lines.append(Line(key, value))
        self._part.searchable.add(f"names.{key}")
        return True

    def _add_bare_name(self, item: Item) -> None:
        """Take `name` beside a family name for the given ones."""
        if found := self._sight.first("name"):
            name = self._part.read(found)
            item.lines.append(Line("given", {"from": name}))
            item.question = f"{name} stands beside a family name: the given names?"
            self._part.searchable.add("names.given")

    def _reached(self) -> None:
        select = self._part.select
        for table, place in self._sight.places:
            found = self._sight.slots_of(table)
            self._list("telecoms", telecoms(select, found, place, "home"))
            self._list("addresses", addresses(select, found, place, "home"))
        if child := self._child("telecoms"):
            self._list("telecoms", [telecom_rows(self._builder, child, *self._patient)])
        if child := self._child("addresses"):
            self._list(
                "addresses", [address_rows(self._builder, child, *self._patient)]
            )
