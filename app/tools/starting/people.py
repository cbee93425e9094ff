"""The section patient: the table of patients, of the person, and of what each has several of."""

from collections.abc import Mapping, Sequence

from adapters.contract import ResourceType
from adapters.sql.catalogue import Holds, Table, TableColumn
from app.tools.starting.building import Builder
from app.tools.starting.codes import Entry, all_known, entries
from app.tools.starting.draft import Item, Line, Part, Value
from app.tools.starting.habits import CHILD_HABITS, choose
from app.tools.starting.reached import addresses, telecoms
from app.tools.starting.select import Cell, Select
from app.tools.starting.stays import marked, put_changed
from app.tools.starting.tables import Child, others, slots
from app.tools.starting.words import meaning

_ORDER = (
    "id active gender birth_date deceased deceased_at organization_id replaced_by last_updated"
).split()
PATIENT_SYSTEM = "https://example.org/identifiers/patient"
"""What stands for the system of the hospital's patient numbers until somebody says it."""

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


def patients(builder: Builder, key: str) -> Part:
    """Return the section; `key` is the column of the patient's table that stays refer to."""
    return _Patients(builder, key).part()


class _Patients:
    def __init__(self, builder: Builder, key: str) -> None:
        roles = builder.roles
        if roles.patient is None:
            raise ValueError("no table of patients")
        self._builder, self._table, self._key = builder, roles.patient, key
        self._part = Part(Select(self._table))
        self._person = roles.person
        self._places: list[tuple[Table, int, Mapping[str, TableColumn]]] = []
        self._see(self._table, 0)

    def part(self) -> Part:
        part = self._part
        part.put("id", {"from": part.select.add(self._table.by_name[self._key])})
        if self._person:
            self._see(self._person.target, part.select.join([self._person]))
        self._coded()
        self._days()
        self._linked()
        self._changed()
        self._identifiers()
        self._names()
        self._reached()
        part.lines.sort(key=lambda line: _ORDER.index(line.key))
        return part

    def _see(self, table: Table, place: int) -> None:
        found = slots(table, ResourceType.PATIENT, self._builder.references)
        self._places.append((table, place, found))

    def _find(self, slot: str) -> tuple[Table, int, TableColumn] | None:
        """Return where a slot's column is: in the patient's own table first."""
        for table, place, found in self._places:
            if slot in found:
                return table, place, found[slot]
        return None

    def _add(self, slot: str) -> str:
        """Read the column of a slot and return its name, "" where there is none."""
        found = self._find(slot)
        return self._part.select.add(found[2], found[1]) if found else ""

    def _coded(self) -> None:
        if found := self._likeliest_gender():
            table, place, column = found
            self._builder.coded(self._part, "gender", table, column, place)
        for slot, habit in (("active", "active"), ("deceased", "yes")):
            if found := self._find(slot):
                table, place, column = found
                self._builder.flag(self._part, slot, habit, table, column, place)
        if found := self._find("deleted"):
            table, _, column = found
            self._part.questions.append(marked(self._builder, table, column, "deleted"))

    def _likeliest_gender(self) -> tuple[Table, int, TableColumn] | None:
        """Return the gender of the person where there is one: it is the registered one."""
        found = [(t, p, of["gender"]) for t, p, of in self._places if "gender" in of]
        return found[-1] if found else None

    def _days(self) -> None:
        if found := self._find("birth_date"):
            table, place, column = found
            self._builder.day(self._part, "birth_date", table, column, place)
        else:
            self._part.questions.append("birth_date: no column looks like it")
        if found := self._find("deceased_at"):
            table, place, column = found
            clock = next(
                (of.get("deceased_clock") for t, _, of in self._places if t is table),
                None,
            )
            # Nobody searches by it: the two columns can stay two.
            if clock is not None and not column.holds == Holds.LOCAL_TIME:
                pair: list[Value] = [
                    self._part.select.add(of, place) for of in (column, clock)
                ]
                self._part.put_unsearched("deceased_at", {"from": pair})
                return
            self._builder.time(self._part, "deceased_at", table, column, place=place)

    def _linked(self) -> None:
        if found := self._find("replaced_by"):
            table, place, column = found
            question = "does it hold the id of the patient that lives on?"
            name = self._survivor(table, place, column)
            self._part.put("replaced_by", {"from": name}, question)
        house = self._builder.roles.organization
        for table, place, found_slots in self._places:
            reference = self._builder.references.of(table)
            column = found_slots.get("organization_id")
            if column and column.name in reference and house:
                if reference[column.name].target.name == house.name:
                    name = self._part.select.add(column, place)
                    self._part.put("organization_id", {"from": name})
                    return

    def _survivor(self, table: Table, place: int, column: TableColumn) -> str:
        """Return the patient that another one was merged into, by way of the person."""
        select, person = self._part.select, self._person
        if place == 0 or person is None or person.column == self._key:
            return select.add(column, place)
        other = select.join_at(place, column.name, self._table, person.column)
        return select.express(
            "survivor", "{0}", Cell(other, self._table.by_name[self._key])
        )

    def _changed(self) -> None:
        table, place, found = self._places[0]
        put_changed(self._builder, self._part, table, found, place)
        for table, _, _ in self._places:
            self._part.questions += others(
                table, ResourceType.PATIENT, self._builder.references
            )

    def _identifiers(self) -> None:
        items: list[Item] = []
        if found := self._find("number"):
            name = self._part.select.add(found[2], found[1])
            question = "the system of these numbers (urn:oid:…)"
            items.append(_number("PI", name, PATIENT_SYSTEM, question))
        elif (ref := self._column("ref")) is not None:
            name = self._part.select.add(ref[1], ref[0])
            question = "is it the number of the patient? And its system (urn:oid:…)"
            items.append(_number("PI", name, PATIENT_SYSTEM, question))
        if found := self._find("ins"):
            name = self._part.select.add(found[2], found[1])
            question = "only of qualified identities? Then say only_if"
            items.append(_number("INS-NIR", name, "", question))
        if child := self._builder.roles.children.get("identifiers"):
            items.append(self._numbers(child))
        if not items:
            self._part.questions.append(
                "identifiers: no column looks like a patient number (IPP)"
            )
        self._put("identifiers", items)

    def _column(self, name: str) -> tuple[int, TableColumn] | None:
        for table, place, _ in self._places:
            if name in table.by_name:
                return place, table.by_name[name]
        return None

    def _numbers(self, child: Child) -> Item:
        item, columns = self._child(child, "identifiers")
        if type_ := columns.get("type"):
            name = self._builder.code_table(
                "identifier_type", "identifier_type", child.table, type_
            )
            if name:
                of = item.select.add(type_) if item.select else ""
                item.lines.append(Line("type", {"from": of, "codes": name}))
                item.lines += self._known_only(
                    of, self._builder.draft.codes[name].entries
                )
        item.question = (
            "each type of number has its system (urn:oid:…): say system, by a code table."
            " An INS goes out of the house only when its identity is qualified (only_if)"
        )
        self._value(item, columns)
        house = self._builder.roles.organization
        assigner = columns.get("organization_id")
        leads = self._builder.references.of(child.table)
        if house and assigner and item.select and assigner.name in leads:
            if leads[assigner.name].target.name == house.name:
                item.lines.append(Line("assigner", {"from": item.select.add(assigner)}))
        return item

    @staticmethod
    def _known_only(column: str, found: Sequence[Entry]) -> list[Line]:
        """Return what leaves out the numbers of a type that nobody could guess."""
        known: list[Value] = [entry.code for entry in found if entry.made]
        if len(known) == len(found):
            return []
        question = "numbers of other types are left out"
        return [Line("only_if", {"from": column, "in": known}, question)]

    def _names(self) -> None:
        wanted = _FRENCH_NAMES if self._builder.is_french else _ENGLISH_NAMES
        if self._find("birth_family") is None or self._find("family") is None:
            wanted = _NAMES
        items = [item for of in wanted if (item := self._name(*of))]
        if not items and (name := self._find("name")):
            read = self._part.select.add(name[2], name[1])
            items.append(Item([Line("use", "official"), Line("text", {"from": read})]))
            self._part.searchable.add("names.text")
        if not items:
            self._part.questions.append("names: no column looks like a name")
        self._put("names", items)

    def _name(self, use: str, family: str, given: str) -> Item | None:
        if self._find(family) is None:
            return None
        item = Item([Line("use", use)])
        for key, slot in (("family", family), ("given", given)):
            name = self._add(slot)
            if name:
                value: dict[str, Value] = {"from": name}
                if folded := self._add(f"{slot}_search"):
                    value["search"] = folded
                if slot == "given" and "prenoms" in name.lower():
                    value["split"] = " "
                item.lines.append(Line(key, value))
                self._part.searchable.add(f"names.{key}")
        if use == "official" and given == "given" and not self._find("given"):
            self._put_bare_given(item)
        if use == "official" and (title := self._add("title")):
            item.lines.append(Line("prefix", {"from": title}))
        return item

    def _put_bare_given(self, item: Item) -> None:
        """Take `name` beside a family name for the given ones."""
        if name := self._add("name"):
            item.lines.append(Line("given", {"from": name}))
            item.question = f"{name} stands beside a family name: the given names?"
            self._part.searchable.add("names.given")

    def _reached(self) -> None:
        for table, place, found in self._places:
            telecom_items = telecoms(self._part.select, found, place, home="home")
            self._put("telecoms", telecom_items)
            self._put(
                "addresses", addresses(self._part.select, found, place, use="home")
            )
        children = self._builder.roles.children
        if "telecoms" in children:
            self._put("telecoms", [self._contact(children["telecoms"])])
        if "addresses" in children:
            self._put("addresses", [self._address(children["addresses"])])

    def _contact(self, child: Child) -> Item:
        item, columns = self._child(child, "telecoms")
        type_ = columns["type"]
        for key, habit in (("system", "telecom_system"), ("use", "telecom_use")):
            if key == "use" and not self._tells_use(child.table, type_):
                continue
            name = self._builder.code_table(habit, habit, child.table, type_)
            if name and item.select:
                item.lines.append(
                    Line(key, {"from": item.select.add(type_), "codes": name})
                )
            elif key == "system":
                item.lines.append(Line(key, "phone", "are all of them telephones?"))
        self._value(item, columns)
        return item

    def _tells_use(self, table: Table, type_: TableColumn) -> bool:
        found = entries(
            "telecom_use", self._builder.counts(table, type_) or (), french=True
        )
        return bool(found) and all_known(found)

    def _address(self, child: Child) -> Item:
        item, columns = self._child(child, "addresses")
        if (type_ := columns.get("type")) and item.select:
            name = self._builder.code_table(
                "address_use", "address_use", child.table, type_
            )
            if name:
                value: Value = {"from": item.select.add(type_), "codes": name}
                item.lines.append(Line("use", value))
        if item.select:
            for made in addresses(item.select, columns, 0, use=""):
                item.lines += made.lines
        return item

    def _child(
        self, child: Child, list_: str
    ) -> tuple[Item, Mapping[str, TableColumn]]:
        """Return an item with a SELECT of its own, keyed by the id of the patient."""
        keys = self._builder.references.of(child.table).keys()
        columns = choose(child.table, CHILD_HABITS[list_], frozenset({"PATIENT"}), keys)
        select = Select(child.table)
        of, person = child.reference, self._person
        if (
            person
            and of.target.name == person.target.name
            and of.target.name != self._table.name
        ):
            place = select.join_at(0, of.column, self._table, person.column)
            key = select.add(self._table.by_name[self._key], place)
        elif of.key != self._key:
            place = select.join_at(0, of.column, self._table, of.key)
            key = select.add(self._table.by_name[self._key], place)
        else:
            key = select.add(child.table.by_name[of.column])
        return Item([], select, key), columns

    def _value(self, item: Item, columns: Mapping[str, TableColumn]) -> None:
        if item.select:
            item.lines.append(
                Line("value", {"from": item.select.add(columns["value"])})
            )

    def _put(self, name: str, items: Sequence[Item]) -> None:
        if items:
            self._part.lists.setdefault(name, []).extend(items)
        if name == "identifiers" and items:
            self._part.searchable.add("identifiers.value")


def _number(type_: str, column: str, system: str, question: str) -> Item:
    lines = [Line("type", type_)]
    if system:
        lines.append(Line("system", system))
    lines.append(Line("value", {"from": column}))
    return Item(lines, question=question)


def patient_key(builder: Builder) -> str:
    """Return the column of the patient's table that stays refer to."""
    patient = builder.roles.patient
    if patient is None:
        return ""
    for stay in builder.roles.stays:
        for reference in builder.references.of(stay).values():
            if reference.target.name == patient.name:
                return reference.key
        column = slots(stay, ResourceType.ENCOUNTER, builder.references).get(
            "patient_id"
        )
        if column is None:
            continue
        if column.name in patient.by_name:
            return column.name
        if "PATIENTNO" in meaning(column.name).known:
            number = slots(patient, ResourceType.PATIENT, builder.references).get(
                "number"
            )
            if number:
                return number.name
    if len(patient.primary_key) == 1:
        return patient.primary_key[0]
    return patient.columns[0].name
