"""Hospitals in a folder: NAME.json holds what the HTTP API shows below /NAME/.

A file has the rows of each kind as that API shows them:

    {"sejours": [{"id": 1, …}], "patients": [{"id": 42, …}], "etablissements": [{"id": 2, …}]}

It may be replaced while it is served: write the new one beside it and rename it, which no
reader ever sees half done. The next request is answered from it.
"""

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias
from wsgiref.util import shift_path_info

from demo.pas import Json, Pas, known

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

Mark: TypeAlias = tuple[int, ...]

_TIMES = ("dateEntree", "dateSortie", "dateNaissance", "maj")


class HospitalFileError(Exception):
    """A file that holds no hospital; the text says where it goes wrong."""


@dataclass(slots=True)
class _Kept:
    """A hospital as it was read. The file stays open, or its number could be used again."""

    file: BinaryIO
    mark: Mark
    pas: Pas


@dataclass(frozen=True, slots=True)
class Folder:
    """The hospitals of a folder, read anew when they change. Safe to share between threads."""

    directory: Path
    _kept: dict[str, _Kept] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def hospital(self, name: str) -> Pas | None:
        """Return a hospital as its file is now, None where there is none.

        Raises HospitalFileError for a file that holds no hospital.
        """
        if not re.fullmatch(r"[\w-][\w.-]*", name):
            return None
        path = self.directory / f"{name}.json"
        with self._lock:
            kept = self._kept.get(name)
            try:
                if kept and kept.mark == _mark(path.stat()):
                    return kept.pas
                return self._read(name, path)
            except FileNotFoundError:
                return None

    def close(self) -> None:
        """Close the files that were read."""
        with self._lock:
            while self._kept:
                self._kept.popitem()[1].file.close()

    def _read(self, name: str, path: Path) -> Pas:
        file = path.open("rb")
        try:
            kept = _Kept(
                file, _mark(os.fstat(file.fileno())), read_hospital(file.read())
            )
        except BaseException:
            file.close()
            raise
        if before := self._kept.get(name):
            before.file.close()
        self._kept[name] = kept
        return kept.pas


def below_a_name(app: "WSGIApplication") -> "WSGIApplication":
    """Return the application with the first step of a path as where it is mounted."""

    def shifted(environ: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
        shift_path_info(environ)
        return app(environ, start)

    return shifted


def _mark(status: os.stat_result) -> Mark:
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


def read_hospital(text: bytes) -> Pas:
    """Return the hospital that a file holds; raises HospitalFileError."""
    try:
        held = json.loads(text)
    except ValueError as error:
        raise HospitalFileError("this is not JSON") from error
    if not isinstance(held, dict):
        raise HospitalFileError("rows by kind are expected")
    pas = Pas()
    for kind, listed in held.items():
        rows = pas.rows(kind)
        if rows is None or not isinstance(listed, list):
            raise HospitalFileError(f"{kind}: no kind of rows, or no list of them")
        rows.update(_by_id(kind, listed))
    return pas


def _by_id(kind: str, rows: list[Any]) -> dict[str, Json]:
    by_id = {}
    for number, row in enumerate(rows, 1):
        try:
            by_id[str(row["id"])] = row
            for name in _TIMES:
                known(row.get(name))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            text = f"{kind}, row {number} has no id, or a time that none can read"
            raise HospitalFileError(text) from error
    return by_id
