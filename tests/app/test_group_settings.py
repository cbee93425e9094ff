"""The settings of groups A and B are whole, each with addresses and keys of its own."""

from pathlib import Path
from typing import NamedTuple

import pytest

from adapters.mapping.load import load_mapping
from app.operations.audit import open_trail
from app.settings import AuditFailure, AuditPatients, Settings
from tests.app.changing import SEAL_KEYS
from tests.live import ROOT

GROUPS = ("a", "b")
STAGES = ("production", "test")
FROM_THE_SECRET_STORE = {
    "a": {"PAS_KEY": "secret"},
    "b": {"PAS_URL": "postgresql://encounters:secret@pas.group-b.example.org/pas"},
}


class Given(NamedTuple):
    """The variables of a group in one environment, and the settings that they become."""

    variables: dict[str, str]
    settings: Settings


def given(group: str, stage: str, etc: Path) -> Given:
    """Read a settings file as it is once its folder is copied to `etc`."""
    shipped = ROOT / "mappings" / f"group-{group}"
    text = (shipped / f"{stage}.env").read_text("utf-8")
    text = text.replace("/etc/encounters", str(etc))
    text = text.replace("/var/log/encounters", str(etc / "log"))
    lines = (line for line in text.splitlines() if line and line[0] != "#")
    variables = dict(line.split("=", 1) for line in lines)
    mapping = Path(variables["ENCOUNTERS_MAPPING"])
    mapping.parent.mkdir()
    mapping.write_bytes((shipped / mapping.name).read_bytes())
    Path(variables["ENCOUNTERS_SEAL_KEYS_FILE"]).write_text(SEAL_KEYS[0])
    Path(variables["ENCOUNTERS_AUDIT_KEY_FILE"]).write_text(
        mapping.parent.name.ljust(40, "k")
    )
    Path(variables["ENCOUNTERS_AUDIT"]).parent.mkdir(parents=True)
    return Given(variables, Settings.from_environ(variables))


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("stage", STAGES)
def test_settings_and_mapping_are_whole(group: str, stage: str, tmp_path: Path) -> None:
    variables, settings = given(group, stage, tmp_path)
    secrets = FROM_THE_SECRET_STORE[group]
    assert not set(secrets) & set(variables)
    mapping = load_mapping(settings.mapping, {**variables, **secrets})
    assert (mapping.name, mapping.profile) == (
        f"Group {group.upper()}",
        f"group-{group}",
    )


@pytest.mark.parametrize(
    "name",
    [
        "base_url",
        "bind",
        "operations_bind",
        "mapping",
        "redis_url",
        "audit",
        "audit_key",
    ],
)
def test_each_group_has_its_own_in_each_environment(name: str, tmp_path: Path) -> None:
    values = {
        getattr(given(group, stage, tmp_path).settings, name)
        for group in GROUPS
        for stage in STAGES
    }
    assert len(values) == 4


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("stage", STAGES)
def test_no_answer_leaves_without_its_audit_event(
    group: str, stage: str, tmp_path: Path
) -> None:
    settings = given(group, stage, tmp_path).settings
    trail = open_trail(settings, mapping="", site="")
    assert trail is not None
    assert settings.audit_failure is AuditFailure.REFUSE
    assert settings.audit_patients is AuditPatients.DIGEST


@pytest.mark.parametrize("name", ["issuer", "audience", "key_set_url"])
def test_identity_differs_between_the_environments_alone(
    name: str, tmp_path: Path
) -> None:
    """Spec 1 and 5: authentication domain and audience are those of an environment."""
    a, b = (
        [getattr(given(group, stage, tmp_path).settings, name) for stage in STAGES]
        for group in GROUPS
    )
    assert a == b
    assert len(set(a)) == 2
