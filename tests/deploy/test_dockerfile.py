"""What the Dockerfile promises, read off its text; `make image` shows it on a real image."""

import json
import re
from pathlib import PurePath

from app.config import SETTINGS
from tests.live import ROOT

TEXT = (ROOT / "Dockerfile").read_text("utf-8")
IGNORED = (ROOT / ".dockerignore").read_text("utf-8").splitlines()


def instructions() -> list[tuple[str, str]]:
    """Return the instructions with what stands behind each, lines joined."""
    lines = (line for line in TEXT.splitlines() if not line.lstrip().startswith("#"))
    joined = re.sub(r"\\\n", "", "\n".join(lines))
    pairs = (line.partition(" ") for line in joined.splitlines() if line.strip())
    return [(name, behind.strip()) for name, _, behind in pairs]


def last_stage() -> dict[str, str]:
    """Return the instructions of the stage that becomes the image; of several, the last."""
    all_of_them = instructions()
    begins = max(i for i, (name, _) in enumerate(all_of_them) if name == "FROM")
    return dict(all_of_them[begins:])


def test_its_health_check_needs_nothing_but_python() -> None:
    check = json.loads(last_stage()["HEALTHCHECK"].partition(" CMD ")[2])
    assert check[:3] == ["python3", "-IS", "-c"]
    compile(check[3], "health check", "exec")
    assert "/live" in check[3]


def test_every_package_is_checked_by_its_hash() -> None:
    run = (behind for name, behind in instructions() if name == "RUN")
    installs = re.findall(r"pip (?:install|download)[^&]*", " && ".join(run))
    assert all("--require-hashes" in each or "--no-index" in each for each in installs)
    assert len(installs) == 3


def test_what_is_sent_to_the_builder_is_named_one_by_one() -> None:
    assert IGNORED[0] == "*"
    allowed = {line[1:] for line in IGNORED if line.startswith("!")}
    copied = {
        part
        for name, behind in instructions()
        if name == "COPY" and "--from" not in behind
        for part in behind.split()[:-1]
    }
    assert allowed == copied
    assert all((ROOT / PurePath(part)).exists() for part in copied)


def test_settings_that_it_names_are_settings() -> None:
    named = set(re.findall(r"ENCOUNTERS_\w+", TEXT))
    assert named <= {setting.name for setting in SETTINGS}
