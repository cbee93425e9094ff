"""The image of the Dockerfile, built by podman on a base of Debian's packages; it wants root.

What is made is kept in `build/image`, so that a second run takes seconds.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.live import ROOT

PROGRAMS = ("podman", "debootstrap")
MISSING = [name for name in PROGRAMS if not shutil.which(name)]
STORE = ROOT / "build" / "image"
STAND_IN = "localhost/python-stand-in"
SECONDS = 900


def podman(*arguments: str) -> str:
    """Run podman on a store of our own; return what it prints."""
    STORE.mkdir(parents=True, exist_ok=True)
    places = ("--root", str(STORE / "storage"), "--runroot", str(STORE / "run"))
    done = subprocess.run(
        ["podman", *places, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout.strip()


def base() -> str:
    """Return the base image: `BASE` of the environment, or Debian with its own Python."""
    if named := os.environ.get("BASE"):
        return named
    if not podman("images", "--quiet", STAND_IN):
        tree, archive = STORE / "debian", STORE / "debian.tar"
        included = "--include=python3,python3-venv,ca-certificates"
        for command in (
            ("debootstrap", "--variant=minbase", included, "bookworm", str(tree)),
            ("tar", "--directory", str(tree), "--create", "--file", str(archive), "."),
        ):
            subprocess.run(
                command, stdout=subprocess.DEVNULL, timeout=SECONDS, check=True
            )
        podman("import", str(archive), STAND_IN)
        archive.unlink()
        shutil.rmtree(tree)
    return STAND_IN


def build(name: str, **arguments: str) -> str:
    """Build the image of our Dockerfile and return its name."""
    command = ["build", "--isolation", "chroot", "--network", "host", "--layers"]
    command += ["--format", "docker", "--tag", name]
    for key, value in {"BASE": base(), **arguments}.items():
        command += ["--build-arg", f"{key}={value}"]
    # In the build, pip trusts whom it trusts on this machine; the image keeps nothing.
    authorities = os.environ.get("PIP_CERT") or os.environ.get("SSL_CERT_FILE")
    if authorities:
        settings, place = STORE / "pip.conf", "/etc/ssl/certs/of-this-machine"
        STORE.mkdir(parents=True, exist_ok=True)
        settings.write_text(f"[global]\ncert = {place}\n")
        command += ["--volume", f"{settings}:/etc/pip.conf:ro"]
        command += ["--volume", f"{authorities}:{place}:ro"]
    podman(*command, ".")
    return name


@contextmanager
def mounted(image: str) -> Iterator[Path]:
    """Mount the root file system of an image."""
    try:
        yield Path(podman("image", "mount", image))
    finally:
        podman("image", "unmount", image)
