"""The licences of all locked packages, as each package says it, held against those allowed.

    .venv/bin/python .ci/licences.py LOCK…

prints a table. Exit status 1 where a licence is not allowed, or a package tells none.
"""

import re
import sys
from collections.abc import Iterator
from importlib.metadata import PackageMetadata, PackageNotFoundError, metadata
from pathlib import Path

ALLOWED = frozenset(
    {
        "Apache-2.0",
        "BSD",
        "BSD-2-Clause",
        "BSD-3-Clause",
        # Used as it is published, as a library of its own.
        "LGPL-3.0-only",
        "MIT",
        "MIT-0",
        "MPL-2.0",
        "PSF-2.0",
    }
)
"""By their names in SPDX; all that a package names have to be among them."""

SPELLINGS = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""Other names for them, of which packages make use."""

_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)", re.MULTILINE)
_TOGETHER = re.compile(r"\bAND\b|\bOR\b|[()]")


def pinned(lock: Path) -> Iterator[tuple[str, str]]:
    """Yield name and version of each package of a lock file."""
    yield from _PINNED.findall(lock.read_text("utf-8"))


def declared(told: PackageMetadata) -> tuple[str, ...]:
    """Return what a package says it is under: an expression, or names, of SPDX where known."""
    classifiers = told.get_all("Classifier") or ()
    listed = [
        c.rpartition(" :: ")[2] for c in classifiers if c.startswith("License ::")
    ]
    named = (
        [told["License-Expression"]]
        if "License-Expression" in told
        else listed or (told.get("License") or "").splitlines()[:1]
    )
    return tuple(dict.fromkeys(SPELLINGS.get(name, name) for name in named if name))


def licences(package: str) -> tuple[str, ...]:
    """Return the licences that an installed package names, those of an expression apart."""
    try:
        told = metadata(package)
    except PackageNotFoundError:
        return ()
    bare = (
        part.strip()
        for name in declared(told)
        for part in (_TOGETHER.split(name) if "License-Expression" in told else [name])
    )
    return tuple(dict.fromkeys(SPELLINGS.get(name, name) for name in bare if name))


def main(locks: list[str]) -> int:
    """Print the table and what is not allowed; return the exit status."""
    found = dict(pair for lock in locks for pair in pinned(Path(lock)))
    bad = []
    for package, version in sorted(found.items()):
        named = licences(package)
        print(f"{package:<40} {version:<16} {', '.join(named) or '-'}")
        if not named:
            bad.append(f"{package} tells no licence, or is not installed here.")
        bad += [
            f"{package} is under {each}, which is not allowed."
            for each in named
            if each not in ALLOWED
        ]
    print(f"{len(found)} packages.", *bad, sep="\n")
    return 1 if bad or not found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
