"""The image of a release as an archive, where a builder is.

    PYTHONPATH=. .venv/bin/python .ci/image.py VERSION FOLDER

Where podman or debootstrap is missing it says so, and the image is left out. `BASE` names
the base image; without it, one of Debian's packages is made.
"""

import sys
from pathlib import Path

from tests.deploy import containers


def main(version: str, folder: Path) -> None:
    """Write the archive into a folder."""
    if containers.MISSING:
        missing = ", ".join(containers.MISSING)
        print(f"LEFT OUT: the image, for want of {missing}.")
        return
    name = containers.build(f"localhost/encounters:{version}")
    archive = folder / f"encounters-{version}-image.tar"
    containers.podman(
        *("save", "--format", "oci-archive", "--output", str(archive.resolve()), name)
    )


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
