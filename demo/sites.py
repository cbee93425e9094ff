"""The hospitals of the demo's group, their functional units, and its fixed calendar."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from types import MappingProxyType

from demo.names import UNITS, search_form
from demo.rows import Etablissement, UniteFonctionnelle

REFERENCE = datetime(2025, 6, 1, 12)  # noqa: DTZ001 - a local time, as the hospital's
"""The demo's "now": no row depends on the day on which it was made."""

GROUP, CHU, CHB, CLOSED = 1, 2, 3, 4
"""The `etab_id` of the group, of its two hospitals, and of a house that was closed."""

EMERGENCY_UNIT = "0123"
"""A code that both hospitals use, and the largest unit of each."""

STAYS_A_UNIT = 1_250
"""About how many stays an ordinary unit of a large hospital has."""


def hospitals() -> Iterator[Etablissement]:
    """Yield the group and its houses."""
    yield _hospital(
        GROUP, "Groupement hospitalier des Trois-Vallées", "990000018", None
    )
    yield _hospital(CHU, "CHU Hôtel-Dieu", "990000018", "990000117")
    yield _hospital(
        CHB, "Centre hospitalier de l’Épine-Blanche", "990000026", "990000216"
    )
    yield _hospital(CLOSED, "Clinique du Cœur-Volant", "", "", "N")


def _hospital(
    etab_id: int, name: str, legal: str | None, place: str | None, is_open: str = "O"
) -> Etablissement:
    return Etablissement(
        etab_id=etab_id,
        raison_sociale=name,
        nom_recherche=search_form(name),
        finess_ej=legal,
        finess_et=place,
        telephone=f"04657100{etab_id:02d}" if is_open == "O" else None,
        courriel=f"accueil{etab_id}@example.org" if is_open == "O" else "",
        ligne1=f"{etab_id} place de l’Hôpital",
        code_postal="38000",
        commune="Grenoble",
        parent_id=None if etab_id == GROUP else GROUP,
        ouvert=is_open,
        maj_utc=datetime(2020, 1, etab_id, 8, 30),  # noqa: DTZ001 - UTC by its name
    )


def units(stays: int) -> Mapping[int, tuple[UniteFonctionnelle, ...]]:
    """Return the units of each hospital; the first of each is its emergency unit."""
    each = max(20, stays // STAYS_A_UNIT // 2)
    first = _units(CHU, each, first_id=1)
    second = _units(CHB, each, first_id=each + 1)
    return MappingProxyType({CHU: first, CHB: second})


def _units(etab_id: int, count: int, first_id: int) -> tuple[UniteFonctionnelle, ...]:
    codes = [EMERGENCY_UNIT, *(_code(etab_id, i) for i in range(1, count))]
    names = ["Urgences", *(UNITS[i % len(UNITS)] for i in range(1, count))]
    return tuple(
        UniteFonctionnelle(first_id + i, etab_id, code, name)
        for i, (code, name) in enumerate(zip(codes, names, strict=True))
    )


def _code(etab_id: int, place: int) -> str:
    """Return 0203, 0206 … for one hospital, 0204, 0207 … and A010 for the other."""
    if etab_id == CHB and place % 10 == 0:
        return f"A{place:03d}"
    return f"{200 + 3 * place + (etab_id == CHB):04d}"
