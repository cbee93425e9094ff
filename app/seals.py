"""What is kept in Redis is sealed: who has no key neither reads it, nor changes or moves it."""

import os
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from app.stamps import derived_key

_NONCE_BYTES = 12
_TAG_BYTES = 16


class BrokenSealError(ValueError):
    """It was not sealed for this place, or with a key that the settings no longer have."""


class Seals:
    """Seals what is kept in a field of a page; the first key seals, all of them open.

    AES-256-GCM (NIST SP 800-38D). Each page has a key of its own, made of one of `keys`:
    under a single one random nonces would be too few in the end.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = tuple(derived_key(key, b"seal") for key in keys)

    def seal(self, page_id: str, field: bytes, raw: bytes) -> bytes:
        """Return `raw`, sealed for this field of this page."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + _cipher(self._keys[0], page_id).encrypt(nonce, raw, field)

    def open(self, page_id: str, field: bytes, sealed: bytes) -> bytes:
        """Return what was sealed for this field of this page. Raises BrokenSealError."""
        if len(sealed) < _NONCE_BYTES + _TAG_BYTES:
            raise BrokenSealError
        nonce, text = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
        for key in self._keys:
            with suppress(InvalidTag):
                return _cipher(key, page_id).decrypt(nonce, text, field)
        raise BrokenSealError


# A page, and each of its links, is sealed or opened one after the other.
@lru_cache
def _cipher(key: bytes, page_id: str) -> AESGCM:
    return AESGCM(blake2b(page_id.encode(), key=key, digest_size=32).digest())
