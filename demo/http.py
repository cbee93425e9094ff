"""The invented hospital behind an HTTP API, as some hospital systems are reached.

- `/sejours`, `/patients`, `/etablissements` answer `{"nombre": …, "resultats": […]}`: at
  most `nb` rows from `debut` on. `/sejours/<id>` answers one row.
- Each request carries a key.
- Times are local, written 30/03/2024 08:15:00 with a fraction where a row has one; `maj`,
  the last change, is in UTC. 01/01/1900 stands for an unknown day.
- Unknown parameters are ignored, as by many an API. Commas separate alternatives.
- `sejours`: `ids`, `ipp` (also of a file that was merged into the patient's), `etats`,
  `sansEtats` (all but these), `types`, `ufs`, `venues`, `etabs`; `entreeDu`,
  `entreeAvant`: from a time on and before it.
- `patients`: `ids`, `sexes`, `neDu`, `neAvant`; `numeros`, alone or with their `domaine`
  (the id itself is of the domain IPP); `nom` for any name, `famille`, `prenom`: a word
  begins so. With `Contient` they contain it, with `Exact` they are equal.
- `etablissements`: `ids`, `finess`, `nom`, `nomContient`, `nomExact`.
- `tri` is `id` or `maj`, for stays `entree` too, with `-` descending. Rows without the
  time come last both ways. By default the newest stays come first.

`--no-paging` is an older release, which answers the first rows only and does not sort.
"""

import argparse
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from functools import lru_cache
from operator import eq, ge, lt
from secrets import compare_digest
from typing import Any, TypeAlias

from flask import Flask, jsonify, request
from flask.typing import ResponseReturnValue

from adapters.folding import contains, fold, starts_words
from demo.hospital import generate
from demo.people import Row
from demo.state import serve
from demo.tables import ETABLISSEMENT, IDENTIFIANT_PATIENT, IDENTITE, PATIENT, SEJOUR

Json: TypeAlias = dict[str, Any]
Pas: TypeAlias = dict[str, dict[str, Json]]
"""The rows of a hospital as its API shows them, by kind and id."""

KEY_VARIABLE = "PAS_KEY"
KEY_HEADER = "X-Cle-Api"
KINDS = ("sejours", "patients", "etablissements")

DAY = "%d/%m/%Y"
MOMENT = f"{DAY} %H:%M:%S"
FRACTION = f"{MOMENT}.%f"
IPP = "IPP"

_UNKNOWN_DAY = "01/01/1900"
_NEVER = datetime(1, 1, 1)  # noqa: DTZ001 - local, as all times of the hospital


# Rows


def hospital(rows: Iterable[Row]) -> Pas:
    """Return what the API shows of a hospital's rows, each patient's file first."""
    pas: Pas = {kind: {} for kind in KINDS}
    qualified = set[int]()
    for table, row in rows:
        if table is SEJOUR:
            pas["sejours"][str(row["sejour_id"])] = _stay(row)
        elif table is PATIENT:
            pas["patients"][str(row["patient_id"])] = _patient(row)
        elif table is IDENTITE:
            pas["patients"][str(row["patient_id"])] |= _identity(row)
            if row["statut"] == "QUAL":
                qualified.add(row["patient_id"])
        elif table is ETABLISSEMENT:
            pas["etablissements"][str(row["etab_id"])] = _house(row)
        elif table is IDENTIFIANT_PATIENT and (
            row["domaine"] != "INS-NIR" or row["patient_id"] in qualified
        ):
            number = {"domaine": row["domaine"], "valeur": row["valeur"]}
            pas["patients"][str(row["patient_id"])]["numeros"].append(number)
    return pas


def _stay(row: Json) -> Json:
    unit = row["uf_courante"]
    return {
        "id": row["sejour_id"],
        "numVenue": row["num_venue"],
        "patient": {"ipp": row["patient_id"]},
        "etat": row["etat"],
        "typeSejour": row["type_sejour"],
        "dateEntree": _written(row["date_entree"]),
        "dateSortie": _written(row["date_sortie"]),
        "uf": None if unit is None else {"code": unit},
        "etablissement": {"id": row["etab_id"]},
        "maj": _written(row["maj_utc"]),
    }


def _patient(row: Json) -> Json:
    return {
        "id": row["patient_id"],
        "dossier": row["etat_dossier"],
        "fusionVers": row["fusion_vers"],
        "etablissement": {"id": row["etab_id"]},
        "numeros": [],
        "maj": _written(row["maj_utc"]),
    }


def _identity(row: Json) -> Json:
    return {
        "noms": {
            "naissance": row["nom_naissance"],
            "prenoms": row["prenoms"],
            "utilise": row["nom_utilise"],
            "prenomUtilise": row["prenom_utilise"],
        },
        "sexe": row["sexe"],
        "dateNaissance": _written(row["date_naissance"]),
    }


def _house(row: Json) -> Json:
    return {
        "id": row["etab_id"],
        "nom": row["raison_sociale"],
        "finess": row["finess_et"],
        "maj": _written(row["maj_utc"]),
    }


def _written(moment: date | None) -> str | None:
    if moment is None:
        return None
    return moment.strftime(MOMENT if isinstance(moment, datetime) else DAY)


@lru_cache(maxsize=65_536)
def _moment(text: str) -> datetime:
    form = DAY if " " not in text else FRACTION if "." in text else MOMENT
    return datetime.strptime(text, form)  # noqa: DTZ007 - local, as all its times


def _known(text: str | None) -> datetime | None:
    return None if not text or text.startswith(_UNKNOWN_DAY) else _moment(text)


# Searches

Args: TypeAlias = Mapping[str, str]
Filter: TypeAlias = Callable[[Json, list[str], Args], bool]
Names: TypeAlias = Callable[[Json], Iterable[str | None]]


def search(pas: Pas, kind: str, args: Args) -> list[Json]:
    """Return the matching rows of a kind in the requested order.

    Raises ValueError for a time or an order that the API does not know.
    """
    values = {name: text.split(",") for name, text in args.items()}
    # Stays have moved to the file that another one was merged into.
    files = [pas["patients"].get(id, {}) for id in values.get("ipp", ())]
    values["ipp"] = [
        str(file.get("fusionVers") or id)
        for id, file in zip(values.get("ipp", ()), files, strict=True)
    ]
    filters = [(f, values[name]) for name, f in _FILTERS[kind].items() if name in args]
    rows = [
        row
        for row in pas[kind].values()
        if all(matches(row, texts, args) for matches, texts in filters)
    ]
    return _sorted(
        rows, kind, args.get("tri", "-entree" if kind == "sejours" else "id")
    )


def _sorted(rows: list[Json], kind: str, order: str) -> list[Json]:
    fields = {"id": "", "maj": "maj"}
    if kind == "sejours":
        fields["entree"] = "dateEntree"
    name = order.removeprefix("-")
    if name not in fields:
        raise ValueError("no such order")

    def time_of(row: Json) -> datetime | None:
        return _known(row.get(fields[name])) if fields[name] else _NEVER

    rows = sorted(
        rows,
        key=lambda row: (time_of(row) or _NEVER, row["id"]),
        reverse=order.startswith("-"),
    )
    return sorted(rows, key=lambda row: time_of(row) is None)


def _at(row: Json, *path: str) -> Any:
    value: Any = row
    for key in path:
        value = (value or {}).get(key)
    return value


def _among(*path: str) -> Filter:
    def matches(row: Json, texts: list[str], _: Args) -> bool:
        value = _at(row, *path)
        return value is not None and str(value) in texts

    return matches


def _not_among(row: Json, texts: list[str], _: Args) -> bool:
    return str(row.get("etat")) not in texts


def _when(name: str, compare: Callable[[datetime, datetime], bool]) -> Filter:
    def matches(row: Json, texts: list[str], _: Args) -> bool:
        (bound,) = map(_moment, texts)
        value = _known(row.get(name))
        return value is not None and compare(value, bound)

    return matches


def _numbered(row: Json, texts: list[str], args: Args) -> bool:
    domain = args.get("domaine")
    internal = {"domaine": IPP, "valeur": str(row["id"])}
    return any(
        number["valeur"] in texts and domain in (None, number["domaine"])
        for number in (internal, *(row.get("numeros") or ()))
    )


def _named(names: Names, compare: Callable[[str, str], bool]) -> Filter:
    def matches(row: Json, texts: list[str], _: Args) -> bool:
        return any(compare(name, text) for name in names(row) if name for text in texts)

    return matches


def _by_name(parameter: str, names: Names, single: Names) -> Mapping[str, Filter]:
    """Return the three filters of a name; `single` yields given names one by one."""

    def all_names(row: Json) -> tuple[str, ...]:
        return (" ".join(name for name in names(row) if name),)

    return {
        parameter: _named(all_names, lambda a, b: starts_words(fold(a), fold(b))),
        f"{parameter}Contient": _named(names, lambda a, b: contains(fold(a), fold(b))),
        f"{parameter}Exact": _named(single, eq),
    }


def _family(row: Json) -> tuple[str | None, ...]:
    return _at(row, "noms", "naissance"), _at(row, "noms", "utilise")


def _given(row: Json) -> tuple[str | None, ...]:
    return _at(row, "noms", "prenoms"), _at(row, "noms", "prenomUtilise")


def _single_given(row: Json) -> tuple[str | None, ...]:
    """`prenoms` are several names, `prenomUtilise` is one even with blanks."""
    names, used = _given(row)
    return *(names or "").split(), used


def _title(row: Json) -> tuple[str | None, ...]:
    return (row.get("nom"),)


_FILTERS: Mapping[str, Mapping[str, Filter]] = {
    "sejours": {
        "ids": _among("id"),
        "ipp": _among("patient", "ipp"),
        "etats": _among("etat"),
        "sansEtats": _not_among,
        "types": _among("typeSejour"),
        "ufs": _among("uf", "code"),
        "venues": _among("numVenue"),
        "etabs": _among("etablissement", "id"),
        "entreeDu": _when("dateEntree", ge),
        "entreeAvant": _when("dateEntree", lt),
    },
    "patients": {
        "ids": _among("id"),
        "sexes": _among("sexe"),
        "numeros": _numbered,
        "neDu": _when("dateNaissance", ge),
        "neAvant": _when("dateNaissance", lt),
        **_by_name(
            "nom",
            lambda row: (*_family(row), *_given(row)),
            lambda row: (*_family(row), *_single_given(row)),
        ),
        **_by_name("famille", _family, _family),
        **_by_name("prenom", _given, _single_given),
    },
    "etablissements": {
        "ids": _among("id"),
        "finess": _among("finess"),
        **_by_name("nom", _title, _title),
    },
}


# The API


def application(pas: Pas, key: str, *, paging: bool = True) -> Flask:
    """Return the API of a hospital; `paging=False` makes the older release."""
    app = Flask("demo.http", static_folder=None)

    @app.before_request
    def authenticate() -> ResponseReturnValue | None:
        sent = request.headers.get(KEY_HEADER, "")
        is_known = compare_digest(sent.encode(), key.encode())
        return None if is_known else _refusal("CLE_REFUSEE", 401)

    @app.get("/<any(sejours, patients, etablissements):kind>/<id>")
    def read(kind: str, id: str) -> ResponseReturnValue:
        row = pas[kind].get(id)
        return _refusal("ABSENT", 404) if row is None else jsonify(row)

    @app.get("/<any(sejours, patients, etablissements):kind>")
    def find(kind: str) -> ResponseReturnValue:
        newer = () if paging else ("debut", "tri")
        args = {k: v for k, v in request.args.items() if k not in newer}
        try:
            rows = search(pas, kind, args)
            size, start = int(args.get("nb", "")), int(args.get("debut", 0))
        except ValueError:
            return _refusal("DEMANDE", 400)
        page = rows[start : start + size]
        return jsonify({"nombre": len(rows), "resultats": page})

    return app


def _refusal(code: str, status: int) -> ResponseReturnValue:
    return {"erreur": {"code": code}}, status


def main(arguments: list[str] | None = None) -> None:
    """Serve the hospital until it is stopped; PAS_KEY is its key."""
    parser = argparse.ArgumentParser(
        prog="python -m demo.http",
        description=f"Serve a demo hospital over HTTP. The variable {KEY_VARIABLE} is the"
        f" key, which each request carries in the header {KEY_HEADER}.",
    )
    parser.add_argument(
        "--port", type=int, default=8010, help="default 8010; 0: a free one"
    )
    parser.add_argument("--stays", type=int, default=2000, help="default 2000")
    parser.add_argument("--seed", type=int, default=1, help="default 1")
    parser.add_argument(
        "--no-paging",
        action="store_true",
        help="neither page nor sort, as an older API",
    )
    options = parser.parse_args(arguments)
    if not (key := os.environ.get(KEY_VARIABLE)):
        text = f"{KEY_VARIABLE} must be the key, which requests carry in {KEY_HEADER}"
        parser.exit(1, f"{parser.prog}: {text}\n")
    app = application(
        hospital(generate(options.stays, options.seed)),
        key,
        paging=not options.no_paging,
    )
    serve(app, options.port, "The hospital")


if __name__ == "__main__":
    main()
