"""The stays around now: a living hospital, and nobody of the documentation in it."""

from collections import Counter
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from demo.hospital import fill
from demo.living import WAVES, enliven
from demo.tables import MOUVEMENT, SEJOUR

STAYS = 1000
ZONE = ZoneInfo("Europe/Paris")
BEFORE, NOW = (datetime(2026, 11, day, 14, 5, 7, tzinfo=ZONE) for day in (20, 28))


def test_a_start_replaces_the_stays_around_now_and_no_others(tmp_path):
    url = f"sqlite:///{tmp_path / 'pas.sqlite'}"
    fill(url, stays=STAYS)
    engine = sa.create_engine(url)
    moved = sa.select(MOUVEMENT).where(MOUVEMENT.c.sejour_id > STAYS)
    with engine.connect() as connection:
        before = connection.execute(sa.select(SEJOUR)).all()
    for now in (BEFORE, NOW, NOW + timedelta(minutes=50)):
        enliven(url, STAYS, now)
    with engine.connect() as connection:
        rows = connection.execute(sa.select(SEJOUR)).all()
        moves = connection.execute(moved).all()
    engine.dispose()
    assert [row for row in rows if row.sejour_id <= STAYS] == before
    living = [row for row in rows if row.sejour_id > STAYS]
    assert len(living) == len(moves) == sum(wave.stays for wave in WAVES)
    assert len({row.patient_id for row in living}) == len(living)
    assert not {158, 42} & {row.patient_id for row in living}
    states = Counter(row.etat for row in living)
    assert states["E"] + states["EC"] == 22
    # A start within the hour keeps them: what clients have seen is still there.
    assert max(row.maj_utc for row in living) == datetime(2026, 11, 28, 13, 5)  # noqa: DTZ001 - UTC
    for row in living:
        assert (row.date_entree > NOW.replace(tzinfo=None)) is (row.etat == "P")
        assert row.date_sortie is None or row.date_entree < row.date_sortie
