"""Keys, signed ids, and the encryption of what Redis stores.

Everything derives from the keys of the settings: the first signs and encrypts, all of them
verify and decrypt (decision 11).
"""

import base64
import hmac
import os
import re
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

ID_LENGTH = 32
"""The length of a signed id."""

_RANDOM_BYTES = 10
_TIME_BYTES = 4
_DIGEST_BYTES = 6
_NONCE_BYTES = 12
_SIGNED_ID = re.compile(rf"[a-z2-7]{{{ID_LENGTH}}}", re.ASCII)


def derived_key(key: str, purpose: bytes) -> bytes:
    """Return a key for one purpose, derived from a key of the settings."""
    return blake2b(key.encode(), digest_size=32, person=purpose).digest()


class Signatures:
    """Issues and verifies ids and cursors; the first of `keys` signs, all of them verify.

    An id is random bytes, the time of issue and a short keyed digest of both and of what
    the id belongs to: it reveals nothing, always has the same length and cannot be forged.
    """

    def __init__(self, keys: Sequence[str], clock: Callable[[], float]) -> None:
        self._keys = tuple(derived_key(key, b"signature") for key in keys)
        self._clock = clock

    def issue(self, *belonging: str) -> str:
        """Return a new id of 32 characters a-z and 2-7, valid with the same texts only."""
        issued = int(self._clock()).to_bytes(_TIME_BYTES)
        body = secrets.token_bytes(_RANDOM_BYTES) + issued
        digest = _signature(self._keys[0], body, belonging)
        return base64.b32encode(body + digest).decode().lower()

    def is_valid(self, id: str, *belonging: str) -> bool:
        """Whether a well-formed id was issued here with the same texts."""
        raw = base64.b32decode(id.upper())
        body, digest = raw[:-_DIGEST_BYTES], raw[-_DIGEST_BYTES:]
        return any(
            hmac.compare_digest(_signature(key, body, belonging), digest)
            for key in self._keys
        )


def is_well_formed(id: str) -> bool:
    """Whether the text has the length and the alphabet of a signed id."""
    return _SIGNED_ID.fullmatch(id) is not None


def _signature(key: bytes, body: bytes, belonging: Sequence[str]) -> bytes:
    parts = [part.encode() for part in belonging]
    text = b"".join(len(part).to_bytes(4) + part for part in parts)
    return blake2b(body + text, key=key, digest_size=_DIGEST_BYTES).digest()


class DecryptionError(ValueError):
    """The content belongs elsewhere, was changed, or its key left the settings."""


class Encryption:
    """Encrypts fields of pages and sessions; the first of `keys` encrypts, all decrypt.

    AES-256-GCM (NIST SP 800-38D), with a key per id: random nonces under a single key
    would be too few in the end.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = tuple(derived_key(key, b"encryption") for key in keys)

    def encrypt(self, id: str, field: bytes, raw: bytes) -> bytes:
        """Return `raw`, encrypted for this field of this id."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + _cipher(self._keys[0], id).encrypt(nonce, raw, field)

    def decrypt(self, id: str, field: bytes, content: bytes) -> bytes:
        """Return what was encrypted for this field of this id. Raises DecryptionError."""
        nonce, text = content[:_NONCE_BYTES], content[_NONCE_BYTES:]
        for key in self._keys:
            # ValueError: too short to hold a nonce.
            with suppress(InvalidTag, ValueError):
                return _cipher(key, id).decrypt(nonce, text, field)
        raise DecryptionError


# A page and each of its links are encrypted one after the other.
@lru_cache
def _cipher(key: bytes, id: str) -> AESGCM:
    return AESGCM(blake2b(id.encode(), key=key, digest_size=32).digest())
