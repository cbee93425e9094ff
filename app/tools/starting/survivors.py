"""Patients who were merged into others, and the stays that still point at them."""

from collections.abc import Iterable
from dataclasses import replace

from app.tools.starting.building import Builder
from app.tools.starting.draft import Part
from app.tools.starting.select import Cell, Select

_SHOWN = "patient_shown"
_IS_MERGED = "survivor IS NOT NULL"


def ask_for_survivors(builder: Builder, stays: Iterable[Part], people: Part) -> None:
    """Ask of each table of stays whether its merged patients are shown by who lives on."""
    id, survivor = _cell(people, "id"), _cell(people, "replaced_by")
    if not (id and survivor and builder.computes):
        return
    merged = builder.tally(people.select, {"survivor": survivor}, _IS_MERGED)
    for part in stays:
        if own := _cell(part, "patient_id"):
            select = part.select.copy()
            there = select.beside(
                own.column.name, people.select, id.column.name, survivor
            )
            _ask(builder, part, select, (own, there), merged[1] if merged else 0)


def _ask(
    builder: Builder, part: Part, select: Select, cells: tuple[Cell, Cell], merged: int
) -> None:
    own, there = cells
    counted = builder.tally(select, {"survivor": there}, _IS_MERGED)
    if not counted:
        return
    if merged and not counted[1]:
        part.told.append(
            f"patient_id: none of the {merged} patients who were merged into another has a"
            " stay here: it seems that their stays move to the one who lives on"
        )
        return
    yet = "." if merged else ", and no patient was yet: will its stays move?"
    asked = (
        f"{counted[1]} of {counted[0]} stays are of a patient who was merged into another{yet}"
        f" To show the one who lives on, {_how(select, own, there)}"
    )
    line = part.line("patient_id")
    if line:
        asked = "; ".join(filter(None, (line.question, asked)))
        part.lines[part.lines.index(line)] = replace(line, question=asked)


def _how(select: Select, own: Cell, there: Cell) -> str:
    """Return the SQL that gives the survivor, with the joins that it needs."""
    select.express(_SHOWN, "COALESCE({0}, {1})", there, own)
    said = select.only({_SHOWN}).besides
    return f"in rows {said}, and patient_id: {{from: {_SHOWN}}}"


def _cell(part: Part, slot: str) -> Cell | None:
    """Return the column that fills a slot, None where it is no single one."""
    line = part.line(slot)
    value = line.value if line else ""
    return part.select.cell(str(value["from"])) if isinstance(value, dict) else None
