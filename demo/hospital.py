"""A made-up hospital system (PAS) of a group of two French hospitals, in any database.

What its own people would say of it:

- `sejour` is the heart: one row a stay. `etat` says how far it is (P, PA planned; E, EC, R
  here; S, T, F left; A, AN cancelled; X, SUP deleted, the row stays). Rows of a system
  that was taken over have states that nobody remembers.
- `date_entree` and `date_sortie` are what the clock on the wall said. A planned stay may
  have only `date_prevue`; one that goes on has no `date_sortie`, or 31/12/2999.
- `num_venue` is the visit number: each house counts for itself, so both have a 000000042.
- `mouvement` has one to three rows a stay; `sejour.uf_courante` is the unit of the last one.
  Codes of `unite_fonctionnelle` keep their zeros (0123); both houses have an 0123.
- `patient` is the file, `identite` the person. When two files turn out to be one person,
  `fusion_vers` of the old one points to the last survivor and the stays move there.
- `identite.statut`: only QUAL, qualified, lets the national number (INS) out of the house.
- `identifiant_patient` holds the IPP of each house and the INS; `moyen_contact` and
  `adresse` what the desk was told. Where nothing is known stands NULL, or '', as it came.
- The columns ending in `_recherche` are names in capitals without accents, for searching.
  `maj_utc` is the last change, written in UTC by the database itself.

Nobody in it is real; the national numbers are of the test authority.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from random import Random

from sqlalchemy.exc import SQLAlchemyError

from demo.loading import NotEmptyError, load
from demo.people import CANARIES, People
from demo.rows import Row
from demo.sites import hospitals, units
from demo.stays import Stays, share_out

__all__ = ["CANARIES", "NotEmptyError", "Summary", "fill", "generate", "main"]

LEAST_STAYS = 1_000
"""A smaller hospital would not hold every special case."""


@dataclass(frozen=True, slots=True)
class Summary:
    """How many rows each table was given."""

    etablissement: int
    unite_fonctionnelle: int
    patient: int
    identite: int
    identifiant_patient: int
    moyen_contact: int
    adresse: int
    sejour: int
    mouvement: int


def generate(stays: int, seed: int, *, spring_gap: bool = False) -> Iterator[Row]:
    """Yield every row of a hospital; the same arguments give the same rows.

    With `spring_gap` one stay starts in the hour that the spring clock change leaves
    out. Raises ValueError for fewer than LEAST_STAYS stays.
    """
    if stays < LEAST_STAYS:
        raise ValueError(f"a demo hospital has at least {LEAST_STAYS} stays")
    yield from hospitals()
    sites = units(stays)
    for of_house in sites.values():
        yield from of_house
    owners, patients = share_out(stays, Random(f"{seed} owners"))
    people = People(Random(f"{seed} people"))
    for number in range(1, patients + 1):
        yield from people.rows(number)
    rng = Random(f"{seed} stays")
    yield from Stays(rng, sites, spring_gap=spring_gap).rows(owners)


def fill(
    url: str, stays: int = 2000, seed: int = 1, *, spring_gap: bool = False
) -> Summary:
    """Make the hospital in an empty database and tell how many rows it has.

    All or nothing. Raises NotEmptyError when tables of such a hospital are there, and
    ValueError for fewer than LEAST_STAYS stays.
    """
    return Summary(**load(url, generate(stays, seed, spring_gap=spring_gap)))


def main(arguments: list[str] | None = None) -> None:
    """Fill the database that the command line names."""
    parser = argparse.ArgumentParser(
        prog="python -m demo.hospital",
        description="Make a demo hospital in a database.",
    )
    parser.add_argument("url", help="an SQLAlchemy URL, such as sqlite:///pas.sqlite")
    parser.add_argument("--stays", type=int, default=2000, help="default 2000")
    parser.add_argument("--seed", type=int, default=1, help="default 1")
    parser.add_argument(
        "--spring-gap", action="store_true", help="add a start that never happened"
    )
    told = parser.parse_args(arguments)
    started = time.monotonic()
    try:
        made = fill(told.url, told.stays, told.seed, spring_gap=told.spring_gap)
    except (NotEmptyError, ValueError, SQLAlchemyError) as error:
        parser.exit(1, f"{parser.prog}: {error}\n")
    for table, count in asdict(made).items():
        print(f"{table:20} {count:>10,}")
    print(f"{'seconds':20} {time.monotonic() - started:>10.1f}")


if __name__ == "__main__":
    main()
