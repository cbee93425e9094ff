"""What stands around the service in a replay: key set, hospital API, things that fail."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TypeAlias

from werkzeug import Request, Response

from tests.hospital_http import serving as serving_application
from tests.replay.hospital import (
    HOUSES,
    NO_START,
    NUMBERS,
    PATIENTS,
    STAYS,
    House,
    Patient,
    Stay,
    fold,
)

Row: TypeAlias = dict[str, Any]
Test: TypeAlias = Callable[[Row], bool]
KEYS, FULL, COARSE, FAILING, NONSENSE = "keys", "full", "coarse", "failing", "nonsense"
"""The first segments of the paths that are served."""

_EARLIEST = datetime(1, 1, 1)  # noqa: DTZ001 - local, as all times of the hospital
_SURVIVORS = {p.patient_id: p.replaced_by for p in PATIENTS if p.replaced_by}


class Hospital:
    """The rows as an HTTP API shows them; `form` is how it writes times."""

    def __init__(self, form: str) -> None:
        self._form = form
        self._rows: Mapping[str, dict[str, Row]] = {
            "sejours": {str(row.stay_id): self._stay(row) for row in STAYS},
            "patients": {str(row.patient_id): self._patient(row) for row in PATIENTS},
            "etablissements": {row.code: self._house(row) for row in HOUSES},
        }

    def answer(self, path: Sequence[str], args: Mapping[str, str]) -> Response:
        """Return one row, or the rows that are searched for."""
        kind, *rest = path
        if rest:
            row = self._rows[kind].get(rest[0])
            return _json(row) if row else _json({"erreur": {"code": "ABSENT"}}, 404)
        rows = self._found(kind, args)
        start, size = int(args.get("debut", 0)), int(args["nb"])
        return _json({"nombre": len(rows), "resultats": rows[start : start + size]})

    def _found(self, kind: str, args: Mapping[str, str]) -> list[Row]:
        tests = [
            test
            for name, text in args.items()
            for test in self._tests(name, text, args)
        ]
        rows = [r for r in self._rows[kind].values() if all(test(r) for test in tests)]
        order = args.get("tri", "-entree" if kind == "sejours" else "id")
        field = {"entree": "dateEntree", "maj": "maj"}.get(order.lstrip("-"))
        reverse = order.startswith("-")

        def key(row: Row) -> tuple[datetime, Any]:
            return (self._time(row.get(field or "")) or _EARLIEST, row["id"])

        rows.sort(key=key, reverse=reverse)
        if field:
            rows.sort(key=lambda row: self._time(row.get(field)) is None)
        return rows

    def _tests(self, name: str, text: str, args: Mapping[str, str]) -> Iterator[Test]:
        texts = text.split(",")
        if name in _AMONG:
            yield _among(_AMONG[name], texts)
        elif name == "sansEtats":
            among = _among(("etat",), texts)
            yield lambda row: not among(row)
        elif name == "ipp":
            files = [
                str(_SURVIVORS.get(int(t), t) if t.isdigit() else t) for t in texts
            ]
            yield _among(("patient", "ipp"), files)
        elif name == "numeros":
            yield _numbered(texts, args.get("domaine"))
        elif name in _TIMES:
            yield self._compared(*_TIMES[name], text)
        else:
            yield from _named(name, texts)

    def _compared(self, field: str, is_from: bool, text: str) -> Test:
        bound = self._time(text)

        def holds(row: Row) -> bool:
            time = self._time(row.get(field))
            return bool(time and bound) and (time >= bound) is is_from  # type: ignore[operator]

        return holds

    def _time(self, text: str | None) -> datetime | None:
        if not text or text == self._written(NO_START):
            return None
        day, _, clock = text.partition(" ")
        form = "%d/%m/%Y"
        if clock:
            form += " %H:%M:%S" + (".%f" if "." in clock else "")
        return datetime.strptime(f"{day} {clock}".strip(), form)  # noqa: DTZ007 - local

    def _written(self, text: str | None) -> str | None:
        return datetime.fromisoformat(text).strftime(self._form) if text else text

    def _stay(self, row: Stay) -> Row:
        return {
            "id": row.stay_id,
            "numVenue": row.visit,
            "patient": {"ipp": _SURVIVORS.get(row.patient_id or 0, row.patient_id)},
            "etat": row.state,
            "typeSejour": row.kind,
            "dateEntree": self._written(row.began),
            "dateSortie": self._written(row.ended),
            "uf": None if row.unit is None else {"code": row.unit},
            "etablissement": {"id": row.hospital},
            "maj": self._written(row.changed),
        }

    def _patient(self, row: Patient) -> Row:
        numbers = [each for each in NUMBERS if each.patient_id == row.patient_id]
        return {
            "id": row.patient_id,
            "dossier": "A" if row.replaced_by is None else "F",
            "fusionVers": row.replaced_by,
            "noms": {
                "naissance": row.birth_name,
                "utilise": row.used_name,
                "prenomUtilise": row.given,
            },
            "sexe": row.sex,
            "dateNaissance": row.born
            and datetime.fromisoformat(row.born).strftime("%d/%m/%Y"),
            "numeros": [
                {"domaine": each.authority, "valeur": each.number} for each in numbers
            ],
            "maj": self._written(row.changed),
        }

    def _house(self, row: House) -> Row:
        return {
            "id": row.code,
            "nom": row.title,
            "finess": row.finess,
            "maj": self._written(row.changed),
        }


_AMONG: Mapping[str, tuple[str, ...]] = {
    "ids": ("id",),
    "etats": ("etat",),
    "types": ("typeSejour",),
    "ufs": ("uf", "code"),
    "venues": ("numVenue",),
    "etabs": ("etablissement", "id"),
    "sexes": ("sexe",),
    "finess": ("finess",),
}
_TIMES = {
    "entreeDu": ("dateEntree", True),
    "entreeAvant": ("dateEntree", False),
    "neDu": ("dateNaissance", True),
    "neAvant": ("dateNaissance", False),
}
_FAMILY, _GIVEN = ("naissance", "utilise"), ("prenomUtilise",)
_NAMES = {"nom": (*_FAMILY, *_GIVEN), "famille": _FAMILY, "prenom": _GIVEN}


def _among(path: tuple[str, ...], texts: Iterable[str]) -> Test:
    wanted = {*texts}

    def holds(row: Row) -> bool:
        value: Any = row
        for key in path:
            value = (value or {}).get(key)
        return value is not None and str(value) in wanted

    return holds


def _numbered(texts: Sequence[str], domain: str | None) -> Test:
    def holds(row: Row) -> bool:
        own = {"domaine": "IPP", "valeur": str(row["id"])}
        return any(
            number["valeur"] in texts and domain in (None, number["domaine"])
            for number in (own, *row["numeros"])
        )

    return holds


def _named(name: str, texts: Sequence[str]) -> Iterator[Test]:
    for word, keys in _NAMES.items():
        if name in (word, f"{word}Contient", f"{word}Exact"):
            how = name.removeprefix(word)
            yield lambda row, keys=keys, how=how: any(  # type: ignore[misc]
                _meets(held, text, how)
                for held in _held(row, keys)
                if held
                for text in texts
            )


def _held(row: Row, keys: Iterable[str]) -> list[str | None]:
    return [row["noms"][key] for key in keys] if "noms" in row else [row["nom"]]


def _meets(held: str, text: str, how: str) -> bool:
    if how == "Exact":
        return held == text
    folded, wanted = fold(held) or "", fold(text) or ""
    if how == "Contient":
        return bool(wanted) and wanted in folded
    return bool(wanted) and f" {wanted}" in f" {folded}"


def _json(body: object, status: int = 200) -> Response:
    return Response(json.dumps(body), status, content_type="application/json")


@contextmanager
def serving(key_set: object) -> Iterator[str]:
    """Serve it all on a free port of this machine, and yield the address."""
    hospitals = {
        FULL: Hospital("%d/%m/%Y %H:%M:%S.%f"),
        COARSE: Hospital("%d/%m/%Y %H:%M:%S"),
    }

    @Request.application
    def application(request: Request) -> Response:
        _, what, *path = request.path.split("/")
        if what == KEYS:
            return _json(key_set)
        if what == FAILING:
            return _json({"erreur": {"code": "PANNE"}}, 500)
        if what == NONSENSE:
            return Response("<html>", content_type="text/html")
        return hospitals[what].answer(path, request.args.to_dict())

    with serving_application(application) as address:
        yield address
