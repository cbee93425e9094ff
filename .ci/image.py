"""The image of a release as an archive, and its bill of materials, where a builder is.

    PYTHONPATH=. .venv/bin/python .ci/image.py VERSION FOLDER

Where buildah, runc or debootstrap is missing it says so, and the image is left out. `BASE` names
the base image; without it, one of Debian's packages is made.
"""

import sys
from pathlib import Path

import sbom

from tests.deploy import containers


def main(version: str, folder: Path) -> int:
    """Write archive and bill of materials into a folder; return the exit status."""
    if containers.MISSING:
        missing = ", ".join(containers.MISSING)
        print(f"LEFT OUT: the image, for want of {missing}.")
        return 0
    name = containers.build(f"localhost/encounters:{version}")
    archive = folder / f"encounters-{version}-image.tar"
    containers.buildah("push", name, f"oci-archive:{archive.resolve()}:{name}")
    bill = folder / f"encounters-{version}-image.cdx.json"
    with containers.mounted(name) as root:
        return sbom.main(["image", str(root), str(bill)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
