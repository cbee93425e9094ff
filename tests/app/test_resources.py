"""Every stay of the edge cases, and some patients and organizations, as STU3 resources.

The client holds each response to STU3 and to the spec (tests/validity).
"""

import pytest

from tests.app.answers import body, pages
from tests.serving import issues
from toolkit.contract.hospital import EDGES

R4_ONLY = ("serviceType", "reasonCode", "basedOn", "supportedProfile", '"source"')


@pytest.fixture
def bundles(served):
    """Return every page of every stay, and of some patients and organizations."""
    return [
        page
        for kind, params in (
            ("Encounter", {"_count": "20", "_sort": "date"}),
            ("Patient", {"name:contains": "a", "_count": "3"}),
            ("Organization", {"name:contains": "a"}),
        )
        for page in pages(served, served.search(kind, params))
    ]


@pytest.fixture
def stays(bundles):
    """Return every stay that is served, by its id."""
    resources = [entry["resource"] for page in bundles for entry in page["entry"]]
    stays = [each for each in resources if each["resourceType"] == "Encounter"]
    assert len(stays) > 60
    return {each["id"]: each for each in stays}


def test_a_result_holds_what_the_spec_lists_and_its_total_counts_matches_alone(
    served, bundles
):
    """BUN-01 BUN-02 BUN-03 BUN-04 BUN-05 BUN-06 BUN-07 BUN-08 ENC-09 ENC-10."""
    for bundle in bundles:
        # In the order of spec 2.5.
        parts = ["resourceType", "id", "type", "total", "link", "entry"]
        assert list(bundle) == parts
        assert not [name for name in R4_ONLY if name in str(bundle)]
    assert len({b["total"] for b in bundles if "Encounter/" in str(b)}) == 1
    assert any(issues(bundle) for bundle in bundles)
    plain, lenient = (
        served.search("Encounter", params, Prefer="handling=lenient")
        for params in ({"patient": "2"}, {"patient": "2", "foo": "1"})
    )
    assert len(lenient["entry"]) == len(plain["entry"]) + 1
    assert lenient["total"] == plain["total"] == 2


def test_stays_have_every_state_their_number_and_their_times(stays):
    """REF-05 ENC-01 ENC-02 ENC-03 ENC-05 ENC-06 ENC-07 ENC-08 ENC-11."""
    states = {stay["status"] for stay in stays.values()}
    assert states == {"planned", "in-progress", "finished"}
    numbers = [each for stay in stays.values() for each in stay.get("identifier", ())]
    assert {"000123", "123", "O'B", '"'} <= {number["value"] for number in numbers}
    assert any("system" in number for number in numbers)
    periods = {id: stay["period"] for id, stay in stays.items() if "period" in stay}
    # The hour that happens twice, and both sides of the clock change.
    assert periods["30"] == {
        "start": "2024-10-27T02:30:00+02:00",
        "end": "2024-10-27T02:45:00+02:00",
    }
    assert periods["33"] == {
        "start": "2024-03-31T01:59:59+01:00",
        "end": "2024-03-31T03:30:00+02:00",
    }
    # An open stay has no end.
    assert periods["22"].keys() == {"start"}
    assert periods["23"].keys() == {"end"}
    assert "26" not in periods


def test_every_row_is_found_as_it_is_read_or_reported(served, stays):
    """ENC-12."""
    for id, stay in stays.items():
        assert body(served.get(f"Encounter/{id}")) == stay
    concealed = {row.id for row in EDGES.stays if row.state in ("A", "X")}
    invalid = {row.id for row in EDGES.stays} - concealed - {*map(int, stays)}
    assert invalid
    for id in invalid:
        assert served.get(f"Encounter/{id}").status_code == 500
