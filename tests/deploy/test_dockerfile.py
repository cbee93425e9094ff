"""What the Dockerfile promises of its packages; `make image` shows the rest on a real image."""

import re

from tests.live import ROOT

TEXT = re.sub(r"\\\n", "", (ROOT / "Dockerfile").read_text("utf-8"))


def test_every_package_is_checked_by_its_hash() -> None:
    installs = re.findall(r"pip (?:install|download)[^&\n]*", TEXT)
    assert len(installs) == 3
    assert all("--require-hashes" in each or "--no-index" in each for each in installs)


def test_what_is_sent_to_the_builder_is_named_one_by_one() -> None:
    first, *others = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    copied = re.findall(r"^COPY (?!.*--from)(.+) \S+$", TEXT, re.MULTILINE)
    names = {name for line in copied for name in line.split()}
    assert first == "*"
    assert {line[1:] for line in others if line.startswith("!")} == names
    assert all((ROOT / name).exists() for name in names)
