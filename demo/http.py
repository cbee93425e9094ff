"""The made-up hospital behind an HTTP API, as some hospital systems are reached.

What its own people would say of it:

- `/sejours`, `/patients`, `/etablissements` answer `{"nombre": …, "resultats": […]}`, `nb` rows
  at most from `debut` on; `/sejours/<id>` answers one row. Each request carries a key.
- Times are written 30/03/2024 08:15:00, as the clock on the wall showed them.
- Stays come newest entry first, those that have not begun at the end; `tri=entree` is
  the other way round. `sansEtats=A,X` leaves stays with these states out.

`paging=False` makes the older release, which gives the first rows only and does not sort;
`errors_as_200` the one that answers every error with status 200.
"""

import argparse
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import groupby
from operator import ge, lt
from secrets import compare_digest
from typing import Any, TypeAlias

from flask import Flask, jsonify, request
from flask.typing import ResponseReturnValue

from adapters.words import fold, starts_a_word
from demo.hospital import generate
from demo.loopback import serve
from demo.rows import Etablissement, Identite, Patient, Row, Sejour

KEY_HEADER = "X-Cle-Api"
KEY_VARIABLE = "PAS_KEY"

Json: TypeAlias = dict[str, Any]
Keep: TypeAlias = Callable[[Json, list[str]], bool]

_MOMENT = "%d/%m/%Y %H:%M:%S"
_NEVER = datetime(1, 1, 1)  # noqa: DTZ001 - local, as all times of the hospital


@dataclass(frozen=True, slots=True)
class Pas:
    """The rows of the hospital as its API shows them, by kind and id."""

    sejours: dict[str, Json] = field(default_factory=dict)
    patients: dict[str, Json] = field(default_factory=dict)
    etablissements: dict[str, Json] = field(default_factory=dict)

    def rows(self, kind: str) -> dict[str, Json] | None:
        """Return the rows of one kind, None when there is no such kind."""
        return getattr(self, kind) if kind in _FILTERS else None


def hospital(rows: Iterable[Row]) -> Pas:
    """Return what the API shows of the hospital's rows."""
    pas = Pas()
    for kind, of_kind in groupby(rows, type):
        if kind is Sejour:
            pas.sejours.update((str(r[0]), _sejour(r)) for r in of_kind)  # type: ignore[arg-type]
        elif kind is Patient:
            for row in of_kind:
                pas.patients.setdefault(str(row[0]), {}).update(_patient(row))  # type: ignore[arg-type]
        elif kind is Identite:
            for row in of_kind:
                pas.patients.setdefault(str(row[0]), {}).update(_identite(row))  # type: ignore[arg-type]
        elif kind is Etablissement:
            pas.etablissements.update((str(r[0]), _house(r)) for r in of_kind)  # type: ignore[arg-type]
    return pas


def application(
    pas: Pas, key: str, *, paging: bool = True, errors_as_200: bool = False
) -> Flask:
    """Return the API; `key` is what each request has to carry."""
    app = Flask("demo.http", static_folder=None)

    def refuse(code: str, status: int) -> ResponseReturnValue:
        body = jsonify({"erreur": {"code": code}})
        return body, 200 if errors_as_200 else status

    @app.before_request
    def check_key() -> ResponseReturnValue | None:
        shown = request.headers.get(KEY_HEADER, "")
        known = compare_digest(shown.encode(), key.encode())
        return None if known else refuse("CLE_REFUSEE", 401)

    @app.get("/<kind>/<id>")
    def read(kind: str, id: str) -> ResponseReturnValue:
        row = (pas.rows(kind) or {}).get(id)
        return refuse("ABSENT", 404) if row is None else jsonify(row)

    @app.get("/<kind>")
    def search(kind: str) -> ResponseReturnValue:
        rows = pas.rows(kind)
        if rows is None:
            return refuse("ABSENT", 404)
        try:
            kept = list(_kept(pas, kind, rows.values(), request.args))
            size, start = int(request.args["nb"]), int(request.args.get("debut", 0))
        except (KeyError, ValueError):
            return refuse("DEMANDE", 400)
        if kind == "sejours":
            is_oldest_first = paging and request.args.get("tri") == "entree"
            kept = _ordered(kept, newest_first=not is_oldest_first)
        first = start if paging else 0
        shown = kept[first : first + size]
        return jsonify({"nombre": len(kept), "resultats": shown})

    return app


# -------------------------------------------------------------------- filters


def _kept(
    pas: Pas, kind: str, rows: Iterable[Json], args: Mapping[str, str]
) -> Iterable[Json]:
    asked = [
        (keep, args[name].split(","))
        for name, keep in _FILTERS[kind].items()
        if name in args
    ]
    if "ipp" in args:
        of = {_survivor(pas, ipp) for ipp in args["ipp"].split(",")}
        rows = [row for row in rows if str(row["patient"]["ipp"]) in of]
    return [row for row in rows if all(keep(row, texts) for keep, texts in asked)]


def _survivor(pas: Pas, ipp: str) -> str:
    merged_into = pas.patients.get(ipp, {}).get("fusionVers")
    return ipp if merged_into is None else str(merged_into)


def _has_id(row: Json, texts: list[str]) -> bool:
    return str(row["id"]) in texts


def _is_without(row: Json, texts: list[str]) -> bool:
    return row["etat"] not in texts


def _begins(comes: Callable[[datetime, datetime], bool]) -> Keep:
    def keeps(row: Json, texts: list[str]) -> bool:
        began, day = _read(row["dateEntree"]), _read(f"{texts[0]} 00:00:00")
        return began is not None and day is not None and comes(began, day)

    return keeps


def _is_called(row: Json, texts: list[str]) -> bool:
    names = [name for name in row["noms"].values() if name]
    return any(
        starts_a_word(fold(name), fold(text)) for name in names for text in texts
    )


_FILTERS: Mapping[str, Mapping[str, Keep]] = {
    "sejours": {
        "ids": _has_id,
        "sansEtats": _is_without,
        "entreeDu": _begins(ge),
        "entreeAvant": _begins(lt),
    },
    "patients": {"ids": _has_id, "nom": _is_called},
    "etablissements": {"ids": _has_id},
}


def _ordered(rows: list[Json], *, newest_first: bool) -> list[Json]:
    def place(row: Json) -> tuple[datetime, int]:
        return _read(row["dateEntree"]) or _NEVER, row["id"]

    ordered = sorted(rows, key=place, reverse=newest_first)
    return sorted(ordered, key=lambda row: row["dateEntree"] is None)


# ----------------------------------------------------------------------- rows


def _sejour(row: Sejour) -> Json:
    return {
        "id": row.sejour_id,
        "numVenue": row.num_venue,
        "patient": {"ipp": row.patient_id},
        "etat": row.etat,
        "typeSejour": row.type_sejour,
        "dateEntree": _written(row.date_entree),
        "dateSortie": _written(row.date_sortie),
        "uf": None if row.uf_courante is None else {"code": row.uf_courante},
        "etablissement": {"id": row.etab_id},
    }


def _patient(row: Patient) -> Json:
    return {
        "id": row.patient_id,
        "dossier": row.etat_dossier,
        "fusionVers": row.fusion_vers,
        "etablissement": {"id": row.etab_id},
    }


def _identite(row: Identite) -> Json:
    return {
        "noms": {
            "naissance": row.nom_naissance,
            "prenoms": row.prenoms,
            "utilise": row.nom_utilise,
            "prenomUtilise": row.prenom_utilise,
        },
        "sexe": row.sexe,
        "dateNaissance": _written(row.date_naissance),
    }


def _house(row: Etablissement) -> Json:
    return {"id": row.etab_id, "nom": row.raison_sociale, "finess": row.finess_et}


def _written(moment: date | None) -> str | None:
    form = _MOMENT if isinstance(moment, datetime) else "%d/%m/%Y"
    return None if moment is None else moment.strftime(form)


def _read(text: str | None) -> datetime | None:
    return None if text is None else datetime.strptime(text, _MOMENT)  # noqa: DTZ007


def main(arguments: list[str] | None = None) -> None:
    """Serve the hospital until it is stopped; the key stands in PAS_KEY."""
    parser = argparse.ArgumentParser(
        prog="python -m demo.http", description="Serve a demo hospital over HTTP."
    )
    parser.add_argument("--port", type=int, default=8010, help="default 8010")
    parser.add_argument("--stays", type=int, default=2000, help="default 2000")
    parser.add_argument("--seed", type=int, default=1, help="default 1")
    parser.add_argument("--no-paging", action="store_true", help="the older release")
    parser.add_argument("--errors-as-200", action="store_true", help="as some do")
    told = parser.parse_args(arguments)
    if not (key := os.environ.get(KEY_VARIABLE)):
        parser.exit(1, f"{parser.prog}: {KEY_VARIABLE} must hold the key\n")
    pas, paging = hospital(generate(told.stays, told.seed)), not told.no_paging
    api = application(pas, key, paging=paging, errors_as_200=told.errors_as_200)
    serve(api, told.port)


if __name__ == "__main__":
    main()
