"""What a search of the hospital's HTTP API finds, and in which order.

Parameters that it does not know are left out, as many an API does; several values of one
stand with commas between them, and any will do.

- `sejours`: `ids`, `ipp` (of a patient, or of a file that was merged into it), `etats`,
  `sansEtats` (all but these), `types`, `ufs`, `venues`, `etabs`; `entreeDu`, `entreeAvant`:
  from a time on and before it.
- `patients`: `ids`, `sexes`, `neDu`, `neAvant`; `numeros`, alone or with the `domaine` that
  they are of (the id itself is of the domain IPP); `nom` for any name, `famille`, `prenom`:
  its words begin so. `nomContient`, `nomExact` and so on: they hold it, or are just that.
- `etablissements`: `ids`, `finess`, `nom`, `nomContient`, `nomExact`.
- `tri` is `id` or `maj`, for stays `entree` too, with `-` from the end. Who has no such time
  comes last both ways. Stays come newest entry first unless they are asked otherwise.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from operator import eq, ge, lt
from typing import Any, TypeAlias

from adapters.words import contains, fold, starts_a_word
from demo.pas import Json, Pas, known, moment

Args: TypeAlias = Mapping[str, str]
Texts: TypeAlias = list[str]
Keep: TypeAlias = Callable[[Json], bool]
Filter: TypeAlias = Callable[[Texts, Pas, Args], Keep]

IPP = "IPP"
_NEVER = datetime(1, 1, 1)  # noqa: DTZ001 - local, as all times of the hospital


def found(pas: Pas, kind: str, args: Args) -> list[Json]:
    """Return the rows of a kind that are asked for, in the order that is asked for.

    Raises ValueError for a time or an order that the API does not know.
    """
    asked = {name: text.split(",") for name, text in args.items()}
    filters = _FILTERS[kind].items()
    keeps = [of(asked[name], pas, args) for name, of in filters if name in asked]
    rows = (pas.rows(kind) or {}).values()
    kept = [row for row in rows if all(keep(row) for keep in keeps)]
    return _ordered(kept, _ORDERS[kind], args.get("tri", _USUAL[kind]))


def _ordered(rows: list[Json], fields: Mapping[str, str], word: str) -> list[Json]:
    name, down = word.removeprefix("-"), word.startswith("-")
    if name not in fields:
        raise ValueError("no such order")

    def time(row: Json) -> datetime | None:
        return known(row.get(fields[name])) if fields[name] else _NEVER

    ordered = sorted(rows, key=lambda r: (time(r) or _NEVER, r["id"]), reverse=down)
    return sorted(ordered, key=lambda row: time(row) is None)


# -------------------------------------------------------------------- filters


def _at(row: Json, *path: str) -> Any:
    value: Any = row
    for key in path:
        value = (value or {}).get(key)
    return value


def _among(*path: str) -> Filter:
    def of(texts: Texts, _: Pas, __: Args) -> Keep:
        wanted = {*texts}
        return lambda row: (held := _at(row, *path)) is not None and str(held) in wanted

    return of


def _without(*path: str) -> Filter:
    among = _among(*path)

    def of(texts: Texts, pas: Pas, args: Args) -> Keep:
        is_among = among(texts, pas, args)
        return lambda row: not is_among(row)

    return of


def _of_patient(texts: Texts, pas: Pas, args: Args) -> Keep:
    """Stays have moved to the file that another one was merged into."""
    files = (pas.patients.get(text, {}).get("fusionVers") or text for text in texts)
    return _among("patient", "ipp")([str(file) for file in files], pas, args)


def _time(name: str, comes: Callable[[datetime, datetime], bool]) -> Filter:
    def of(texts: Texts, _: Pas, __: Args) -> Keep:
        (bound,) = map(moment, texts)
        return lambda row: (
            (time := known(row.get(name))) is not None and comes(time, bound)
        )

    return of


def _numbered(texts: Texts, _: Pas, args: Args) -> Keep:
    domain = args.get("domaine")

    def keeps(row: Json) -> bool:
        own = {"domaine": IPP, "valeur": str(row["id"])}
        return any(
            number["valeur"] in texts and domain in (None, number["domaine"])
            for number in (own, *(row.get("numeros") or ()))
        )

    return keeps


def _starts(held: str, text: str) -> bool:
    return starts_a_word(fold(held), fold(text))


def _holds(held: str, text: str) -> bool:
    return contains(fold(held), fold(text))


def _called(
    names: Callable[[Json], Iterable[str | None]], meets: Callable[[str, str], bool]
) -> Filter:
    def of(texts: Texts, _: Pas, __: Args) -> Keep:
        return lambda row: any(
            meets(name, text) for name in names(row) if name for text in texts
        )

    return of


def _family(row: Json) -> Iterable[str | None]:
    return _at(row, "noms", "naissance"), _at(row, "noms", "utilise")


def _given(row: Json) -> Iterable[str | None]:
    return _at(row, "noms", "prenoms"), _at(row, "noms", "prenomUtilise")


def _each_given(row: Json) -> Iterable[str | None]:
    """`prenoms` are several names, `prenomUtilise` is one whatever blanks it has."""
    prenoms, used = _given(row)
    return *(prenoms or "").split(), used


def _any(row: Json) -> Iterable[str | None]:
    return *_family(row), *_given(row)


def _each(row: Json) -> Iterable[str | None]:
    return *_family(row), *_each_given(row)


def _title(row: Json) -> Iterable[str | None]:
    return (row.get("nom"),)


_FILTERS: Mapping[str, Mapping[str, Filter]] = {
    "sejours": {
        "ids": _among("id"),
        "ipp": _of_patient,
        "etats": _among("etat"),
        "sansEtats": _without("etat"),
        "types": _among("typeSejour"),
        "ufs": _among("uf", "code"),
        "venues": _among("numVenue"),
        "etabs": _among("etablissement", "id"),
        "entreeDu": _time("dateEntree", ge),
        "entreeAvant": _time("dateEntree", lt),
    },
    "patients": {
        "ids": _among("id"),
        "sexes": _among("sexe"),
        "numeros": _numbered,
        "neDu": _time("dateNaissance", ge),
        "neAvant": _time("dateNaissance", lt),
        "nom": _called(_any, _starts),
        "nomContient": _called(_any, _holds),
        "nomExact": _called(_each, eq),
        "famille": _called(_family, _starts),
        "familleContient": _called(_family, _holds),
        "familleExact": _called(_family, eq),
        "prenom": _called(_given, _starts),
        "prenomContient": _called(_given, _holds),
        "prenomExact": _called(_each_given, eq),
    },
    "etablissements": {
        "ids": _among("id"),
        "finess": _among("finess"),
        "nom": _called(_title, _starts),
        "nomContient": _called(_title, _holds),
        "nomExact": _called(_title, eq),
    },
}
_ORDERS: Mapping[str, Mapping[str, str]] = {
    "sejours": {"id": "", "entree": "dateEntree", "maj": "maj"},
    "patients": {"id": "", "maj": "maj"},
    "etablissements": {"id": "", "maj": "maj"},
}
_USUAL: Mapping[str, str] = {
    "sejours": "-entree",
    "patients": "id",
    "etablissements": "id",
}
