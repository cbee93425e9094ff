"""The bill of materials (CycloneDX 1.6) of a wheel: the packages of a lock file.

    .venv/bin/python .ci/sbom.py WHEEL LOCK OUT

With the hashes of all their files, and the licences that the installed packages name. Exit
status 1 where one names none.
"""

import hashlib
import os
import re
import sys
import uuid
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import (
    Distribution,
    PackageNotFoundError,
    PathDistribution,
    distribution,
)
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from licences import declared
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_LOCKED = re.compile(
    r"^([A-Za-z0-9._-]+)==(\S+) \\\n((?:    --hash=\S+(?: \\)?\n)+)", re.MULTILINE
)
_SHA256 = re.compile(r"sha256:([0-9a-f]{64})")


# ---- packages of Python


def python_component(
    package: Distribution, version: str, hashes: Iterable[str] = ()
) -> Component:
    """Return a package of Python as a component, with the hashes of its files."""
    purl = PackageURL(
        "pypi", None, canonicalize_name(package.metadata["Name"]), version
    )
    return _component(purl, declared(package.metadata), hashes)


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
    purl: PackageURL, licences: Iterable[str], hashes: Iterable[str] = ()
) -> Component:
    make = LicenseFactory()
    made = [make.make_from_string(name) for name in licences]
    if len(made) > 1:
        # Beside other licences, an expression does not fit the schema.
        made = [
            make.make_with_name(each.value)
            if isinstance(each, LicenseExpression)
            else each
            for each in made
        ]
    return Component(
        type=ComponentType.LIBRARY,
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
                component = _component(purl, ())
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
    file, lock, out = map(Path, arguments)
    bom = wheel(file, lock)
    out.write_text(JsonV1Dot6(bom).output_as_string(indent=1) + "\n", "utf-8")
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
