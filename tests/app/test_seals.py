"""What is sealed opens for its own field of its own page, with one of the keys, unchanged."""

import pytest
from cryptography.fernet import Fernet
from hypothesis import given
from hypothesis import strategies as st

from app.seals import BrokenSealError, Seals
from tests.app.changing import SEAL_KEYS

OLD, NEW = SEAL_KEYS
RAW = b'[2,"client"]'


@given(st.binary(), st.binary(), st.text())
def test_what_was_sealed_opens(raw: bytes, field: bytes, page_id: str) -> None:
    seals = Seals([OLD])
    assert seals.open(page_id, field, seals.seal(page_id, field, raw)) == raw


def test_the_same_is_never_sealed_the_same() -> None:
    seals = Seals([OLD])
    assert seals.seal("a", b"page", RAW) != seals.seal("a", b"page", RAW)


@pytest.mark.parametrize(("page_id", "field"), [("b", b"page"), ("a", b"link")])
def test_what_was_moved_does_not_open(page_id: str, field: bytes) -> None:
    seals = Seals([OLD])
    with pytest.raises(BrokenSealError):
        seals.open(page_id, field, seals.seal("a", b"page", RAW))


def test_what_was_changed_or_cut_does_not_open() -> None:
    seals = Seals([OLD])
    sealed = seals.seal("a", b"page", RAW)
    changed = [
        sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1 :]
        for at in range(len(sealed))
    ]
    cut = [sealed[:length] for length in range(len(sealed))]
    for broken in [*changed, *cut, sealed + b"\0"]:
        with pytest.raises(BrokenSealError):
            seals.open("a", b"page", broken)


def test_an_older_key_still_opens_until_it_is_taken_away() -> None:
    sealed = Seals([OLD]).seal("a", b"page", RAW)
    assert Seals([NEW, OLD]).open("a", b"page", sealed) == RAW
    with pytest.raises(BrokenSealError):
        Seals([NEW]).open("a", b"page", sealed)


def test_the_first_key_seals() -> None:
    sealed = Seals([NEW, OLD]).seal("a", b"page", RAW)
    assert Seals([NEW]).open("a", b"page", sealed) == RAW


def test_what_was_sealed_another_way_does_not_open() -> None:
    with pytest.raises(BrokenSealError):
        Seals([OLD]).open("a", b"page", Fernet(OLD).encrypt(RAW))
