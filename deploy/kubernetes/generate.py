"""The plain manifests, rendered from the chart; and the version of setup.cfg, where charts need it.

    .venv/bin/python deploy/kubernetes/generate.py [--check]

`make manifests` builds helm and runs this. With `--check` nothing is written: exit status 1 where
a file differs from what would be. Exit status 2: there is no helm.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "kubernetes"
CHART = ROOT / "deploy" / "chart"

EXPLORER = "explorer.example.org"
"""The host name of the explorer in the manifests, which are examples."""

HEAD = "# Rendered from ../chart by `make manifests`: change the chart.\n"

_VERSIONS = (
    (CHART / "Chart.yaml", r"(?<=^version: ).*$"),
    (CHART / "Chart.yaml", r"(?<=^appVersion: ).*$"),
    (FOLDER / "kustomization.yaml", r'(?<=newTag: ")[^"]*'),
)
"""Files that hold the version of the product, and where."""

_SOURCE = re.compile(r"^---\n# Source: encounters/templates/(\S+)\n", re.MULTILINE)


def version() -> str:
    """Return the version of the product."""
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg", "utf-8")
    return setup["metadata"]["version"]


def helm() -> str | None:
    """Return the helm of this machine: `HELM`, that of `.ci/helm`, or that of the path."""
    built = ROOT / "build" / "bin" / "helm"
    named = os.environ.get("HELM")
    return named or (str(built) if built.exists() else shutil.which("helm"))


def versioned() -> dict[Path, str]:
    """Return the files that hold the version, with that of setup.cfg."""
    texts: dict[Path, str] = {}
    for file, place in _VERSIONS:
        text = texts.get(file) or file.read_text("utf-8")
        texts[file] = re.sub(place, version(), text, flags=re.MULTILINE)
    return texts


def manifests(program: str) -> Iterator[tuple[Path, str]]:
    """Yield each plain manifest; settings, mapping and image are for kustomize to fill in."""
    for name, text in _rendered(program):
        yield FOLDER / name, text
    # Of the explorer its Ingress alone: the rest are patches of the others.
    ingress = dict(_rendered(program, f"explorer.host={EXPLORER}"))["explorer.yaml"]
    yield FOLDER / "explorer" / "ingress.yaml", ingress


def _rendered(program: str, *values: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each file of the chart."""
    values = (
        *("image.repository=encounters", f"image.tag={version()}", "configMaps=false"),
        *values,
    )
    rendered = subprocess.run(  # noqa: S603 - helm, with arguments of ours
        [
            *(program, "template", "encounters", str(CHART)),
            *("--namespace", "encounters"),
            *("--values", str(CHART / "example.yaml"), "--set", ",".join(values)),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    _, *parts = _SOURCE.split(rendered.stdout)
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        yield name, HEAD + text


def main(arguments: list[str]) -> int:
    """Write the files, or compare them; return the exit status."""
    program = helm()
    if program is None:
        print("helm is not installed, and .ci/helm has not built it.", file=sys.stderr)
        return 2
    texts = {**versioned(), **dict(manifests(program))}
    differing = [
        file
        for file, text in texts.items()
        if not file.exists() or file.read_text("utf-8") != text
    ]
    for file in differing:
        print(file.relative_to(ROOT))
        if "--check" not in arguments:
            file.write_text(texts[file], "utf-8")
    return 1 if differing and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
