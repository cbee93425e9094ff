"""The image built and run without a Docker engine: buildah, runc, and a base of Debian's.

All of it comes from Debian's packages (buildah, runc, debootstrap) and wants root. What is
made is kept in `build/image`, so that a second run takes seconds.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.live import ROOT

PROGRAMS = ("buildah", "runc", "debootstrap")
MISSING = [name for name in PROGRAMS if not shutil.which(name)]
STORE = ROOT / "build" / "image"
STAND_IN = "localhost/python-stand-in"
SECONDS = 900


def buildah(*arguments: str) -> str:
    """Run buildah on a store of our own and return what it prints."""
    STORE.mkdir(parents=True, exist_ok=True)
    command = ["buildah", "--root", str(STORE / "storage")]
    command += ["--runroot", str(STORE / "run"), *arguments]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout.strip()


def base() -> str:
    """Return the base image: `BASE` of the environment, or Debian with its own Python."""
    if named := os.environ.get("BASE"):
        return named
    if STAND_IN not in buildah("images", "--format", "{{.Name}}").splitlines():
        tree = STORE / "debian"
        included = "--include=python3,python3-venv,ca-certificates"
        subprocess.run(
            ["debootstrap", "--variant=minbase", included, "bookworm", str(tree)],
            stdout=subprocess.DEVNULL,
            timeout=SECONDS,
            check=True,
        )
        for kept in ("var/cache/apt", "var/lib/apt/lists"):
            shutil.rmtree(tree / kept)
        container = buildah("from", "scratch")
        buildah("add", "--quiet", container, str(tree), "/")
        buildah("commit", "--quiet", container, STAND_IN)
        buildah("rm", container)
        shutil.rmtree(tree)
    return STAND_IN


def build(name: str, **arguments: str) -> str:
    """Build the image of our Dockerfile and return its name."""
    chosen = {"BASE": base(), **arguments}
    command = ["bud", "--isolation", "chroot", "--network", "host", "--layers"]
    command += ["--format", "docker", "--tag", name, *_pip()]
    for key, value in chosen.items():
        command += ["--build-arg", f"{key}={value}"]
    buildah(*command, ".")
    return name


def _pip() -> Iterator[str]:
    """Let pip trust, in the build, whom it trusts on this machine; the image keeps nothing."""
    authorities = os.environ.get("PIP_CERT") or os.environ.get("SSL_CERT_FILE")
    if authorities:
        STORE.mkdir(parents=True, exist_ok=True)
        settings = STORE / "pip.conf"
        settings.write_text("[global]\ncert = /etc/ssl/certs/of-this-machine\n")
        yield from ("--volume", f"{settings}:/etc/pip.conf:ro")
        yield from ("--volume", f"{authorities}:/etc/ssl/certs/of-this-machine:ro")


def config(image: str) -> Any:
    """Return what the image says of itself: user, ports, command, health check."""
    return json.loads(buildah("inspect", "--type", "image", image))["Docker"]["config"]


@contextmanager
def mounted(image: str) -> Iterator[Path]:
    """Mount the root file system of a container of the image."""
    container = buildah("from", image)
    try:
        yield Path(buildah("mount", container))
    finally:
        buildah("rm", container)


class Container:
    """A container as the compose file and the manifests ask for: see `specification`."""

    def __init__(self, bundle: Path, name: str, told: Mapping[str, Any]) -> None:
        (bundle / "config.json").write_text(json.dumps(told))
        self._bundle, self._name = bundle, name
        self._process: subprocess.Popen[bytes] | None = None
        self.log = bundle / "log"

    def start(self) -> None:
        """Start what the image starts; what it says goes to `log`."""
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                ["runc", "run", "--bundle", str(self._bundle), self._name],
                stdout=log,
                stderr=log,
            )

    def execute(self, *command: str) -> "subprocess.CompletedProcess[str]":
        """Run a command in the running container, as its user."""
        return subprocess.run(
            ["runc", "exec", self._name, *command],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def signal(self, name: str) -> None:
        """Send a signal to the first process, as an engine does."""
        subprocess.run(["runc", "kill", self._name, name], check=True)

    def ends(self) -> int:
        """Wait until it has ended; return its exit status."""
        assert self._process is not None
        return self._process.wait(60)

    def remove(self) -> None:
        """End it, whatever it does, and leave nothing behind."""
        subprocess.run(
            ["runc", "delete", "--force", self._name], stderr=subprocess.DEVNULL
        )
        if self._process is not None:
            self._process.wait(60)


def specification(
    image: str,
    root: Path,
    environ: Mapping[str, str],
    mounts: Mapping[Path, str],
    arguments: Sequence[str] = (),
) -> dict[str, Any]:
    """Return an OCI bundle's `config.json`: not root, nothing writable but memory.

    It shares the network of this machine, where the test's Redis and provider are; `mounts`
    are what of this machine, and where; read-only, unless `:rw` stands behind.
    """
    told = config(image)
    user, _, group = told["User"].partition(":")
    environment = told["Env"] + [f"{k}={v}" for k, v in environ.items()]
    memory = {"type": "tmpfs", "source": "tmpfs"}
    limited = ["nosuid", "nodev", "noexec", "mode=1777", "size=64m"]
    shown = [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev", **memory, "options": ["nosuid", "mode=755"]},
        {"destination": "/dev/shm", **memory, "options": limited},
        {"destination": "/tmp", **memory, "options": limited},
    ]
    owned = ["nosuid", "nodev", "mode=700", f"uid={user}", f"gid={group}"]
    shown += [
        {"destination": place, **memory, "options": owned}
        for place in told.get("Volumes") or ()
        if place not in {mount.partition(":")[0] for mount in mounts.values()}
    ]
    for path, mount in mounts.items():
        place, _, how = mount.partition(":")
        bound = {"type": "bind", "source": str(path), "options": ["bind", how or "ro"]}
        shown.append({"destination": place, **bound})
    return {
        "ociVersion": "1.0.0",
        "process": {
            "user": {"uid": int(user), "gid": int(group)},
            "args": [*told["Entrypoint"], *(arguments or told["Cmd"])],
            "env": environment,
            "cwd": told["WorkingDir"],
            "capabilities": {},
            "noNewPrivileges": True,
        },
        "root": {"path": str(root), "readonly": True},
        "mounts": shown,
        "linux": {"namespaces": [{"type": kind} for kind in ("pid", "ipc", "mount")]},
    }
