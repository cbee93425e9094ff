"""Bills of materials (CycloneDX 1.6), with licences: of a wheel, and of an image.

    .venv/bin/python .ci/sbom.py wheel WHEEL LOCK OUT
    .venv/bin/python .ci/sbom.py image ROOT OUT

Of a wheel: the packages of a lock file, with their hashes; licences as the packages say that are
installed here. Of an image: what its root file system holds, so the packages of Python in
/opt/encounters, those of Debian, and the interpreter. Exit status 1 where a package of Python names
no licence.
"""

import hashlib
import os
import re
import sys
import uuid
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from email.parser import HeaderParser
from importlib.metadata import (
    Distribution,
    PackageNotFoundError,
    PathDistribution,
    distribution,
    distributions,
)
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import AttachedText, HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense, LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from licences import declared
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

NAME = "encounters"

_LOCKED = re.compile(
    r"^([A-Za-z0-9._-]+)==(\S+) \\\n((?:    --hash=\S+(?: \\)?\n)+)", re.MULTILINE
)
_SHA256 = re.compile(r"sha256:([0-9a-f]{64})")
_LICENCE = re.compile(r"^License: *(\S.*)$", re.MULTILINE)
_COMMON_LICENCE = re.compile(r"/usr/share/common-licenses/([A-Z][\w.-]*\w)")


# ---- packages of Python


def python_component(
    package: Distribution, version: str, hashes: Iterable[str] = ()
) -> Component:
    """Return a package of Python as a component, with the hashes of its files."""
    purl = PackageURL(
        "pypi", None, canonicalize_name(package.metadata["Name"]), version
    )
    return _component(ComponentType.LIBRARY, purl, declared(package.metadata), hashes)


def required(package: Distribution) -> Iterator[str]:
    """Yield the names of what a package requires, its extras included."""
    for line in package.requires or ():
        yield canonicalize_name(Requirement(line).name)


def joined(bom: Bom, packages: Mapping[str, tuple[Distribution, Component]]) -> None:
    """Add packages to a bill, with what each of them requires of the others."""
    for package, component in packages.values():
        bom.components.add(component)
        bom.register_dependency(
            component,
            [packages[name][1] for name in required(package) if name in packages],
        )


def _component(
    kind: ComponentType,
    purl: PackageURL,
    licences: Iterable[str],
    hashes: Iterable[str] = (),
    text: str = "",
) -> Component:
    """Return a component; `text` is that of its licences, for one that names none."""
    make = LicenseFactory()
    made = [make.make_from_string(name) for name in licences]
    if text and not made:
        made = [DisjunctiveLicense(name="in its text", text=AttachedText(content=text))]
    if len(made) > 1:
        # Beside other licences, an expression does not fit the schema.
        made = [
            make.make_with_name(each.value)
            if isinstance(each, LicenseExpression)
            else each
            for each in made
        ]
    return Component(
        type=kind,
        name=purl.name,
        version=purl.version,
        purl=purl,
        bom_ref=purl.to_string(),
        licenses=made,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=h) for h in hashes],
    )


# ---- a wheel


def wheel(file: Path, lock: Path) -> Bom:
    """Return the bill of a wheel and of the packages that a lock file pins for it."""
    with zipfile.ZipFile(file) as archive:
        (folder,) = {n.split("/")[0] for n in archive.namelist() if ".dist-info/" in n}
        # zipfile.Path offers what PathDistribution reads of a folder.
        ours = PathDistribution(zipfile.Path(archive, f"{folder}/"))  # type: ignore[arg-type]
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        bom = _bom(python_component(ours, ours.version, [digest]))
        packages = {}
        for name, version, hashes in _LOCKED.findall(lock.read_text("utf-8")):
            try:
                package = distribution(name)
            except PackageNotFoundError:
                # For another system or Python: its licence is not known here.
                purl = PackageURL("pypi", None, canonicalize_name(name), version)
                component = _component(ComponentType.LIBRARY, purl, ())
                component.properties.add(Property(name="licence", value="unknown"))
                bom.components.add(component)
                continue
            component = python_component(package, version, _SHA256.findall(hashes))
            packages[canonicalize_name(name)] = package, component
        joined(bom, packages)
        root = bom.metadata.component
        assert root is not None
        direct = [packages[name][1] for name in required(ours) if name in packages]
        bom.register_dependency(root, direct)
    return bom


# ---- an image


def image(root: Path) -> Bom:
    """Return the bill of the root file system of an image."""
    (place,) = root.glob("opt/encounters/lib/python3.*/site-packages")
    packages = {
        canonicalize_name(package.metadata["Name"]): (
            package,
            python_component(package, package.version),
        )
        for package in distributions(path=[str(place)])
    }
    version = packages[NAME][0].version
    ours = _component(
        ComponentType.CONTAINER, PackageURL("oci", None, NAME, version), ["Apache-2.0"]
    )
    bom = _bom(ours)
    joined(bom, packages)
    system = [*debian(root), *interpreter(root)]
    for component in system:
        bom.components.add(component)
    bom.register_dependency(ours, [packages[NAME][1], *system])
    return bom


def debian(root: Path) -> Iterator[Component]:
    """Yield the packages of Debian that are installed, with the licences of their copyright file.

    Debian's short names of licences are not all those of SPDX. A file that is not
    machine-readable names those of /usr/share/common-licenses, or is the licence itself.
    """
    status = root / "var/lib/dpkg/status"
    text = status.read_text("utf-8") if status.exists() else ""
    release = _release(root)
    for paragraph in filter(str.strip, text.split("\n\n")):
        fields = HeaderParser().parsestr(paragraph)
        if fields["Status"] != "install ok installed":
            continue
        name = fields["Package"]
        copyright_file = root / "usr/share/doc" / name / "copyright"
        told = copyright_file.read_text("utf-8") if copyright_file.exists() else ""
        purl = PackageURL(
            *("deb", "debian", name, fields["Version"]),
            qualifiers={"arch": fields["Architecture"], "distro": release},
        )
        names = _LICENCE.findall(told) or _COMMON_LICENCE.findall(told)
        licences = dict.fromkeys(name.strip() for name in names)
        yield _component(ComponentType.LIBRARY, purl, licences, text=told)


def interpreter(root: Path) -> Iterator[Component]:
    """Yield the Python of the image, where it is not one of Debian's packages."""
    if (root / "usr/bin/python3").exists():
        return
    settings = (root / "opt/encounters/pyvenv.cfg").read_text("utf-8")
    (version,) = re.findall(r"^version *= *(\S+)", settings, re.MULTILINE)
    purl = PackageURL("generic", None, "python", version)
    yield _component(ComponentType.APPLICATION, purl, ["PSF-2.0"])


def _release(root: Path) -> str:
    file = root / "etc/os-release"
    text = file.read_text("utf-8") if file.exists() else ""
    found = dict(re.findall(r'^(ID|VERSION_ID)="?([^"\n]*)"?$', text, re.MULTILINE))
    return "-".join(found[key] for key in ("ID", "VERSION_ID") if key in found)


# ---- files


def _bom(component: Component) -> Bom:
    """Return a bill of one component; the same at every build of the same commit."""
    bom = Bom()
    bom.metadata.component = component
    bom.serial_number = uuid.uuid5(uuid.NAMESPACE_URL, str(component.purl))
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch:
        bom.metadata.timestamp = datetime.fromtimestamp(int(epoch), UTC)
    return bom


def main(arguments: list[str]) -> int:
    """Write a bill of materials; return the exit status."""
    kind, *files, out = arguments
    bom = (wheel if kind == "wheel" else image)(*map(Path, files))
    Path(out).write_text(JsonV1Dot6(bom).output_as_string(indent=1) + "\n", "utf-8")
    nameless = [
        component
        for component in bom.components
        if not component.licenses and component.purl
    ]
    print(f"{out}: {len(bom.components)} components, {len(nameless)} without licence.")
    ours = [each for each in nameless if each.purl and each.purl.type == "pypi"]
    for component in ours:
        print(f"{component.name} {component.version} names no licence here.")
    return 1 if ours else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
