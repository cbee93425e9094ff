"""The demo hospital is the same in every database, and the mapping files read all of it."""

import re
from contextlib import closing
from dataclasses import replace

import pytest
import sqlalchemy as sa

from adapters import open_adapter
from adapters.contract import NotFoundError, ResourceType, RowFault, Sort, SortKey
from adapters.folding import fold
from adapters.mapping.load import load_mapping
from demo.hospital import LEAST_STAYS, NotEmptyError, fill, generate, houses, load
from demo.http import application
from demo.http import hospital as served_hospital
from demo.people import (
    CANARIES,
    CANARY_PATIENT,
    DIFFICULT_FAMILIES,
    search_form,
)
from demo.tables import ETABLISSEMENT, TABLES
from tests.hospital_http import SECRETS, serving
from tests.live import ROOT
from toolkit.contract.harness import (
    ORGANIZATION,
    PATIENT,
    STAY,
    ask,
    dates,
    patient,
    text,
    token,
)

STAYS = 2000
FHIR_ID = re.compile(r"[A-Za-z0-9\-.]{1,64}")
INS_SYSTEM = "urn:oid:1.2.250.1.213.1.4.10"


def opened(url, name):
    mapping = load_mapping(ROOT / "mappings" / name, {"PAS_URL": url, **SECRETS})
    # Who made the tables may change them.
    source = replace(mapping.source, may_write=True)
    return closing(open_adapter(replace(mapping, source=source)))


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def url(request, tmp_path_factory):
    """Return the address of the hospital in each kind of database, to be read only."""
    url = f"sqlite:///{tmp_path_factory.mktemp('pas')}/pas.sqlite"
    if request.param == "postgresql":
        url = request.getfixturevalue("new_postgresql")("unicode")
    fill(url, stays=STAYS)
    return url


@pytest.fixture(scope="module")
def connection(url):
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        yield connection
    engine.dispose()


@pytest.fixture(scope="module")
def adapter(url):
    with opened(url, "demo/demo.yaml") as adapter:
        yield adapter


def test_every_database_has_the_generated_rows(url, connection):
    generated = list(generate(STAYS, 1))
    for table in TABLES:
        (key,) = table.primary_key.columns
        rows = connection.execute(sa.select(table).order_by(key)).mappings()
        assert [dict(row) for row in rows] == [r for t, r in generated if t is table]
    # A database in use is left alone.
    with pytest.raises(NotEmptyError, match="sejour"):
        fill(url, stays=LEAST_STAYS)


def test_search_columns_are_folded_as_a_search_is(connection):
    for name in ("nom_naissance", "prenoms", "nom_utilise", "prenom_utilise"):
        statement = f"SELECT {name}, {name}_recherche FROM identite"
        for shown, searched in connection.exec_driver_sql(statement):
            assert searched == (shown and fold(shown).upper())
    for family in DIFFICULT_FAMILIES:
        assert search_form(family) == fold(family).upper()


def test_half_a_hospital_is_none(tmp_path):
    def interrupted():
        yield from houses()
        raise KeyboardInterrupt

    url = f"sqlite:///{tmp_path}/pas.sqlite"
    with pytest.raises(KeyboardInterrupt):
        load(url, interrupted())
    assert load(url, houses()) == {ETABLISSEMENT.name: 4}


def test_every_row_is_served_or_a_fault_and_ids_are_fhir_ids(adapter, connection):
    assert list(adapter.check()) == []
    rows = {
        kind: adapter.search(ask(of=kind, sort=Sort(SortKey.ID), count=10_000)).rows
        for kind in ResourceType
    }
    for kind, statement in (
        (STAY, "sejour WHERE etat NOT IN ('A', 'AN', 'X', 'SUP') OR etat IS NULL"),
        (PATIENT, "patient"),
    ):
        counted = connection.exec_driver_sql(f"SELECT COUNT(*) FROM {statement}")
        assert len(rows[kind]) == counted.scalar_one()
    columns = [row.column for row in rows[STAY] if isinstance(row, RowFault)]
    assert columns == ["etat"] * 5
    assert {r.column for r in rows[PATIENT] if isinstance(r, RowFault)} == {"sexe"}
    for kind, of_kind in rows.items():
        records = [row for row in of_kind if not isinstance(row, RowFault)]
        ids = [record.id for record in records]
        if kind is STAY:
            ids += [record.patient_id for record in records]
            ids += [str(record.organization_id) for record in records]
        if kind is PATIENT:
            ids += [r.replaced_by for r in records if r.replaced_by]
        assert len(records) > 3
        assert all(FHIR_ID.fullmatch(id) for id in ids)
    # Canaries are of one patient.
    holders = {row.id for row in rows[PATIENT] if any(c in repr(row) for c in CANARIES)}
    assert holders == {str(CANARY_PATIENT)}


def test_national_number_finds_qualified_identities_only(adapter, connection):
    for state, count in [("QUAL", 1), ("VALI", 0), ("RECU", 0)]:
        number = connection.exec_driver_sql(
            f"""SELECT n.valeur FROM identifiant_patient n JOIN identite i
            ON i.patient_id = n.patient_id AND i.statut = '{state}'
            WHERE n.domaine = 'INS-NIR'"""
        ).scalar()
        query = ask(token("identifier", f"{INS_SYSTEM}|{number}"), of=PATIENT)
        assert adapter.count(query) == count


def test_the_views_of_group_b_show_the_same_stays(url, adapter, connection):
    merged, survivor = map(
        str,
        connection.exec_driver_sql(
            "SELECT patient_id, fusion_vers FROM patient WHERE fusion_vers IS NOT NULL"
        ).first(),
    )
    with opened(url, "group-b/group-b.yaml") as views:
        assert list(views.check()) == []
        every = ask(count=10_000)
        rows = views.search(every).rows
        assert len(rows) == views.count(ask()) > 1900
        for row, expected in zip(rows, adapter.search(every).rows, strict=True):
            if isinstance(expected, RowFault):
                assert (type(row), row.column) == (RowFault, "situation")
            else:
                assert row == expected
        for query in (
            *(ask(dates(when)) for when in ("ge2024-06-01", "2024-06")),
            *(ask(patient(id)) for id in ("158", merged)),
            ask(text("name", "martin"), of=PATIENT),
        ):
            assert views.count(query) == adapter.count(query) > 0
        assert views.read(STAY, "8") == adapter.read(STAY, "8")
        record = views.read(PATIENT, merged)
        assert (record.active, record.replaced_by) == (False, survivor)
        assert views.read(ORGANIZATION, "2").id == "2"
        with pytest.raises(NotFoundError):
            views.read(ORGANIZATION, "99")


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_the_api_of_group_a_shows_the_same_stays(url, adapter):
    pas = served_hospital(list(generate(STAYS, 1)))
    api = application(pas, SECRETS["PAS_KEY"])
    with serving(api) as address, opened(address, "group-a/group-a.yaml") as stays:
        assert stays.count(ask()) == adapter.count(ask())
        page, same = (each.search(ask(count=20)) for each in (stays, adapter))
        assert page.more
        assert [row.start for row in page.rows] == [row.start for row in same.rows]
    # A national number is shown of a qualified identity only.
    for shown in list(pas["patients"].values())[:30]:
        is_shown = any(number["domaine"] == "INS-NIR" for number in shown["numeros"])
        record = adapter.read(PATIENT, str(shown["id"]))
        assert is_shown == (INS_SYSTEM in {n.system for n in record.identifiers})
