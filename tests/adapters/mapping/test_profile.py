"""Profiles: the shipped ones equal the spec, and a faulty one says where."""

from pathlib import Path

import pytest

from adapters.contract import ResourceType
from adapters.mapping.problems import MappingError
from adapters.mapping.profile import PROFILES, Profile, ResourceProfile, load_profile
from adapters.parameters import profile_parameters
from tests.docs.pages import CHANGE, section, table

ENCOUNTER, PATIENT, ORGANIZATION = ResourceType

SPEC = section((CHANGE / "spec.md").read_text("utf-8"), "4.1 Search encounters")
# Spec 4.1, the columns "Available on group A" and "on group B".
CELLS = [
    (f"group-{group}", row[0], row[1], says)
    for row in table(SPEC, "Parameter")
    for group, says in zip("ab", row[2:], strict=True)
]
"""Each cell of those columns: profile, parameter, its meaning, and what stands there."""


def test_each_cell_of_the_spec():
    assert len(CELLS) == 18
    for profile, parameter, meaning, text in CELLS:
        offered = load_profile(profile, Path()).resources[ENCOUNTER].parameters
        if text == "no":
            assert parameter not in offered
        elif text == "yes, but only one date parameter":
            assert offered[parameter] == 1
        else:
            assert text == "yes"
            assert (offered[parameter] == 10) is ("at most 10 values" in meaning)


def test_each_shipped_profile():
    for name in PROFILES:
        profile = load_profile(name, Path())
        resources = profile.resources
        assert profile.paging is (name == "full")
        stays = resources[ENCOUNTER]
        assert (stays.count_default, stays.count_max) == (10, 100)
        unfiltered = {kind: r.unfiltered_search for kind, r in resources.items()}
        assert unfiltered == {ENCOUNTER: True, PATIENT: False, ORGANIZATION: True}
        if name == "full":
            for kind in ResourceType:
                offered = set(profile_parameters(kind))
                assert set(resources[kind].parameters) == offered
            organizations = resources[ORGANIZATION]
            assert (organizations.count_default, organizations.count_max) == (100, 100)
        else:
            patients = {"name": 100, "_id": 10, "_count": 1}
            assert resources[PATIENT].parameters == patients
            assert resources[ORGANIZATION].parameters == {}


def test_a_profile_of_ones_own(tmp_path):
    file = tmp_path / "ours.yaml"
    file.write_text(
        "profile: ours\n"
        "paging: true\n"
        "encounter: {date: {}, status: {values: 2}, count: {max: 20}}\n"
        "patient: {unfiltered_search: true, name: {}}\n"
    )
    stays = ResourceProfile({"date": 10, "status": 2}, 10, 20, True)
    patients = ResourceProfile({"name": 100}, 10, 100, True)
    expected = Profile("ours", True, {ENCOUNTER: stays, PATIENT: patients})
    assert load_profile(file.name, tmp_path) == expected
    file.write_text(
        "profile: a\npaging: true\nencounter: {count: {default: 50, max: 20}}\n"
    )
    with pytest.raises(MappingError, match="default 50 is above the maximum 20"):
        load_profile(file.name, tmp_path)
