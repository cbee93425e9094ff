"""Decision 9: searching patients and organizations, and patients who were merged."""

from collections.abc import Mapping
from pathlib import Path

import pytest
import responses

from adapters.testing.hospital import (
    FINESS_SYSTEM,
    IPP_SYSTEM,
    Hospital,
    OrganizationRow,
)
from adapters.testing.stays import EDGES, LARGEST_ID
from tests.app.answers import body, refused
from tests.hospital_sql import mapping_text
from tests.redis_server import RedisServer
from tests.serving import Served, ids, relations, serve

FULL = Path(__file__).parents[2] / "mappings" / "profiles" / "full.yaml"


@pytest.mark.parametrize(
    ("params", "found"),
    [
        # the start of a word, of any part of the name
        ({"name": "mart"}, "1 3"),
        ({"name": "Jean"}, "1 9"),
        ({"name": "artin"}, ""),
        ({"name": "tour"}, "2"),
        ({"name": "de la"}, "2"),
        ({"name": "jones"}, "12"),
        ({"name": "brien"}, "4"),
        ({"name": "hermite"}, "4"),
        # without regard to case or accents
        ({"name": "ELEONORE"}, "3"),
        ({"name": "éléonore"}, "3"),
        ({"name": "dupres"}, "1"),
        ({"name": "oedipe"}, "5"),
        ({"name": "nunez"}, "9"),
        ({"name": "lukasz"}, "9"),
        # family and given names apart; alternatives; together
        ({"family": "martin"}, "1 3"),
        ({"family": "jean"}, "9"),
        ({"given": "jean"}, "1"),
        ({"given": "martin"}, ""),
        ({"given": "paul,ann"}, "1 7 8 12"),
        ({"family": "martin", "given": "jean"}, "1"),
        ({"family": "martin", "given": "ann"}, ""),
        # signs that patterns give a meaning to
        ({"name": "100%"}, "6"),
        ({"name": "a_b"}, "6"),
        ({"name": "a%b"}, ""),
        # :exact and :contains
        ({"family:exact": "MARTIN"}, "3"),
        ({"family:exact": "Martin"}, "1"),
        ({"family:exact": "Mart"}, ""),
        ({"given:exact": "Éléonore"}, "3"),
        ({"name:contains": "arti"}, "1 3"),
        ({"family:contains": "TOUR"}, "2 3"),
        ({"given:contains": "eono"}, "3"),
    ],
    ids=str,
)
def test_09_patients_by_name(
    served: Served, params: Mapping[str, str], found: str
) -> None:
    assert ids(served.search("Patient", params)) == found.split()


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("1950-02-28", "1"),
        ("eq1950-02", "1"),
        ("1950", "1 2"),
        ("ne1950", "3 4 5 7 8 9 12"),
        ("lt1950-03-01", "1"),
        ("le1950-03-01", "1 2"),
        ("gt2000-01-01", "3"),
        ("ge2000-01-01", "3 5"),
        ("1950-02-28,2000-02-29", "1 3"),
    ],
)
def test_09_patients_by_birth_date(served: Served, value: str, found: str) -> None:
    assert ids(served.search("Patient", {"birthdate": value})) == found.split()


@pytest.mark.parametrize(
    ("params", "found"),
    [
        ({"gender": "female"}, ["2", "3", "12"]),
        ({"gender": "male", "birthdate": "1969"}, ["9"]),
        ({"gender": "other"}, []),
        ({"identifier": f"{IPP_SYSTEM}|3"}, ["3"]),
        ({"identifier": "0042"}, ["12", str(LARGEST_ID)]),
        ({"identifier": "urn:oid:1.2.3|0042"}, ["12"]),
        ({"identifier": "urn:oid:1.2.4|"}, ["12", str(LARGEST_ID)]),
        ({"identifier": "|7"}, ["12"]),
        ({"identifier": "abc"}, [str(LARGEST_ID)]),
        ({"_id": "3,1,999"}, ["1", "3"]),
    ],
    ids=str,
)
def test_09_patients_by_gender_identifier_and_id(
    served: Served, params: Mapping[str, str], found: list[str]
) -> None:
    assert ids(served.search("Patient", params)) == found


def test_09_patients_are_counted_and_sorted(served: Served) -> None:
    first = served.search("Patient", {"name": "paul", "_count": "2", "_sort": "-_id"})
    assert ids(first) == ["8", "7"]
    assert first["total"] == 3
    assert ids(served.follow(first, "next")) == ["1"]


@pytest.mark.parametrize("params", [{}, {"_count": "5"}, {"_sort": "_id"}], ids=str)
def test_09_a_search_for_all_patients_breaks_a_rule(
    served: Served, params: Mapping[str, str]
) -> None:
    text = refused(served.post("Patient/_search", params), 422, "business-rule")
    assert "birthdate" in text


def test_09_lenient_does_not_make_it_a_search_for_all_patients(served: Served) -> None:
    answer = served.post(
        "Patient/_search", {"nom": "Martin"}, Prefer="handling=lenient"
    )
    refused(answer, 422, "business-rule")


def test_09_a_profile_may_allow_it(
    redis_server: RedisServer, tmp_path: Path, keys: responses.RequestsMock
) -> None:
    # The profile of this deployment lies beside its mapping file.
    full = FULL.read_text("utf-8")
    own = full.replace("unfiltered_search: false", "unfiltered_search: true")
    (tmp_path / "own.yaml").write_text(own.replace("profile: full", "profile: own"))
    open_to_all = serve(EDGES, tmp_path, redis_server.url, profile="own.yaml")
    assert open_to_all.search("Patient")["total"] == len(EDGES.patients)


def test_09_a_merged_patients_old_id_still_reads(served: Served) -> None:
    merged = body(served.get("Patient/7"))
    assert merged["active"] is False
    assert merged["link"] == [
        {"other": {"reference": "Patient/8"}, "type": "replaced-by"}
    ]
    assert "link" not in body(served.get("Patient/8"))
    assert body(served.get("Patient/8")).get("active") is not False


@pytest.mark.parametrize("value", ["7", "Patient/7", "8", "7,8"])
def test_09_stays_carry_the_survivor_and_both_ids_find_them(
    served: Served, value: str
) -> None:
    found = served.search("Encounter", {"patient": value})
    assert ids(found) == ["91", "90"]
    subjects = [each["resource"]["subject"]["reference"] for each in found["entry"]]
    assert subjects == ["Patient/8", "Patient/8"]


# ------------------------------------------------------------------ organizations


def test_09_an_organization_is_read(served: Served) -> None:
    found = body(served.get("Organization/H-3.b"))
    assert found["name"] == "100% Santé"
    (number,) = body(served.get("Organization/H1"))["identifier"]
    assert number["system"] == FINESS_SYSTEM
    assert number["value"] == "750000001"


@pytest.mark.parametrize(
    ("params", "found"),
    [
        ({"_id": "H1,h2"}, ["H1", "h2"]),
        ({"name": "hopital"}, ["H1", "h2"]),
        ({"name": "coeur"}, ["H2"]),
        ({"name:exact": "HOPITAL DU NORD"}, ["h2"]),
        ({"name:contains": "pit"}, ["H1", "h2"]),
        ({"identifier": "0042"}, ["042"]),
        ({"identifier": f"{FINESS_SYSTEM}|750000002"}, ["H2"]),
        ({"identifier": "750000002", "name": "hopital"}, []),
    ],
    ids=str,
)
def test_09_organizations_by_id_name_and_identifier(
    served: Served, params: Mapping[str, str], found: list[str]
) -> None:
    assert ids(served.search("Organization", params)) == found


def test_09_a_page_of_organizations_holds_100(
    redis_server: RedisServer, tmp_path: Path, keys: responses.RequestsMock
) -> None:
    many = tuple(OrganizationRow(f"O{n:03}", f"Site {n}") for n in range(101))
    served = serve(Hospital(organizations=many), tmp_path, redis_server.url)
    first = served.search("Organization")
    assert len(ids(first)) == 100
    assert ids(served.follow(first, "next")) == ["O100"]
    # Nor more where a client asks for more, and lets the service decide (decision 3).
    lenient = {"Prefer": "handling=lenient"}
    wide = served.search("Organization", {"_count": "5000"}, **lenient)
    assert ids(wide) == ids(first)


def test_09_organizations_need_the_scope_that_reads_them(served: Served) -> None:
    reader = served.as_client("reader", "ORGANIZATION_READ")
    assert reader.search("Organization", {"_id": "H1"})["total"] == 1
    assert reader.get("Organization/H1").status_code == 200
    other = served.as_client("other", "PATIENT_SEARCH PATIENT_READ ENCOUNTER_SEARCH")
    for answer in (
        other.get("Organization/H1"),
        other.post("Organization/_search", {"_id": "H1"}),
    ):
        assert "ORGANIZATION_READ" in refused(
            answer, 403, "processing", "Authorization"
        )


# ---------------------------------------------------------------- groups A and B


@pytest.mark.parametrize("group", ["group-a", "group-b"])
def test_09_groups_find_and_read_patients_without_pages(
    groups: Mapping[str, Served], group: str
) -> None:
    served = groups[group]
    assert ids(served.search("Patient", {"name": "mart"})) == ["1", "3"]
    assert ids(served.search("Patient", {"_id": "3,4"})) == ["3", "4"]
    few = served.search("Patient", {"name": "paul", "_count": "2"})
    assert (ids(few), few["total"], relations(few)) == (["1", "7"], 3, ["self"])
    assert body(served.get("Patient/7"))["active"] is False
    assert body(served.get("Organization/H1"))["id"] == "H1"
    assert body(served.get("Encounter/1"))["id"] == "1"
    refused(served.post("Organization/_search", {"_id": "H1"}), 404, "not-found")
    refused(served.post("Patient/_search", {}), 422, "business-rule")


def test_09_exact_is_refused_where_the_source_cannot(
    redis_server: RedisServer, tmp_path: Path, keys: responses.RequestsMock
) -> None:
    # Several given names in one column cannot be told apart by the database.
    mapping = mapping_text(EDGES, f"sqlite:///{tmp_path / 'pas.db'}")
    cut = mapping.replace("{from: given}", '{from: given, split: " "}')
    served = serve(EDGES, tmp_path, redis_server.url, mapping=cut)
    answer = served.post("Patient/_search", {"given:exact": "Jean"})
    text = refused(answer, 400, "code-invalid", "given:exact")
    assert text.endswith("':exact'; it takes :contains.")
    assert ids(served.search("Patient", {"given": "paul"})) == ["1", "7", "8"]
